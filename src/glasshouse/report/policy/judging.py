"""Judge a run by a policy: one finding per demand, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from glasshouse.evaluation import Interval
from glasshouse.report.figures import AttackFigures
from glasshouse.report.policy.limits import EVERY, HEADLINE, End, Limit, Policy
from glasshouse.report.summarise import Summary
from glasshouse.report.verdict import attackers
from glasshouse.report.words import percent, rate

__all__ = ["Finding", "Status", "Verdict", "judge"]

Status = Literal["passed", "failed", "unknown"]
_SIGNS: dict[Status, str] = {"passed": "PASS", "failed": "FAIL", "unknown": "????"}
_CODES: dict[Status, int] = {"passed": 0, "failed": 3, "unknown": 4}  # 1 and 2 are those of faults and crashes
_ENDS: dict[End, str] = {"upper": "upper end", "estimate": "estimate", "lower": "lower end"}
_NOT_RANDOM = "members were not drawn at random, so no figure of this run shows what the model leaks"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One demand of a policy, and what the run says to it.

    Args:
        rule: the demand in words.
        status: ``"unknown"`` if the run cannot tell, which does not pass.
        reason: the figures behind it.
        plain: demand and figures in words that need no abbreviation; empty where rule and reason already are.
    """

    rule: str
    status: Status
    reason: str
    plain: str = ""

    @property
    def sentence(self) -> str:
        """The finding for a reader who knows no abbreviation.

        Example:
            >>> Finding(rule="shadow models at least 8", status="passed", reason="8").sentence
            'Shadow models at least 8: 8.'
        """
        told = self.plain or f"{self.rule}: {self.reason}"
        return f"{told[:1].upper()}{told[1:].rstrip('.')}."

    @property
    def line(self) -> str:
        """One line for a terminal.

        Example:
            >>> Finding(rule="shadow models at least 8", status="passed", reason="8").line
            'PASS  shadow models at least 8: 8'
        """
        return f"{_SIGNS[self.status]}  {self.rule}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All findings of a policy on a run."""

    findings: Sequence[Finding]

    @property
    def status(self) -> Status:
        """``"failed"`` if anything failed, else ``"unknown"`` if anything cannot be told, else ``"passed"``."""
        found = {one.status for one in self.findings}
        return "failed" if "failed" in found else "unknown" if "unknown" in found else "passed"

    @property
    def exit_code(self) -> int:
        """For a pipeline: 0 if no limit is exceeded, 3 if one is, 4 if the run is inconclusive.

        Example:
            >>> Verdict(findings=[Finding(rule="a", status="unknown", reason="b")]).exit_code
            4
        """
        return _CODES[self.status]


def judge(summary: Summary, policy: Policy, *, written: datetime | None = None, now: datetime | None = None) -> Verdict:
    """What a run says to each demand of a policy.

    A figure that the run did not measure is ``"unknown"``, and so is every figure of a run whose members were not drawn
    at random: such a run never passes.

    Args:
        summary: of the run.
        policy: the demands.
        written: when the run was saved; None if that is not known.
        now: the time to reckon its age by; the clock's by default.
    """
    findings = [*_of_the_run(summary, policy, written=written, now=now or datetime.now(UTC))]
    for limit in policy.limits:
        findings += _of_limit(summary, limit, limit.end or policy.end)
    return Verdict(findings=tuple(findings))


def _of_the_run(summary: Summary, policy: Policy, *, written: datetime | None, now: datetime) -> Iterator[Finding]:
    for warning in summary.context.warnings:
        yield Finding(rule="nothing is wrong with the audit's input", status="unknown", reason=warning.rstrip("."))
    tried = {attack.name for attack in summary.attacks}
    for name in policy.attacks:
        reason = "was tried" if name in tried else summary.left_out.get(name, "was not tried").rstrip(".")
        yield Finding(rule=f"attack {name} was tried", status="passed" if name in tried else "failed", reason=reason)
    if policy.shadows:
        enough = summary.context.shadows >= policy.shadows
        yield Finding(
            rule=f"shadow models at least {policy.shadows}",
            status="passed" if enough else "failed",
            reason=str(summary.context.shadows),
        )
    if policy.age_days is not None:
        rule = f"run at most {policy.age_days:g} days old"
        if written is None:
            yield Finding(rule=rule, status="unknown", reason="the run does not say when it was written")
        else:
            days = (now - written).total_seconds() / 86400
            status: Status = "failed" if days > policy.age_days else "unknown" if days < -1 else "passed"
            reason = (
                f"written {written:%Y-%m-%d}, {max(days, 0):.0f} days ago" if days >= -1 else "written in the future"
            )
            yield Finding(rule=rule, status=status, reason=reason)


def _of_limit(summary: Summary, limit: Limit, end: End) -> list[Finding]:
    if summary.members is None:
        return [_unknown(limit, "the members of the target are not known")]
    if summary.headline is not None and summary.headline.leak is None:
        return [_unknown(limit, _NOT_RANDOM)]
    if limit.figure == "epsilon":
        return [_of_epsilon(summary, limit)]
    if limit.group is not None:
        return _of_groups(summary, limit, end)
    if limit.attack == HEADLINE:
        return [_of_headline(summary, limit, end)]
    found = [attack for attack in attackers(summary.attacks) if limit.attack in (EVERY, attack.name)]
    if not found:
        return [_unknown(limit, "the run has no such attack")]
    return [_of_attack(attack, limit, end) for attack in found]


def _unknown(limit: Limit, reason: str) -> Finding:
    """What cannot be told, and why."""
    return Finding(rule=limit.words, status="unknown", reason=reason, plain=f"{limit.plain}: {reason}")


def _of_epsilon(summary: Summary, limit: Limit) -> Finding:
    privacy = summary.privacy
    if privacy is None or privacy.withheld:
        reason = "the run shows no ε" if privacy is None else f"ε is withheld: {privacy.withheld.rstrip('.')}"
        return _unknown(limit, reason)
    status: Status = "failed" if privacy.shown > limit.most else "passed"
    proven = f"they prove at least {privacy.shown:.2f}" if privacy.shown > 0 else "they prove none"
    return Finding(
        rule=limit.words,
        status=status,
        reason=f"{privacy.bound()} (a lower bound: the true ε may be larger)",
        plain=f"{limit.plain}: {proven}, and the true one may be larger",
    )


def _of_headline(summary: Summary, limit: Limit, end: End) -> Finding:
    found = summary.headline
    if found is None:
        return _unknown(limit, "the run has no verdict")
    if limit.figure == "auc":
        return _compared(limit, end, found.auc, found.auc_interval, who=found.title)
    shown = found.rate
    if shown is None or shown.wanted != limit.at_fpr or not shown.reached:
        # the verdict is about one rate; the same attack's others are in its own figures
        own = next((attack for attack in summary.attacks if attack.name == found.attack), None)
        return _missing(limit, found.attack) if own is None else _of_attack(own, limit, end)
    return _compared(limit, end, shown.tpr, shown.tpr_interval, who=found.title)


def _of_attack(attack: AttackFigures, limit: Limit, end: End) -> Finding:
    measured = attack.metrics
    if measured is None:
        return _missing(limit, attack.name)
    if limit.figure == "auc":
        return _compared(limit, end, measured.auc, measured.auc_interval, who=attack.name)
    found = None if limit.at_fpr is None else measured.rate_at(limit.at_fpr)
    if found is None or not found.reached:
        return _missing(limit, attack.name)
    return _compared(limit, end, found.tpr, found.tpr_interval, who=attack.name)


def _missing(limit: Limit, name: str) -> Finding:
    at = (
        ""
        if limit.at_fpr is None
        else f" at {rate(limit.at_fpr)} FPR; audit with that rate among fprs, and enough records"
    )
    return Finding(
        rule=limit.words,
        status="unknown",
        reason=f"{name} has no such figure{at}",
        plain=f"{limit.plain}: this was not measured for {name}",
    )


def _of_groups(summary: Summary, limit: Limit, end: End) -> list[Finding]:
    groups = [group for group in summary.groups if group.column == limit.group]
    if not groups:
        known = sorted({group.column for group in summary.groups})
        told = f"the run has the columns {', '.join(known)}" if known else "the run has no groups"
        return [_unknown(limit, told)]
    findings = []
    for group in groups:
        value, interval = (group.auc, group.auc_interval) if limit.figure == "auc" else (group.tpr, group.tpr_interval)
        who = f"{group.column} {group.group}"
        if value is None or interval is None:
            counts = f"{who} is too small: {group.members} members, {group.non_members} others"
            findings.append(_unknown(limit, counts))
        else:
            findings.append(_compared(limit, end, value, interval, who=who))
    return findings


def _compared(limit: Limit, end: End, value: float, interval: Interval, *, who: str) -> Finding:
    low, high = interval
    judged = {"upper": high, "estimate": value, "lower": low}[end]
    shown = (lambda one: f"{one:.3f}") if limit.figure == "auc" else percent
    reason = f"{who} {shown(value)}, interval {shown(low)} to {shown(high)}, judged by its {_ENDS[end]}"
    many = 100 if limit.figure == "auc" else 1000
    at, least, most = (f"{many * one:.0f}" for one in (value, low, high))
    counts = "" if end == "estimate" else f"; the {_ENDS[end]} counts"
    plain = f"{limit.plain}: {who} has {at}, between {least} and {most}{counts}"
    return Finding(rule=limit.words, status="failed" if judged > limit.most else "passed", reason=reason, plain=plain)
