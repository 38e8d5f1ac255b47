"""The stacked attack: a posterior learned over the signals of several attacks, from simulated targets alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.attacks.attack import Attack, register
from glasshouse.attacks.base import BASE
from glasshouse.attacks.cross_fit import (
    ENOUGH,
    LARGEST_UNLIKENESS,
    Calibrated,
    CrossFit,
    Likeness,
    TargetPlan,
    clearly_finds,
    count_fits,
    cross_fit,
    in_blocks,
    part_of_simple,
    plan_targets,
    steadied,
    unlike_warning,
)
from glasshouse.attacks.in_out_moments import Moments, moments
from glasshouse.attacks.learners import Boosted, Learner, Linear
from glasshouse.attacks.lira import VariancePrior, fit_variance_prior, student_log_density
from glasshouse.attacks.parts import enough_parts
from glasshouse.attacks.prior import check_prior, learned_posterior, prior_weights, with_prior
from glasshouse.attacks.regressed import record_folds
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import log_mean_exp, loss_to_margin, margin_to_loss
from glasshouse.core.progress import open_bar
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.evidence import UnitView
from glasshouse.evidence.simulation import at_rows, check_simulation


class StackedFit(NamedTuple):
    """What was learned from a pool."""

    parameters: tuple[object, ...]  # those of the attack that affect the learning
    plan: TargetPlan  # the simulated targets
    usual: tuple[tuple[Usual, ...], tuple[Usual, ...]]  # of each simulated target's references, and of each panel
    fit: CrossFit  # the posterior; its held-out log-odds have BASE's part in them
    share: float  # of members among simulated targets
    base: BASE  # tuned to the pool
    line: Calibrated  # turns BASE's scores into log-odds
    part: float  # BASE's part in the log-odds: 0, 1/2 or 1
    clear: bool  # whether members of held-out simulated targets are clearly found


@dataclass(frozen=True, kw_only=True)
class StackedParameters:
    """Parameters of `Stacked` and `GStacked`, where they are explained.

    A copy by `dataclasses.replace` with another prior or number of jobs keeps what was learned; other copies drop it.
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
    jobs: int = field(default=-1, repr=False, compare=False)  # changes the time, not the result
    fit_: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.folds < 2 or self.targets < 4:
            raise InputError(f"folds, targets: {self.folds}, {self.targets}; use 2 and 4, or more.")
        if self.fit_ is not None and self.fit_.parameters != self._parameters:
            object.__setattr__(self, "fit_", None)  # it was copied from an attack with other parameters

    @property
    def _parameters(self) -> tuple[object, ...]:
        """Those that affect the learning; the prior and the number of jobs do not."""
        names = [one.name for one in dataclasses.fields(self) if one.compare and one.name != "prior"]
        return tuple(getattr(self, name) for name in names)

    @property
    def _learners(self) -> dict[str, Learner]:
        return {"linear": self.linear, "boosted": self.boosted}

    def check(self, members: BoolArray) -> None:
        """Refuse a pool, members [K, N], with too few models to simulate targets, or too few out-models offline."""
        check_simulation(len(members))
        plan = plan_targets(members, targets=self.targets, seed=self.seed, enough=ENOUGH)
        seen = (members[at_rows(rows, members.shape[1])] for rows in plan.references)
        lost = sum(references.all(axis=0) for references in seen)  # [N] targets without out-models
        if self.mode == "offline" and np.any(lost):
            raise InputError(
                f"shadow_members: {int(np.count_nonzero(lost))} records have no out-model among the references of some "
                f"simulated target. Train more shadow models, use a smaller share (fraction), or mode online."
            )

    def _scores(self, odds: FloatArray, share: float) -> FloatArray:
        """Posteriors [N] for this prior, from log-odds [N] that were learned with this share of members."""
        return learned_posterior(with_prior(odds, share=share, prior=self.prior))


@register("stacked")
@dataclass(frozen=True, kw_only=True)
class Stacked(StackedParameters, Attack):
    """Posterior probability of membership, learned from the scores of single attacks on simulated targets.

    Each shadow model plays the target, judged by the pool without itself and its complement; its members are known.
    Features of a record: log-confidence and margin, BASE, the ratios of LiRA and BaVarIA, the mean margins of in- and
    out-models with their spreads and the distances to them, and the label; of records with parts, such as texts, also
    BASE and both ratios part by part, summed. Boosted trees, a regression or both, whichever is best on held-out
    simulated targets, learn the posterior from them. BASE, calibrated, has half a part in
    the log-odds if more members are then found at low false-positive rates. If neither is better than BASE by a
    standard error, or BASE finds more at low rates by a standard error, the attack is BASE, calibrated. The true target
    is scored and never learned from. If it answers unlike all simulated targets, weighted to the prior (its
    `unlikeness` is above 5), its margins are matched to theirs, quantile by quantile, and BASE, which learned nothing,
    has a large part in the order.

    Args:
        mode: ``"online"``; or ``"offline"``, where no in-model of a record is used to judge it: its features come
            from out-models, and the posterior from other records (except for BASE's scale and the line that makes it a
            posterior: three numbers from all records together).
        prior: λ, the share of members expected before looking at the model: one number, or one per record.
        targets: how many shadow models play the target, at most.
        folds: number of groups of records for learning offline.
        boosted: the boosted learner; its parameters.
        linear: the linear learner.
        seed: of every random choice.
        jobs: number of fits that run in parallel; by default -1, one per core. Scores do not depend on it.

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

    version: ClassVar[int] = 6
    _learns_elsewhere: ClassVar[bool] = True

    # fewer examples than on graphs: records have fewer features, and the rows of a fit are most of the memory
    boosted: Boosted = field(default_factory=lambda: Boosted(examples=60_000))
    linear: Linear = field(default_factory=lambda: Linear(examples=30_000))
    fit_: StackedFit | None = field(default=None, repr=False, compare=False)

    def score(self, evidence: Evidence) -> FloatArray:
        """Posteriors, [N]; higher means member."""
        return learned_posterior(self.log_odds(evidence))

    def flag_scores(self, evidence: Evidence) -> FloatArray:
        """Posteriors [N] of the target in the place of the first simulated target: its references and its predictor."""
        return learned_posterior(self.log_odds(evidence, place=0))

    def log_odds(self, evidence: Evidence, *, place: int | None = None) -> FloatArray:
        """Logits of the posteriors, [N]: they differ where probabilities would all round to 1.

        With the place of a simulated target in the plan, the target is judged as that one is.
        """
        known = self._known(evidence)
        if evidence.records != len(known.fit.folds):
            raise InputError(f"evidence: {evidence.records} records, but the attack learned {len(known.fit.folds)}.")
        like, margins = self._likeness(evidence, known.plan), loss_to_margin(evidence.target_loss)
        unlike, seen = like.unlikeness(margins) > LARGEST_UNLIKENESS, evidence
        if unlike:  # what was learned holds for answers on the pool's scale
            loss = margin_to_loss(like.matched(margins))
            seen = evidence.with_target_loss(loss)
        rows = None if place is None else known.plan.references[place]
        near = seen if rows is None else seen.losses_alone().among(rows)
        odds = known.part * known.line.log_odds(known.base.log_odds(near))
        if known.part < 1:
            learner = known.fit.steady if unlike else None
            odds += (1 - known.part) * self._learned(seen, known, learner=learner, place=place)
            if unlike:
                odds = steadied(odds, known.base.log_odds(evidence), known.base.log_odds(seen))
        return with_prior(odds, share=known.share, prior=self.prior)

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its posterior learned from this pool; it does not look at the target's losses."""
        return dataclasses.replace(self, fit_=self._known(evidence))

    def _known(self, evidence: Evidence) -> StackedFit:
        if self.fit_ is not None:
            return self.fit_
        evidence = evidence.losses_alone(details=False)
        plan = plan_targets(evidence.shadow_members, targets=self.targets, seed=self.seed, enough=ENOUGH)
        members = evidence.shadow_members[plan.targets]
        shared: dict[bytes, Usual] = {}  # a pair has the same references, and panels are references too
        for some in (*plan.references, *plan.panels):
            if some.tobytes() not in shared:
                shared[some.tobytes()] = usual_of(evidence, some, mode=self.mode)
        usual, of_panels = (tuple(shared[some.tobytes()] for some in sets) for sets in (plan.references, plan.panels))
        simulated = list(zip(plan.references, plan.targets.tolist(), strict=True))
        summed = [
            self._summed(evidence, references, one, model=k)
            for (references, k), one in zip(simulated, usual, strict=True)
        ]
        evidence = evidence.losses_alone(parts=False)  # what follows takes records, with all that is known about them

        def rows(number: int, records: Positions) -> NDArray[Any]:
            references, k = simulated[number]
            return self._rows(evidence, references, summed[number], model=k, records=records)

        folds = record_folds(evidence.records, mode=self.mode, folds=self.folds, seed=self.seed)
        learners = self._learners
        total = count_fits(plan.groups, folds, list(learners))
        with open_bar(total=total, label="Learning from simulated targets", unit="fits") as done:
            fit = cross_fit(
                rows,
                members,
                groups=plan.groups,
                folds=folds,
                learners=learners,
                seed=self.seed,
                jobs=self.jobs,
                done=done,
            )
        base = BASE(mode=self.mode).tuned(evidence)
        plain = np.empty(members.shape)
        for odds, k, references in zip(plain, plan.targets.tolist(), plan.references, strict=True):
            for records in in_blocks(np.arange(evidence.records)):
                odds[records] = base.log_odds(evidence.among(references, model=k, records=records))
        line = Calibrated.to(plain, members)
        for odds in plain:
            odds[:] = line.log_odds(odds)
        part = part_of_simple(fit.held_out, plain, members)
        clear = clearly_finds(fit.held_out, members)
        for odds, simple in zip(fit.held_out, plain, strict=True):  # in place: each is as large as the losses
            odds[:] = (1 - part) * odds + part * simple
        share = float(members.mean())
        return StackedFit(self._parameters, plan, (usual, of_panels), fit, share, base, line, part, clear)

    def _learned(self, evidence: Evidence, known: StackedFit, *, learner: str | None, place: int | None) -> FloatArray:
        """Log-odds of the target by what was learned, [N]."""
        # a mean over panels varies less than the scores of simulated targets, which matters if nothing else does
        evidence = evidence.losses_alone(details=False)
        own, of_panels = known.usual
        panels, group = list(zip(known.plan.panels, of_panels, strict=True))[: None if known.clear else 1], None
        if place is not None:
            panels, group = [(known.plan.references[place], own[place])], int(known.plan.groups[place])
        found, alone = np.zeros(evidence.records), evidence.losses_alone(parts=False)
        for panel, usual in panels:
            usual = self._summed(evidence, panel, usual)
            for records in in_blocks(np.arange(evidence.records)):
                rows = self._rows(alone, panel, usual, records=records)
                found[records] += known.fit.log_odds(rows, learner=learner, records=records, group=group)
        return found / len(panels)

    def unlikeness(self, evidence: Evidence) -> float:
        """How far the target's answers are from those of simulated targets, in standard deviations among these.

        The simulated targets are weighted to the prior, so that another share of members is not taken for another kind
        of model. Above 5 the target counts as unlike them.
        """
        known = self._known(evidence)
        return self._likeness(evidence, known.plan).unlikeness(loss_to_margin(evidence.target_loss))

    def _likeness(self, evidence: Evidence, plan: TargetPlan) -> Likeness:
        margins = (loss_to_margin(evidence.shadow_loss[k]) for k in plan.targets.tolist())
        weights = (prior_weights(evidence.shadow_members[k], self.prior) for k in plan.targets.tolist())
        return Likeness.of(margins, weights)

    def warning(self, evidence: Evidence) -> str:
        """A warning if the target is unlike all simulated targets."""
        return unlike_warning(self.name, self.unlikeness(evidence))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [N] of each simulated target by what was learned without it and its complement, and its members."""
        known = self._known(evidence)
        for k, odds in zip(known.plan.targets, known.fit.held_out, strict=True):
            yield self._scores(odds, known.share), evidence.shadow_members[k]

    def _summed(self, evidence: Evidence, references: Positions, usual: Usual, *, model: int | None = None) -> Usual:
        """The same with the sums over all parts of the records, if they have parts, since these take long."""
        view = evidence if evidence.parts is None else evidence.among(references, model=model)
        return usual._replace(summed=summed_parts(view, mode=self.mode, usual=usual))

    def _rows(
        self, evidence: Evidence, references: Positions, usual: Usual, *, model: int | None = None, records: Positions
    ) -> NDArray[Any]:
        """Features [R, F] of some records about the target, or about a shadow model in its place."""
        part = evidence.among(references, model=model, records=records)
        usual = usual._replace(summed={name: values[records] for name, values in usual.summed.items()})
        columns = list(record_features(part, mode=self.mode, usual=usual).values())
        if part.labels is not None:
            columns.append(part.labels.astype(np.float64))
        return np.stack(columns, axis=1, dtype=np.float32, casting="same_kind")


Features = dict[str, FloatArray]
_LARGEST = 1e15  # a loss of 1e300 is finite, but its square is not, and learners square, in single precision
_FEW = 512  # records whose parts are known well enough
_AT_ONCE = 2**16  # parts that are handled at once
_OF_PARTS = ("base", "ratio", "own_ratio", "own_from_outside")
_SMALLEST_VARIANCE = 1e-6  # equal margins are possible; certainty is not


class Usual(NamedTuple):
    """What the features of a single record need to know of all records: a few numbers."""

    shift: float  # from the mean margin of out-models to that of in-models; 0 offline
    # by the name of a side: one variance for all records, and the prior of a record's own variance (None if no record
    # has two models there)
    sides: dict[str, tuple[float, VariancePrior | None]]
    parts: Usual | None = None  # the same of the parts of records, if there are any
    summed: Mapping[str, FloatArray] = {}  # what `summed_parts` found for these records, which takes long


def usual_of(evidence: Evidence, references: Positions, *, mode: Mode) -> Usual:
    """The numbers that all records share, from rows of the pool [R, 1] or [R, N], without a copy of the pool."""
    members = evidence.shadow_members[at_rows(references, evidence.records)]
    _check(members, mode)
    known: dict[str, Moments] = {}
    alone = evidence.losses_alone(parts=False)
    for records in in_blocks(np.arange(evidence.records)):
        part = alone.among(references, records=records)
        for name, side in _known_sides(part, mode).items():
            whole = known.setdefault(name, Moments(*np.empty((3, evidence.records))))
            for values, some in zip(whole, side, strict=True):
                values[records] = some
    usual = _usual(known, members)
    if evidence.parts is None:
        return usual
    enough = enough_parts(evidence, least=_FEW)
    view = UnitView.of_parts(evidence.of_records(enough))
    of_parts = references if references.shape[1] == 1 else references[:, enough[view.units.rows]]
    return usual._replace(parts=usual_of(view.rows, of_parts, mode=mode))


def record_features(evidence: Evidence, *, mode: Mode, usual: Usual | None = None) -> Features:
    """Log-confidence, margin, and how both compare with the shadow models', by name, [N] each.

    Online, a side without models has the mean of the other side, moved by the usual shift between the sides. Of records
    with parts also what compares each part with the shadow models', summed, unless that is known.
    """
    target, shadows, members = evidence.target_loss, evidence.shadow_loss, evidence.shadow_members
    if usual is None and evidence.parts is not None:
        usual = usual_of(evidence, np.arange(evidence.models)[:, None], mode=mode)
    if usual is None:
        _check(members, mode)
    known = _known_sides(evidence, mode)
    usual = usual or _usual(known, members)
    margin = loss_to_margin(target)
    asked = None if mode == "online" else ~members
    found: Features = {"confidence": -target, "margin": margin, "base": -target - log_mean_exp(-shadows, where=asked)}
    densities = []
    for name, side in _filled_sides(known, members, usual.shift).items():
        variance, prior = usual.sides[name]
        # degrees of freedom and variance of each record, [N] each, shrunk towards the usual variance
        freedom, own = (np.full(len(margin), np.inf), np.ones(len(margin))) if prior is None else prior.updated(side)
        own = np.maximum(own, _SMALLEST_VARIANCE)
        scale = np.sqrt(own * (1 + 1 / side.models))
        found[name] = side.mean
        found[f"from_{name}"] = (margin - side.mean) / np.sqrt(variance)
        found[f"own_from_{name}"] = (margin - side.mean) / scale
        found[f"spread_{name}"] = scale
        # of a Gaussian, without the constant that cancels in every ratio
        density = -0.5 * np.log(variance) - 0.5 * (margin - side.mean) ** 2 / variance
        densities.append((density, student_log_density(margin, freedom, side.mean, scale)))
    if mode == "online":
        (outside, own_outside), (inside, own_inside) = densities
        found["ratio"], found["own_ratio"] = inside - outside, own_inside - own_outside
    found |= usual.summed or summed_parts(evidence, mode=mode, usual=usual)
    return {name: np.clip(values, -_LARGEST, _LARGEST) for name, values in found.items()}


def summed_parts(evidence: Evidence, *, mode: Mode, usual: Usual) -> Features:
    """What compares a part of a record with the shadow models', summed over its parts, by name, [N] each."""
    found: dict[str, list[FloatArray]] = {}
    size = 0 if evidence.parts is None else max(1, _AT_ONCE * evidence.records // len(evidence.parts.target))
    for some in np.split(np.arange(evidence.records), range(size, evidence.records, size)) if size else []:
        view = UnitView.of_parts(evidence.of_records(some))
        for name, values in record_features(view.rows, mode=mode, usual=usual.parts).items():
            if name in _OF_PARTS:
                found.setdefault(f"parts_{name}", []).append(view.units.sums(values))
    return {name: np.concatenate(values) for name, values in found.items()}


def _check(members: BoolArray, mode: Mode) -> None:
    """Refuse references of whom too many lie on one side."""
    inside, outside = members.any(axis=0), ~members.all(axis=0)  # [N] which records have such models
    if not ((inside & outside).any() if mode == "online" else outside.all()):
        has = "no record has in-models and out-models" if mode == "online" else "not every record has out-models"
        raise InputError(
            f"shadow_members: among the references of some simulated target {has}. Train "
            f"more shadow models, or use a share (fraction) nearer to 0.5."
        )


def _usual(known: dict[str, Moments], members: BoolArray) -> Usual:
    shift = 0.0
    if "inside" in known:
        both = members.any(axis=0) & ~members.all(axis=0)
        shift = float((known["inside"].mean - known["outside"].mean)[both].mean())
    found: dict[str, tuple[float, VariancePrior | None]] = {}
    for name, side in _filled_sides(known, members, shift).items():
        freedom = float((side.models - 1).sum())
        if freedom:
            found[name] = max(float(side.squares.sum() / freedom), _SMALLEST_VARIANCE), fit_variance_prior(side)
        else:  # each record has a single model, which has no spread
            found[name] = 1.0, None
    return Usual(shift, found)


def _known_sides(evidence: Evidence, mode: Mode) -> dict[str, Moments]:
    """Moments of the out-models and, online, of the in-models of every record; of all models if it has none."""
    margins, members = loss_to_margin(evidence.shadow_loss), evidence.shadow_members
    if mode == "offline":
        return {"outside": moments(margins, ~members)}
    return {
        "outside": moments(margins, ~members | members.all(axis=0)),
        "inside": moments(margins, members | ~members.any(axis=0)),
    }


def _filled_sides(known: dict[str, Moments], members: BoolArray, shift: float) -> dict[str, Moments]:
    """The same, where a side without models has the mean of the other side, moved by the shift."""
    if "inside" not in known:
        return known
    outside, inside = known["outside"], known["inside"]
    return {
        "outside": _filled(outside, np.asarray(~members.all(axis=0)), inside.mean - shift),
        "inside": _filled(inside, np.asarray(members.any(axis=0)), outside.mean + shift),
    }


def _filled(side: Moments, known: BoolArray, mean: FloatArray) -> Moments:
    """The moments, with one model of the expected mean [N] for each record that has none."""
    parts = ((side.models, np.ones(len(mean))), (side.mean, mean), (side.squares, np.zeros(len(mean))))
    return side if known.all() else Moments(*(np.where(known, own, other) for own, other in parts))
