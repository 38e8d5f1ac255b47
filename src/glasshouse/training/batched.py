"""Train many torch modules of one architecture in one batch, through ``torch.func``: one step for all of them."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from glasshouse.core.arrays import BoolArray
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population
from glasshouse.training.batches import (
    ModuleBatch,
    answers_for,
    batch_count,
    batches,
    classification_loss,
    labels_of,
    loss_for,
    optimizer_obstacle,
    regression_loss,
    say_once,
    split,
    spread,
)
from glasshouse.training.inputs import reader_for, refuse_missing
from glasshouse.training.schedules import EarlyStopping, Schedule, following

_TOGETHER = 16  # models per batch on a CPU


class _Trainer(Protocol):
    """What is used of a trainer; `TorchTrainer` has it, and imports this module."""

    @property
    def module(self) -> Callable[[], nn.Module]: ...
    @property
    def optimizer(self) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]: ...
    @property
    def scheduler(self) -> Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None: ...
    @property
    def schedule(self) -> Schedule | None: ...
    @property
    def epochs(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def augmentation(self) -> Callable[[Tensor, torch.Generator], Tensor] | None: ...
    @property
    def early_stopping(self) -> EarlyStopping | None: ...
    @property
    def place(self) -> torch.device: ...
    @property
    def mixed_precision(self) -> bool: ...
    def __call__(self, population: Population, members: BoolArray, seed: int) -> nn.Module: ...


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """What one step of two batched models shows."""

    obstacle: str | None = None
    random: bool = False  # whether a step draws random numbers, as dropout does
    bytes_each: int = 0  # memory of one model in a batch
    x: Tensor = field(default_factory=lambda: torch.empty(0))  # [N, ...] all features, as the modules take them


def batching_obstacle(trainer: _Trainer, population: Population) -> str | None:
    """Why this trainer's models must be trained one at a time, in words, or None; it tries one step on two records.

    Example:
        >>> from glasshouse.training import EarlyStopping, TorchTrainer, mlp
        >>> population = Population(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
        >>> batching_obstacle(TorchTrainer(module=mlp(4, 2)), population) is None
        True
        >>> batching_obstacle(TorchTrainer(module=mlp(4, 2), early_stopping=EarlyStopping()), population)
        'early stopping ends each model at its own epoch'
    """
    return _probe(trainer, population).obstacle


def train_batched(
    trainer: _Trainer, population: Population, members: BoolArray, seeds: Sequence[int]
) -> list[nn.Module]:
    """Models trained together where they can be, one at a time where not; see `TorchTrainer.train_many`.

    Example:
        >>> from glasshouse.training import TorchTrainer, mlp
        >>> population = Population(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
        >>> members = np.array([[True, True, False, False], [False, False, True, True]])
        >>> len(train_batched(TorchTrainer(module=mlp(4, 2), epochs=2), population, members, seeds=[0, 1]))
        2
    """
    probe = _probe(trainer, population)
    if probe.obstacle:
        say_once(f"Models are trained one at a time: {probe.obstacle}.")
        return [trainer(population, who, seed) for who, seed in zip(members, seeds, strict=True)]
    x, y = probe.x.to(trainer.place), labels_of(population).to(trainer.place)
    # models with the same number of members take steps of the same size
    groups = split(
        [int(who.sum()) for who in members], bytes_each=probe.bytes_each, device=trainer.place, together=_TOGETHER
    )
    with torch.random.fork_rng():  # weights and dropout follow our seeds, and the user's own stream stays as it was
        fresh = [_untrained(trainer, seed) for seed in seeds]

        def train(group: list[int]) -> list[nn.Module]:
            own = [seeds[index] for index in group]
            if probe.random:
                torch.manual_seed(seed_for(0, "dropout", *own))
            rows = torch.from_numpy(np.stack([np.flatnonzero(who) for who in members[group]]))
            return _train(trainer, population, [fresh[index] for index in group], x, y, rows, own)

        # random numbers of all groups come from one stream, which two groups at a time would share in any order
        return spread(train, groups, device=trainer.place, workers=1 if probe.random else None)


def _untrained(trainer: _Trainer, seed: int) -> nn.Module:
    torch.manual_seed(seed_for(seed, "weights"))
    return trainer.module().to(trainer.place)


def _train(
    trainer: _Trainer,
    population: Population,
    models: Sequence[nn.Module],
    x: Tensor,
    y: Tensor,
    rows: Tensor,
    seeds: Sequence[int],
) -> list[nn.Module]:
    """Train on the records ``rows`` [K, n] of ``x`` and ``y``, each model in its own order."""
    modules = ModuleBatch(models)
    step = _Step(trainer, population, modules, x)
    optimizer = trainer.optimizer(modules.parameters.values())
    scheduler = trainer.scheduler(optimizer) if trainer.scheduler else None
    rates = following(
        trainer.schedule, optimizer, steps=trainer.epochs * batch_count(rows.shape[1], trainer.batch_size)
    )
    shuffling = [torch.Generator().manual_seed(seed_for(seed, "batches")) for seed in seeds]
    augmenting = [torch.Generator(x.device).manual_seed(seed_for(seed, "augmentation")) for seed in seeds]
    for _ in range(trainer.epochs):
        epoch = [batches(rows.shape[1], trainer.batch_size, random) for random in shuffling]
        for picked in zip(*epoch, strict=True):
            chosen = torch.gather(rows, 1, torch.stack(picked)).to(x.device)  # [K, B]
            batch = x[chosen]
            if trainer.augmentation is not None:
                pairs = zip(batch, augmenting, strict=True)
                batch = torch.stack([trainer.augmentation(part, random) for part, random in pairs])
            optimizer.zero_grad(set_to_none=True)
            step(batch, y[chosen]).sum().backward()  # no model's gradient depends on another model
            optimizer.step()
            if rates:
                rates.step()
        if scheduler:
            scheduler.step()
    return modules.unbatch()


class _WideProducts(TorchFunctionMode):
    """Pads linear layers with few outputs, such as ten classes, to 16: MKL needs a third of the time for these."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not nn.functional.linear or kwargs or len(args) != 3 or args[1].shape[0] >= 16:
            return func(*args, **(kwargs or {}))
        x, weight, bias = args
        outputs = weight.shape[0]
        wide = func(x, nn.functional.pad(weight, (0, 0, 0, 16 - outputs)))[..., :outputs]
        return wide if bias is None else wide + bias


class _Step:
    """Losses [K] of batched models on mini-batches [K, B, ...], labels [K, B]; inputs ``x`` show what they answer."""

    def __init__(self, trainer: _Trainer, population: Population, modules: ModuleBatch, x: Tensor) -> None:
        self.parameters: dict[str, Tensor] = {**modules.parameters}
        self.buffers = modules.buffers
        self.fast = trainer.mixed_precision and trainer.place.type == "cuda"
        # its own copy: a call puts weights into it for a moment, and several groups may be trained at once
        self.body = copy.deepcopy(modules.models[0]).train()
        self.read = answers_for(population, self.body, x)
        self.losses = vmap(self._loss, randomness="different")

    def __call__(self, batch: Tensor, labels: Tensor) -> Tensor:
        with _WideProducts() if batch.device.type == "cpu" else contextlib.nullcontext():
            losses: Tensor = self.losses(self.parameters, self.buffers, batch, labels)
        return losses

    def _loss(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=self.fast, cache_enabled=False):
            answer = functional_call(self.body, (parameters, buffers), (x,))
        return _mean_loss(self.read(answer), y)


def _mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """As `loss_for` gives it; of classes by columns: a CPU then handles many records at once, not the few classes."""
    if labels.is_floating_point():
        return regression_loss(logits, labels)
    if logits.ndim == 1 or logits.shape[1] == 1:
        return classification_loss(logits, labels)
    return -nn.functional.log_softmax(logits.t(), dim=0).gather(0, labels[None]).mean()


def _probe(trainer: _Trainer, population: Population) -> _Probe:
    if trainer.early_stopping:
        return _Probe(obstacle="early stopping ends each model at its own epoch")
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*performance drop")  # torch then loops over the models
        models = [_untrained(trainer, seed) for seed in (0, 1)]
        obstacle = _module_obstacle(models[0]) or optimizer_obstacle(trainer.optimizer, models[0].parameters())
        if obstacle:
            return _Probe(obstacle=obstacle)
        everyone = reader_for(models[0], population.x)(population.x)
        if not isinstance(everyone, Tensor):
            return _Probe(obstacle="the records are a dict of arrays, and models are batched on one tensor")
        few = np.arange(len(population.y))[: max(2, min(trainer.batch_size, len(population.y) // 2))]
        refuse_missing(models[0], everyone, names=getattr(population.x, "columns", None))
        x, y = everyone[few].to(trainer.place), labels_of(population)[few].to(trainer.place)
        bytes_each = _bytes_each(population, models[0], x, y)
        before = torch.get_rng_state(), _cuda_state(trainer)
        try:
            _Step(trainer, population, ModuleBatch(models), x)(
                torch.stack([x, x]), torch.stack([y, y])
            ).sum().backward()
        except Exception as error:
            reason = str(error).strip().splitlines()
            return _Probe(obstacle=f"torch.func cannot batch the module ({reason[0] if reason else type(error)})")
        after = torch.get_rng_state(), _cuda_state(trainer)
        random = any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    return _Probe(random=random, bytes_each=bytes_each, x=everyone)


def _cuda_state(trainer: _Trainer) -> Tensor:
    return torch.cuda.get_rng_state(trainer.place) if trainer.place.type == "cuda" else torch.zeros(0)


def _module_obstacle(model: nn.Module) -> str | None:
    for module in model.modules():
        name = type(module).__name__
        if isinstance(module, nn.RNNBase):
            return f"the module holds a recurrent layer ({name}), which torch.func cannot batch"
        if isinstance(module, nn.modules.batchnorm._NormBase):
            return f"the module holds {name}, which keeps running statistics of its batches"
    if any(parameter._backward_hooks for parameter in model.parameters()):
        return "the parameters have hooks, which may mix entries of the weights"
    return None


def _bytes_each(population: Population, model: nn.Module, x: Tensor, y: Tensor) -> int:
    """Memory of one model's step: its mini-batch, what autograd keeps, the weights with gradients and two moments."""
    kept = 2 * x.numel() * x.element_size()

    def count(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        loss_for(population)(answers_for(population, model, x)(model.train()(x)), y)
    return kept + 4 * sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
