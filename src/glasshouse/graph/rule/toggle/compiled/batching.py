"""Weights of several models side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from glasshouse.arrays import F32

__all__ = ["array", "batch_biases", "batch_columns", "batch_lines"]


def array(tensor: Tensor) -> F32:
    """A tensor as float32 numbers."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float32)


def batch_columns(weights: Sequence[F32]) -> F32:
    """Matrices [width, features] of K models -> [features, K * width], one row per feature."""
    return np.ascontiguousarray(np.concatenate(weights, axis=0).T)


def batch_lines(weights: Sequence[F32]) -> F32:
    """Matrices [outputs, width] of K models -> [K * outputs, width]."""
    return np.ascontiguousarray(np.concatenate(weights, axis=0))


def batch_biases(biases: Sequence[Tensor | None], width: int) -> F32:
    """Biases [width] of K models -> [K * width]; a model without one has zeros."""
    return np.concatenate([np.zeros(width, np.float32) if b is None else array(b) for b in biases])
