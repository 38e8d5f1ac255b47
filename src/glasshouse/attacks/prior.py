"""The prior λ of a posterior: one number for all records, or one per record."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError

_SUREST = 36.0  # log-odds; above 37 a probability rounds to 1, and nothing that was learned is certain


def check_prior(prior: float | ArrayLike) -> None:
    """Refuse a prior that is not a probability, or that is 0 or 1."""
    values = np.asarray(prior, dtype=np.float64)
    if not ((values > 0) & (values < 1)).all():
        raise InputError(f"prior: {prior!r} is not between 0 and 1.")


def prior_log_odds(prior: float | ArrayLike, records: int) -> FloatArray:
    """Log-odds of the prior, [] or [N], for so many records."""
    return np.asarray(logit(as_prior(prior, records)))


def prior_weights(members: BoolArray, prior: float | ArrayLike, *, some: slice = slice(None)) -> FloatArray:
    """Weights of the answers of models, so that they stand for models of which the prior says who trained them.

    A member, of [K, N] or [N], weighs λ / s and another record (1 - λ) / (1 - s), where s is that model's share of
    members; ``some`` are the records whose weights are wanted.
    """
    values = as_prior(prior, members.shape[-1])
    share = members.mean(axis=-1, keepdims=True)
    if values.ndim:
        values = values[some]
    with np.errstate(divide="ignore"):  # a model without members, or without others, has none to weigh by that side
        return np.asarray(np.where(members[..., some], values / share, (1 - values) / (1 - share)))


def as_prior(prior: float | ArrayLike, count: int, *, of: str = "records") -> FloatArray:
    """The prior as an array, [] or [N], for so many records, or of what else is judged."""
    values = np.asarray(prior, dtype=np.float64)
    if values.shape not in ((), (count,)):
        raise InputError(f"prior: {values.size} numbers for {count} {of}; give one, or one for each of them.")
    return values


def with_prior(odds: FloatArray, *, share: float, prior: float | ArrayLike) -> FloatArray:
    """Log-odds [N] for the wanted prior, from log-odds that were learned where a given share of records are members."""
    return np.asarray(odds + (prior_log_odds(prior, len(odds)) - logit(share)))


def learned_posterior(odds: FloatArray) -> FloatArray:
    """Probabilities from log-odds that were learned, of any shape: never 0 or 1."""
    return np.asarray(expit(np.clip(odds, -_SUREST, _SUREST)))
