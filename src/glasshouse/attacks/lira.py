"""LiRA: the likelihood-ratio attack on logit margins (Carlini et al., S&P 2022)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import norm

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.sides import moments
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import check_simulation, reference_rows
from glasshouse.numerics import log_normal_farther

__all__ = ["LiRA"]

_MODELS_FOR_OWN_VARIANCE = 16  # with fewer on a side, one variance for all records is better than one per record
_SMALLEST_VARIANCE = 1e-12  # equal margins are possible; certainty is not


class _Side(NamedTuple):
    """Mean and variance of the margin, [N] each, over the in-models or the out-models."""

    mean: FloatArray
    variance: FloatArray


@register("lira")
@dataclass(frozen=True, kw_only=True)
class LiRA(Attack):
    r"""Log-likelihood ratio of the target's margin under Gaussians fitted to in-models and to out-models.

    Online :math:`\log N(h; \mu_{in}, \sigma_{in}^2) - \log N(h; \mu_{out}, \sigma_{out}^2)`; offline the one-sided
    :math:`\log \Phi((h - \mu_{out}) / \sigma_{out})`, where h is the target's logit margin.

    For a regression h is the residual with its sign. Online the formula is the same. Offline the paper asks how likely
    an out-model is less sure than the target. A regressor is less sure of a record the farther its prediction is off,
    so this is :math:`\log \Pr[|H| \ge |h|]` for :math:`H \sim N(\mu_{out}, \sigma_{out}^2)`.

    Args:
        mode: ``"online"`` or ``"offline"``.
        variance: ``"record"`` fits σ record by record, ``"global"`` pools the spread around each record's mean into
            one σ per side; ``"auto"`` uses ``"global"`` if a side has fewer than 16 models.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 2.0], shadow_loss=[[0.1, 2.5], [0.2, 1.5], [1.5, 0.2], [2.5, 0.1]],
        ...     shadow_members=[[1, 0], [1, 0], [0, 1], [0, 1]],
        ... )
        >>> LiRA().score(evidence).round(2)
        array([ 12.44, -24.72])
    """

    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True

    mode: Mode = "online"
    variance: Literal["auto", "record", "global"] = "auto"

    def __post_init__(self) -> None:
        if self.variance not in ("auto", "record", "global"):
            raise InputError(f'variance: "{self.variance}" is not one of auto, record, global.')

    def score(self, evidence: Evidence) -> FloatArray:
        """Log ratios (offline log tail probabilities), [N]; higher means member."""
        sides = self._sides(evidence, evidence.shadow_statistic)
        return _ratios(evidence.target_statistic, sides, regression=evidence.regression)

    @property
    def learns_much(self) -> bool:
        """No: simulated targets have a way of their own for the time alone."""
        return False

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target: margins are computed once, and a pair shares its Gaussians."""
        check_simulation(evidence.models)
        statistic, members = evidence.shadow_statistic, evidence.shadow_members
        known: tuple[bytes, list[_Side]] = (b"", [])
        for k in range(evidence.models):
            rows = reference_rows(members, k)
            if rows.tobytes() != known[0]:  # else it is judged by the same models as its complement before it
                references = evidence.among(rows, model=k)
                at: Any = rows[:, 0] if rows.shape[1] == 1 else (rows, np.arange(evidence.records))
                known = (rows.tobytes(), self._sides(references, statistic[at]))
            yield _ratios(statistic[k], known[1], regression=evidence.regression), members[k]

    def _sides(self, evidence: Evidence, statistic: FloatArray) -> list[_Side]:
        """The Gaussians of out-models, and online of in-models, from statistics [K, N] of the shadow models."""
        own = self.tuned(evidence).variance == "record"
        wanted = [False] if self.mode == "offline" else [False, True]
        return [_side(evidence, statistic, inside=inside, own=own) for inside in wanted]

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its kind of variance chosen by the number of models on a side."""
        if self.variance != "auto":
            return self
        inside = evidence.shadow_members.sum(axis=0)
        fewest = (
            evidence.models - inside.max()
            if self.mode == "offline"
            else min(inside.min(), evidence.models - inside.max())
        )
        return dataclasses.replace(self, variance="record" if fewest >= _MODELS_FOR_OWN_VARIANCE else "global")


def _ratios(target: FloatArray, sides: list[_Side], *, regression: bool) -> FloatArray:
    """Log ratios [N] of a target's statistics, or log tail probabilities if only the out-models are known."""
    outside, *within = sides
    if within:
        return np.asarray(
            norm.logpdf(target, within[0].mean, np.sqrt(within[0].variance))
            - norm.logpdf(target, outside.mean, np.sqrt(outside.variance))
        )
    spread = np.sqrt(outside.variance)
    if regression:
        return log_normal_farther(target / spread, outside.mean / spread)
    return np.asarray(log_ndtr((target - outside.mean) / spread))


def _side(evidence: Evidence, shadows: FloatArray, *, inside: bool, own: bool) -> _Side:
    """Mean and variance of each record's margin over the in-models or the out-models."""
    evidence.require_side(inside=inside, models=2 if own else 1)
    who = evidence.shadow_members if inside else ~evidence.shadow_members
    count, mean, squares = moments(shadows, who)
    if own:
        variance = squares / (count - 1)
    else:
        freedom = int((count - 1).sum())
        if freedom == 0:
            raise InputError(
                f"shadows: LiRA estimates a spread, which needs 2 or more {'in' if inside else 'out'}-models of some "
                f"record; here each record has 1. Train 4 or more shadow models."
            )
        variance = np.full(evidence.records, squares.sum() / freedom)
    return _Side(mean, np.maximum(variance, _SMALLEST_VARIANCE))
