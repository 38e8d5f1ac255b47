"""A risk policy: limits that a run must not exceed before a model is released, and a run judged by them."""

from __future__ import annotations

import dataclasses
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from glasshouse.core.errors import InputError
from glasshouse.evaluation import Interval
from glasshouse.report.decision.conclusion import FACTOR, attackers
from glasshouse.report.figures import FIGURES, AttackFigures, Estimate, Figure, group_estimate
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
        if self.figure == "epsilon":
            return _EPSILON
        figure = FIGURES.get(self.figure) or FIGURES[f"{self.figure}@{{}}"]
        return figure if self.at_fpr is None else figure.at(self.at_fpr)

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
            name = f"{self.described.words} of {who}"
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


def judge(summary: Summary, policy: Policy | None = None, *, now: datetime | None = None) -> Verdict:
    """What a run shows about each requirement of a policy; rating and gate both ask this.

    A figure that the run did not measure is ``"unknown"``, and so is every figure of a run that says nothing about the
    model (`Conclusion.silent`): such a run never passes.

    Args:
        summary: of the run.
        policy: the requirements; by default those of `usual_policy`.
        now: the time to reckon the run's age by; the clock's by default.
    """
    usual, policy = policy is None, policy or usual_policy(summary)
    run = [*_of_the_run(summary, policy, now or datetime.now(UTC))]
    found = [one for limit in policy.limits for one in _of_limit(summary, limit, limit.end or policy.end)]
    if usual and summary.conclusion.evidence and all(one.status != "failed" for one in found):
        rule, reason, plain = summary.conclusion.evidence[0]  # it also tells what the first figure leaves open
        found = [one for one in found if one.status != "unknown"]
        found.append(Finding(rule=rule, status="failed", reason=reason, plain=plain))
    if usual and (kept := summary.context.stored_records):
        found.append(Finding(rule="the model file holds no training records", status="failed", reason=kept))
    return Verdict(findings=(*run, *found))


def _of_the_run(summary: Summary, policy: Policy, now: datetime) -> Iterator[Finding]:
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
        if (written := summary.written) is None:
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
        estimate = Estimate(shown.tpr, shown.tpr_interval)
        return _compared(limit, end, estimate, who=found.title, resolved=shown.resolved)
    # the verdict is about one rate and the AUC; the same attack's other figures are its own
    return _of_attack(summary.attack(found.attack), limit, end)


def _of_attack(attack: AttackFigures, limit: Limit, end: End) -> Finding:
    found, at = limit.described.of(attack), limit.at_fpr
    if found is None or found.at is not None:
        where = f" at {rate(at)} FPR; audit with that rate among fprs, and enough records" if at is not None else ""
        return _unknown(limit, f"{attack.name} has no such figure{where}", f"not measured for {attack.name}")
    measured = attack.metrics.rate_at(at) if attack.metrics is not None and at is not None else None
    return _compared(limit, end, found, who=attack.name, resolved=measured is None or measured.resolved)


def _of_worst(summary: Summary, limit: Limit, end: End) -> Finding:
    cell, everyone = summary.worst_cell, summary.attack(summary.strongest).first_flags
    if everyone is None or not summary.groups:
        return _unknown(limit, "the run has no groups, or no threshold that flags their records")
    if cell is None:
        found, who = Estimate(everyone.tpr, everyone.tpr_interval), "no group stands out; all records"
        return _compared(limit, end, found, who=who, plain="the verdict attack, with no group that stands out,")
    return _of_group(limit, end, Estimate(cell.identified / cell.members, cell.tpr_interval), cell.name, cell.members)


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
            findings.append(_of_group(limit, end, found, who, group.members))
    return findings


def _of_group(limit: Limit, end: End, found: Estimate, who: str, members: int) -> Finding:
    plain = f"in {who}, the verdict attack"
    return _compared(limit, end, found, who=who, plain=plain, resolved=members >= _FEW_MEMBERS)


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


def junit_xml(verdict: Verdict, *, name: str) -> str:
    """One test case per finding: a failure where a limit is exceeded, an error where the run is inconclusive.

    Args:
        verdict: of a policy on a run.
        name: of the test suite, such as the run's folder.

    Example:
        >>> from glasshouse.report.policy import Finding
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
