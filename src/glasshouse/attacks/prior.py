"""The prior λ of a posterior: one number for all records, or one a record."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from glasshouse.errors import InputError
from glasshouse.numerics import FloatArray

__all__ = ["check_prior", "prior_log_odds"]


def check_prior(prior: float | ArrayLike) -> None:
    """Refuse a prior that is no probability, or that is certain.

    Example:
        >>> check_prior(1.0)
        Traceback (most recent call last):
        glasshouse.errors.InputError: prior: 1.0 is not between 0 and 1.
    """
    values = np.asarray(prior, dtype=np.float64)
    if not ((values > 0) & (values < 1)).all():
        raise InputError(f"prior: {prior!r} is not between 0 and 1.")


def prior_log_odds(prior: float | ArrayLike, records: int) -> FloatArray:
    """Log-odds of the prior, [] or [N], for so many records.

    Example:
        >>> prior_log_odds(0.5, 3)
        array(0.)
    """
    values = np.asarray(prior, dtype=np.float64)
    if values.shape not in ((), (records,)):
        raise InputError(f"prior: {values.size} numbers for {records} records; give one, or one a record.")
    return np.asarray(logit(values))
