"""The engines that can compute the rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.toggles import Toggles

__all__ = ["Engine", "engines", "register_engine"]


class Engine(Protocol):
    """One way to compute ``toggle_losses`` for models that share a shape.

    One whose answers about a mask and a node are the same to the last bit whatever else is asked says ``apart = True``:
    its questions are cut into blocks only if there are workers to share them.
    """

    def supports(self, models: Sequence[Model], question: Question) -> bool:
        """Whether it can answer for these models, which all have the same shape."""

    def seconds(self, models: Sequence[Model], question: Question) -> float:
        """How long an audit that asks such questions would take with it; a function of the arguments alone."""

    def toggles(self, models: Sequence[Model], question: Question, *, memory: int) -> Toggles:
        """S and own losses, float64 [models, masks, nodes] each, within about ``memory`` bytes."""


E = TypeVar("E", bound=Engine)
_ENGINES: dict[str, tuple[int, Engine]] = {}


def register_engine(name: str, *, rank: int) -> Callable[[type[E]], type[E]]:
    """Class decorator: add an engine under a name; if two take equally long, the lower rank is taken.

    Example:
        >>> @register_engine("never", rank=99)
        ... class Never:
        ...     def supports(self, models, question):
        ...         return False
        ...     def seconds(self, models, question):
        ...         return 0.0
        ...     def toggles(self, models, question, *, memory):
        ...         raise NotImplementedError
        >>> "never" in engines()
        True
        >>> _ = _ENGINES.pop("never")
    """

    def add(engine: type[E]) -> type[E]:
        _ENGINES[name] = (rank, engine())
        return engine

    return add


def engines() -> dict[str, Engine]:
    """All engines by name, lowest rank first.

    Example:
        >>> list(engines())[-1]
        'packed'
    """
    return {name: engine for name, (_, engine) in sorted(_ENGINES.items(), key=lambda item: item[1][0])}
