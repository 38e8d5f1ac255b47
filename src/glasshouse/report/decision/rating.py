"""One word for a run, with the rule that gave it: for a reader who has to decide."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from glasshouse.report.decision.conclusion import Reason
from glasshouse.report.decision.exposure import unit_of
from glasshouse.report.format import whole
from glasshouse.report.policy import Finding, Policy, judge, usual_policy
from glasshouse.report.summary import Summary

Level = Literal["high", "some", "none", "unknown"]

_NOT_SAFE = "This does not show that the model is safe: another attack, or more data, may find more."
_WHY_UNKNOWN: dict[Reason, str] = {
    "warning": "The input of the audit has a fault, which the warning above describes.",
    "members unknown": "It is not known which records trained the model, so nothing could be measured.",
    "members not random": (
        "The training data differ in kind from the non-members, so nothing here shows what the model reveals."
    ),
    "mismatch": (
        "The model answers differently from the shadow models that the attacker compared it with, so the attacks were "
        "weaker than they could be. A leak that they show is real; one that they do not show may exist too."
    ),
    "few models": "With {shadows} shadow models the attacks are weak, so a negative result says little.",
}


@dataclass(frozen=True, kw_only=True)
class Rating:
    """A rating in words."""

    level: Level  # for the colour of the page; ``"none"``: no leak is shown, which is not that there is none
    word: str
    sentences: Sequence[str]  # what it means
    rule: str  # that gave it
    findings: Sequence[Finding]  # what the run shows about each requirement of the policy
    own: bool  # whether the policy is the user's own, and not the usual one


def rating_of(summary: Summary, policy: Policy | None = None) -> Rating:
    """Rate a run by a policy of the user, or by `usual_policy`.

    Nothing that could not be measured is rated as harmless: where members were not drawn at random, where the input
    looks wrong or the members are not known, the rating is "Inconclusive".
    """
    return _by_usual(summary) if policy is None else _by_own(summary, policy)


def _by_own(summary: Summary, policy: Policy) -> Rating:
    verdict, meaning = judge(summary, policy, written=summary.written), _meaning(summary)
    leak = summary.conclusion.leak
    rated = functools.partial(Rating, rule="Rated by the given policy:", findings=verdict.findings, own=True)
    if verdict.status == "failed":
        first = "At least one limit or requirement of the policy is not met."
        return rated(level="high", word="Outside the policy", sentences=(first, *meaning))
    if verdict.status == "unknown" or (leak is not True and summary.conclusion.reasons):
        return rated(level="unknown", word="Inconclusive", sentences=meaning)
    word = "Within the policy, though a leak is shown" if leak else "Within the policy; no leak is shown"
    return rated(level="some" if leak else "none", word=word, sentences=meaning)


def _by_usual(summary: Summary) -> Rating:
    policy, meaning = usual_policy(summary), _meaning(summary)
    leak, reasons = summary.conclusion.leak, summary.conclusion.reasons
    above = judge(summary, dataclasses.replace(policy, end="lower"))  # fails where a limit is surely exceeded
    below = judge(summary, dataclasses.replace(policy, end="upper"))  # passes where all are surely met
    rule = "Rated by Glasshouse's usual policy, since no policy was given:"
    found = above if above.status == "failed" else below
    rated = functools.partial(Rating, rule=rule, findings=found.findings, own=False)
    if above.status == "failed" and "warning" not in reasons:
        return rated(level="high", word="High exposure", sentences=meaning)
    if "warning" in reasons or "unknown" in (above.status, below.status) or (leak is not True and reasons):
        return rated(level="unknown", word="Inconclusive", sentences=meaning)
    unsure = below.status == "failed"
    if leak:
        more = ("Too few records to say whether the limit is exceeded.",) if unsure else ()
        return rated(level="some", word="Some exposure", sentences=(*meaning, *more))
    more = ("The sample is too small to rule out a leak above the limit.",) if unsure else ()
    return rated(level="none", word="No leak shown", sentences=(*meaning, *more))


def _meaning(summary: Summary) -> tuple[str, ...]:
    """What the run shows about any leak at all, in plain words, and why finding nothing would say nothing."""
    shown, reasons = summary.conclusion.measured, summary.conclusion.reasons
    reason = tuple(_WHY_UNKNOWN[one].format(shadows=summary.context.shadows or "no") for one in reasons[:1])
    if shown is None:
        return reason
    unit = unit_of(summary)
    if not shown.leak:
        none = f"The attacks did not tell training {unit} from non-members better than chance. {_NOT_SAFE}"
        return (none, *reason)
    rare = whole(max(1.0, 1 / shown.p_value))
    told = (
        f"Attackers can tell training {unit} from non-members: chance alone would produce this in at most 1 of {rare} "
        f"audits."
    )
    privacy = summary.privacy
    if privacy is not None and privacy.contradicted:
        told += " This contradicts the privacy guarantee that was claimed for the model."
    return (told, *reason)
