r"""Evidence about a regression: a Gaussian likelihood in place of the cross-entropy.

A regressor that predicts f(x) is read as the Gaussian :math:`p(y \mid x, \theta) = N(y; f_\theta(x), \sigma^2)`, of
which squared error is the negative logarithm:

.. math:: -\log p = \frac{(y - f_\theta(x))^2}{2 \sigma^2} + \frac12 \log 2 \pi \sigma^2

**One σ for all models of an audit**: the root mean squared residual of shadow models on records that they did not train
on. It is the maximum-likelihood estimate from predictions that no training has touched, and it uses neither the target
nor its members. Residuals inside training sets would make it too small, the more a model remembers.

**The loss is measured from the highest density** that any model of the audit can give (that of a prediction without
error): it is not negative, and exp(-loss) lies between 0 and 1, as a confidence does. With one σ it is the first term
alone. A constant that all models share cancels in BASE and in RMIA; RMIA's offline form, which replaces in-models by a
confidence of 1, then means models that predict the record without error.

**Models with a variance of their own** (mean and log-variance) are read as :math:`N(y; f_\theta(x), s_\theta(x)^2)`.
What is near normal over training sets is the residual itself, with its sign (`Evidence.target_statistic`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.evidence.evidence import Evidence

_SMALLEST_SPREAD = 1e-12  # of the targets' spread: smaller residuals are rounding errors


def outside_spread(residual: FloatArray, members: BoolArray) -> float:
    """σ: the root mean square of residuals [K, N] of shadow models on records that are not their members [K, N]."""
    if members.all():
        raise InputError("shadow_members: every shadow model trained on all records, so none shows what is usual.")
    return float(np.sqrt((residual**2).mean(where=~members)))


def gaussian_losses(residual: FloatArray, *, spread: float, log_variance: FloatArray | None = None) -> FloatArray:
    """Negative log-likelihoods of residuals [..., N], from the highest density of all models: none is negative.

    With one spread σ, or with the log_variance [..., N] that all models give together.
    """
    if log_variance is None:
        return np.asarray(0.5 * (residual / spread) ** 2)
    with np.errstate(over="ignore"):  # an infinite loss is refused with the record's name
        return np.asarray(0.5 * (residual**2 * np.exp(-log_variance) + log_variance - log_variance.min()))


def regression_evidence(
    *,
    target: FloatArray,  # [N] predictions
    shadows: FloatArray,  # [K, N] those of the shadow models
    members: BoolArray,  # [K, N] of each shadow model
    targets: FloatArray,  # [N] the true values
    log_variances: FloatArray | None = None,  # [1 + K, N] of the target and of the shadow models, if they give them
    ids: TextArray | None = None,
    notes: Sequence[str] = (),  # what was noticed about the answers
) -> Evidence:
    """Evidence from predictions."""
    own, theirs = targets - target, targets - shadows
    # without shadow models any scale will do: the attacks that are left only order the target's own losses
    usual = outside_spread(theirs, members) if len(theirs) else float(np.sqrt((own**2).mean()))
    spread = max(usual, _SMALLEST_SPREAD * float(targets.std()))
    residual = np.concatenate([own[None], theirs])
    loss = gaussian_losses(residual, spread=spread, log_variance=log_variances)
    whose = "the shadow models' error on records that they did not train on" if len(theirs) else "the model's own error"
    told = (
        f"The model predicts real numbers: the loss is a Gaussian's negative log-likelihood with one standard "
        f"deviation for all models, {spread:.4g}, {whose}."
        if log_variances is None
        else "The models predict a mean and a variance: the loss is the Gaussian's negative log-likelihood."
    )
    return Evidence(
        target_loss=loss[0],
        shadow_loss=loss[1:],
        shadow_members=members,
        ids=ids,
        target_residual=own / spread,
        shadow_residual=theirs / spread,
        notes=(told, *notes),
    )
