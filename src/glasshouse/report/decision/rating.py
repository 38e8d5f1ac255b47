"""A run judged by a policy: what it shows about each limit, by which the gate decides, and one word for it."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from glasshouse.evaluation import Interval
from glasshouse.evaluation.metrics import ENOUGH_WRONG
from glasshouse.report.decision.conclusion import Strength, attackers
from glasshouse.report.figures import AttackFigures, Estimate, group_estimate
from glasshouse.report.format import rate, whole
from glasshouse.report.policy import EVERY, HEADLINE, WORST, End, Limit, Policy, usual_policy
from glasshouse.report.summary import Summary

Status = Literal["passed", "failed", "unknown"]
_SIGNS: dict[Status, str] = {"passed": "PASS", "failed": "FAIL", "unknown": "????"}
_CODES: dict[Status, int] = {"passed": 0, "failed": 3, "unknown": 4}
_ENDS = {"upper": "upper end", "estimate": "estimate", "lower": "lower end"}
_FEW_MEMBERS = 20  # of a group; the share of fewer is too coarse to be compared without its interval


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One requirement of a policy, and what the run shows about it.

    Args:
        rule: the requirement in words.
        status: ``"unknown"`` if the run is inconclusive, which does not pass.
        reason: the figures behind it.
        plain: requirement and figures in words that need no abbreviation, if it is a limit; else empty.

    Example:
        >>> found = Finding(rule="shadow models at least 8", status="passed", reason="8")
        >>> found.line
        'PASS  shadow models at least 8: 8'
        >>> found.sentence
        'Requirement met: shadow models at least 8 (8).'
    """

    rule: str
    status: Status
    reason: str
    plain: str = ""

    @property
    def mark(self) -> str:
        """The status in words."""
        if self.status == "unknown":
            return "Inconclusive"
        if self.plain:
            return "Limit met" if self.status == "passed" else "Limit exceeded"
        return "Requirement met" if self.status == "passed" else "Requirement not met"

    @property
    def sentence(self) -> str:
        """The finding for a reader who knows no abbreviation."""
        return f"{self.mark}: {self.plain or f'{self.rule} ({self.reason})'}."

    @property
    def line(self) -> str:
        """One line for a terminal."""
        return f"{_SIGNS[self.status]}  {self.rule}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All findings of a policy on a run."""

    findings: Sequence[Finding]

    @property
    def status(self) -> Status:
        """``"failed"`` if anything failed, else ``"unknown"`` if anything is inconclusive, else ``"passed"``."""
        found = {one.status for one in self.findings}
        return "failed" if "failed" in found else "unknown" if "unknown" in found else "passed"

    @property
    def exit_code(self) -> int:
        """That of ``glasshouse check``, whose help says what it means.

        Example:
            >>> Verdict(findings=[Finding(rule="a", status="unknown", reason="b")]).exit_code
            4
        """
        return _CODES[self.status]


def judge(
    summary: Summary, policy: Policy | None = None, *, written: datetime | None = None, now: datetime | None = None
) -> Verdict:
    """What a run shows about each requirement of a policy; rating and gate both ask this.

    A figure that the run did not measure is ``"unknown"``, and so is every figure of a run that says nothing about the
    model (`Conclusion.silent`): such a run never passes.

    Args:
        summary: of the run.
        policy: the requirements; by default those of `usual_policy`.
        written: when the run was saved; None if that is not known.
        now: the time to reckon its age by; the clock's by default.
    """
    usual, policy = policy is None, policy or usual_policy(summary)
    run = [*_of_the_run(summary, policy, written=written, now=now or datetime.now(UTC))]
    found = [one for limit in policy.limits for one in _of_limit(summary, limit, limit.end or policy.end)]
    if usual and summary.conclusion.evidence and all(one.status != "failed" for one in found):
        rule, reason, plain = summary.conclusion.evidence[0]  # it also tells what the first figure leaves open
        found = [one for one in found if one.status != "unknown"]
        found.append(Finding(rule=rule, status="failed", reason=reason, plain=plain))
    if usual and (kept := summary.context.stored_records):
        found.append(Finding(rule="the model file holds no training records", status="failed", reason=kept))
    return Verdict(findings=(*run, *found))


def _of_the_run(summary: Summary, policy: Policy, *, written: datetime | None, now: datetime) -> Iterator[Finding]:
    for warning in summary.context.warnings:
        yield Finding(rule="nothing is wrong with the audit's input", status="unknown", reason=warning.rstrip("."))
    tried = {attack.name for attack in summary.attacks}
    for name in policy.attacks:
        reason = "was tried" if name in tried else summary.left_out.get(name, "was not tried").rstrip(".")
        yield Finding(rule=f"attack {name} was tried", status="passed" if name in tried else "failed", reason=reason)
    if shadows := policy.shadows:
        found = summary.context.shadows
        status: Status = "passed" if found >= shadows else "failed"
        yield Finding(rule=f"shadow models at least {shadows}", status=status, reason=str(found))
    if policy.age_days is not None:
        rule = f"run at most {policy.age_days:g} days old"
        if written is None:
            yield Finding(rule=rule, status="unknown", reason="the run does not say when it was written")
        elif (days := (now - written).total_seconds() / 86400) < -1:
            yield Finding(rule=rule, status="unknown", reason="written in the future")
        else:
            status = "failed" if days > policy.age_days else "passed"
            yield Finding(rule=rule, status=status, reason=f"written {written:%Y-%m-%d}, {max(days, 0):.0f} days ago")


def _of_limit(summary: Summary, limit: Limit, end: End) -> list[Finding]:
    if summary.conclusion.silent:
        return [_unknown(limit, f"the run says nothing, since {summary.conclusion.why_in_short}")]
    if limit.figure == "epsilon":
        return [_of_epsilon(summary, limit)]
    if limit.group is not None:
        return [_of_worst(summary, limit, end)] if limit.group == WORST else _of_groups(summary, limit, end)
    if limit.attack == HEADLINE:
        return [_of_verdict_attack(summary, limit, end)]
    found = [attack for attack in attackers(summary.attacks) if limit.attack in (EVERY, attack.name)]
    if not found:
        return [_unknown(limit, "the run has no such attack")]
    return [_of_attack(attack, limit, end) for attack in found]


def _unknown(limit: Limit, reason: str, plain: str = "") -> Finding:
    """An inconclusive finding, and why."""
    return Finding(rule=limit.words, status="unknown", reason=reason, plain=f"{limit.subject}: {plain or reason}")


def _of_epsilon(summary: Summary, limit: Limit) -> Finding:
    privacy = summary.privacy
    if privacy is None or privacy.withheld:
        reason = "the run shows no ε" if privacy is None else f"ε is withheld: {privacy.withheld.rstrip('.')}"
        return _unknown(limit, reason)
    proven = f"a privacy loss of at least {privacy.shown:.2f}" if privacy.shown > 0 else "no privacy loss"
    return Finding(
        rule=limit.words,
        status="failed" if privacy.shown > limit.most else "passed",
        reason=f"{privacy.bound()} (a lower bound: the true ε may be larger)",
        plain=f"the attacks prove {proven} (limit {limit.value}); the true loss may be larger",
    )


def _of_verdict_attack(summary: Summary, limit: Limit, end: End) -> Finding:
    if (found := summary.conclusion.figures) is None:
        return _unknown(limit, "the run has no verdict")
    if limit.figure == "auc":
        return _compared(limit, end, Estimate(found.auc, found.auc_interval), who=found.title)
    shown = found.rate
    if limit.figure == "tpr" and shown is not None and shown.wanted == limit.at_fpr and shown.reached:
        resolved = shown.allowed >= ENOUGH_WRONG
        return _compared(limit, end, Estimate(shown.tpr, shown.tpr_interval), who=found.title, resolved=resolved)
    # the verdict is about one rate and the AUC; the same attack's other figures are its own
    return _of_attack(summary.attack(found.attack), limit, end)


def _of_attack(attack: AttackFigures, limit: Limit, end: End) -> Finding:
    found = limit.described.of(attack, limit.at_fpr or math.nan)
    at = limit.at_fpr
    if found is None or found.at is not None:
        where = f" at {rate(at)} FPR; audit with that rate among fprs, and enough records" if at is not None else ""
        return _unknown(limit, f"{attack.name} has no such figure{where}", f"not measured for {attack.name}")
    measured = attack.metrics.rate_at(at) if attack.metrics is not None and at is not None else None
    resolved = measured is None or measured.allowed >= ENOUGH_WRONG
    return _compared(limit, end, found, who=attack.name, resolved=resolved)


def _of_worst(summary: Summary, limit: Limit, end: End) -> Finding:
    cell, everyone = summary.worst_cell, summary.attack(summary.strongest).first_flags
    if everyone is None or not summary.groups:
        return _unknown(limit, "the run has no groups, or no threshold that flags their records")
    if cell is None:
        found, who = Estimate(everyone.tpr, everyone.tpr_interval), "no group stands out; all records"
        return _compared(limit, end, found, who=who, plain="the verdict attack, with no group that stands out,")
    found = Estimate(cell.identified / cell.members, cell.tpr_interval)
    plain, resolved = f"in {cell.name}, the verdict attack", cell.members >= _FEW_MEMBERS
    return _compared(limit, end, found, who=cell.name, plain=plain, resolved=resolved)


def _of_groups(summary: Summary, limit: Limit, end: End) -> list[Finding]:
    groups = [group for group in summary.groups if group.column == limit.group]
    if not groups:
        known = sorted({group.column for group in summary.groups})
        told = f"the run has the columns {', '.join(known)}" if known else "the run has no groups"
        return [_unknown(limit, told)]
    findings = []
    for group in groups:
        who, found = f"{group.column} {group.group}", group_estimate(group, limit.figure)
        if found is None:
            counts = f"{who} is too small: {group.members} members, {group.non_members} non-members"
            findings.append(_unknown(limit, counts))
        else:
            plain, resolved = f"in {who}, the verdict attack", group.members >= _FEW_MEMBERS
            findings.append(_compared(limit, end, found, who=who, plain=plain, resolved=resolved))
    return findings


def _compared(limit: Limit, end: End, found: Estimate, *, who: str, plain: str = "", resolved: bool = True) -> Finding:
    """An estimate beside its limit; ``resolved``: whether the sample is large enough to judge the bare estimate."""
    interval, shown = found.interval or Interval(found.value, found.value), limit.described.amount
    if end == "both":  # the end that decides, if one does
        end = "lower" if interval.low > limit.most else "upper"
        resolved = (end == "lower" and not limit.stand_in) or interval.high <= limit.most
    elif end != "estimate":
        resolved = True
    judged = {"upper": interval.high, "estimate": found.value, "lower": interval.low}[end]
    how = f"judged by the {_ENDS[end]}" if resolved else "too few records to say whether the limit is exceeded"
    return Finding(
        rule=limit.words,
        status="unknown" if not resolved else "failed" if judged > limit.most else "passed",
        reason=f"{who} {shown(found.value)}, interval {shown(interval.low)} to {shown(interval.high)}, {how}",
        plain=f"{limit.plain(plain or who, found.value, interval)}, {how}",
    )


def junit_xml(verdict: Verdict, *, name: str) -> str:
    """One test case per finding: a failure where a limit is exceeded, an error where the run is inconclusive.

    Args:
        verdict: of a policy on a run.
        name: of the test suite, such as the run's folder.

    Example:
        >>> from glasshouse.report.decision.rating import Finding
        >>> found = Verdict(findings=[Finding(rule="shadow models at least 8", status="failed", reason="2")])
        >>> 'failures="1"' in junit_xml(found, name="run")
        True
    """
    statuses = [one.status for one in verdict.findings]
    counts = {"tests": len(statuses), "failures": statuses.count("failed"), "errors": statuses.count("unknown")}
    suite = ET.Element("testsuite", {"name": _clean(name)} | {kind: str(count) for kind, count in counts.items()})
    for finding in verdict.findings:
        case = ET.SubElement(suite, "testcase", classname="glasshouse.policy", name=_clean(finding.rule))
        if finding.status != "passed":
            kind = "failure" if finding.status == "failed" else "error"
            ET.SubElement(case, kind, message=_clean(finding.reason)).text = _clean(finding.line)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Without characters that XML 1.0 does not allow; a name of a group may hold any."""
    return re.sub("[^\t\n -\ud7ff\ue000-\ufffd]", "?", text)


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
    own, verdict = policy is not None, judge(summary, policy, written=summary.written)
    level: Level = "some" if summary.conclusion.leak else "none"
    if verdict.status == "failed":
        level = "high"
    elif summary.conclusion.silent or (own and verdict.status == "unknown"):
        level = "unknown"
    sentences = _meaning(summary)
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


def _meaning(summary: Summary) -> tuple[str, ...]:
    """What the run shows about any leak at all, in plain words, and why finding nothing would say nothing."""
    return (*_of_records(summary), *_of_people(summary))


def _of_people(summary: Summary) -> tuple[str, ...]:
    """The risk of single units, and what speaks against a declared draw or can be said without one."""
    told = []
    if summary.risk is not None:
        told.append(summary.risk.sentence(summary.unit.removesuffix("s")))
    if summary.draw is not None and (summary.draw.contradicted or not summary.draw.random):
        told.append(summary.draw.evidence())
    return tuple(told)


def _of_records(summary: Summary) -> tuple[str, ...]:
    """What the test of all records shows."""
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
