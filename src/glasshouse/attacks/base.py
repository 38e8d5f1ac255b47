"""BASE: the Bayes-approximate membership posterior of one record (paper, Definition 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.in_out_moments import left_out
from glasshouse.attacks.shared.prior import check_prior, prior_log_odds
from glasshouse.attacks.shared.reference_confidence import (
    SimulatedConfidence,
    Statistic,
    best_share,
    expected_among,
    expected_confidence,
    simulated_confidence,
)
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.threads import cached_blocks, side_by_side
from glasshouse.evidence import Evidence, Mode

_TARGETS = 8  # simulated targets that are scored side by side
_ARRAYS = 8  # as long as a block of records that one posterior needs


@register("base")
@dataclass(frozen=True, kw_only=True)
class BASE(Attack):
    r"""Posterior probability that a record was trained on.

    :math:`\sigma(-\ell - \alpha \log \frac1K \sum_k e^{-\ell_k} + \log\frac{\lambda}{1-\lambda})`, where :math:`\ell`
    is the target's loss on the record and :math:`\ell_k` that of shadow model k.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        prior: λ, the share of members expected before looking at the model: one number, or one per record.
        scale: α, which replaces the missing in-models offline. ``"auto"`` is 1 online; offline it is tuned on
            simulated targets (paper, App. "Online vs. offline").

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[1, 0], [0, 1]]
        ... )
        >>> BASE().score(evidence).round(2)
        array([0.62, 0.29])
    """

    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    scale: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.scale != "auto" and not 0 <= self.scale <= 1:
            raise InputError(f"scale: {self.scale} is not between 0 and 1.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Posteriors, [N]; higher means member."""
        return np.asarray(expit(self.log_odds(evidence)))

    def log_odds(self, evidence: Evidence) -> FloatArray:
        """Logits of the posteriors, [N]: they differ where probabilities would all round to 1."""
        known = prior_log_odds(self.prior, evidence.records)
        scale = float(self.tuned(evidence).scale)
        statistic = _statistic(evidence.target_loss, expected_confidence(evidence, self.mode))
        return np.asarray(statistic(scale) + known)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Posteriors and members of each simulated target, without a copy of the pool for every one of them."""
        known, scale = prior_log_odds(self.prior, evidence.records), float(self.tuned(evidence).scale)

        def posteriors(target: SimulatedConfidence) -> FloatArray:
            return _posteriors(target.loss, target.expected, scale, known)

        targets = simulated_confidence(evidence, self.mode)
        while some := list(islice(targets, _TARGETS)):
            scores = side_by_side(posteriors, some, records=evidence.records)
            yield from ((found, one.members) for found, one in zip(scores, some, strict=True))

    def scores_among(self, evidence: Evidence, sets: Sequence[NDArray[np.intp]]) -> Iterator[FloatArray | None]:
        """Posteriors of the target beside some of the shadow models, for each set; confidences are computed once."""
        if self.mode == "offline":  # a set without an out-model of some record is refused, and the others are not
            yield from super().scores_among(evidence, sets)
            return
        known, scale = prior_log_odds(self.prior, evidence.records), float(self.tuned(evidence).scale)
        for expected in expected_among(evidence, self.mode, [left_out(rows, evidence.models) for rows in sets]):
            yield _posteriors(evidence.target_loss, expected, scale, known)

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its scale chosen: 1 online, the best on simulated targets offline."""
        if self.scale != "auto":
            return self
        settled = 1.0 if self.mode == "online" else best_share(evidence, _statistic, mode=self.mode, name="scale")
        return dataclasses.replace(self, scale=settled)


def _posteriors(loss: FloatArray, expected: FloatArray, scale: float, known: FloatArray) -> FloatArray:
    """Posteriors [N] from losses and expected log-confidences [N], with the log-odds of the prior, [] or [N]."""
    found = np.empty(len(loss))
    for some in cached_blocks(len(loss), models=_ARRAYS):
        odds = _statistic(loss[some], expected[some])(scale) + (known[some] if known.ndim else known)
        expit(odds, out=found[some])
    return found


def _statistic(loss: FloatArray, expected: FloatArray) -> Statistic:
    return lambda scale: -loss - scale * expected
