"""How many threads the numerical libraries use, changed for a moment."""

from __future__ import annotations

import functools

from threadpoolctl import ThreadpoolController

__all__ = ["thread_counts"]


@functools.cache
def thread_counts() -> ThreadpoolController:
    """The libraries whose threads are counted, found once: looking for them takes longer than judging a few rows.

    Example:
        >>> with thread_counts().limit(limits=1):
        ...     pass
    """
    return ThreadpoolController()
