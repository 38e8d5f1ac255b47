"""The stacked attack: a posterior learned over the signals of several attacks, from simulated targets alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.base import BASE
from glasshouse.attacks.prior import check_prior, learned_posterior, with_prior
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.attacks.regression import record_folds
from glasshouse.attacks.stacking import (
    LARGEST_UNLIKENESS,
    Answers,
    Boosted,
    Calibrated,
    CrossFit,
    Learner,
    Likeness,
    Linear,
    TargetPlan,
    cross_fit,
    hardly_better,
    log_losses,
    plan_targets,
    record_features,
    steadied,
    warning,
)
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import check_simulation
from glasshouse.numerics import loss_to_margin, margin_to_loss

__all__ = ["Stacked", "StackedFit"]


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedFit:
    """What was learned from a pool.

    Args:
        plan: simulated targets.
        fit: the posterior.
        share: of members among simulated targets.
        like: how these answer.
        base: BASE as it is tuned to the pool.
        simple: BASE's scores as log-odds, where the posterior is hardly better; None where it is.
        held_out: [T, N] log-odds of the simulated targets, learned without them.
    """

    plan: TargetPlan
    fit: CrossFit
    share: float
    like: Likeness
    base: BASE
    simple: Calibrated | None
    held_out: FloatArray


@register("stacked")
@dataclass(frozen=True, kw_only=True)
class Stacked(Attack):
    """Posterior probability of membership, learned from what single attacks say of simulated targets.

    Each shadow model plays the target, judged by the pool without itself and its complement; who trained it is known.
    Features of a record: log-confidence and margin, BASE, the ratios of LiRA and BaVarIA, the mean margins of in- and
    out-models with their spreads and the distances to them, and the label. Boosted trees, a regression or both,
    whichever tells held-out simulated targets best, learn the posterior from them; where that tells them no better than
    BASE, by a standard error, it is BASE, calibrated. The true target is only ever scored. Where it answers unlike all
    simulated targets (`mismatch`), its margins are matched to theirs, quantile by quantile, and BASE, which learned
    nothing, has a large say in the order.

    Args:
        mode: ``"online"``; or ``"offline"``, where no in-model of a record is looked at to judge it: its features
            come from out-models, and the posterior from other records (but for BASE's scale and the line that makes it
            a posterior: three numbers from all records together).
        prior: λ, the share of members expected before looking at the model: one number, or one a record.
        targets: at most so many shadow models play the target.
        folds: in how many groups of records it is learned offline.
        boosted: the boosted learner; its parameters.
        linear: the linear learner.
        seed: of every random choice.
        jobs: fits side by side; -1 for as many as there are cores. Scores do not depend on it.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.concatenate([half := rng.random((3, 200)) < 0.5, ~half])  # [6, 200]
        >>> loss = np.logaddexp(0.0, rng.normal(size=(6, 200)) - 3.0 * members)
        >>> pool = [1, 2, 4, 5]  # the first model and its complement stay outside
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss[pool], shadow_members=members[pool])
        >>> scores = Stacked().score(evidence)
        >>> bool(scores[members[0]].mean() > 0.7), bool(scores[~members[0]].mean() < 0.3)
        (True, True)
    """

    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    targets: int = 16
    folds: int = 4
    boosted: Boosted = field(default_factory=Boosted)
    linear: Linear = field(default_factory=Linear)
    seed: int = 0
    jobs: int = field(default=1, repr=False, compare=False)  # how, not what
    fit_: StackedFit | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.folds < 2 or self.targets < 4:
            raise InputError(f"folds, targets: {self.folds}, {self.targets}; use 2 and 4, or more.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Posteriors, [N]; higher means member."""
        return learned_posterior(self.log_odds(evidence))

    def log_odds(self, evidence: Evidence) -> FloatArray:
        """Logits of the posteriors, [N]: they keep apart what rounds to a probability of 1."""
        known = self.tuned(evidence).fit_
        assert known is not None  # noqa: S101 (for the type checker: tuning fits)
        if evidence.records != len(known.fit.folds):
            raise InputError(f"evidence: {evidence.records} records, and the attack learned {len(known.fit.folds)}.")
        strange, seen = self.mismatch(evidence) > LARGEST_UNLIKENESS, evidence
        if strange:  # all that is known speaks of answers on the pool's scale
            loss = margin_to_loss(known.like.matched(loss_to_margin(evidence.target_loss)))
            seen = dataclasses.replace(evidence, target_loss=loss)
        if known.simple is not None:
            odds = known.simple.log_odds(known.base.log_odds(seen))
        else:
            learner = known.fit.steady if strange else None
            rows = [self._rows(seen, seen.target_loss, panel) for panel in known.plan.panels]
            odds = np.asarray(np.mean([known.fit.log_odds(row, learner=learner) for row in rows], axis=0))
            if strange:
                odds = steadied(odds, known.base.log_odds(evidence), known.base.log_odds(seen))
        return with_prior(odds, share=known.share, prior=self.prior)

    def check(self, members: BoolArray) -> None:
        """Refuse a pool of too few models to simulate targets."""
        check_simulation(len(members))

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its posterior learned from this pool; the target's losses are not looked at."""
        if self.fit_ is not None:
            return self
        plan = plan_targets(evidence.shadow_members, targets=self.targets, seed=self.seed)
        members = evidence.shadow_members[plan.targets]
        rows = np.stack(
            [
                self._rows(evidence, evidence.shadow_loss[k], references)
                for k, references in zip(plan.targets, plan.references, strict=True)
            ]
        )
        count = 1 if self.mode == "online" else min(self.folds, max(evidence.records, 2))
        learners: dict[str, Learner] = {"linear": self.linear, "boosted": self.boosted}
        fit = cross_fit(
            rows,
            members,
            groups=plan.groups,
            folds=record_folds(evidence.records, folds=count, seed=self.seed),
            learners=learners,
            seed=self.seed,
            jobs=self.jobs,
        )
        base = BASE(mode=self.mode).tuned(evidence)
        plain = np.stack([base.log_odds(target) for target in _simulated(evidence, plan)])
        line = Calibrated.to(plain, members)
        fallen_back = hardly_better(log_losses(fit.held_out, members), log_losses(line.log_odds(plain), members))
        known = StackedFit(
            plan=plan,
            fit=fit,
            share=float(members.mean()),
            like=Likeness.of(loss_to_margin(evidence.shadow_loss[plan.targets])),
            base=base,
            simple=line if fallen_back else None,
            held_out=line.log_odds(plain) if fallen_back else fit.held_out,
        )
        return dataclasses.replace(self, fit_=known)

    def mismatch(self, evidence: Evidence) -> float:
        """How unlike simulated targets the target answers, in standard deviations among them; past 5 it is made up for.

        Looked at are its margins over all records, not who trained it.
        """
        known = self.tuned(evidence).fit_
        assert known is not None  # noqa: S101
        return known.like.distance(loss_to_margin(evidence.target_loss))

    def warning(self, evidence: Evidence) -> str:
        """That the target is unlike all simulated ones, where it is."""
        return warning(self.name, self.mismatch(evidence))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [N] of each simulated target by what was learned without it and its complement, and its members."""
        known = self.tuned(evidence).fit_
        assert known is not None  # noqa: S101
        for k, odds in zip(known.plan.targets, known.held_out, strict=True):
            found = with_prior(odds, share=known.share, prior=self.prior)
            yield learned_posterior(found), evidence.shadow_members[k]

    def queries(self, evidence: Evidence) -> QueryCount:
        """As any attack; offline, in-models are asked as well, about other records than the one that is judged."""
        each = super().queries(evidence).per_record
        return QueryCount(each, shared=int(evidence.shadow_members.sum()) if self.mode == "offline" else 0)

    def _rows(self, evidence: Evidence, target: FloatArray, references: NDArray[np.intp]) -> FloatArray:
        """Features [N, F] of a target's losses [N] among the references [R, 1] or [R, N]."""
        answers = Answers(
            target, _picked(evidence.shadow_loss, references), _picked(evidence.shadow_members, references)
        )
        columns = list(record_features(answers, mode=self.mode).values())
        if evidence.labels is not None:
            columns.append(evidence.labels.astype(np.float64))
        return np.stack(columns, axis=1)


def _simulated(evidence: Evidence, plan: TargetPlan) -> Iterator[Evidence]:
    """What is known of each simulated target."""
    for k, references in zip(plan.targets, plan.references, strict=True):
        yield Evidence(
            target_loss=evidence.shadow_loss[k],
            shadow_loss=_picked(evidence.shadow_loss, references),
            shadow_members=_picked(evidence.shadow_members, references),
        )


def _picked(values: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """The rows' entries, [R, N], of a matrix [K, N]."""
    return values[rows, np.arange(values.shape[1])]
