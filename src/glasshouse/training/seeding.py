"""One seed for every library's own random stream, for code that takes no seed."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np
import torch

from glasshouse.randomness import seed_for

__all__ = ["seeded"]


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, the random streams of Python, numpy and torch follow a seed; afterwards the user's own go on.

    Example:
        >>> with seeded(0):
        ...     first = torch.rand(1), random.random()
        >>> with seeded(0):
        ...     first == (torch.rand(1), random.random())
        True
    """
    python, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002 (others' code reads this stream)
    with torch.random.fork_rng():
        random.seed(seed_for(seed, "python"))
        np.random.seed(seed_for(seed, "numpy") % 2**32)  # noqa: NPY002
        torch.manual_seed(seed_for(seed, "torch"))
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)  # noqa: NPY002
