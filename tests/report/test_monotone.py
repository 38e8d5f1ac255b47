"""More records of the same leak never lower the rating: the judgement itself, apart from the checks of its input."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glasshouse.attacks import LossThreshold
from glasshouse.auditing.result import AuditResult
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import AttackOutcome, evaluate, judge_claim, verdict_attack
from glasshouse.evaluation.metrics import resolvable
from glasshouse.evidence import Evidence
from glasshouse.report import Context
from glasshouse.report.decision.rating import rating_of

LEVELS = {"none": 0, "unknown": 0, "some": 1, "high": 2}


def level(scores: FloatArray, members: BoolArray, *, copies: int) -> int:
    """How a run is rated whose records are there so many times; no shadow models, so that no figure is chosen."""
    scores, members = np.tile(scores, copies), np.tile(members, copies)
    fprs = resolvable(None, int((~members).sum()))
    outcomes = {"loss": AttackOutcome(LossThreshold(), scores, (), evaluate(scores, members, fprs=fprs), 0.0)}
    found = verdict_attack(outcomes, members, fprs=fprs)
    none = np.empty((0, len(scores)))
    result = AuditResult(
        evidence=Evidence(target_loss=np.ones(len(scores)), shadow_loss=none, shadow_members=none.astype(bool)),
        outcomes=outcomes,
        members=members,
        labels=None,
        fprs=fprs,
        verdict_attack=found,
        privacy=judge_claim(None, {"loss": scores}, members=members, practice={}, leak=found.test.leak),
        context=Context(shadows=8, mode="online"),
    )
    return LEVELS[rating_of(result.summary()).level]


COUNTS = st.lists(st.integers(0, 60), min_size=2, max_size=8)  # of each of some scores


@given(inside=COUNTS, outside=COUNTS, copies=st.integers(2, 6))
@example(inside=[0, 60], outside=[60, 0], copies=2)  # perfect
@example(inside=[30, 30], outside=[30, 30], copies=5)  # none
@example(inside=[20, 40], outside=[40, 20], copies=3)
@settings(max_examples=15)
def test_the_same_proportions_in_more_records_never_lower_the_rating(
    inside: list[int], outside: list[int], copies: int
) -> None:
    inside[0], outside[0] = inside[0] + 1, outside[0] + 1  # there are members, and others
    sides = [np.repeat(np.arange(float(len(side))), side) for side in (inside, outside)]
    members = np.arange(sum(map(len, sides))) < len(sides[0])
    scores = np.concatenate(sides)
    once, more = (level(scores, members, copies=count) for count in (1, copies))
    assert more >= once


def test_a_leak_that_few_records_leave_open_is_shown_by_more() -> None:
    """Else the property would also hold for a judgement that says the same about all."""
    scores = np.concatenate([np.repeat([0.0, 1.0], [8, 12]), np.repeat([0.0, 1.0], [12, 8])])
    members = np.arange(40) < 20
    assert level(scores, members, copies=1) == 0
    assert level(scores, members, copies=6) == 1
    perfect = np.where(members, 1.0, 0.0)
    assert level(perfect, members, copies=6) == 2
