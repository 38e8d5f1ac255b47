"""One word for a run, with the rule that gave it: for a reader who has to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from glasshouse.report.decision.conclusion import Strength
from glasshouse.report.format import whole
from glasshouse.report.policy import Finding, Policy, judge
from glasshouse.report.summary import Summary

Level = Literal["high", "some", "none", "unknown"]

_NOT_SAFE = "This does not show that the model is safe: another attack, or more data, may find more."
_WORDS: dict[Level, str] = {
    "high": "High exposure",
    "some": "Some exposure",
    "none": "No leak shown",
    "unknown": "Inconclusive",
}
_OWN_WORDS: dict[Level, str] = {
    "high": "Outside the policy",
    "some": "Within the policy, though a leak is shown",
    "none": "Within the policy; no leak is shown",
    "unknown": "Inconclusive",
}
_USUAL = "By the usual policy, corrected for five figures:"
_WHO: dict[Strength, str] = {
    "weak": "There is weak evidence that attackers can tell training {unit}",
    "clear": "Attackers can tell training {unit}",
    "strong": "Attackers can clearly tell training {unit}",
}
_UNSURE: dict[Level, str] = {
    "some": "Too few records to say whether the limit is exceeded.",
    "none": "The sample is too small to rule out a leak above the limit.",
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
    """Rate a run by the findings that also decide the gate; what could not be measured is never rated as harmless."""
    own, verdict = policy is not None, judge(summary, policy)
    level: Level = "some" if summary.conclusion.leak else "none"
    if verdict.status == "failed":
        level = "high"
    elif summary.conclusion.silent or (own and verdict.status == "unknown"):
        level = "unknown"
    sentences = (*_of_records(summary), *_of_people(summary))
    if kept := summary.context.stored_records:
        sentences = (f"The model file contains training records: {kept}. Whoever has the file has them.", *sentences)
    if own and level == "high":
        sentences = ("At least one limit or requirement of the policy is not met.", *sentences)
    elif not own and verdict.status == "unknown" and level in _UNSURE:
        sentences = (*sentences, _UNSURE[level])
    return Rating(
        level=level,
        word=(_OWN_WORDS if own else _WORDS)[level],
        sentences=sentences,
        rule="By the given policy:" if own else _USUAL,
        findings=verdict.findings,
        own=own,
    )


def _of_people(summary: Summary) -> tuple[str, ...]:
    """The risk of single units, and what speaks against a declared draw or can be said without one."""
    told = []
    if summary.risk is not None:
        told.append(summary.risk.sentence(summary.unit.removesuffix("s")))
    if (draw := summary.declared) is not None and (draw.contradicted or not draw.random):
        told.append(draw.evidence())
    return tuple(told)


def _of_records(summary: Summary) -> tuple[str, ...]:
    """What the test of all records shows about any leak at all, and why finding nothing would say nothing."""
    shown = summary.conclusion.measured
    reason = (summary.conclusion.why,) if summary.conclusion.reasons else ()
    if shown is None:
        return reason
    unit = summary.unit
    if not summary.conclusion.leak:
        none = f"The attacks did not tell training {unit} from non-members better than chance. {_NOT_SAFE}"
        return (none, *reason)
    who = _WHO[summary.conclusion.strength].format(unit=unit)
    rare = f"chance alone would produce this in at most 1 of {whole(max(1.0, 1 / shown.p_value))} audits"
    told = f"{who} from non-members: {rare}."
    if summary.conclusion.partly:
        told = f"Over all {unit} the attacks did no better than chance, but a part of them is exposed."
    elif summary.conclusion.strength == "weak":
        told += f" Audit more {unit} before you rely on it."
    privacy = summary.privacy
    if privacy is not None and privacy.contradicted:
        told += " This contradicts the privacy guarantee that was claimed for the model."
    return (told, *reason)
