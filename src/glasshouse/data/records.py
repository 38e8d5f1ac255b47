"""Records that are not rows of an array, such as graphs: what a population and queries need from their container."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import FloatArray, IntArray
from glasshouse.core.optional import is_made_by
from glasshouse.data.labels import comes_from


@runtime_checkable
class Records(Protocol):
    """Records that are not rows of an array; `glasshouse.graph` has one for lists of graphs."""

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N,)``."""

    @property
    def advice(self) -> str:
        """What to write where a list of such records is given in place of a population."""

    def __getitem__(self, rows: Any) -> Any:
        """Some of the records, by mask [N] or by positions; one of them by its position."""

    def labels(self) -> NDArray[Any]:
        """[N] the labels that the records themselves hold."""

    def contents(self) -> Iterator[bytes]:
        """Of each record, all that a model may see: equal for equal records."""

    def features(self) -> FloatArray:
        """[N, F] numbers about the records, for the test whether members were drawn at random."""

    def batches(self, size: int) -> Iterator[IntArray]:
        """Positions of records that are asked about in one batch, at most ``size``; all of them, in order."""

    def asker(self, model: Callable[..., Any], *, device: str | None) -> Callable[[Any], Any]:
        """A function that asks a model about a batch, which is a part of these records."""


# libraries whose objects a later room makes records of; it is imported when the first of them is given
_ROOMS = {"torch_geometric": "glasshouse.graph.data.graph_list"}
_MAKERS: dict[type, Callable[[Any], Records]] = {}


def register_records(kind: type, make: Callable[[Any], Records]) -> None:
    """Let populations be made of objects of this kind, or of lists and datasets of them."""
    _MAKERS[kind] = make


def recognised(x: Any) -> Records | None:
    """A container of registered records, if ``x`` is one or holds them."""
    if isinstance(x, Records):
        return x
    listed = isinstance(x, list | tuple) or is_made_by(x, "torch.utils.data", "Dataset")
    readable = listed and isinstance(x, Sized) and len(x) > 0  # one by one
    make = _maker(x) or (_maker(x[0]) if readable else None)
    return None if make is None else make(x)


def row_batches(x: Any, count: int, size: int) -> Iterator[IntArray]:
    """Positions of the records of each query: ``size`` at a time, or as their container wants."""
    if isinstance(x, Records):
        yield from x.batches(size)
        return
    for start in range(0, count, size):
        yield np.arange(start, min(start + size, count))


def _maker(one: Any) -> Callable[[Any], Records] | None:
    for library, room in _ROOMS.items():
        if comes_from(one, library):
            importlib.import_module(room)
    return next((_MAKERS[kind] for kind in type(one).__mro__ if kind in _MAKERS), None)
