"""All evidence that a model reveals more than the usual limit allows: a TPR of at most five times the FPR.

One rate that few non-members cannot resolve says little, however perfect the leak. Other figures then say the same at
operating points that the sample resolves. Each look tests the same hypothesis, that at no threshold the true-positive
rate exceeds `FACTOR` times the false-positive rate, so what is shown with few records is shown with more of them too.

One correction holds for all looks (Bonferroni with weights): they call a model that keeps the limit "High" in at most
5 % of audits. The TPR at the wanted rate has half of this error, since its interval of 95 % is judged by its lower end;
the four looks of this module share the other half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from glasshouse.evaluation import PrivacyVerdict, clopper_pearson
from glasshouse.evaluation.groups import WorstCell
from glasshouse.evaluation.intervals import separated
from glasshouse.evaluation.privacy.bounds import Guesses, epsilon_lower_bound
from glasshouse.report.decision.conclusion import Look, VerdictFigures
from glasshouse.report.figures import AttackFigures
from glasshouse.report.format import percent, whole

FACTOR = 5.0  # the largest ratio of the true-positive rate to the false-positive rate; 1 is guessing
_ERROR = 0.025 / 4  # of each look, one-sided
_AREA = 1 - 1 / (2 * FACTOR)  # of the region under a TPR of FACTOR · FPR: a larger AUC needs a point above that line


def evidence_of(
    found: VerdictFigures,
    attack: AttackFigures,
    privacy: PrivacyVerdict | None,
    cell: WorstCell | None,
    *,
    members: int,
    records: int,
) -> Iterator[Look]:
    """The looks that show, with confidence, more than the usual limit allows; the plainest first.

    Args:
        found: the figures of the verdict attack.
        attack: the same attack on all audited records.
        privacy: what the attacks show about ε.
        cell: the most exposed group of records.
        members: how many of the records trained the target.
        records: how many were audited.
    """
    error = _ERROR / (found.tried if found.way == "shown" else 1)  # of several attacks the strongest one here was taken
    yield from _flagged(attack, members, records - members, error)
    yield from _in_a_cell(attack, cell, error)
    low = separated(found.auc, found.members, found.non_members, confidence=1 - 2 * error).low
    if low > _AREA:
        yield Look(
            f"AUC of the verdict attack at most {_AREA:g}",
            f"{found.title} {found.auc:.3f}, at least {low:.3f}; above {_AREA:g} some TPR exceeds {FACTOR:g} FPR",
            f"{found.title} is right about {100 * found.auc:.0f} of 100 pairs of a member and a non-member (at least "
            f"{100 * low:.0f}; limit {100 * _AREA:.0f})",
        )
    yield from _proven(privacy, members / records, records)


def _flagged(attack: AttackFigures, members: int, others: int, error: float) -> Iterator[Look]:
    """Members and non-members above the first threshold, which is fixed: exact intervals, half of the error each."""
    for one in attack.accusations[:1]:
        hits, wrong = round(one.tpr * members), round(one.fpr * others)
        least = clopper_pearson(hits, members, confidence=1 - error).low
        ratio = least / clopper_pearson(wrong, others, confidence=1 - error).high
        if ratio > FACTOR:
            counts = f"{whole(hits)} of {whole(members)} members and {whole(wrong)} of {whole(others)} non-members"
            yield Look(
                f"members flagged at most {FACTOR:g} times as often as non-members",
                f"{attack.name} flags {counts} at its first threshold, a ratio of at least {ratio:.1f}",
                f"at its fixed threshold {attack.name} flags {counts}, so members at least {ratio:.1f} times as often "
                f"(limit {FACTOR:g})",
            )


def _in_a_cell(attack: AttackFigures, cell: WorstCell | None, error: float) -> Iterator[Look]:
    """The share of identified members of a group beside the rate of non-members that the same threshold flags.

    A group has too few non-members for a rate of its own. That its members are flagged more often than these is tested
    exactly; their share is then compared with the largest of three rates: the wanted one, that of all non-members, and
    that of its own.
    """
    first = attack.first_flags
    if cell is None or first is None or cell.p_value > error:
        return
    rate = max(first.wanted, first.fpr, cell.flagged / cell.non_members)
    low = clopper_pearson(cell.identified, cell.members, confidence=1 - 2 * error / cell.cells).low
    if low > FACTOR * rate:
        counts = f"{cell.identified} of {cell.members} members and {cell.flagged} of {cell.non_members} non-members"
        yield Look(
            f"TPR of every group at most {FACTOR:g} times the FPR",
            f"{cell.name}: {counts} flagged, a TPR of at least {percent(low)} (corrected for {cell.cells} groups)",
            f"in {cell.name}, {attack.name} flags {counts} (at least {whole(1000 * low)} of 1\u00a0000 members; limit "
            f"{whole(1000 * FACTOR * rate)}; {cell.cells} groups and combinations were looked at)",
        )


def _proven(privacy: PrivacyVerdict | None, share: float, records: int) -> Iterator[Look]:
    """The bound on ε at δ = 0 beside ln 5: below that, no attack's TPR exceeds five times its FPR."""
    if privacy is None or privacy.guessed is None:
        return
    guessed, limit = privacy.guessed, math.log(FACTOR)
    prior = 0.5 if guessed.members and guessed.others else share if guessed.members else 1 - share
    guesses = Guesses(guessed.correct, guessed.members + guessed.others, possible=records, prior=prior)
    proven = epsilon_lower_bound(guesses, confidence=1 - _ERROR / guessed.tried)
    if proven > limit:
        yield Look(
            f"lower bound on ε at most {limit:.2f}",
            f"the attacks show ε ≥ {proven:.2f} at δ = 0; {limit:.2f} is the logarithm of {FACTOR:g}",
            f"the attacks prove a privacy loss of at least {proven:.2f} (limit {limit:.2f}: a factor of {FACTOR:g})",
        )
