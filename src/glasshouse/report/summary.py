"""The numbers of a report, as plain data: the same for a page, a terminal table and a JSON file."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.table import Table
from glasshouse.evaluation import AttackOutcome, PrivacyVerdict, RandomMembers, VerdictAttack
from glasshouse.evaluation.declared import DeclaredDraw
from glasshouse.evaluation.groups import GroupLeak, WorstCell, group_leaks, worst_cell
from glasshouse.evaluation.leakage import Power, audit_power
from glasshouse.evaluation.quick_estimate import QuickEstimate
from glasshouse.evaluation.risk import RiskFigures
from glasshouse.evaluation.texts import TextLeak
from glasshouse.report.advice import Advice
from glasshouse.report.context import Context
from glasshouse.report.decision.conclusion import (
    Conclusion,
    Look,
    VerdictFigures,
    attackers,
    concluded,
    evidence_of,
    verdict_figures,
)
from glasshouse.report.decision.verdict import notes, verdict
from glasshouse.report.figures import AttackFigures, attack_figures
from glasshouse.report.pictures.neighbourhood import Neighbourhood, Surroundings

_TOP, _FIRST, _DRAWN = 100, 5, 40  # records: listed, shown in a terminal, drawn with their neighbours


@dataclass(frozen=True)
class Summary:
    """Everything that a report shows. It stays small for any number of records."""

    context: Context  # what was audited, and how
    verdict: str  # in a few sentences
    attacks: tuple[AttackFigures, ...]
    strongest: str  # the attack that the verdict is about, by name; the first, if the members are not known
    fprs: tuple[float, ...]  # the wanted false-positive rates
    members: int | None  # how many members were audited; None if not known
    records: int  # how many records
    privacy: PrivacyVerdict | None  # what the attacks show about ε; None if the members are not known
    notes: tuple[str, ...]  # what else a reader has to know
    top_records: Table  # the records most at risk by the strongest attack; empty where no leak is shown
    verdict_attack: VerdictFigures | None = None  # the figures behind the verdict; None if the members are not known
    neighbourhoods: tuple[Neighbourhood, ...] = ()  # of the first of them, in their order; empty without a graph
    left_out: Mapping[str, str] = field(default_factory=dict)  # attacks that gave no outcome, each with the reason
    random_members: RandomMembers | None = None  # whether members differ without the target; None if not tested
    groups: tuple[GroupLeak, ...] = ()  # by the strongest attack; empty if the members are not known
    worst_cell: WorstCell | None = None  # the most exposed group or combination of two; None if none is, beyond chance
    power: Power | None = None  # which leak this audit could have shown; None if the members are not known
    quick_estimate: QuickEstimate | None = None  # of what eight shadow models would find; None with two or more
    mismatch: bool = False  # the target answers unlike its shadow models, so that what comes from these is withheld
    texts: TextLeak | None = None  # what a language model knows by heart; None for other models
    written: datetime | None = None  # when the run was saved; None if it was not
    advice: Advice | None = None  # defences that were measured for this model; None if none were
    draw: DeclaredDraw | None = None  # the declared draw of the members; None if none was declared
    risk: RiskFigures | None = None  # how unequal the risk of units is; None for records

    def __repr__(self) -> str:
        return f"Summary({self.records} records, attacks: {', '.join(attack.name for attack in self.attacks)})"

    @functools.cached_property
    def conclusion(self) -> Conclusion:
        """Whether the run says anything, what, how strongly, and by which attack."""
        found = self.verdict_attack
        looks: Iterable[Look] = ()
        # their intervals are of single units
        if found is not None and self.members is not None and (self.draw is None or not self.draw.cluster):
            counts = {"members": self.members, "others": self.records - self.members}
            looks = evidence_of(found, self.attack(found.attack), self.privacy, self.worst_cell, **counts)
        return concluded(found, self.context, mismatch=self.mismatch, evidence=looks, draw=self.draw)

    @property
    def unreached(self) -> bool:
        """Whether some attack cannot reach a wanted rate because of tied scores."""
        measured = [attack.metrics for attack in self.attacks if attack.metrics is not None]
        return any(not rate.reached for metrics in measured for rate in metrics.rates)

    @property
    def first_records(self) -> Table:
        """The few most at risk, with the columns that fit a terminal: all attacks' would not."""
        shown = ("id", "label", "member", f"{self.strongest}_score")
        top = self.top_records.head(_FIRST)
        return Table({name: top[name] for name in top if name in shown})

    def attack(self, name: str) -> AttackFigures:
        """The figures of one attack."""
        return next(attack for attack in self.attacks if attack.name == name)

    @property
    def unit(self) -> str:
        """What is audited, in the plural: the nodes of a graph, records, or units such as persons."""
        if unit := self.context.settings.get("unit"):
            return f"{unit}s"
        node = (self.privacy is not None and self.privacy.unit == "node") or "setting" in self.context.settings
        return "nodes" if node else "records"

    def worded(self, text: str) -> str:
        """A sentence about records as one about units such as persons, where those were audited."""
        if not (unit := str(self.context.settings.get("unit") or "")):
            return text
        return re.sub(r"\b([Rr])ecord", lambda found: unit.capitalize() if found[1] == "R" else unit, text)


def summarise(
    outcomes: Mapping[str, AttackOutcome],
    *,
    context: Context,
    records: Table,
    fprs: Sequence[float],
    verdict_attack: VerdictAttack | None = None,
    privacy: PrivacyVerdict | None = None,
    surroundings: Surroundings | None = None,
    warning: str = "",
    left_out: Mapping[str, str] | None = None,
    random_members: RandomMembers | None = None,
    columns: Mapping[str, NDArray[Any]] | None = None,
    quick_estimate: QuickEstimate | None = None,
    advice: Advice | None = None,
    draw: DeclaredDraw | None = None,
    risk: RiskFigures | None = None,
) -> Summary:
    """Gather the numbers of a report.

    ``records`` has one row per record, with a ``…_rank`` column for each attack, and ``member`` if it is known;
    ``warning`` says why the figures cannot be trusted, and ``columns``, [N] each, divide the records into groups.
    """
    members = records["member"].astype(np.bool_) if "member" in records else None
    attacks = tuple(attack_figures(name, outcome, members) for name, outcome in outcomes.items())
    able = attackers(attacks)
    found, first_figure, strongest = None, None, able[0].name
    if verdict_attack is not None:
        strongest, test = verdict_attack.attack, verdict_attack.test
        random = (random_members is None or not random_members.found) and (draw is None or draw.random)
        found = verdict_figures(verdict_attack, random=random, picked=outcomes[strongest].picked)
        first_figure = None if test.first is None else test.first[1]
    outcome, called, cell, power, inside = outcomes[strongest], None, None, None, None
    if members is not None:
        inside = int(members.sum())
        power = audit_power(inside, records.height - inside, fprs, attacks=len(able), first=first_figure)
    if members is not None and columns and outcome.first_threshold is not None:
        called = outcome.flagged(outcome.first_threshold)
        cell = worst_cell(called, members, columns)
    summary = Summary(
        context=context,
        verdict="",
        attacks=attacks,
        strongest=strongest,
        fprs=tuple(fprs),
        members=inside,
        records=records.height,
        privacy=privacy,
        notes=notes(attacks, fprs, context, warning),
        top_records=Table({}),
        verdict_attack=found,
        left_out=dict(left_out or {}),
        random_members=random_members,
        worst_cell=cell,
        power=power,
        quick_estimate=quick_estimate,
        mismatch=bool(warning),
        advice=advice,
        draw=draw,
        risk=risk,
    )
    conclusion = summary.conclusion
    listed = _TOP if conclusion.lists_records else 0
    first = np.argsort(records[f"{strongest}_rank"], kind="stable")[:listed]
    groups: tuple[GroupLeak, ...] = ()
    if members is not None and columns:
        groups = group_leaks(outcome.scores, members, columns, called=called, leak=conclusion.lists_records)
    return dataclasses.replace(
        summary,
        verdict=verdict(found, context, privacy, partly=conclusion.partly, draw=draw),
        top_records=Table({name: column[first] for name, column in records.items()} if listed else {}),
        neighbourhoods=tuple(surroundings.neighbourhood(int(at)) for at in first[:_DRAWN]) if surroundings else (),
        groups=groups,
        worst_cell=cell if conclusion.leak else None,
    )
