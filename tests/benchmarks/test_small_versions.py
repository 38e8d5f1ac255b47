"""Small versions of the benchmarks, so that they keep running and their limits keep holding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.scripts import benchmark


def test_rmia_costs_a_sort_and_not_all_pairs() -> None:
    """At a tenth of the size; the evidence is 5 MiB there, and so are a few arrays of one number a record."""
    found = benchmark("scoring").measure(10_000, 64)
    assert found["rmia_ratio"] < 10
    assert found["rmia_other_population_ratio"] < 10
    assert found["rmia_memory_multiple"] < 3
    assert found["regressed_ratio"] < 3 * benchmark("scoring").LIMIT  # wide: a busy machine took twice as long


def test_cora_agrees_with_the_papers_table(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the ten targets: AUC and TPR at 1 % FPR within two printed standard deviations, seeds fixed."""
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    cora = benchmark("cora")
    attacks = ("BASE", "RMIA", "LiRA", "G-BASE (MI)", "G-BASE (MIA)", "G-BASE (Gibbs)")
    found = cora.measure(2, attacks=attacks, together=True)
    for name in attacks:
        means = np.mean(found[name], axis=0)
        for ours, (paper, deviation) in zip(means[:2], cora.PAPER[name][:2], strict=True):
            assert abs(ours - paper) < 2 * deviation, f"{name}: {ours:.2f}, paper {paper} ± {deviation}"


def test_models_trained_together_cost_a_fraction(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time of a model, on one core; a few are trained alone.

    A second core and longer runs bring the rest of what `together.md` shows.
    """
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    together = benchmark("together")
    graph = together.load_graph("cora")
    short = replace(together.CORA, epochs=25, device="cpu"), replace(together.PERCEPTRON, epochs=3, device="cpu")
    few = {"threads": 1, "repeats": 1}
    assert 2 * together.compare(short[0], graph, models=4, plain=2, **few)["work_ratio"] > 3
    for make in (together.Plain, together.Residual):
        user = together.users(make, graph, epochs=12, device="cpu")
        assert 2 * together.compare(user, graph, models=4, plain=2, **few)["work_ratio"] > 2
    assert 4 * together.compare(short[1], together.digits(), models=32, plain=8, **few)["work_ratio"] > 1.5


def test_intervals_hold_the_truth() -> None:
    """A small part of benchmarks/statistics/intervals.md: Gaussian scores and votes, 200 runs each."""
    intervals = benchmark("intervals")
    for truth in (intervals.gaussian(0.8), intervals.votes(0.8)):
        found = intervals.coverage(truth, records=1000, share=0.5, runs=200)
        for figure, (hit, _, allowed) in found.items():
            assert hit >= 0.92, figure
            assert hit <= 0.999 or not allowed >= 10, figure


def test_settings_tells_targets_of_the_two_settings_apart() -> None:
    from glasshouse.graph import citation_graph

    settings, data = benchmark("settings"), citation_graph(nodes=300, classes=3, words=200)
    row = settings.measure(data, "small", "gcn", "50 epochs, dropout 0.5", models=4, seeds=1)
    assert (row.noticed, row.alarms) == (4, 0)
    assert row.transductive.max() < 0.7 < row.inductive.min()
    assert "4 noticed and 0 false alarms beside ours" in settings.table([row])


def test_the_shown_tpr_is_median_unbiased() -> None:
    """A small part of benchmarks/statistics/intervals_bias.md: one and two allowed false positives, a weak leak."""
    intervals = benchmark("intervals")
    for count in (100, 200):
        own, shown, low, held = intervals.bias(intervals.gaussian(0.52), non_members=count, runs=300)
        assert own > 0.2
        assert abs(shown) < 0.25
        assert 0.4 < low < 0.6
        assert held >= 0.95


def test_a_shown_leak_is_shown_by_the_verdict_attack_in_every_made_up_audit() -> None:
    """A small part of benchmarks/statistics/leak_power.md: few records that are exposed strongly, two attacks."""
    power = benchmark("leak_power")
    found = power.measure("few", runs=12, records=1000, attacks=("base", "lira"))
    assert found["unshown"][True] == 0
    assert found["most for the first figure"][True] >= found["all figures alike"][True]


def test_the_quick_look_is_too_low_where_difficulties_hide_a_leak_and_never_below_chance() -> None:
    """A small part of benchmarks/records/quick_look_misses.md."""
    look = benchmark("quick_look_misses")
    cases = {case.name: case for case in look.CASES}
    hidden = look.measure(cases["a strong leak, difficulties differ very much"], runs=10, records=1000)
    assert hidden["0 AUC"]["too low"] >= 8
    assert hidden["1 AUC"]["held"] >= 9
    none = look.measure(cases["no leak, hard records"], runs=20, records=1000)
    assert none["0 below chance"]["True"] == none["1 below chance"]["True"] == 0


def test_attacks_on_language_models_and_their_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up texts, a model of some 5 000 parameters: the pool finds more than one model, and every table is made."""
    pytest.importorskip("transformers")
    language = benchmark("language")
    random = np.random.default_rng(0)
    words = np.array(["".join(random.choice(list("abcdefgh"), size=4)) for _ in range(60)])
    (tmp_path / "made.txt").write_text("\n".join(" ".join(random.choice(words, size=8)) for _ in range(200)))
    corpus = language.Corpus.read(tmp_path / "made.txt", words=60)
    assert 50 < corpus.vocabulary <= 61
    monkeypatch.setattr(language, "WITH_POOL", ("base", "base-parts", "stacked"))
    monkeypatch.setattr(language, "RESAMPLED", 20)
    (size,) = language.TINY.sizes
    plan = replace(language.TINY, audited=80, base=60, length=8, tuning=4, long=(40, 8))
    paths = list(language.measure(corpus, size._replace(full=0.01), plan, tmp_path))
    assert [path.stem for path in paths] == [f"made, 0.4 M parameters, {how}" for how in ("adapters", "all weights")]
    row = language.judged(paths[1], plan.fprs)
    assert row.figures["base-parts"].auc > max(0.8, row.figures["loss"].auc)
    assert row.perplexity[1] < row.perplexity[2]
    assert "| base-parts | " in language.table([row])
    written = paths[1].stat().st_mtime_ns
    assert list(language.measure(corpus, size, plan, tmp_path)) == paths
    assert paths[1].stat().st_mtime_ns == written  # evidence is not made again
    (joint, weights), (single, others) = (language.together(corpus, size, plan, width) for width in (8, 1))
    assert (joint.split(" | ")[1], single.split(" | ")[1]) == ("together", "one by one")
    np.testing.assert_allclose(weights, others, atol=1e-5)
    assert "40 × 8" in language.largest([corpus], size, plan)
    assert "MB on disk" in language.made_up(tmp_path / "made-up.npz", plan)
    assert language.attacked(tmp_path / "made-up.npz", "base-parts").startswith("| base-parts | ")
