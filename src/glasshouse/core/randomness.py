"""One seed drives everything: every random choice draws from a stream named after its purpose."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray


def seed_for(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for a named purpose, the same on every machine and in every order of calls."""
    name = repr((int(seed), *purpose)).encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> 1


def generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """A numpy generator for a named purpose."""
    return np.random.default_rng(seed_for(seed, *purpose))


def some_of(count: int, most: int, seed: int, *purpose: str | int) -> NDArray[np.intp]:
    """Positions in ``range(count)``, in order: all of them, or so many drawn at random for a named purpose."""
    if count <= most:
        return np.arange(count)
    # sorted: rows that lie together in memory are read faster
    return np.sort(generator(seed, *purpose).choice(count, most, replace=False, shuffle=False))
