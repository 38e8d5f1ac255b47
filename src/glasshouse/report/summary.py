"""The numbers of a report, as plain data: the same for a page, a terminal table and a JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.table import Table
from glasshouse.evaluation import AttackOutcome, PrivacyVerdict, RandomMembers, VerdictAttack
from glasshouse.evaluation.groups import GroupLeak, group_leaks
from glasshouse.evaluation.leakage import Power, audit_power
from glasshouse.evaluation.quick_estimate import QuickEstimate
from glasshouse.report.context import Context
from glasshouse.report.decision.verdict import VerdictFigures, attackers, notes, verdict, verdict_figures
from glasshouse.report.figures import AttackFigures, attack_figures
from glasshouse.report.pictures.neighbourhood import Neighbourhood, Surroundings

_TOP = 100
_DRAWN = 40


@dataclass(frozen=True)
class Summary:
    """Everything that a report shows. It stays small for any number of records.

    Args:
        context: what was audited, and how.
        verdict: in a few sentences.
        verdict_attack: the figures behind it; None if the members are not known.
        attacks: the figures of each.
        strongest: the name of the attack that the headline is about; the first, if the members are not known.
        fprs: the wanted false-positive rates.
        members: how many members were audited; None if not known.
        records: how many records.
        privacy: what the attacks show about ε; None if the members are not known.
        notes: what else a reader has to know.
        top_records: the records most at risk by the strongest attack.
        neighbourhoods: of the first of them, in their order; empty without a graph.
        left_out: attacks that gave no outcome, by name, each with the reason.
        random_members: whether members differ from non-members without the target; None if that could not be tested.
        groups: the leak of the strongest attack per group of records; empty if the members are not known.
        power: which leak this audit could have shown; None if the members are not known.
        quick_estimate: an estimate of what eight shadow models would find; None if there were two or more.
        mismatch: whether the target answers unlike its shadow models, so that what comes from these is withheld.
        written: when the run was saved; None if it was not.
    """

    context: Context
    verdict: str
    attacks: tuple[AttackFigures, ...]
    strongest: str
    fprs: tuple[float, ...]
    members: int | None
    records: int
    privacy: PrivacyVerdict | None
    notes: tuple[str, ...]
    top_records: Table
    verdict_attack: VerdictFigures | None = None
    neighbourhoods: tuple[Neighbourhood, ...] = field(default=())
    left_out: Mapping[str, str] = field(default_factory=dict)
    random_members: RandomMembers | None = None
    groups: tuple[GroupLeak, ...] = ()
    power: Power | None = None
    quick_estimate: QuickEstimate | None = None
    mismatch: bool = False
    written: datetime | None = None

    def __repr__(self) -> str:
        return f"Summary({self.records} records, attacks: {', '.join(attack.name for attack in self.attacks)})"

    @property
    def shown(self) -> VerdictFigures | None:
        """The headline, if it says something about the model.

        It does not where the members are not known or were not drawn at random, or where the input has a fault.
        """
        found = self.verdict_attack
        return None if found is None or found.leak is None or self.context.warnings else found

    @property
    def unreached(self) -> bool:
        """Whether some attack cannot reach a wanted rate because of tied scores."""
        measured = [attack.metrics for attack in self.attacks if attack.metrics is not None]
        return any(not rate.reached for metrics in measured for rate in metrics.rates)

    def attack(self, name: str) -> AttackFigures:
        """The figures of one attack."""
        return next(attack for attack in self.attacks if attack.name == name)


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
) -> Summary:
    """Gather the numbers of a report.

    Args:
        outcomes: of each attack, by name.
        context: what was audited, and how.
        records: one row per record, with a ``…_rank`` column for each attack, and ``member`` if it is known.
        fprs: the wanted false-positive rates.
        verdict_attack: the attack that the verdict is about; None if the members are not known.
        privacy: what the attacks show about ε.
        surroundings: of the records, if they are nodes of a graph.
        warning: why the figures cannot be trusted; mostly empty.
        left_out: attacks that gave no outcome, each with the reason.
        random_members: whether members can be told from non-members without the target.
        columns: what divides the records into groups, [N] each, by name.
        quick_estimate: an estimate of what eight shadow models would find.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evaluation import evaluate
        >>> scores = np.array([3.0, 1.0, 2.0, 0.0])
        >>> outcome = AttackOutcome(LossThreshold(), scores, (), evaluate(scores, [1, 1, 0, 0], fprs=[0.5]), 0.0)
        >>> records = Table({"id": list("abcd"), "member": [True, True, False, False], "loss_rank": [1, 3, 2, 4]})
        >>> context = Context(shadows=2, mode="online")
        >>> summary = summarise({"loss": outcome}, context=context, records=records, fprs=[0.5])
        >>> summary.verdict.split(",")[0]  # without a headline nothing is measured
        'The attacker had 2 shadow models (online). The members of the target are not known'
    """
    members = records["member"].astype(np.bool_) if "member" in records else None
    attacks = tuple(attack_figures(name, outcome, members) for name, outcome in outcomes.items())
    random = random_members is None or not random_members.found
    picked = {attack.name: attack.picked for attack in attacks}
    found = (
        None
        if verdict_attack is None
        else verdict_figures(verdict_attack, random=random, picked=picked[verdict_attack.attack])
    )
    strongest = attackers(attacks)[0].name if found is None else found.attack
    first = np.argsort(records[f"{strongest}_rank"], kind="stable")[:_TOP]
    outcome = outcomes[strongest]
    threshold = outcome.first_threshold
    groups: tuple[GroupLeak, ...] = ()
    if members is not None and columns:
        called = None if threshold is None else outcome.flagged(threshold)
        leak = found is None or found.leak is True
        groups = group_leaks(outcome.scores, members, columns, called=called, leak=leak)
    inside = None if members is None else int(members.sum())
    first_figure = None if verdict_attack is None or verdict_attack.test.first is None else verdict_attack.test.first[1]
    drawings = () if surroundings is None else tuple(surroundings.neighbourhood(int(at)) for at in first[:_DRAWN])
    return Summary(
        context=context,
        verdict=verdict(found, context, privacy),
        attacks=attacks,
        strongest=strongest,
        fprs=tuple(fprs),
        members=inside,
        records=records.height,
        privacy=privacy,
        notes=notes(attacks, fprs, context, warning),
        top_records=Table({name: column[first] for name, column in records.items()}),
        verdict_attack=found,
        neighbourhoods=drawings,
        left_out=dict(left_out or {}),
        random_members=random_members,
        groups=groups,
        power=(
            None
            if inside is None
            else audit_power(inside, records.height - inside, fprs, attacks=len(attackers(attacks)), first=first_figure)
        ),
        quick_estimate=quick_estimate,
        mismatch=bool(warning),
    )
