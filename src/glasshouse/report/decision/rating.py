"""One word for a run, with the rule that gave it: for a reader who has to decide."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from glasshouse.report.decision.exposure import unit_of
from glasshouse.report.format import whole
from glasshouse.report.policy import Finding, Policy, judge, usual_policy
from glasshouse.report.summary import Summary

Level = Literal["high", "some", "none", "unknown"]

_FEW = 4  # shadow models; with fewer the attacks are weak, and finding nothing says little
_UNLIKE = (
    "The model answers differently from the shadow models that the attacker compared it with, so the attacks were "
    "weaker than they could be. A leak that they show is real; one that they do not show may exist too."
)
_NOT_SAFE = "This does not show that the model is safe: another attack, or more data, may find more."


@dataclass(frozen=True, kw_only=True)
class Rating:
    """A rating in words.

    Args:
        level: how bad it is, for the colour of the page; ``"none"``: no leak is shown, which is not that there is none.
        word: the rating.
        sentences: what it means.
        rule: the rule that gave it.
        findings: what the run shows about each requirement of the policy.
        own: whether the policy is the user's own, and not the usual one.
    """

    level: Level
    word: str
    sentences: Sequence[str]
    rule: str
    findings: Sequence[Finding]
    own: bool


def rating_of(summary: Summary, policy: Policy | None = None) -> Rating:
    """Rate a run by a policy, or by the usual one.

    Nothing that could not be measured is rated as harmless: where members were not drawn at random, where the input
    looks wrong or the members are not known, the rating is "Inconclusive".

    Args:
        summary: of the run.
        policy: of the user; `usual_policy` by default.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> rating_of(audit_evidence(evidence, attacks=["loss"]).summary()).word
        'Inconclusive'
    """
    return _by_usual(summary) if policy is None else _by_own(summary, policy)


def _by_own(summary: Summary, policy: Policy) -> Rating:
    verdict = judge(summary, policy, written=summary.written)
    leak = _leak(summary)
    rule = "Rated by the given policy:"
    rated = functools.partial(Rating, rule=rule, findings=verdict.findings, own=True)
    if verdict.status == "failed":
        first = "At least one limit or requirement of the policy is not met."
        return rated(level="high", word="Outside the policy", sentences=(first, *_meaning(summary)))
    if verdict.status == "unknown" or (leak is not True and _why_unknown(summary)):
        return rated(level="unknown", word="Inconclusive", sentences=_meaning(summary))
    word = "Within the policy, though a leak is shown" if leak else "Within the policy; no leak is shown"
    return rated(level="some" if leak else "none", word=word, sentences=_meaning(summary))


def _by_usual(summary: Summary) -> Rating:
    policy = usual_policy(summary)
    above = judge(
        summary, dataclasses.replace(policy, end="lower")
    )  # fails where the limit is exceeded with confidence
    below = judge(summary, dataclasses.replace(policy, end="upper"))  # passes where it is met with confidence
    leak = _leak(summary)
    rule = "Rated by Glasshouse's usual policy, since no policy was given:"
    found = above if above.status == "failed" else below
    rated = functools.partial(Rating, rule=rule, findings=found.findings, own=False)
    if above.status == "failed" and not summary.context.warnings:
        return rated(level="high", word="High exposure", sentences=_meaning(summary))
    if (
        summary.context.warnings
        or "unknown" in (above.status, below.status)
        or (leak is not True and _why_unknown(summary))
    ):
        return rated(level="unknown", word="Inconclusive", sentences=_meaning(summary))
    unsure = below.status == "failed"
    if leak:
        more = ("Too few records to say whether the limit is exceeded.",) if unsure else ()
        return rated(level="some", word="Some exposure", sentences=(*_meaning(summary), *more))
    more = ("The sample is too small to rule out a leak above the limit.",) if unsure else ()
    return rated(level="none", word="No leak shown", sentences=(*_meaning(summary), *more))


def _leak(summary: Summary) -> bool | None:
    return None if summary.verdict_attack is None else summary.verdict_attack.leak


def _why_unknown(summary: Summary) -> str:
    """Why finding nothing would say nothing; empty if it says something."""
    context = summary.context
    if context.warnings:
        return "The input of the audit has a fault, which the warning above describes."
    if summary.verdict_attack is None:
        return "It is not known which records trained the model, so nothing could be measured."
    if summary.verdict_attack.leak is None:
        return "The training data differ in kind from the non-members, so nothing here shows what the model reveals."
    if summary.mismatch:
        return _UNLIKE
    if context.shadows < _FEW:
        return f"With {context.shadows or 'no'} shadow models the attacks are weak, so a negative result says little."
    return ""


def _meaning(summary: Summary) -> tuple[str, ...]:
    """What the run shows about any leak at all, in plain words."""
    reason, shown = _why_unknown(summary), summary.shown
    if shown is None:
        return (reason,)
    unit = unit_of(summary)
    if not shown.leak:
        none = f"The attacks did not tell training {unit} from non-members better than chance. {_NOT_SAFE}"
        return (none, reason) if reason else (none,)
    rare = whole(max(1.0, 1 / shown.p_value))
    told = (
        f"Attackers can tell training {unit} from non-members: chance alone would produce this in at most 1 of {rare} "
        f"audits."
    )
    privacy = summary.privacy
    if privacy is not None and privacy.contradicted:
        told += " This contradicts the privacy guarantee that was claimed for the model."
    return (told, reason) if reason else (told,)
