from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pytest

from glasshouse import AuditResult, Evaluation, InputError, audit_evidence
from glasshouse.evaluation import evaluate
from glasshouse.evaluation.thresholds import SimulatedFigures
from glasshouse.report import SavedRun, compare, read_run_with_records, render_comparison
from glasshouse.report.run_folder import listed
from tests.strategies import PAPER, gaussian_evidence


@functools.cache
def run(
    shift: float,
    *,
    accuracy: float | None = 0.9,
    fprs: tuple[float, ...] = (0.01, 0.05),
    known: bool = True,
    records: int = 1000,
    seed: int = 0,
) -> AuditResult:
    evidence, members = gaussian_evidence(records=records, models=8, shift=shift, seed=seed)
    result = audit_evidence(
        evidence, members=members if known else None, attacks=PAPER, evaluation=Evaluation(fprs=fprs)
    )
    context = dataclasses.replace(result.context, test_accuracy=accuracy, train_accuracy=accuracy, fingerprint="f")
    return dataclasses.replace(result, context=context)


def simulated(result: AuditResult, strengths: dict[str, float | None]) -> AuditResult:
    """The same run, had its attacks been so strong on simulated targets."""
    outcomes = {
        name: dataclasses.replace(
            outcome,
            simulated=None
            if (strength := strengths[name]) is None
            else SimulatedFigures(targets=6, auc=0.5, strengths=(strength,) * len(result.fprs)),
        )
        for name, outcome in result.outcomes.items()
    }
    return dataclasses.replace(result, outcomes=outcomes)


def test_all_runs_are_compared_by_one_attack_at_the_smallest_rate_with_ten_false_positives() -> None:
    before, after = run(3.0), run(0.5, accuracy=0.85, fprs=(0.02, 0.05))
    found = compare({"plain": before, "dropout": after})
    assert found.choice.fpr == 0.05
    assert found.choice.allowed == 25
    for one, result in zip(found.runs, (before, after), strict=True):
        assert one.attack.name == found.choice.attack
        figure = result.summary().attack(found.choice.attack).metrics
        assert figure is not None
        assert one.rate == figure.rate_at(0.05)
    assert found.runs[0].tpr_difference is None
    difference = found.runs[1].tpr_difference
    assert difference is not None
    assert difference.resampling == "paired"
    assert difference.value == pytest.approx(found.runs[1].rate.tpr - found.runs[0].rate.tpr)
    assert difference.interval.low <= difference.value <= difference.interval.high < 0
    assert f"{found.choice.attack} identifies" in found.verdict
    assert ", more than chance." in found.verdict
    assert "test accuracy of dropout is 85.0 %, that of plain is 90.0 %" in found.verdict
    assert found.choice.attacks == ("base", "lira", "rmia")
    assert found.notes == (found.choice.reason,)


def test_the_rate_has_ten_false_positives_where_one_has() -> None:
    wide, narrow = run(2.0, fprs=(0.005, 0.02, 0.1)), run(2.0, fprs=(0.005, 0.01))
    assert compare({"a": wide, "b": wide}).choice.fpr == 0.02  # 500 non-members: 2, 10 and 50
    few = compare({"a": narrow, "b": narrow})
    assert (few.choice.fpr, few.choice.allowed) == (0.01, 5)
    assert "allows only 5 false positives" in " ".join(few.notes)


def test_the_attack_is_chosen_by_simulated_targets_and_never_by_what_was_measured() -> None:
    first = simulated(run(2.0), {"base": 0.1, "lira": 0.2, "rmia": 0.15})
    second = simulated(run(1.0), {"base": 0.1, "lira": 0.1, "rmia": 0.2})
    found = compare({"a": first, "b": second})
    assert found.choice.attack == "rmia"  # 0.175 on average
    assert (
        "of 3 attacks that all runs have, it identifies most members of simulated targets (17.5 % at 5 %)"
        in found.notes[0]
    )
    truth = first.members
    assert truth is not None
    shuffled = dataclasses.replace(first, members=np.roll(truth, 1))
    assert compare({"a": shuffled, "b": second}).choice.attack == "rmia"
    assert compare({"a": first, "b": second}, attack="lira").runs[1].attack.name == "lira"
    unknown = simulated(run(2.0), {"base": None, "lira": None, "rmia": None})
    plain = compare({"a": unknown, "b": second})
    assert plain.choice.attack == "base"
    assert "the first that all runs have" in plain.notes[0]


def test_an_attack_that_is_not_in_all_runs_or_knows_the_truth_is_refused() -> None:
    whole = run(2.0)
    part = dataclasses.replace(
        whole, outcomes={name: whole.outcomes[name] for name in ("base", "rmia")}, verdict_attack=None
    )
    with pytest.raises(InputError, match=r'attack: "lira" is not in b. All runs have: base, rmia.'):
        compare({"a": whole, "b": part}, attack="lira")
    lira = dataclasses.replace(whole, outcomes={"lira": whole.outcomes["lira"]}, verdict_attack=None)
    with pytest.raises(InputError, match=r"no attack was made in all of them \(a: base, rmia; b: lira\)"):
        compare({"a": part, "b": lira})


def test_an_attack_that_is_given_the_members_is_never_compared() -> None:
    result = run(2.0)
    summary = result.summary()
    told = tuple(dataclasses.replace(one, knows_truth=one.name == "lira") for one in summary.attacks)
    limit = SavedRun(dataclasses.replace(summary, attacks=told), result.records())
    assert compare({"a": limit, "b": result}).choice.attacks == ("base", "rmia")
    with pytest.raises(InputError, match='"lira" is given the members of the target, as a limit'):
        compare({"a": result, "b": limit}, attack="lira")


def test_best_is_not_compared_if_it_stands_for_another_attack_in_every_run() -> None:
    whole = run(2.0)
    first = dataclasses.replace(
        whole, outcomes={"best": whole.outcomes["base"], "rmia": whole.outcomes["rmia"]}, verdict_attack=None
    )
    second = dataclasses.replace(
        whole, outcomes={"best": whole.outcomes["lira"], "rmia": whole.outcomes["rmia"]}, verdict_attack=None
    )
    assert compare({"a": first, "b": second}).choice.attack == "rmia"
    asked = compare({"a": first, "b": second}, attack="best")
    assert "best is not the same attack in all runs: BASE in a, LiRA in b." in asked.notes


def test_a_difference_that_may_be_chance_is_called_so_and_a_run_does_not_differ_from_itself() -> None:
    same, slightly = run(2.0), run(1.99)  # the same noise: 1.9 is found to differ, paired
    assert "which may be chance" in compare({"a": same, "b": slightly}).verdict
    twice = compare({"a": same, "b": same}).runs[1]
    assert twice.tpr_difference is not None
    assert twice.auc_difference is not None
    assert (twice.tpr_difference.value, twice.tpr_difference.p_value) == (0.0, 1.0)
    assert (twice.auc_difference.value, twice.auc_difference.p_value) == (0.0, 1.0)


def test_other_records_or_other_members_are_not_paired_and_the_order_of_records_does_not_matter() -> None:
    first = run(2.0)
    others = {"other members": run(2.0, seed=1), "fewer records": run(2.0, records=800)}
    found = compare({"first": first, **others})
    for one in found.runs[1:]:
        assert one.tpr_difference is not None
        assert one.tpr_difference.resampling == "unpaired"
        assert one.tpr_difference.comparisons == 2
    assert "unpaired, corrected for 2 comparisons" in found.verdict
    assert "Runs that differ from first by more than chance: none." in found.verdict

    assert first.members is not None
    swapped = compare({"first": first, "swapped": dataclasses.replace(first, members=~first.members)})
    assert "unpaired and opposite members" in swapped.verdict

    class Turned:
        def summary(self):  # type: ignore[no-untyped-def]
            return first.summary()

        def records(self):  # type: ignore[no-untyped-def]
            table = first.records()
            return type(table)({name: column[::-1] for name, column in table.items()})

    back = compare({"first": first, "turned": Turned()}).runs[1].tpr_difference
    assert back is not None
    assert back.resampling == "paired"
    assert back.value == 0.0


def test_saved_runs_give_the_same_comparison(tmp_path: Path) -> None:
    results = {"a": run(2.0), "b": run(1.0)}
    read = {name: read_run_with_records(result.save(tmp_path / name)) for name, result in results.items()}
    assert {name: one.summary().attacks for name, one in read.items()}["a"][0].simulated is not None
    here, there = compare(results), compare(read)
    assert here.verdict == there.verdict
    assert here.notes == there.notes
    assert [one.tpr_difference for one in here.runs] == [one.tpr_difference for one in there.runs]


def test_a_run_whose_records_are_damaged_or_lack_the_scores_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = run(2.0).save(tmp_path / "run")

    def rewritten(text: str) -> None:
        (folder / "records.csv").write_text(text)
        kept = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(listed(kept, folder))

    text = (folder / "records.csv").read_text()
    rewritten(text.replace("lira_score", "lira_sc"))
    with pytest.raises(InputError, match="b: its records have no column lira_score"):
        compare({"a": run(2.0), "b": read_run_with_records(folder)}, attack="lira")
    for broken in ("", "id,member\n", text.replace("True", "perhaps", 1), text.rsplit("\n", 2)[0] + "\n", "id\n\n"):
        rewritten(broken)
        with pytest.raises(InputError, match=r"records\.csv: is damaged, or is not the records of a run"):
            read_run_with_records(folder)
    (folder / "records.csv").write_text(text + "x")
    with pytest.raises(InputError, match="was damaged or edited"):
        read_run_with_records(folder)


def test_what_makes_runs_hard_to_compare_is_said() -> None:
    other = run(1.0, accuracy=None)
    context = dataclasses.replace(other.context, fingerprint="g", shadows=4)
    outcomes = {name: other.outcomes[name] for name in ("base", "lira")}
    other = dataclasses.replace(other, context=context, outcomes=outcomes)
    found = compare({"a": run(2.0), "b": other})
    text = " ".join(found.notes)
    assert "different data" in text
    assert "different shadow models" in text
    assert "Not every attack" in text
    assert "the test accuracy is not known: b" in text
    page = render_comparison(found)
    assert page.count('class="dot ') == 1


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InputError, match="1 given; a comparison needs two or more"):
        compare({"a": run(2.0)})
    with pytest.raises(InputError, match="b: its members are not known"):
        compare({"a": run(2.0), "b": run(2.0, known=False)})
    with pytest.raises(InputError, match=r"no false-positive rate was measured in all of them \(a: 1 %; b: 5 %\)"):
        compare({"a": run(2.0, fprs=(0.01,)), "b": run(2.0, fprs=(0.05,))})


def test_the_page_says_attack_difference_interval_and_test() -> None:
    found = compare({"plain": run(3.0), "dropout": run(0.5)})
    difference = found.runs[1].tpr_difference
    assert difference is not None
    page = render_comparison(found)
    assert f"Runs by {found.choice.attack}" in page
    assert f"{100 * difference.value:+.1f}".replace("-", "−") in page
    assert "&lt; 0.001 <small>more than chance</small>" in page
    assert "<td>paired</td>" in page
    assert "corrected for" not in page
    assert "corrected for 2 comparisons" in render_comparison(compare({name: run(2.0) for name in "abc"}))
    assert "not the variation between trainings" in page


def test_tied_scores_are_said_and_compared_with_ties_in_random_order() -> None:
    result = run(3.0)
    outcome = result.outcomes["base"]
    members = result.members
    assert members is not None
    scores = np.round(outcome.scores)  # 0 or 1: no threshold accuses 1 % or 5 %
    tied = dataclasses.replace(outcome, scores=scores, metrics=evaluate(scores, members, fprs=(0.01, 0.05)))
    found = compare(
        {"fine": result, "coarse": dataclasses.replace(result, outcomes={"base": tied}, verdict_attack=None)}
    )
    text = " ".join(found.notes)
    if not found.runs[1].rate.reached:
        assert "when ties are ordered at random" in text
        assert "since scores are tied" in found.verdict
    difference = found.runs[1].tpr_difference
    assert difference is not None
    assert difference.shown


def test_hostile_run_names_stay_text_and_the_page_fetches_nothing() -> None:
    page = render_comparison(compare({"<img src=x onerror=alert(1)>": run(2.0), "b&c": run(1.0)}))
    assert "<img" not in page
    assert "b&amp;c" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert page.count('class="dot ') == 2
