"""Audits that are alike but for a defence, and the choice among them; and an audit that is followed by these."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.auditing.defences import (
    Defence,
    accuracy_on,
    counting_less,
    defences_for,
    effect,
    most_exposed,
)
from glasshouse.auditing.options import Attacker, Evaluation
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import checked_members
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.progress import track
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, Units, as_population, random_subsets
from glasshouse.data.units import as_units
from glasshouse.evaluation import clopper_pearson, evaluate
from glasshouse.evaluation.metrics import verdict_rate
from glasshouse.evaluation.thresholds import rate_with_ties
from glasshouse.evidence import Evidence
from glasshouse.report.advice import Advice, MeasuredDefence
from glasshouse.training.sklearn import as_trainer
from glasshouse.training.trainer import Trainer

AS_IT_IS = Defence(name="as it is")
_FEWEST = 4  # shadow models


def check_advisable(data: Any, *, shadows: int, minutes: float | None, place: str) -> None:
    """Refuse what cannot be advised on before anything is trained."""
    if isinstance(data, Population) and data.regression:
        raise InputError("data: is a regression; defences are compared by accuracy, so only classifiers are advised.")
    if shadows < _FEWEST:
        raise InputError(f"shadows: {shadows} are too few for simulated targets, by which defences are chosen; use 4.")
    if minutes is not None and (isinstance(minutes, bool) or not 0 < minutes < float("inf")):
        raise InputError(f"{place}: {minutes!r} is not a positive number; give minutes, such as 15.")


def too_long(minutes: float) -> str:
    """Why a defence was not begun."""
    return f"it would have taken longer than the {minutes:g} minutes."


class _AsItIs(NamedTuple):
    """The model that is to be defended."""

    model: Any  # None if it was trained here
    members: BoolArray  # [N]
    result: AuditResult
    shadows: Evidence  # by which the most exposed are found; a fresh target changes nothing about who they are
    seconds: float  # that its audit took


@contextlib.contextmanager
def trials_of(
    run: Callable[..., AuditResult],
    data: Any,
    trainer: Trainer,
    attacker: Attacker,
    pool: Path | str | None,
    *,
    apart: bool,
    **options: Any,
) -> Iterator[Trials]:
    """Trials with their pools: in a folder, or beside the pool of an audit; in a temporary folder if there is none."""
    with tempfile.TemporaryDirectory() if pool is None else contextlib.nullcontext(pool) as place:
        folder = Path(place)
        beside = pool is not None and not apart
        others = folder.with_name(f"{folder.name}-defences") if beside else folder
        own = folder if beside else folder / "as-it-is"
        known: dict[str, Any] = {"run": run, "data": data, "trainer": trainer, "attacker": attacker, "apart": apart}
        yield Trials(**known, own=own, others=others, options=options)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """Audits that are alike but for the defence."""

    run: Callable[..., AuditResult]  # the audit of this kind of data
    data: Any
    trainer: Trainer
    attacker: Attacker
    own: Path  # the pool of the model as it is
    others: Path  # where the pools of the defences are, by name
    apart: bool  # whether minutes are for all of it, and not for what follows the audit of the model as it is
    options: Mapping[str, Any]  # of every audit

    def proposed(self, defences: Sequence[Defence] | None) -> list[Defence]:
        """What is tried, in order: other answers take seconds, and so they go first."""
        found = list(defences_for(self.trainer, self.data) if defences is None else defences)
        if not found:
            raise InputError("defences: none is known for this trainer; pass your own, defences=[Defence(…)].")
        return sorted(found, key=lambda one: one.trains)

    def as_it_is(self, model: Any, members: ArrayLike | None, *, progress: bool | None) -> _AsItIs:
        """The audit of the model as it is."""
        began = time.perf_counter()
        design = self.options.get("evaluation", Evaluation()).design
        if design is not None and design.name not in ("records", "units"):
            raise InputError(f"design: {design.name}: the fresh target of an advice is drawn at random; leave it out.")
        known = as_population(self.data)
        mask = checked_members(model, members, len(known), seed=self.options["seed"], ids=known.ids, units=self._units)
        result = self.audit(AS_IT_IS, mask, model=model, progress=progress)
        return _AsItIs(model, mask, result, result.evidence, time.perf_counter() - began)

    @property
    def _units(self) -> Units | None:
        """Whose records they are: those of a population, or what the audit of a graph was told."""
        given = self.data.unit if isinstance(self.data, Population) else self.options.get("unit")
        return as_units(given, len(as_population(self.data)))

    def audit(
        self, defence: Defence, members: BoolArray, *, model: Any = None, progress: bool | None = False
    ) -> AuditResult:
        """An audit of the model, which is trained on ``members`` [N] if none is given."""
        return self.run(
            self.data,
            model=model,
            members=members,
            trainer=defence.trainer or self.trainer,
            attacker=dataclasses.replace(self.attacker, query=defence.query or self.attacker.query),
            pool=self._pool(defence),
            progress=progress,
            **self.options,
        )

    def _pool(self, defence: Defence) -> Path:
        """Defences that ask the same models the same question share a pool; else its name shows which it is."""
        if not defence.trains and not (defence.query and defence.query.labels_only):
            return self.own
        return self.others / re.sub(r"[^a-z0-9]+", "-", defence.name.lower()).strip("-")

    def measured(self, defence: Defence, before: _AsItIs, *, fpr: float | None, confidence: float) -> MeasuredDefence:
        """A defence on a target of its own; ``before`` has the same members."""
        began, accuracy, note = time.perf_counter(), None, ""
        if defence.exposed:
            result, accuracy, note = self._on_exposed(defence, before, fpr)
        else:  # a given model stands for its own answers
            result = self.audit(defence, before.members, model=None if defence.trains else before.model)
        seconds = time.perf_counter() - began
        return _figures(defence, result, fpr=fpr, confidence=confidence, seconds=seconds, accuracy=accuracy, note=note)

    def _on_exposed(
        self, defence: Defence, before: _AsItIs, fpr: float | None
    ) -> tuple[AuditResult, float | None, str]:
        """An audit where the most exposed records count less or have no part, the accuracy, and what became of them."""
        reference, units = before.result, self._units
        members: Any = reference.members  # of records, or of units
        if not isinstance(self.data, Population) or len(members) != len(self.data if units is None else units):
            raise InputError("data: the most exposed are found among the records of a population that are all judged.")
        exposed, accuracy = most_exposed(before.shadows, defence.exposed), None
        rows = exposed if units is None else exposed[units.rows]
        scores: FloatArray = np.full(len(members), -np.inf)
        if defence.weight:
            changed = counting_less(defence.trainer or self.trainer, rows, defence.weight)
            result = self.audit(dataclasses.replace(defence, trainer=changed), before.members)
            scores = _strongest(result, fpr)[2]
        else:
            if self.attacker.trace is not None or np.ndim(self.attacker.prior):
                raise InputError("attacker: its trace or prior has one value per record, so that none can be left out.")
            rest, kept = self.data.at(~rows), before.members[~rows]
            model = self.trainer(rest, kept, seed_for(self.options["seed"], "target"))
            judging = dataclasses.replace(self.options.get("evaluation", Evaluation()), groups=None)
            trials = dataclasses.replace(self, data=rest, options={**self.options, "evaluation": judging})
            result = trials.audit(defence, kept, model=model)
            accuracy = accuracy_on(model, self.data, ~before.members)
            scores[~exposed] = _strongest(result, fpr)[2]
        known: dict[str, Any] = {"members": members, "exposed": exposed, "weight": defence.weight}
        known["fpr"] = 0.01 if fpr is None else fpr
        return result, accuracy, effect(_strongest(reference, fpr)[2], scores, **known)

    def advice(
        self,
        model: Any,
        members: ArrayLike | None,
        *,
        defences: Sequence[Defence] | None = None,
        minutes: float | None,
        most_accuracy: float = 0.01,
        confidence: float = 0.95,
        progress: bool | None,
    ) -> tuple[AuditResult, Advice]:
        """The audit of the model as it is; what each defence gains and costs, and which one is advised."""
        began, defences = time.perf_counter(), self.proposed(defences)  # refused now if there is none
        found = self.as_it_is(model, members, progress=progress)
        began = began if self.apart else time.perf_counter()
        count = 2 + len(defences)  # intervals: of the model as it is, of each defence and of the fresh target
        corrected: dict[str, Any] = {"fpr": _common_rate(found.result), "confidence": 1 - (1 - confidence) / count}
        before = _figures(AS_IT_IS, found.result, seconds=found.seconds, **corrected)
        tried: list[tuple[Defence, MeasuredDefence]] = []
        left_out: dict[str, str] = {}
        for defence in track(defences, total=len(defences), label="Defences", unit="defences", show=progress):
            longest = max([before.seconds, *(one.seconds for _, one in tried)])
            if minutes is not None and time.perf_counter() - began + longest > 60 * minutes:
                left_out[defence.name] = too_long(minutes)
                continue
            try:
                tried.append((defence, self.measured(defence, found, **corrected)))
            except InputError as error:
                left_out[defence.name] = " ".join(error.faults)
        chosen, fresh = _chosen(before, tried, most_accuracy), None
        if chosen is not None:
            mask, seed = found.members, seed_for(self.options["seed"], "fresh")
            share: dict[str, Any] = {"fraction": float(mask.mean()), "units": self._units}
            other = random_subsets(len(mask), models=1, seed=seed, **share)[0]
            again = found._replace(model=None, members=other)
            if chosen[0].exposed:  # the model as it is on the same members, for what became of the others
                again = again._replace(result=self.audit(AS_IT_IS, other))
            fresh = self.measured(chosen[0], again, **corrected)
            fresh = dataclasses.replace(fresh, name=f"{chosen[0].name}, fresh target")
        advice = Advice(
            fpr=corrected["fpr"],
            before=before,
            tried=tuple(one for _, one in sorted(tried, key=lambda pair: pair[1].simulated)),
            advised=None if chosen is None else chosen[1],
            fresh=fresh,
            left_out=left_out,
            most_accuracy=most_accuracy,
            confidence=confidence,
        )
        return found.result, advice


def _common_rate(result: AuditResult) -> float | None:
    """The rate to report first; None, for the AUC, where none can be measured or ties keep every attack from it."""
    if result.members is None:
        return None
    rate = verdict_rate(result.fprs, int((~result.members).sum()))
    found = [one.metrics for one in result.outcomes.values() if one.metrics is not None]
    reached = any(one.wanted == rate and one.first is None for metrics in found for one in metrics.rates)
    return rate if reached else None


def _strongest(result: AuditResult, fpr: float | None) -> tuple[str, float, FloatArray]:
    """The attack that is strongest on simulated targets, how strong it is there, and its scores [N]."""
    if fpr is not None and fpr not in result.fprs:
        raise InputError(f"fprs: {fpr:g} cannot be measured on the records that are audited with this defence.")
    known = {
        name: one.simulated.auc if fpr is None else one.simulated.strengths[result.fprs.index(fpr)]
        for name, one in result.outcomes.items()
        if one.simulated and not one.attack.knows_truth
    }
    if result.members is None or not known:
        raise InputError("shadows: too few for simulated targets, by which defences are chosen; use 4 or more.")
    name = max(known, key=lambda name: known[name])
    return name, known[name], result.outcomes[name].scores


def _figures(
    defence: Defence,
    result: AuditResult,
    *,
    fpr: float | None,
    confidence: float,
    seconds: float,
    accuracy: float | None = None,
    note: str = "",
) -> MeasuredDefence:
    """The figures of the attack that is strongest on simulated targets; the accuracy is by default the audit's."""
    attack, simulated, scores = _strongest(result, fpr)
    members: Any = result.members
    rates, units = [] if fpr is None else [fpr], result.by_unit is not None
    metrics = evaluate(scores, members, fprs=rates, confidence=confidence, units=units)
    leak, interval = metrics.auc, metrics.auc_interval
    if fpr is not None:
        leak, interval = metrics.rates[0].estimate, metrics.rates[0].interval
        if metrics.rates[0].first is not None:  # tied scores: flags are drawn among them
            leak = rate_with_ties(scores, members, fpr)[0]
            inside = int(members.sum())
            interval = clopper_pearson(round(leak * inside), inside, confidence=confidence)
    accuracy, others = result.context.test_accuracy if accuracy is None else accuracy, int((~members).sum())
    if accuracy is None:
        raise InputError("data: defences are compared by accuracy, which is not known for these answers.")
    return MeasuredDefence(
        name=defence.name,
        code=defence.code,
        attack=attack,
        leak=leak,
        interval=interval,
        simulated=simulated,
        accuracy=accuracy,
        accuracy_interval=clopper_pearson(round(accuracy * others), others, confidence=confidence),
        seconds=seconds,
        note=note,
    )


def _chosen(
    before: MeasuredDefence, tried: Sequence[tuple[Defence, MeasuredDefence]], most: float
) -> tuple[Defence, MeasuredDefence] | None:
    """The smallest simulated leak among those that cost little; None if none is below that of the model as it is."""
    cheap = [pair for pair in tried if pair[1].accuracy >= before.accuracy - most]
    best = min(cheap, key=lambda pair: pair[1].simulated, default=None)
    return None if best is None or best[1].simulated >= before.simulated else best


def audit_and_advise(
    run: Callable[..., AuditResult],
    data: Any,
    *,
    budget: float,  # in minutes
    trainer: Trainer | Any,
    model: Any,
    members: ArrayLike | None,
    attacker: Attacker,
    shadows: int,
    pool: Path | str | None,
    seed: int,
    progress: bool | None,
    usual: Trainer | None = None,  # trains the model where no trainer is given
    **options: Any,
) -> AuditResult:
    """An audit, and then within some minutes what `advise` would find for its model, which the result carries.

    The audit's own shadow models are those of the model as it is; the pools of defences lie beside the audit's pool.
    """
    check_advisable(data, shadows=shadows, minutes=budget, place="advise")
    known = trainer if trainer is not None or usual is None else usual
    if known is None:
        raise InputError("trainer: missing; defences are other ways to train. Pass the target's, or leave out advise.")
    options |= {"shadows": shadows, "seed": seed}
    with trials_of(run, data, as_trainer(known), attacker, pool, apart=False, **options) as trials:
        result, advice = trials.advice(model, members, minutes=budget, progress=progress)
    return result.advised(advice)
