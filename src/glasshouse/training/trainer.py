"""What a trainer is; one with a version that the user sets; and one seed for every library's own random stream."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, shortened
from glasshouse.core.optional import is_module
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_TRAINERS = {  # by the base class of a module, since these libraries are optional
    "LightningModule": "LightningTrainer",
    "PreTrainedModel": "TransformersTrainer",
}


@runtime_checkable
class Trainer(Protocol):
    """Anything that trains one model on the members of a population; a plain function is enough.

    The model it returns is a torch module that gives logits, an estimator with ``predict_proba``, or a callable
    ``x -> logits``. The same seed must give the same model.

    Labels come as numbers: ``population.y`` [N] holds the column 0..C-1 of each record's class, whatever the labels
    are, and ``population.classes[population.y]`` the labels themselves. A module or a callable answers with one column
    per class of the *population*, in the order of ``population.classes``, also if the members lack a class. An
    estimator may be fitted to the labels themselves and says by its ``classes_`` which column is which.

    Example:
        >>> def train(population, members, seed):
        ...     share = np.bincount(population.y[members], minlength=2) / members.sum()
        ...     return lambda x: np.tile(np.log(share), (len(x), 1))
        >>> import numpy as np
        >>> from glasshouse.data import Population
        >>> model = train(Population([[0.0], [1.0]], [0, 1]), np.array([True, True]), seed=0)
        >>> model(np.zeros((1, 1))).round(2)
        array([[-0.69, -0.69]])
    """

    def __call__(self, population: Any, members: BoolArray, /, seed: int) -> Any:
        """Train on ``members`` alone, [N] booleans over the population: a `Population`, or a graph."""


def check_trainer(trainer: Any, *, place: str = "trainer", graph: bool = False) -> None:
    """Refuse what cannot be called as a trainer, of models on one graph or of others, before anything is trained."""
    advice = "Pass TorchTrainer, SklearnTrainer, GNNTrainer, or a function (population, members, seed) -> model."
    of_records = isinstance(trainer, ModuleTrainer) or type(trainer).__name__ == "SklearnTrainer"
    if not callable(trainer) or isinstance(trainer, type) or is_module(trainer) or (graph and of_records):
        given = trainer if isinstance(trainer, type) else type(trainer)
        kind, bases = given.__name__, {base.__name__: base.__module__ for base in given.__mro__}
        if graph:
            made = f"model=lambda: {kind}(…)" if "torch.nn.modules.module" in bases.values() else "…"
            advice = f"On a graph pass GNNTrainer({made}), or a function (data, members, seed) -> model."
        elif "torch.nn.modules.module" in bases.values():
            fitting = next((known for base, known in _TRAINERS.items() if base in bases), "TorchTrainer")
            advice = f"Pass {fitting}(module=…) with what makes a fresh {kind}, such as lambda: {kind}(…)."
        elif hasattr(trainer, "fit"):
            made = f"{kind}(…)" if isinstance(trainer, type) else "…"
            advice = f"It is an estimator: pass SklearnTrainer(estimator={made})."
        raise InputError(f"{place}: {kind} is not a trainer. {advice}")
    try:
        signature = inspect.signature(trainer)
    except (TypeError, ValueError):  # a callable written in another language may not show its arguments
        return
    try:
        signature.bind("population", "members", 0)
    except TypeError as error:
        raise InputError(
            f"{place}: it cannot be called as trainer(population, members, seed): {error}. {advice}"
        ) from None


def check_factory(factory: Any, *, place: str) -> None:
    """Refuse a module in place of something that makes fresh ones: every shadow model starts untrained."""
    if isinstance(factory, str):
        raise InputError(
            f"{place}: {shortened(factory)} is a name. Give what makes a fresh module, such as lambda: Net(…); a "
            f"network by name is GNNTrainer(architecture=…)."
        )
    if is_module(factory) or not callable(factory):
        name = type(factory).__name__
        raise InputError(
            f"{place}: is a {name} that is already made. Give what makes a fresh one, such as lambda: {name}(…): every "
            f"shadow model starts untrained."
        )


class OnDevice:
    """A trainer whose user may name a device."""

    device: str | None

    @property
    def place(self) -> torch.device:
        """Where models are trained: by default the GPU, if there is one."""
        import torch

        chosen = torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise InputError(f"device: torch finds no GPU for {self.device!r}; leave device out to train on the CPU.")
        return chosen


@dataclass(frozen=True, kw_only=True)
class ModuleTrainer:
    """What trainers of torch modules share."""

    module: Callable[[], nn.Module]  # makes an untrained one

    def __post_init__(self) -> None:
        check_factory(self.module, place="module")

    def restore(self, population: Population, tensors: dict[str, Tensor]) -> nn.Module:
        """A trained module again, from its stored weights; where the trainer has a device, on that."""
        model = self.module()
        model.load_state_dict(tensors)
        return (model.to(self.place) if isinstance(self, OnDevice) else model).eval()


@dataclass(frozen=True)
class Versioned:
    """A trainer, or a part of one, that a pool identifies by a version instead of by its code and values.

    Two with the same version count as the same, so change it whenever you change what is inside. It is needed if
    something cannot be described, such as an open file; it also helps if a trainer changes its own attributes.

    Args:
        trainer: what to call.
        version: your own name for the current state of the trainer.

    Example:
        >>> trainer = Versioned(lambda population, members, seed: seed, version="1")
        >>> trainer(None, None, seed=3)
        3
    """

    trainer: Any
    version: str = field(kw_only=True)

    def __post_init__(self) -> None:
        given: Any = self.version
        if not isinstance(given, str) or not given.strip():
            raise InputError(f"version: {given!r} is not a version; give your own text, such as '1'.")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """What the trainer gives."""
        return self.trainer(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        """What else the trainer can do, such as ``restore`` or ``train_many``."""
        if name.startswith("__") or name in ("trainer", "version"):  # looked up while a copy is made
            raise AttributeError(name)
        return getattr(self.trainer, name)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, the random streams of Python, numpy and torch (if loaded) follow a seed; then the user's own go on."""
    python, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002 (others' code reads this stream)
    torch: Any = sys.modules.get("torch")
    with contextlib.nullcontext() if torch is None else torch.random.fork_rng():
        random.seed(seed_for(seed, "python"))
        np.random.seed(seed_for(seed, "numpy") % 2**32)  # noqa: NPY002
        if torch is not None:
            torch.manual_seed(seed_for(seed, "torch"))
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)  # noqa: NPY002
