from __future__ import annotations

import dataclasses

import pytest

from glasshouse import InputError, audit_evidence
from glasshouse.report import Summary, compare, render_comparison
from tests.strategies import gaussian_evidence


def run(
    shift: float, *, accuracy: float | None = 0.9, fprs: tuple[float, ...] = (0.01, 0.05), known: bool = True
) -> Summary:
    evidence, members = gaussian_evidence(records=1000, models=8, shift=shift, seed=0)
    result = audit_evidence(evidence, members=members if known else None, fprs=fprs)
    context = dataclasses.replace(result.context, test_accuracy=accuracy, train_accuracy=accuracy, fingerprint="f")
    return dataclasses.replace(result, context=context).summary()


def test_each_run_is_shown_by_its_strongest_attack_at_the_smallest_rate_that_all_measured() -> None:
    before, after = run(3.0), run(0.5, accuracy=0.85, fprs=(0.02, 0.05))
    found = compare({"plain": before, "dropout": after})
    assert found.fpr == 0.05
    for one, summary in zip(found.runs, (before, after), strict=True):
        rates = [attack.metrics.rate_at(0.05) for attack in summary.attacks if attack.metrics]
        assert one.rate.tpr == max(rate.tpr for rate in rates if rate)
    assert found.verdict.startswith("In plain, ")
    assert "in dropout, " in found.verdict
    assert "their intervals do not overlap" in found.verdict
    assert "test accuracy of dropout is 85.0 %, that of plain is 90.0 %" in found.verdict
    assert found.attacks == ("base", "lira", "rmia")
    assert found.notes == ()


def test_a_difference_that_may_be_chance_is_called_so() -> None:
    same = run(2.0)
    slightly = run(1.9)
    assert "may be chance" in compare({"a": same, "b": slightly}).verdict
    assert "no other run has less" in compare({"a": slightly, "b": same}).verdict


def test_what_makes_runs_hard_to_compare_is_said() -> None:
    other = run(1.0, accuracy=None)
    context = dataclasses.replace(other.context, fingerprint="g", shadows=4)
    other = dataclasses.replace(other, context=context, attacks=other.attacks[:2])
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


def test_hostile_run_names_stay_text_and_the_page_fetches_nothing() -> None:
    page = render_comparison(compare({"<img src=x onerror=alert(1)>": run(2.0), "b&c": run(1.0)}))
    assert "<img" not in page
    assert "b&amp;c" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert page.count('class="dot ') == 2
