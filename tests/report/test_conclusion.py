from __future__ import annotations

import dataclasses
import inspect
from typing import Any, get_args

import pytest

from glasshouse.evaluation import Interval
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report import Context
from glasshouse.report.decision import conclusion, next_steps
from glasshouse.report.decision.conclusion import Conclusion, Reason, VerdictFigures, concluded
from glasshouse.report.decision.verdict import groups_sentence, target_sentence
from glasshouse.report.json_io import moment

CONTEXT = Context(shadows=8, mode="online")
FIGURES = VerdictFigures(
    attack="base",
    way="only",
    tried=1,
    auc=0.7,
    auc_interval=Interval(0.6, 0.8),
    rate=None,
    members=10,
    non_members=10,
    confidence=0.95,
    p_value=0.01,
    permutations=1999,
    leak=True,
)


@pytest.mark.parametrize(
    ("leak", "shadows", "warnings", "mismatch", "reasons"),
    [
        (True, 8, (), False, ()),
        (False, 8, (), True, ("mismatch",)),
        (None, 8, (), True, ("members not random",)),
        ("unknown", 3, ("Members look swapped.",), True, ("warning", "members unknown", "few models")),
        (True, 0, (), True, ("mismatch", "few models")),
    ],
)
def test_the_weightiest_reason_for_silence_comes_first(
    leak: bool | str | None, shadows: int, warnings: tuple[str, ...], mismatch: bool, reasons: tuple[Reason, ...]
) -> None:
    figures = None if isinstance(leak, str) else dataclasses.replace(FIGURES, leak=leak)
    context = dataclasses.replace(CONTEXT, shadows=shadows, warnings=warnings)
    assert concluded(figures, context, mismatch=mismatch).reasons == reasons


def test_every_reason_has_its_words_and_there_are_no_others() -> None:
    assert conclusion._WHY.keys() == set(get_args(Reason))
    for reason in get_args(Reason):
        found = Conclusion(None, (reason,), shadows=0)
        assert found.why.endswith(".")
        assert "{" not in found.why
        assert found.why_in_short


def test_every_text_of_a_step_is_used_and_knows_what_stands_in_its_places() -> None:
    source = inspect.getsource(next_steps)
    known: dict[str, Any] = {"epsilon": 1.0, "times": 2.0, "epochs": 1, "shadows": 8}
    known |= {name: name for name in ("unit", "how", "more", "forest", "identified")}
    for name, texts in next_steps._TEXTS.items():
        assert f'"{name}"' in source or name in get_args(Reason) or name.startswith("gentler ")
        names = (name,) if "title" in texts else (name.split()[0], name)
        step = next_steps._step(*names, **known)
        assert step.why.endswith(".more") if "private" in name else step.why.endswith(".")


def test_figures_say_something_only_of_random_members_and_sound_input() -> None:
    sound = concluded(FIGURES, CONTEXT, mismatch=True)
    assert (sound.measured, sound.leak, sound.lists_records) == (FIGURES, True, True)
    warned = concluded(FIGURES, dataclasses.replace(CONTEXT, warnings=("Swapped.",)), mismatch=False)
    assert (warned.measured, warned.leak) == (None, True)
    for leak in (None, False):
        found = concluded(dataclasses.replace(FIGURES, leak=leak), CONTEXT, mismatch=False)
        assert (found.measured is None, found.lists_records) == (leak is None, False)
    unknown = concluded(None, CONTEXT, mismatch=False)
    assert (unknown.measured, unknown.leak, unknown.lists_records) == (None, None, True)


def test_sentences_about_the_target_and_about_groups_that_do_not_differ() -> None:
    known = dataclasses.replace(CONTEXT, train_accuracy=1.0, test_accuracy=0.9)
    assert target_sentence(known) == "Target: accuracy 100.0 % on members, 90.0 % on non-members."
    assert target_sentence(CONTEXT) == ""
    alike = GroupLeak(column="sex", group="f", members=90, non_members=90, auc=0.6, judged=True)
    assert groups_sentence([alike]) == (
        "No group differs significantly from the others of its column (corrected for 1 comparisons)."
    )


def test_a_date_without_a_zone_is_utc() -> None:
    found = moment("2026-11-16T12:00:00")
    assert found is not None
    assert found.isoformat() == "2026-11-16T12:00:00+00:00"
