"""A risk policy: limits that a run must not exceed before a model is released, and a run judged by them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from glasshouse.core.errors import InputError
from glasshouse.evaluation import Interval
from glasshouse.report.decision.conclusion import FACTOR
from glasshouse.report.figures import FIGURES, Figure
from glasshouse.report.format import rate, whole
from glasshouse.report.run_folder import read_manifest
from glasshouse.report.summary import Summary

End = Literal["upper", "estimate", "lower", "both"]

HEADLINE = "headline"  # in policies: the verdict attack, the strongest one on simulated targets
EVERY = "every"
WORST = "worst"
_EPSILON = Figure(name="epsilon", words="lower bound on ε", high=math.inf, shown=())  # of a run, not of an attack


def limited_figures() -> list[str]:
    """What a limit may be on, in alphabetical order."""
    shown = (name.removesuffix("@{}") for name, one in FIGURES.items() if "gate" in one.shown)
    return sorted(["epsilon", *shown])


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that a figure may be.

    Args:
        figure: ``"tpr"``, the share of members that are identified; ``"auc"``, or another figure that
            `glasshouse.report.figures.FIGURES` shows to the gate; or ``"epsilon"``, the lower bound on ε.
        most: the largest value that passes.
        at_fpr: the false-positive rate of a ``"tpr"``; a run measures a few of them.
        attack: ``"headline"``, the verdict attack; ``"every"`` attack; or the name of one.
        group: a column of groups, such as ``"class"``: the limit is then on each of its groups. ``"worst"``: it is on
            the most exposed group or combination of two groups; where none stands out, on all records.
        end: which end of the interval is compared with the limit; by default the policy's own.
        stand_in: whether the figure stands for one that the sample cannot resolve: where the limit is not met, too few
            records say whether it is exceeded.

    Example:
        >>> Limit(figure="tpr", most=0.05, at_fpr=0.01).words
        'TPR at 1 % FPR of the verdict attack at most 5 %'
    """

    figure: str
    most: float
    at_fpr: float | None = None
    attack: str = HEADLINE
    group: str | None = None
    end: End | None = None
    stand_in: bool = False

    def __post_init__(self) -> None:
        if self.figure not in limited_figures():
            raise InputError(f'figure: "{self.figure}" has no limit; use one of {", ".join(limited_figures())}.')
        if self.figure == "tpr" and self.group is None and self.at_fpr is None:
            raise InputError("at_fpr: is missing; a TPR needs its false-positive rate, such as at_fpr: 0.01.")
        if self.at_fpr is not None and (self.figure != "tpr" or self.group is not None):
            raise InputError(
                "at_fpr: belongs to a tpr of all records; groups are judged at the attack's own threshold."
            )
        if self.figure == "epsilon" and (self.group is not None or self.attack != HEADLINE or self.end is not None):
            raise InputError("epsilon: is one bound of the whole run; it has no group, no attack and no end.")
        if self.group is not None and (self.attack != HEADLINE or self.figure not in ("tpr", "auc")):
            raise InputError("group: groups have a tpr and an auc of the verdict attack alone; leave attack out.")
        if self.group == WORST and self.figure != "tpr":
            raise InputError("group: the worst group is the one with the largest tpr; limit that, or name a column.")
        if not self.most >= self.described.low:
            raise InputError(f"most: {self.most} is not a limit; use a number that is not negative.")
        if self.most > self.described.high:
            raise InputError(
                f"most: {self.most:g} is above {self.described.high:g}, so no model exceeds it; write 5 % as 0.05."
            )

    @property
    def described(self) -> Figure:
        """The description of the figure."""
        return _EPSILON if self.figure == "epsilon" else FIGURES.get(self.figure) or FIGURES[f"{self.figure}@{{}}"]

    @property
    def value(self) -> str:
        """The largest value that passes, as text."""
        return rate(self.most) if self.described.unit == "%" else f"{self.most:g}"

    @property
    def words(self) -> str:
        """The limit as a part of a sentence."""
        who = {HEADLINE: "the verdict attack", EVERY: "every attack"}.get(self.attack, self.attack)
        if self.figure == "epsilon":
            name = self.described.words
        elif self.group is not None:
            name = f"{self.figure.upper()} of {self._groups}"
        else:
            name = f"{self.described.words if self.at_fpr is None else self.described.title(self.at_fpr)} of {who}"
        return f"{name} at most {self.value}"

    @property
    def _groups(self) -> str:
        return "the most exposed group" if self.group == WORST else f"every group of {self.group}"

    @property
    def subject(self) -> str:
        """What is limited, for a reader who knows no abbreviation."""
        if self.figure == "epsilon":
            return f"privacy loss that the attacks prove, at most {self.value}"
        if (counts := self.described.counts) is None:
            return self.words
        where = "" if self.group is None else f" in {self._groups}"
        return f"{counts.subject}{where}{self._price}, at most {counts.per * self.most:g} of {whole(counts.per)}"

    def plain(self, who: str, value: float, interval: Interval) -> str:
        """What was measured beside the limit, for a reader who knows no abbreviation."""
        if (counts := self.described.counts) is None:
            return f"{self.words}: {who} has {value:.3g} (interval {interval.low:.3g} to {interval.high:.3g})"
        at, low, high = (f"{counts.per * one:.0f}" for one in (value, *interval))
        shown = f"(interval {low} to {high}; limit {counts.per * self.most:g})"
        return f"{who} {counts.says.format(at)}{self._price} {shown}"

    @property
    def _price(self) -> str:
        return "" if self.at_fpr is None else f" at {rate(self.at_fpr)} false positives"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Limits on the figures of a run, and what the run must have been.

    Args:
        limits: on figures; one or more.
        end: which end of an interval is compared with the limit. ``"upper"``: the model passes only if the limit is
            met with confidence. ``"estimate"``: the measured value counts, where the sample resolves it.
            ``"lower"``: it fails only if the limit is exceeded with confidence. ``"both"``: between the two, too few
            records to say, which is inconclusive.
        attacks: names of attacks that the run must have tried.
        shadows: how many shadow models the run must have had, at least.
        age_days: how old the run may be.

    Example:
        >>> Policy(limits=(Limit(figure="auc", most=0.6),)).end
        'upper'
    """

    limits: Sequence[Limit]
    end: End = "upper"
    attacks: Sequence[str] = ()
    shadows: int = 0
    age_days: float | None = None

    def __post_init__(self) -> None:
        if not self.limits:
            raise InputError("limits: the policy has none; give one or more.")


_USUAL_AUC = 0.6


def usual_policy(summary: Summary) -> Policy:
    """A TPR of at most `FACTOR` times the FPR, else an AUC where none can be measured; and no ε above a claimed one."""
    found = summary.conclusion.figures
    rate = None if found is None else found.rate
    if rate is not None and rate.reached and FACTOR * rate.wanted < 1:
        limits = [Limit(figure="tpr", at_fpr=rate.wanted, most=FACTOR * rate.wanted)]
    else:
        limits = [Limit(figure="auc", most=_USUAL_AUC, stand_in=rate is None or rate.reached)]
    privacy = summary.privacy
    if privacy is not None and privacy.claim is not None:
        limits.append(Limit(figure="epsilon", most=privacy.claim.epsilon))
    return Policy(limits=tuple(limits), end="both")


def stored_policy(policy: Policy | None) -> dict[str, Any]:
    """What ``run.json`` keeps of a policy; nothing if there is none."""
    return {} if policy is None else {"policy": dataclasses.asdict(policy)}


def policy_of(folder: Path | str) -> Policy | None:
    """The policy that a run was saved with; None if there was none."""
    told = read_manifest(folder).get("policy")
    if told is None:
        return None
    try:
        from pydantic import TypeAdapter  # checks every type; only needed to read a run

        found: Policy = TypeAdapter(Policy).validate_python(told)
        return dataclasses.replace(found, limits=tuple(found.limits), attacks=tuple(found.attacks))
    except (InputError, ValueError) as error:
        path = Path(folder) / "run.json"
        raise InputError(f"{path}: is damaged: its policy is not one. Run the audit again.") from error
