"""Which defence helps: each is tried through the same kind of pool and attacks, the advised one on a fresh target."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from glasshouse.auditing.defences import Defence, defences_for
from glasshouse.auditing.options import Attacker, documented
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import checked_members
from glasshouse.auditing.targets import audit_of
from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.core.progress import track
from glasshouse.core.randomness import seed_for
from glasshouse.data import Population, as_population, random_subsets
from glasshouse.evaluation import clopper_pearson, evaluate
from glasshouse.evaluation.metrics import verdict_rate
from glasshouse.evaluation.thresholds import rate_with_ties
from glasshouse.report.advice import Advice, MeasuredDefence
from glasshouse.training.sklearn import as_trainer
from glasshouse.training.trainer import Trainer

AS_IT_IS = Defence(name="as it is")
_FEWEST = 4  # shadow models


@documented
def advise(
    data: Any,
    *,
    trainer: Trainer | Any,
    model: Any = None,
    members: ArrayLike | None = None,
    defences: Sequence[Defence] | None = None,
    minutes: float | None = None,
    most_accuracy: float = 0.01,
    confidence: float = 0.95,
    shadows: int = 8,
    attacker: Attacker = Attacker(),
    pool: Path | str | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **options: Any,
) -> Advice:
    """Try the defences that fit a model, and advise the one that leaks least at little cost in accuracy.

    Each defence trains a target and shadow models of its own; one that only changes the answers uses those of the model
    as it is. It is chosen on simulated targets alone, by the strongest attack there; the figures of its target decide
    nothing, and a fresh target with other members shows whether they hold.

    Args:
        data: a `Population` for `glasshouse.audit`, or a graph for `glasshouse.graph.audit`.
        trainer: ``(data, members, seed) -> model``, or an estimator, as the target was trained.
        defences: what to try; by default what `defences_for` proposes for this trainer.
        minutes: what is not begun by then is left out, and the advice says so. By default there is no limit.
        most_accuracy: how much accuracy on non-members the advised defence may cost, 0.01 for one point.
        confidence: of all intervals together.
        pool: the folder for the shadow pools, one for each defence: an advice that was stopped goes on there.
        options: of `glasshouse.audit` or `glasshouse.graph.audit`.

    Example:
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from glasshouse import Population
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(300, 3))
        >>> population = Population(x, (x[:, 0] + rng.normal(size=300) > 0).astype(int))
        >>> found = advise(population, trainer=DecisionTreeClassifier(), shadows=4, attacks=["base"], progress=False)
        >>> found.advised.leak < found.before.leak
        True
    """
    trainer = as_trainer(trainer)
    if isinstance(data, Population) and data.regression:
        raise InputError("data: is a regression; defences are compared by accuracy, so only classifiers are advised.")
    if shadows < _FEWEST:
        raise InputError(f"shadows: {shadows} are too few for simulated targets, by which defences are chosen; use 4.")
    if minutes is not None and not minutes > 0:
        raise InputError(f"minutes: {minutes:g} is not a time; give a positive number.")
    mask = checked_members(model, members, len(as_population(data)), seed=seed, ids=as_population(data).ids)
    proposed = list(defences_for(trainer, data) if defences is None else defences)
    if not proposed:
        raise InputError("defences: none is known for this trainer; pass your own, defences=[Defence(…)].")
    ordered = sorted(proposed, key=lambda one: one.trainer is not None)  # other answers take seconds, so they go first
    started = time.perf_counter()
    count = 2 + len(proposed)  # intervals: of the model as it is, of each defence and of the fresh target
    corrected = 1 - (1 - confidence) / count
    measured: list[tuple[Defence, MeasuredDefence]] = []
    left_out: dict[str, str] = {}
    rates: list[float | None] = []  # of the model as it is; the same for all
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()) if pool is None else pool)

        def measure(defence: Defence, members: BoolArray, target: Any = None) -> MeasuredDefence:
            begun = time.perf_counter()
            result = audit_of(data)(
                data,
                model=target,
                members=members,
                trainer=defence.trainer or trainer,
                attacker=dataclasses.replace(attacker, query=defence.query or attacker.query),
                shadows=shadows,
                pool=folder / _folder_name(defence),
                seed=seed,
                progress=False,
                **options,
            )
            if not rates:
                rates.append(_common_rate(result))
            seconds = time.perf_counter() - begun
            return _measured(defence, result, rate=rates[0], confidence=corrected, seconds=seconds)

        every = [AS_IT_IS, *ordered]
        for defence in track(every, total=len(every), label="Defences", unit="defences", show=progress):
            longest = max((one.seconds for _, one in measured), default=0.0)
            if minutes is not None and time.perf_counter() - started + longest > 60 * minutes:
                left_out[defence.name] = f"it would have taken longer than the {minutes:g} minutes."
                continue
            same = model is not None and defence.trainer is None  # a given model stands for its own answers
            try:
                measured.append((defence, measure(defence, mask, model if same else None)))
            except InputError as error:
                if defence is AS_IT_IS:
                    raise
                left_out[defence.name] = " ".join(error.faults)
        if not measured:
            raise InputError(f"minutes: {minutes:g} is too little for the model as it is. Give more.")
        (_, before), *tried = measured
        chosen = _chosen(before, tried, most_accuracy)
        fresh = None
        if chosen is not None:
            other = random_subsets(len(mask), models=1, fraction=float(mask.mean()), seed=seed_for(seed, "fresh"))[0]
            fresh = dataclasses.replace(measure(chosen[0], other), name=f"{chosen[0].name}, fresh target")
    return Advice(
        fpr=rates[0],
        before=before,
        tried=tuple(one for _, one in sorted(tried, key=lambda pair: pair[1].simulated)),
        advised=None if chosen is None else chosen[1],
        fresh=fresh,
        left_out=left_out,
        most_accuracy=most_accuracy,
        confidence=confidence,
    )


def _common_rate(result: AuditResult) -> float | None:
    """The rate to report first; None, for the AUC, where none can be measured or ties keep every attack from it."""
    if result.members is None:
        return None
    rate = verdict_rate(result.fprs, int((~result.members).sum()))
    found = [one.metrics for one in result.outcomes.values() if one.metrics is not None]
    reached = any(one.wanted == rate and one.first is None for metrics in found for one in metrics.rates)
    return rate if reached else None


def _measured(
    defence: Defence, result: AuditResult, *, rate: float | None, confidence: float, seconds: float
) -> MeasuredDefence:
    """The figures of the attack that is strongest on simulated targets."""
    members = result.members
    known = {name: one.simulated for name, one in result.outcomes.items() if one.simulated}
    if members is None or not known:
        raise InputError("shadows: too few for simulated targets, by which defences are chosen; use 4 or more.")
    strengths = {
        name: one.auc if rate is None else one.strengths[result.fprs.index(rate)]
        for name, one in known.items()
        if not result.outcomes[name].attack.knows_truth
    }
    attack = max(strengths, key=lambda name: strengths[name])
    scores = result.outcomes[attack].scores
    metrics = evaluate(scores, members, fprs=[] if rate is None else [rate], confidence=confidence)
    leak, interval = metrics.auc, metrics.auc_interval
    if rate is not None:
        leak, interval = metrics.rates[0].estimate, metrics.rates[0].interval
        if metrics.rates[0].first is not None:  # tied scores: flags are drawn among them
            leak = rate_with_ties(scores, members, rate)[0]
            inside = int(members.sum())
            interval = clopper_pearson(round(leak * inside), inside, confidence=confidence)
    accuracy, others = result.context.test_accuracy, int((~members).sum())
    if accuracy is None:
        raise InputError("data: defences are compared by accuracy, which is not known for these answers.")
    return MeasuredDefence(
        name=defence.name,
        code=defence.code,
        attack=attack,
        leak=leak,
        interval=interval,
        simulated=strengths[attack],
        accuracy=accuracy,
        accuracy_interval=clopper_pearson(round(accuracy * others), others, confidence=confidence),
        seconds=seconds,
    )


def _chosen(
    before: MeasuredDefence, tried: Sequence[tuple[Defence, MeasuredDefence]], most: float
) -> tuple[Defence, MeasuredDefence] | None:
    """The smallest simulated leak among those that cost little; None if none is below that of the model as it is."""
    cheap = [pair for pair in tried if pair[1].accuracy >= before.accuracy - most]
    best = min(cheap, key=lambda pair: pair[1].simulated, default=None)
    return None if best is None or best[1].simulated >= before.simulated else best


def _folder_name(defence: Defence) -> str:
    """Defences that ask the same models the same question share a pool; the name shows which it is."""
    if defence.trainer is None and not (defence.query and defence.query.labels_only):
        return "as-it-is"
    return re.sub(r"[^a-z0-9]+", "-", defence.name.lower()).strip("-")
