"""Whether models are alike up to their weights, so that one program is the program of all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from torch import nn

__all__ = ["alike", "settings_of"]

_PLAIN = (bool, int, float, str, type(None))


def alike(models: Sequence[nn.Module]) -> bool:
    """Whether models have the same parts with the same settings.

    Example:
        >>> alike([nn.Dropout(0.5), nn.Dropout(0.5)]), alike([nn.Dropout(0.5), nn.Dropout(0.6)])
        (True, False)
    """
    return len({settings_of(model) for model in models}) <= 1


def settings_of(model: nn.Module) -> Hashable:
    """The parts of a model by their paths, with their types and settings; weights are not among them.

    Example:
        >>> settings_of(nn.Linear(2, 3)) == settings_of(nn.Linear(2, 3))
        True
    """
    return tuple((path, type(part), _attributes(part)) for path, part in model.named_modules())


def _attributes(part: nn.Module) -> Hashable:
    return tuple(sorted((name, _setting(value)) for name, value in vars(part).items() if not name.startswith("_")))


def _setting(value: Any) -> str:
    """Numbers, words and containers of them as they are; of anything else, its name or type."""
    if isinstance(value, list | tuple | set):
        return f"{type(value).__name__}({', '.join(map(_setting, value))})"
    if isinstance(value, dict):
        return repr({str(name): _setting(one) for name, one in value.items()})
    return repr(value) if isinstance(value, _PLAIN) else str(getattr(value, "__qualname__", type(value)))
