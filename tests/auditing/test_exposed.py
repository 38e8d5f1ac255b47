"""Defences about the most exposed records: found by shadow models alone, left out or counted less."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from glasshouse import (
    Attacker,
    AuditResult,
    Defence,
    Evidence,
    InputError,
    Population,
    SklearnTrainer,
    advise,
    audit,
    most_exposed,
)
from glasshouse.auditing.defences import accuracy_on, counting_less, defences_for, effect
from glasshouse.auditing.trials import _figures
from glasshouse.core.numerics import loss_to_margin
from glasshouse.pool.folder import pool_faults
from glasshouse.report.advice import Advice
from glasshouse.report.html import render_advice
from tests.strategies import gaussian_evidence


def wrong_labels(records: int = 300, *, wrong: int = 30) -> Population:
    """A line that a tree of depth two learns, and records with the other label, which only memory learns."""
    random = np.random.default_rng(0)
    x = random.normal(size=(records, 2))
    y = (x[:, 0] > 0).astype(int)
    y[:wrong] = 1 - y[:wrong]
    return Population(x, y)


def test_the_most_exposed_are_found_by_shadow_models_alone() -> None:
    evidence, _ = gaussian_evidence(records=60, models=6, shift=1.0, seed=0)[:2]
    margins, members = loss_to_margin(evidence.shadow_loss), evidence.shadow_members
    gaps, variances = [], []
    for i in range(60):
        inner, outer = margins[members[:, i], i], margins[~members[:, i], i]
        gaps.append(inner.mean() - outer.mean())
        variances.append((inner.var() + outer.var()) / 2)
    exposure = [gap / np.sqrt((own + np.mean(variances)) / 2) for gap, own in zip(gaps, variances, strict=True)]
    found = most_exposed(evidence, 0.2)
    assert set(np.flatnonzero(found)) == set(np.argsort(exposure)[-12:])
    other = Evidence(target_loss=evidence.target_loss[::-1], shadow_loss=evidence.shadow_loss, shadow_members=members)
    np.testing.assert_array_equal(most_exposed(other, 0.2), found, err_msg="the target decides nothing")
    with pytest.raises(InputError, match="share: 1 is not a share"):
        most_exposed(evidence, 1.0)
    with pytest.raises(InputError, match="in-model"):
        most_exposed(Evidence(target_loss=[1.0], shadow_loss=[[1.0]], shadow_members=[[0]]), 0.5)


def test_what_became_of_the_others_is_counted() -> None:
    members = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    exposed = np.array([1, 0, 0, 0, 1, 0, 0, 0], dtype=bool)
    before = np.array([9.0, 8.0, 1.0, 1.0, 7.0, 2.0, 2.0, 2.0])
    after = np.array([0.0, 3.0, 4.0, 5.0, 9.0, 3.5, 0.0, 0.0])
    known: dict[str, Any] = {"members": members, "exposed": exposed, "fpr": 0.0}
    told = effect(before, after, **known, weight=0.0)
    assert told.startswith("2 records (25 %), the most exposed by shadow models, train no model and are not judged")
    assert "Of the 3 other members 1 were identified before, 2 are now; 2 of these were not before: a new" in told
    told = effect(before, after, **known, weight=0.1)
    assert "count 0.1 times: of their 1 members 1 were identified before and 0 are now." in told
    assert told.endswith("Of the 3 other members 1 were identified before, 0 are now.")


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advise(
        wrong_labels(),
        trainer=DecisionTreeClassifier(),
        defences=[
            Defence(name="without", exposed=0.1),
            Defence(name="less", exposed=0.1, weight=0.1),
            Defence(name="of a function", exposed=0.1, weight=0.1, trainer=lambda population, members, seed: None),
        ],
        attacks=["base"],
        shadows=4,
        most_accuracy=0.5,
        progress=False,
    )


def test_records_that_only_memory_learns_are_left_out_or_count_less(advice: Advice) -> None:
    found = {one.name: one for one in advice.tried}
    assert found.keys() == {"without", "less"}
    assert advice.left_out == {"of a function": "trainer: only an estimator takes weights of records."}
    assert found["without"].simulated < advice.before.simulated
    assert found["without"].note.startswith("30 records (10 %), the most exposed by shadow models, train no model")
    assert "count 0.1 times" in found["less"].note
    assert advice.fresh is not None
    assert advice.fresh.note in advice.sentences()[-1]
    page = render_advice(advice)
    assert all(one.note in page for one in advice.tried)


def test_accuracy_is_of_all_non_members_and_the_leak_of_the_records_that_remain(monkeypatch: Any) -> None:
    """Left-out records are hard ones: without them a model would look better than it is."""
    judged: list[tuple[AuditResult, float | None]] = []

    def watched(defence: Defence, result: AuditResult, **told: Any) -> Any:
        judged.append((result, told.get("accuracy")))
        return _figures(defence, result, **told)

    compared: list[np.ndarray] = []

    def counted(before: np.ndarray, after: np.ndarray, **known: Any) -> str:
        compared.append(after)
        return effect(before, after, **known)

    monkeypatch.setattr("glasshouse.auditing.trials._figures", watched)
    monkeypatch.setattr("glasshouse.auditing.trials.effect", counted)
    population, members = wrong_labels(), np.arange(300) % 2 == 0
    advise(
        population,
        trainer=DecisionTreeClassifier(),
        members=members,
        defences=[Defence(name="without", exposed=0.1)],
        attacks=["base"],
        shadows=4,
        progress=False,
    )
    (before, _), (after, accuracy), *_ = judged
    removed = most_exposed(before.evidence, 0.1)
    assert removed[:30].mean() > 0.5, "mostly those with a wrong label"
    np.testing.assert_array_equal(after.evidence.ids, population.ids[~removed])
    np.testing.assert_array_equal(after.members, members[~removed])
    np.testing.assert_array_equal(compared[0][~removed], after.outcomes["base"].scores, err_msg="each at its own place")
    assert not np.isfinite(compared[0][removed]).any()
    assert accuracy is not None
    assert after.context.test_accuracy is not None
    assert accuracy < after.context.test_accuracy, "the accuracy of the audit is without the hard records"


def test_the_accuracy_is_that_of_counting() -> None:
    population = Population(np.arange(6.0)[:, None], [0, 0, 1, 1, 0, 1])
    others = np.array([1, 0, 1, 1, 1, 0], dtype=bool)
    assert accuracy_on(lambda x: x[:, 0] - 1.5, population, others) == 3 / 4
    rest = Population([[0.0], [1.0], [2.0]], ["a", "b", "c"]).at(np.array([True, True, False]))
    assert (rest.ids.tolist(), rest.classes.tolist()) == (["0", "1"], ["a", "b", "c"])


def test_an_audit_may_advise_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one way underneath: the figures are those of `advise`, and the audit is that without an advice."""
    chosen = {"min_samples_leaf=20", "max_depth=4", "without the 10 % most exposed", "1 decimal"}
    monkeypatch.setattr(
        "glasshouse.auditing.trials.defences_for",
        lambda *given: [one for one in defences_for(*given) if one.name in chosen],
    )
    options: dict[str, Any] = {"trainer": DecisionTreeClassifier(), "attacks": ["base"], "shadows": 4}
    options |= {"progress": False, "seed": 3}
    population = wrong_labels(120, wrong=20)
    plain = audit(population, **options, pool=tmp_path / "pool")
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "pool").iterdir()}
    result = audit(population, **options, pool=tmp_path / "pool", advise=10)
    assert plain.advice is None
    np.testing.assert_array_equal(result.outcomes["base"].scores, plain.outcomes["base"].scores)
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "pool").iterdir()} == kept, (
        "nothing trained again"
    )
    assert pool_faults(tmp_path / "pool") == (4, [])
    assert (tmp_path / "pool-defences" / "max-depth-4" / "pool.json").is_file()
    assert result.advice is not None
    assert result.advice.before.seconds > 0
    assert {one.name for one in result.advice.tried} == chosen
    alone = advise(population, **options)
    rows = [[row | {"seconds": 0} for row in one.table().rows()] for one in (result.advice, alone)]
    assert rows[0] == rows[1]
    assert result.advice.advised is not None
    result.save(tmp_path / "run")
    assert f"Use {result.advice.advised.name}, as measured" in (tmp_path / "run" / "report.html").read_text()


def test_without_a_pool_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gentle = SklearnTrainer(estimator=DecisionTreeClassifier(max_depth=2))
    monkeypatch.setattr("glasshouse.auditing.trials.defences_for", lambda *_: [Defence(name="gentle", trainer=gentle)])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = audit(
        wrong_labels(80), trainer=DecisionTreeClassifier(), attacks=["base"], shadows=4, progress=False, advise=10
    )
    assert result.advice is not None
    assert [one.name for one in result.advice.tried] == ["gentle"]
    assert list(tmp_path.iterdir()) == []


def test_an_audit_without_time_for_a_defence_is_still_an_audit() -> None:
    options: dict[str, Any] = {"trainer": DecisionTreeClassifier(), "attacks": ["base"], "progress": False}
    result = audit(wrong_labels(80), **options, shadows=4, advise=1e-9)
    assert result.advice is not None
    assert not result.advice.tried
    assert set(result.advice.left_out.values()) == {"it would have taken longer than the 1e-09 minutes."}
    assert result.outcomes["base"].metrics is not None
    for wrong in (True, 0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="advise: .* is not a positive number; give minutes"):
            audit(wrong_labels(80), **options, advise=wrong)
    with pytest.raises(InputError, match="shadows: 2 are too few"):
        audit(wrong_labels(80), **options, shadows=2, advise=1)
    with pytest.raises(InputError, match="data: is a regression"):
        audit(Population(np.arange(9.0)[:, None], np.arange(9.0), regression=True), **options, advise=1)
    with pytest.raises(InputError, match="trainer: missing; defences are other ways to train"):
        audit(wrong_labels(80), model=lambda x: x[:, 0], members=np.arange(80) < 40, advise=1)
    with pytest.raises(InputError, match="one value per record"):
        known = Attacker(prior=np.full(80, 0.5))
        found = advise(
            wrong_labels(80), **options, attacker=known, shadows=4, defences=[Defence(name="one", exposed=0.1)]
        )
        raise InputError(found.left_out["one"])


def test_the_exposed_records_count_less_and_the_others_as_before() -> None:
    exposed = np.array([True, False, False])
    once = counting_less(SklearnTrainer(estimator=DecisionTreeClassifier()), exposed, 0.1)
    np.testing.assert_array_equal(np.asarray(once.weights), [0.1, 1.0, 1.0])
    np.testing.assert_allclose(np.asarray(counting_less(once, exposed[::-1], 0.5).weights), [0.1, 1.0, 0.5])


def test_weights_reach_the_fit_and_the_last_step_of_a_pipeline() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    population, members = wrong_labels(60), np.arange(60) % 3 > 0
    weights = np.linspace(0.1, 2.0, 60)
    x, y, seen = population.x[members], population.labels[members], weights[members]
    own = LogisticRegression().fit(x, y, sample_weight=seen)
    model = SklearnTrainer(estimator=LogisticRegression(), weights=weights)(population, members, seed=0)
    np.testing.assert_array_equal(model.predict_proba(population.x), own.predict_proba(population.x))
    piped = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression()))
    named = SklearnTrainer(estimator=piped, weights=weights)
    assert named.weighted_by == "pipeline__logisticregression__sample_weight"
    twice = StandardScaler().fit_transform(StandardScaler().fit_transform(x))
    other = LogisticRegression().fit(twice, y, sample_weight=seen)
    np.testing.assert_allclose(named(population, members, seed=0).predict_proba(x), other.predict_proba(twice))
    with pytest.raises(InputError, match=r"KNeighborsClassifier.fit takes no sample weights"):
        SklearnTrainer(estimator=KNeighborsClassifier(), weights=weights)
    for wrong in (weights[1:], -weights):
        with pytest.raises(InputError, match="give 60 numbers from 0"):
            SklearnTrainer(estimator=LogisticRegression(), weights=wrong)(population, members, seed=0)


def test_an_audit_of_a_graph_may_advise_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch_geometric")
    from glasshouse import graph

    data = graph.citation_graph(nodes=100, classes=3)
    trainer = graph.GNNTrainer(hidden=8, epochs=1, layers=1, device="cpu")
    names = [one.name for one in defences_for(trainer, data)]
    assert {"edge_dropout=0.2", "edge_dropout=0.5"} <= set(names)
    assert "without the 10 % most exposed" not in names, "a graph without its nodes is another graph"
    result = graph.audit(data, trainer=trainer, attacks=["base"], shadows=4, progress=False, advise=1e-9)
    assert result.advice is not None
    assert set(result.advice.left_out) == set(names)
    told: dict[str, Any] = {}
    monkeypatch.setattr(
        sys.modules["glasshouse.graph.audit"], "audit_and_advise", lambda *_, **given: told.update(given)
    )
    graph.audit(data, minutes=3, setting="transductive", advise=7)
    assert told["usual"] == graph.GNNTrainer(setting="transductive"), "trains where no trainer is given"
    assert (told["trainer"], told["minutes"], told["budget"], told["setting"]) == (None, 3, 7, "transductive")
