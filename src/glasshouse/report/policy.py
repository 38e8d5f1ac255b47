"""A risk policy: limits that a run must keep before a model is released, and a run judged by them.

Where its owner gave none, the usual policy rates a run; the policy is kept in ``run.json``. A verdict can be written as
JUnit XML, which build servers show as tests.
"""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from glasshouse.core.errors import InputError
from glasshouse.evaluation import Interval
from glasshouse.report.decision.verdict import attackers
from glasshouse.report.figures import AttackFigures
from glasshouse.report.format import of_thousand, percent, rate
from glasshouse.report.run_folder import read_manifest
from glasshouse.report.summary import Summary

End = Literal["upper", "estimate", "lower"]
Figure = Literal["tpr", "auc", "epsilon"]

HEADLINE = "headline"  # the attack of the verdict: the strongest one on simulated targets
EVERY = "every"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that a figure may be.

    Args:
        figure: ``"tpr"``, the share of members that are found; ``"auc"``; or ``"epsilon"``, the ε that the attacks
            show, which is a lower bound.
        most: the largest value that passes.
        at_fpr: the false-positive rate of a ``"tpr"``; a run measures a few of them.
        attack: ``"headline"``, the attack of the verdict; ``"every"`` attack; or the name of one.
        group: a column of groups, such as ``"class"``: the limit is then on each of its groups.
        end: which end of the interval is compared with the limit; by default the policy's own.

    Example:
        >>> Limit(figure="tpr", most=0.05, at_fpr=0.01).words
        'TPR at 1 % FPR of the headline attack at most 5 %'
    """

    figure: Figure
    most: float
    at_fpr: float | None = None
    attack: str = HEADLINE
    group: str | None = None
    end: End | None = None

    def __post_init__(self) -> None:
        if self.figure == "tpr" and self.group is None and self.at_fpr is None:
            raise InputError("at_fpr: is missing; a TPR needs its false-positive rate, such as at_fpr: 0.01.")
        if self.at_fpr is not None and (self.figure != "tpr" or self.group is not None):
            raise InputError(
                "at_fpr: belongs to a tpr of all records; groups are judged at the attack's own threshold."
            )
        if self.figure == "epsilon" and (self.group is not None or self.attack != HEADLINE or self.end is not None):
            raise InputError("epsilon: is one bound of the whole run; it has no group, no attack and no end.")
        if self.group is not None and self.attack != HEADLINE:
            raise InputError("group: groups are measured for the headline attack alone; leave attack out.")
        if not self.most >= 0:
            raise InputError(f"most: {self.most} is not a limit; use a number that is not negative.")
        if self.figure != "epsilon" and self.most > 1:
            raise InputError(f"most: {self.most:g} is above 1, so every model keeps it; write 5 % as 0.05.")

    @property
    def words(self) -> str:
        """The limit as a part of a sentence."""
        if self.figure == "epsilon":
            return f"ε that the attacks show at most {self.most:g}"
        most = f"{self.most:g}" if self.figure == "auc" else rate(self.most)
        if self.group is not None:
            return f"{self.figure.upper()} of every group of {self.group} at most {most}"
        at = "" if self.at_fpr is None else f" at {rate(self.at_fpr)} FPR"
        who = {HEADLINE: "the headline attack", EVERY: "every attack"}.get(self.attack, self.attack)
        return f"{self.figure.upper()}{at} of {who} at most {most}"

    @property
    def plain(self) -> str:
        """The limit in counts, for a reader who knows no abbreviation.

        Example:
            >>> Limit(figure="tpr", most=0.05, at_fpr=0.01).plain.replace(chr(160), " ")
            'at most 50 of 1 000 members may be singled out where 10 of 1 000 outsiders are accused'
            >>> Limit(figure="auc", most=0.6).plain
            'the attacker may be right about at most 60 of 100 pairs of a member and an outsider'
        """
        if self.figure == "epsilon":
            return f"the privacy loss that the attacks prove may be at most {self.most:g}"
        where = "" if self.group is None else f"in every group of {self.group} "
        who = {HEADLINE: "", EVERY: " by every attack"}.get(self.attack, f" by {self.attack}")
        if self.figure == "auc":
            pairs = f"{100 * self.most:g} of 100 pairs of a member and an outsider"
            return f"{where}the attacker may be right about at most {pairs}{who}"
        price = "" if self.at_fpr is None else f" where {of_thousand(self.at_fpr)} outsiders are accused"
        return f"{where}at most {of_thousand(self.most)} members may be singled out{who}{price}"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Limits on the figures of a run, and what the run must have been.

    Args:
        limits: on figures; one or more.
        end: which end of an interval must keep the limit. ``"upper"``: the model passes only if the limit is kept with
            confidence. ``"estimate"``: the measured value counts. ``"lower"``: it fails only if the limit is exceeded
            with confidence.
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


USUAL_RATIO = 5.0  # an attacker's odds on an accused record are at most so many times those of a blind guess
_USUAL_AUC = 0.6


def usual_policy(summary: Summary) -> Policy:
    """At most five times as many members found as outsiders accused, and every claimed ε kept.

    Where ties or a small sample leave no such rate to measure, the area under the curve is limited instead.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> summary = audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()
        >>> [limit.words for limit in usual_policy(summary).limits]
        ['AUC of the headline attack at most 0.6']
    """
    rate = None if summary.verdict_attack is None else summary.verdict_attack.rate
    if rate is not None and rate.reached and USUAL_RATIO * rate.wanted < 1:
        limits = [Limit(figure="tpr", at_fpr=rate.wanted, most=USUAL_RATIO * rate.wanted)]
    else:
        limits = [Limit(figure="auc", most=_USUAL_AUC)]
    privacy = summary.privacy
    if privacy is not None and privacy.claim is not None:
        limits.append(Limit(figure="epsilon", most=privacy.claim.epsilon))
    return Policy(limits=tuple(limits))


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
    if summary.verdict_attack is not None and summary.verdict_attack.leak is None:
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
    found = summary.verdict_attack
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


def stored_policy(policy: Policy | None) -> dict[str, Any]:
    """What ``run.json`` keeps of a policy; nothing if there is none.

    Example:
        >>> from glasshouse.report.policy import Limit
        >>> stored_policy(Policy(limits=(Limit(figure="auc", most=0.6),)))["policy"]["limits"][0]["most"]
        0.6
    """
    if policy is None:
        return {}
    plain = dataclasses.asdict(policy)
    return {"policy": {**plain, "limits": list(plain["limits"]), "attacks": list(policy.attacks)}}


def policy_of(folder: Path | str) -> Policy | None:
    """The policy that a run was saved with; None if there was none.

    Example:
        >>> policy_of("no/such/run")
        Traceback (most recent call last):
        glasshouse.InputError: no/such/run/run.json: is missing, so this is not a complete run of Glasshouse. ...
    """
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
    """One test case per finding: a failure where a limit is not kept, an error where it cannot be told.

    Args:
        verdict: of a policy on a run.
        name: of the test suite, such as the run's folder.

    Example:
        >>> from glasshouse.report.policy import Finding
        >>> found = Verdict(findings=[Finding(rule="shadow models at least 8", status="failed", reason="2")])
        >>> 'failures="1"' in junit_xml(found, name="run")
        True
    """
    counts = {status: sum(one.status == status for one in verdict.findings) for status in ("failed", "unknown")}
    suite = ET.Element(
        "testsuite",
        name=_clean(name),
        tests=str(len(verdict.findings)),
        failures=str(counts["failed"]),
        errors=str(counts["unknown"]),
    )
    for finding in verdict.findings:
        case = ET.SubElement(suite, "testcase", classname="glasshouse.policy", name=_clean(finding.rule))
        if finding.status != "passed":
            kind = "failure" if finding.status == "failed" else "error"
            ET.SubElement(case, kind, message=_clean(finding.reason)).text = _clean(finding.line)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Without characters that XML 1.0 does not allow; a name of a group may hold any."""
    return "".join(
        one if one in "\t\n" or " " <= one <= "\ud7ff" or "\ue000" <= one <= "\ufffd" else "?" for one in text
    )
