"""Measured defences as plain data and in words: what each gains and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from glasshouse.core.table import Table
from glasshouse.evaluation import Interval
from glasshouse.report.format import percent, rate, table_of


@dataclass(frozen=True, kw_only=True)
class MeasuredDefence:
    """One way to train and to answer, measured on a target of its own."""

    name: str  # what was changed; "as it is" for the first
    code: str  # a line of Python that makes the change
    attack: str  # the strongest on simulated targets, which all figures are of
    leak: float  # its TPR at the rate that all share; its AUC where no rate can be measured
    interval: Interval  # of the leak; all intervals hold at once
    simulated: float  # the same figure on simulated targets, by which a defence is chosen
    accuracy: float  # of the model on non-members
    accuracy_interval: Interval  # likewise corrected
    seconds: float  # that it took to train and to attack
    note: str = ""  # what else must be known: where records are left out, what became of the others

    def change(self, before: MeasuredDefence) -> str:
        """What it gains and costs beside another: ``"leak −87 %, accuracy −0.1 points"``."""
        less = 100 * (self.leak / before.leak - 1) if before.leak > 0 else 0.0
        points = 100 * (self.accuracy - before.accuracy)
        return f"leak {less:+.0f} %, accuracy {points:+.1f} points".replace("-", "−")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What each defence gains and costs, and which one is advised."""

    fpr: float | None  # the false-positive rate of the leak; None: the leak is an AUC
    before: MeasuredDefence  # the model as it is
    tried: tuple[MeasuredDefence, ...]  # the defences, in the order of their simulated leak
    advised: MeasuredDefence | None  # smallest simulated leak of those that cost little accuracy; None if none helps
    fresh: MeasuredDefence | None  # the advised one again, on a target with other members that nothing was chosen on
    left_out: Mapping[str, str]  # defences that were not measured, by name, each with the reason
    most_accuracy: float  # how much accuracy an advised defence may cost
    confidence: float = 0.95  # of all intervals together

    @property
    def figure(self) -> str:
        """What the leak is, in words."""
        return "AUC" if self.fpr is None else f"TPR at {rate(self.fpr)} FPR"

    def shown(self, one: MeasuredDefence) -> str:
        """A leak with its interval."""
        low, high = one.interval
        if self.fpr is None:
            return f"{one.leak:.3f} [{low:.3f}, {high:.3f}]"
        return f"{percent(one.leak)} [{100 * low:.1f}, {100 * high:.1f}]"

    def sentences(self) -> tuple[str, ...]:
        """What is advised, what it was measured on, and whether it held on a fresh target."""
        count, points = len(self.tried), 100 * self.most_accuracy
        tried = f"{count} defence{'' if count == 1 else 's'} tried"
        cost = f"at most {points:g} point{'' if points == 1 else 's'} of accuracy"
        if self.advised is None:
            return (f"No defence is advised: of {tried}, none leaks less on simulated targets at the cost of {cost}.",)
        best = self.advised
        told = [
            f"Advised: {best.name} ({best.change(self.before)}). {self.figure}: {self.shown(self.before)} as it is, "
            f"{self.shown(best)} with it. It has the smallest leak on simulated targets of {tried} that cost {cost}; "
            f"intervals are corrected for all of them."
        ]
        if best.interval.high >= self.before.interval.low:
            told.append("The two intervals overlap, so chance may explain the difference.")
        if self.fresh is not None:
            low, high = best.interval
            held = "within the interval above" if low <= self.fresh.leak <= high else "outside the interval above"
            told.append(
                f"On a fresh target, with other members, which nothing was chosen on, its {self.figure} is "
                f"{self.shown(self.fresh)} ({held}) and its accuracy {percent(self.fresh.accuracy)}."
            )
            told += [f"There, {self.fresh.note}"] if self.fresh.note else []
        return tuple(told)

    @property
    def models(self) -> list[tuple[int, MeasuredDefence]]:
        """All that was measured, numbered as in the picture: the model as it is, the defences, the fresh target."""
        fresh = () if self.fresh is None else (self.fresh,)
        return list(enumerate((self.before, *self.tried, *fresh), start=1))

    def table(self) -> Table:
        """One row per model."""
        heads = {"name": "defence", "interval": "leak_interval", "simulated": "simulated_leak"}
        rows = ((number, vars(one) | {"seconds": round(one.seconds, 1)}) for number, one in self.models)
        return table_of(
            {"number": number} | {heads.get(key, key): row[key] for key in row if key not in ("code", "note")}
            for number, row in rows
        )
