"""Threads that share out serial kernels; each thread has its own working space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from typing import Generic, TypeVar

import numpy as np

from glasshouse.compute import available_cores

__all__ = ["Workers", "available_cores", "even_cuts", "open_workers"]

Piece = TypeVar("Piece")
Space = TypeVar("Space")


def even_cuts(n: int, pieces: int) -> list[tuple[int, int]]:
    """The numbers below n as ranges of about equal length.

    Example:
        >>> even_cuts(5, 2)
        [(0, 2), (2, 5)]
    """
    cuts = np.linspace(0, n, min(pieces, max(n, 1)) + 1).astype(int).tolist()
    return list(pairwise(cuts))


@dataclass(frozen=True, kw_only=True)
class Workers(Generic[Space]):
    """A pool of threads and a working space for each of them."""

    pool: ThreadPoolExecutor
    spaces: SimpleQueue[Space]

    def each(self, work: Callable[[Space, Piece], None], pieces: Iterable[Piece]) -> None:
        """Do the work for every piece, in any order; a piece uses a space that no other piece uses at the same time."""

        def borrow(piece: Piece) -> None:
            space = self.spaces.get()
            try:
                work(space, piece)
            finally:
                self.spaces.put(space)

        for _ in self.pool.map(borrow, pieces):
            pass


@contextmanager
def open_workers(threads: int, new_space: Callable[[], Space]) -> Iterator[Workers[Space]]:
    """Threads that end with the block, each with its own space."""
    spaces: SimpleQueue[Space] = SimpleQueue()
    for _ in range(threads):
        spaces.put(new_space())
    with ThreadPoolExecutor(threads) as pool:
        yield Workers(pool=pool, spaces=spaces)
