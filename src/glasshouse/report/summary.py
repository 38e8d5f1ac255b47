"""The numbers of a report, as plain data: the same for a page, a terminal table and a JSON file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from glasshouse.core.table import Table
from glasshouse.evaluation import PrivacyVerdict, RandomMembers
from glasshouse.evaluation.declared import DeclaredDraw
from glasshouse.evaluation.groups import GroupLeak, WorstCell
from glasshouse.evaluation.leakage import Power
from glasshouse.evaluation.quick_estimate import QuickEstimate
from glasshouse.evaluation.risk import RiskFigures
from glasshouse.evaluation.texts import TextLeak
from glasshouse.report.advice import Advice
from glasshouse.report.context import Context
from glasshouse.report.decision.conclusion import Conclusion, Look, VerdictFigures, concluded, evidence_of
from glasshouse.report.figures import AttackFigures
from glasshouse.report.pictures.neighbourhood import Neighbourhood
from glasshouse.report.pictures.scores import Curve

_FIRST = 5  # records that a terminal shows


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditFindings:
    """What an audit found that a report shows as it is.

    Args:
        context: what was audited, and how.
        fprs: the wanted false-positive rates.
        privacy: what the attacks show about ε; None if the members are not known.
        left_out: attacks that gave no outcome, by name, each with the reason.
        random_members: whether members can be told from others without the target; None if that could not be tested.
        quick_estimate: with one or no shadow model, an estimate of what eight would find; None otherwise.
        advice: defences that were measured for this model; None if none were.
        declared: the declared draw of the members, and what speaks against it; None if none was declared.
    """

    context: Context
    fprs: tuple[float, ...]
    privacy: PrivacyVerdict | None
    left_out: Mapping[str, str] = field(default_factory=dict)
    random_members: RandomMembers | None = None
    quick_estimate: QuickEstimate | None = None
    advice: Advice | None = None
    declared: DeclaredDraw | None = None


@dataclass(frozen=True, kw_only=True)
class Summary(AuditFindings):
    """Everything that a report shows. It stays small for any number of records."""

    verdict: str  # in a few sentences
    attacks: tuple[AttackFigures, ...]
    strongest: str  # the attack that the verdict is about, by name; the first, if the members are not known
    members: int | None  # how many members were audited; None if not known
    records: int  # how many records
    notes: tuple[str, ...]  # what else a reader has to know
    top_records: Table  # the records most at risk by the strongest attack; empty where no leak is shown
    verdict_attack: VerdictFigures | None = None  # the figures behind the verdict; None if the members are not known
    neighbourhoods: tuple[Neighbourhood, ...] = ()  # of the first of them, in their order; empty without a graph
    groups: tuple[GroupLeak, ...] = ()  # by the strongest attack; empty if the members are not known
    worst_cell: WorstCell | None = None  # the most exposed group or combination of two; None if none is, beyond chance
    power: Power | None = None  # which leak this audit could have shown; None if the members are not known
    mismatch: bool = False  # the target answers unlike its shadow models, so that what comes from these is withheld
    texts: TextLeak | None = None  # what a language model knows by heart; None for other models
    written: datetime | None = None  # when the run was saved; None if it was not
    risk: RiskFigures | None = None  # how unequal the risk of units is; None for records

    def __repr__(self) -> str:
        return f"Summary({self.records} records, attacks: {', '.join(attack.name for attack in self.attacks)})"

    @functools.cached_property
    def conclusion(self) -> Conclusion:
        """Whether the run says anything, what, how strongly, and by which attack."""
        found = self.verdict_attack
        looks: Iterable[Look] = ()
        # their intervals are of single units
        if found is not None and self.members is not None and (self.declared is None or not self.declared.cluster):
            counts = {"members": self.members, "others": self.records - self.members}
            looks = evidence_of(found, self.attack(found.attack), self.privacy, self.worst_cell, **counts)
        return concluded(found, self.context, mismatch=self.mismatch, evidence=looks, draw=self.declared)

    @property
    def curves(self) -> dict[str, Curve]:
        """The ROC of each attack that was measured, by its name."""
        return {attack.name: attack.metrics.curve for attack in self.attacks if attack.metrics is not None}

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
