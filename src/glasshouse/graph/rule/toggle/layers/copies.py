"""Copies of a user's own layer: a layer may keep a state while it works, so no two threads call the same one."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from glasshouse.graph.models.layer_types import is_altered

__all__ = ["Copies", "can_copy"]


class Copies:
    """Copies of a layer with its weights, as many as there are threads that call it at the same time.

    Args:
        layer: it is copied, and never called by `one`.

    Example:
        >>> copies = Copies(nn.Linear(3, 2))
        >>> with copies.one() as first, copies.one() as second:
        ...     first is second
        False
        >>> with copies.one() as again:
        ...     again is first or again is second
        True
    """

    def __init__(self, layer: nn.Module) -> None:
        self._layer = layer
        self._free: list[nn.Module] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[nn.Module]:
        """A copy that nobody else has until it is given back."""
        with self._lock:
            mine = self._free.pop() if self._free else copy.deepcopy(self._layer)
        try:
            yield mine
        finally:
            with self._lock:
                self._free.append(mine)


def can_copy(layer: nn.Module) -> bool:
    """Whether a copy can stand for a layer; hooks and methods put into it may keep a state elsewhere.

    Example:
        >>> can_copy(nn.Linear(3, 2))
        True
        >>> layer = nn.Linear(3, 2)
        >>> layer.lock = threading.Lock()
        >>> can_copy(layer)
        False
    """
    if is_altered(layer):
        return False
    try:
        copy.deepcopy(layer)
    except Exception:  # whatever a user's class raises, it then stays on one core
        return False
    return True
