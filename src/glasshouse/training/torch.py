"""Train a torch module on the members of a population; or many of one architecture in one batch (``torch.func``)."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.core.errors import InputError, number_faults, raise_faults, shortened
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import Population, as_members, select
from glasshouse.io.caches import keep_code_private
from glasshouse.training.batches import (
    ModuleBatch,
    answers_for,
    batch_sizes,
    batches,
    fitting_threads,
    labels_of,
    mean_loss,
    optimizer_obstacle,
    say_once,
    split,
    spread,
)
from glasshouse.training.inputs import Inputs, called, first_tensor, moved, reader_for, refuse_missing, rows_of, told_by
from glasshouse.training.schedules import EarlyStopping, Schedule
from glasshouse.training.trainer import ModuleTrainer, OnDevice

_TOGETHER = 16  # models per batch on a CPU


@dataclass(frozen=True, kw_only=True)
class TorchTrainer(OnDevice, ModuleTrainer):
    """Trains a fresh module by mini-batches; same seed, same weights.

    Args:
        module: makes an untrained module, such as ``lambda: MyNet()`` or ``mlp(64, 10)``. It gives logits [B, C]; or
            [B] or [B, 1] where there are two classes. A dict, a tuple or an object with ``logits`` is unwrapped, and
            a module that ends in softmax is trained on the logarithms of its probabilities. For a regression it gives
            predictions [B] or [B, 1], trained by squared error, or mean and log-variance [B, 2], by their likelihood.
            If the records are a dict of arrays, it is called with them by name.
        loss: ``(answer, y) -> loss``, what training minimises, for a `Population.for_loss`; a number, or one per record
            or part, whose mean counts. By default cross-entropy, or squared error for a regression.
        optimizer: makes an optimizer from parameters, such as ``functools.partial(torch.optim.SGD, lr=0.1)``.
        scheduler: makes a learning-rate scheduler from the optimizer, stepped once per epoch.
        schedule: from the share of training that is done to a factor on the learning rate, at every step; such as
            `OneCycle`. It works for any number of epochs.
        epochs: passes over the members.
        batch_size: records per step.
        augmentation: ``(batch, generator) -> batch``, applied to training batches only, such as `CropAndFlip`.
        early_stopping: when to end before the last epoch; never by default.
        label_smoothing: share of each label that is spread over all classes alike, for less certain answers.
        device: where to train; the GPU where there is one.
        mixed_precision: bfloat16 autocast and channels-last memory, on a GPU only.
        compiled: train through ``torch.compile``: the first model waits about a minute for it, and all steps are then
            shorter. Models that are trained in one batch are not compiled.

    Example:
        >>> import numpy as np
        >>> from glasshouse.training import mlp
        >>> population = Population(np.eye(4, dtype=np.float32), [0, 1, 0, 1])
        >>> trainer = TorchTrainer(module=mlp(4, 2), epochs=3)
        >>> model = trainer(population, np.array([True, True, False, False]), seed=0)
        >>> model(torch.eye(4)).shape
        torch.Size([4, 2])
    """

    loss: Callable[[Any, Tensor], Tensor] | None = None
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = torch.optim.Adam
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None
    schedule: Schedule | None = None
    epochs: int = 50
    batch_size: int = 128
    augmentation: Callable[[Any, torch.Generator], Any] | None = None
    early_stopping: EarlyStopping | None = None
    label_smoothing: float = 0.0
    device: str | None = None
    mixed_precision: bool = True
    compiled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "batch_size"):
            if not isinstance(value := getattr(self, name), Integral):
                raise InputError(f"{name}: {shortened(value)} is not a whole number; use one such as 20.")
        raise_faults(number_faults(self, shares=("label_smoothing",)))

    def mean_loss(self, answer: Tensor, y: Tensor) -> Tensor:
        """What training minimises on a batch."""
        if self.loss is not None:
            return self.loss(answer, y).mean()
        return mean_loss(answer, y, smoothing=self.label_smoothing)

    def train_many(self, population: Population, members: BoolArray, seeds: Sequence[int]) -> list[nn.Module]:
        """Like one call for each row of ``members`` [K, N] with its seed, in a fraction of the time for small models.

        Without dropout the models equal those of single calls up to rounding; with it, they draw other random numbers.
        Modules or optimizers that cannot be batched are trained one at a time, and the log ``glasshouse`` says why.
        """
        masks = as_members(members, (len(seeds), len(population.y)), place="members")
        probe = probe_batching(self, population)
        if probe.obstacle:
            say_once(f"Models are trained one at a time: {probe.obstacle}.")
            return [self(population, who, seed) for who, seed in zip(masks, seeds, strict=True)]
        x, y = probe.x.to(self.place), labels_of(population).to(self.place)
        # models with the same number of members take steps of the same size
        sizes = [int(who.sum()) for who in masks]
        groups = split(sizes, bytes_each=probe.bytes_each, device=self.place, together=_TOGETHER)
        with torch.random.fork_rng():  # weights and dropout follow our seeds, and the user's own stream stays as it was
            fresh = [_untrained(self, seed) for seed in seeds]

            def train(group: list[int]) -> list[nn.Module]:
                own = [seeds[index] for index in group]
                if probe.random:
                    torch.manual_seed(seed_for(0, "dropout", *own))
                rows = torch.from_numpy(np.stack([np.flatnonzero(who) for who in masks[group]]))
                return self._train_batch(population, [fresh[index] for index in group], x, y, rows, own)

            # random numbers of all groups come from one stream, which two groups at a time would share in any order
            return spread(train, groups, device=self.place, workers=1 if probe.random else None)

    def _train_batch(
        self, population: Population, models: list[nn.Module], x: Tensor, y: Tensor, rows: Tensor, seeds: list[int]
    ) -> list[nn.Module]:
        """Train on the records ``rows`` [K, n] of ``x`` and ``y``, each model in its own order."""
        modules = ModuleBatch(models)
        losses = _Losses(self, population, modules, x)
        shuffling = [torch.Generator().manual_seed(seed_for(seed, "batches")) for seed in seeds]
        augmenting = [torch.Generator(x.device).manual_seed(seed_for(seed, "augmentation")) for seed in seeds]
        count = rows.shape[1]

        def epoch() -> Iterable[Any]:
            return zip(*[batches(count, self.batch_size, random) for random in shuffling], strict=True)

        def loss(picked: Any) -> Tensor:
            chosen = torch.gather(rows, 1, torch.stack(picked)).to(x.device)  # [K, B]
            batch = x[chosen]
            if self.augmentation is not None:
                pairs = zip(batch, augmenting, strict=True)
                batch = torch.stack([self.augmentation(part, random) for part, random in pairs])
            return losses(batch, y[chosen]).sum()  # no model's gradient depends on another model

        self._fit(modules.parameters.values(), count, epoch, loss)
        return modules.unbatch()

    def __call__(
        self,
        population: Population,
        members: BoolArray,
        seed: int,
        *,
        after_epoch: Callable[[nn.Module], object] | None = None,
    ) -> nn.Module:
        """A module in evaluation mode, trained on ``members`` [N]; the seed is of weights, batches and all else.

        ``after_epoch`` is called with the module after every epoch, such as ``LossTrace(population).record``; it must
        not draw random numbers from torch.
        """
        device = self.place
        fast = self.mixed_precision and device.type == "cuda"
        with torch.random.fork_rng():  # weights and dropout follow our seed; the user's own random stream is unchanged
            model = _untrained(self, seed)
            inputs, labels = reader_for(model, population.x), labels_of(population)

            def records(chosen: BoolArray | IntArray) -> tuple[Inputs, Tensor]:
                return moved(inputs(select(population.x, chosen)), device), labels[torch.from_numpy(chosen)].to(device)

            x, y = records(members)
            if fast and isinstance(x, Tensor) and x.ndim == 4:
                model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
                x = x.contiguous(memory_format=torch.channels_last)
            refuse_missing(model, x, names=getattr(population.x, "columns", None))
            read = answers_for(population, model, x)
            stopper = None
            if rule := self.early_stopping:
                stopper = _Stopper(rule, *records(_held_out(rule, members, seed)), read, self.mean_loss)
            shuffling = torch.Generator().manual_seed(seed_for(seed, "batches"))
            augmenting = torch.Generator(device).manual_seed(seed_for(seed, "augmentation"))
            if self.compiled:
                keep_code_private()
            forward = torch.compile(model) if self.compiled else model

            def epoch() -> Iterable[Tensor]:
                model.train()
                return batches(len(y), self.batch_size, shuffling, device)

            def loss(rows: Tensor) -> Tensor:
                batch = rows_of(x, rows)
                if self.augmentation is not None:
                    batch = self.augmentation(batch, augmenting)
                with torch.autocast(device.type, dtype=torch.bfloat16, enabled=fast):
                    answer = called(forward, batch)
                return self.mean_loss(read(answer), y[rows])

            def has_enough() -> bool:
                if after_epoch is not None:
                    after_epoch(model)
                return stopper is not None and stopper.has_enough(model)

            with fitting_threads(model, first_tensor(x), self.batch_size):
                self._fit(model.parameters(), len(y), epoch, loss, has_enough)
            if stopper:
                stopper.restore(model)
        return model.eval()

    def _fit(
        self,
        parameters: Iterable[nn.Parameter],
        count: int,
        epoch: Callable[[], Iterable[Any]],
        loss: Callable[[Any], Tensor],
        has_enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Minimise the loss of the mini-batches of each epoch; of ``count`` records each model is trained on."""
        optimizer = self.optimizer(parameters)
        scheduler = self.scheduler(optimizer) if self.scheduler else None
        rates = None
        if schedule := self.schedule:
            steps = self.epochs * len(batch_sizes(count, self.batch_size))
            rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(min(1.0, step / steps)))
        for _ in range(self.epochs):
            for rows in epoch():
                optimizer.zero_grad(set_to_none=True)
                loss(rows).backward()
                optimizer.step()
                if rates:
                    rates.step()
            if scheduler:
                scheduler.step()
            if has_enough():
                break


def _held_out(rule: EarlyStopping, members: BoolArray, seed: int) -> IntArray:
    """The positions of the non-members on which early stopping measures the loss; ``members`` are [N]."""
    outside = np.flatnonzero(~members)
    if not len(outside):
        raise InputError("early_stopping: every record is a member, so none is left to measure; leave it out.")
    return generator(seed, "early stopping").permutation(outside)[: rule.records]


@dataclass
class _Stopper:
    """Follows the loss on held-out records, features ``x`` and labels ``y``, and remembers the best weights."""

    rule: EarlyStopping
    x: Inputs
    y: Tensor
    read: Callable[[Any], Tensor]  # from what the module returns to logits
    mean_loss: Callable[[Tensor, Tensor], Tensor]
    best: float = float("inf")
    best_state: dict[str, Any] | None = None
    waited: int = 0

    @torch.no_grad()
    def has_enough(self, model: nn.Module) -> bool:
        """Whether to stop, from the model after an epoch."""
        model.eval()
        total = 0.0
        for start in range(0, len(self.y), 1024):
            part = slice(start, start + 1024)
            answer = self.read(called(model, rows_of(self.x, part)))
            total += float(self.mean_loss(answer, self.y[part])) * len(self.y[part])
        loss = total / len(self.y)
        if loss < self.best:
            self.best, self.waited = loss, 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.rule.patience

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back."""
        if self.best_state is not None:
            model.load_state_dict(self.best_state)


class _Probe(NamedTuple):
    """What one step of two batched models shows."""

    obstacle: str | None = None  # why models must be trained one at a time, in words
    random: bool = False  # whether a step draws random numbers, as dropout does
    bytes_each: int = 0  # memory of one model in a batch
    x: Any = None  # [N, ...] all features, as the modules take them


def _untrained(trainer: TorchTrainer, seed: int) -> nn.Module:
    torch.manual_seed(seed_for(seed, "weights"))
    return trainer.module().to(trainer.place)


class _WideProducts(TorchFunctionMode):
    """Pads linear layers with few outputs, such as ten classes, to 16: MKL needs a third of the time for these."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not nn.functional.linear or kwargs or len(args) != 3 or args[1].shape[0] >= 16:
            return func(*args, **(kwargs or {}))
        x, weight, bias = args
        outputs = weight.shape[0]
        wide = func(x, nn.functional.pad(weight, (0, 0, 0, 16 - outputs)))[..., :outputs]
        return wide if bias is None else wide + bias


class _Losses:
    """Losses [K] of batched models on mini-batches [K, B, ...], labels [K, B]; inputs ``x`` show what they answer."""

    def __init__(self, trainer: TorchTrainer, population: Population, modules: ModuleBatch, x: Tensor) -> None:
        self.parameters: dict[str, Tensor] = {**modules.parameters}
        self.buffers = modules.buffers
        self.smoothing = trainer.label_smoothing
        self.fast = trainer.mixed_precision and trainer.place.type == "cuda"
        # its own copy: a call puts weights into it for a moment, and several groups may be trained at once
        self.body = copy.deepcopy(modules.models[0]).train()
        self.read = answers_for(population, self.body, x)
        self.losses = vmap(self._loss, randomness="different")

    def __call__(self, batch: Tensor, labels: Tensor) -> Tensor:
        with _WideProducts() if batch.device.type == "cpu" else contextlib.nullcontext():
            return self.losses(self.parameters, self.buffers, batch, labels)

    def _loss(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=self.fast, cache_enabled=False):
            answer = functional_call(self.body, (parameters, buffers), (x,))
        logits = self.read(answer)
        if y.is_floating_point() or logits.ndim == 1 or logits.shape[1] == 1:
            return mean_loss(logits, y, smoothing=self.smoothing)
        # by columns: a CPU then handles many records at once, not the few classes
        known = nn.functional.log_softmax(logits.t(), dim=0)
        loss = -known.gather(0, y[None]).mean()
        return loss if not self.smoothing else (1 - self.smoothing) * loss - self.smoothing * known.mean()


def probe_batching(trainer: TorchTrainer, population: Population) -> _Probe:
    """Try one step of two models on a batch of records."""
    if trainer.loss is not None:
        return _Probe("they are trained by a loss of their own")
    if trainer.early_stopping:
        return _Probe("early stopping ends each model at its own epoch")
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*performance drop")  # torch then loops over the models
        models = [_untrained(trainer, seed) for seed in (0, 1)]
        if obstacle := _module_obstacle(models[0]) or optimizer_obstacle(trainer.optimizer, models[0].parameters()):
            return _Probe(obstacle)
        everyone = reader_for(models[0], population.x)(population.x)
        if not isinstance(everyone, Tensor):
            return _Probe("the records are a dict of arrays, and models are batched on one tensor")
        few = slice(max(2, min(trainer.batch_size, len(population.y) // 2)))
        refuse_missing(models[0], everyone, names=getattr(population.x, "columns", None))
        x, y = everyone[few].to(trainer.place), labels_of(population)[few].to(trainer.place)
        bytes_each = _bytes_each(population, models[0], x, y)
        before = _random_state(trainer)
        try:
            losses = _Losses(trainer, population, ModuleBatch(models), x)
            losses(torch.stack([x, x]), torch.stack([y, y])).sum().backward()
        except Exception as error:
            return _Probe(f"torch.func cannot batch the module ({told_by(error)})")
        return _Probe(random=not torch.equal(before, _random_state(trainer)), bytes_each=bytes_each, x=everyone)


def _random_state(trainer: TorchTrainer) -> Tensor:
    gpu = [torch.cuda.get_rng_state(trainer.place)] if trainer.place.type == "cuda" else []
    return torch.cat([torch.get_rng_state(), *gpu])


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
    kept = [2 * x.nbytes]

    def count(tensor: Tensor) -> Tensor:
        kept.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        mean_loss(answers_for(population, model, x)(model.train()(x)), y)
    return sum(kept) + 4 * sum(parameter.nbytes for parameter in model.parameters())
