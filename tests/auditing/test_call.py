from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from glasshouse import (
    Attacker,
    Evaluation,
    Evidence,
    InputError,
    Population,
    PrivacyClaim,
    PrivateTrainer,
    SklearnTrainer,
    TorchTrainer,
    audit,
    audit_evidence,
    audit_targets,
)
from glasshouse.attacks import BASE, LiRA
from glasshouse.auditing.result import AuditResult
from glasshouse.core.arrays import BoolArray
from glasshouse.data import random_subsets
from glasshouse.data.named import adult, digits
from glasshouse.graph import audit as graph_audit
from glasshouse.graph import citation_graph
from glasshouse.training import mlp
from tests.strategies import PAPER, gaussian_evidence


def network(*, weight_decay: float = 0.0, dropout: float = 0.0, epochs: int = 30) -> TorchTrainer:
    return TorchTrainer(
        module=mlp(64, 10, hidden=(256,), dropout=dropout),
        optimizer=functools.partial(torch.optim.Adam, lr=6e-3, weight_decay=weight_decay),
        epochs=epochs,
        batch_size=64,
    )


@pytest.fixture(scope="module")
def overfitted() -> AuditResult:
    population = digits().population
    members = random_subsets(len(population), models=1, fraction=0.5, seed=0)[0]
    return audit(population, members=members, trainer=network(), seed=0)


def small_audit() -> AuditResult:
    """All default attacks on few records and models."""
    every = digits().population
    population = Population(every.x[::3], every.y[::3])
    members = random_subsets(len(population), models=1, fraction=0.5, seed=0)[0]
    return audit(population, members=members, trainer=network(epochs=15), shadows=4, seed=0)


@pytest.fixture(scope="module")
def small() -> AuditResult:
    return small_audit()


def test_an_overfitted_network_leaks_and_its_mislabelled_members_head_the_ranking(overfitted: AuditResult) -> None:
    """The embedded default's claim: BASE well over chance with its interval, its top learned by heart."""
    base = overfitted.outcomes["base"]
    assert base.metrics is not None
    assert base.metrics.auc > 0.62
    assert base.metrics.auc_interval.low > 0.6
    assert base.metrics.rates[0].tpr > 0.05
    wrong = digits().wrong_labels
    assert wrong is not None
    assert overfitted.members is not None
    top = np.argsort(base.ranks)[:20]
    assert (wrong & overfitted.members)[top].mean() >= 0.9
    assert overfitted.privacy is not None
    assert overfitted.privacy.epsilon > 0.5


def test_a_regularised_network_leaks_less(overfitted: AuditResult) -> None:
    population = digits().population
    assert overfitted.members is not None
    calm = audit(
        population,
        attacks=["base"],
        members=overfitted.members,
        trainer=network(weight_decay=3e-2, dropout=0.5, epochs=10),
        seed=0,
    )
    first, second = (result.outcomes["base"].metrics for result in (overfitted, calm))
    assert first is not None
    assert second is not None
    assert second.auc_interval.high < first.auc_interval.low
    assert second.rates[0].tpr < first.rates[0].tpr


def test_base_and_rmia_have_the_same_curve(overfitted: AuditResult) -> None:
    """Theorem 2, on a real audit."""
    first, second = (overfitted.outcomes[name].metrics for name in ("base", "rmia"))
    assert first is not None
    assert second is not None
    assert (first.curve.fpr == second.curve.fpr).all()
    assert (first.curve.tpr == second.curve.tpr).all()


def test_same_seed_same_bytes(small: AuditResult, tmp_path: Path) -> None:
    for name, result in (("first", small), ("second", small_audit())):
        result.save(tmp_path / name)
    for file in ("metrics.json", "records.csv", "roc.csv", "evidence.npz"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_true_membership_reaches_no_attack(small: AuditResult) -> None:
    evidence, members = small.evidence, small.members
    assert members is not None
    shuffled = np.random.default_rng(0).permutation(members)
    first, second = (audit_evidence(evidence, members=mask, mode="offline") for mask in (members, shuffled))
    for name in first.outcomes:
        assert (first.outcomes[name].scores == second.outcomes[name].scores).all()
        assert first.outcomes[name].thresholds == second.outcomes[name].thresholds
    metrics = second.outcomes["base"].metrics
    assert metrics is not None
    assert metrics.auc == pytest.approx(0.5, abs=0.05)


def test_a_users_own_model_and_plain_function_are_audited() -> None:
    random = np.random.default_rng(0)
    population = Population(
        random.normal(size=(400, 2)), random.integers(2, size=400), ids=[f"p{i}" for i in range(400)]
    )
    members = np.arange(400) % 2 == 0

    def by_heart(population: Population, members: BoolArray, seed: int) -> Any:
        known = {tuple(x): y for x, y in zip(population.x[members], population.y[members], strict=True)}
        return lambda x: np.array([{None: 0.0, 0: -3.0, 1: 3.0}[known.get(tuple(row))] for row in x])

    result = audit(
        population,
        model=by_heart(population, members, 0),
        members=members,
        trainer=by_heart,
        attacks=[BASE(), LiRA()],
        evaluation=Evaluation(fprs=[0.01]),
    )
    rates = {name: outcome.metrics.rates[0].tpr for name, outcome in result.outcomes.items() if outcome.metrics}
    assert rates == {"base": 1.0, "lira": 1.0}
    assert result.context.train_accuracy == 1.0
    records = result.records()
    assert records["id"][0] == "p0"
    assert records["base_decision"].tolist() == members.tolist()


def test_a_stated_guarantee_that_is_kept_is_not_contradicted() -> None:
    pytest.importorskip("opacus")
    population = digits().population
    members = random_subsets(len(population), models=1, fraction=0.5, seed=0)[0]
    trainer = PrivateTrainer(module=mlp(64, 10, hidden=(32,)), epsilon=2.0, delta=1e-4, epochs=1, batch_size=128)
    claim = PrivacyClaim(epsilon=2.0, delta=1e-4)
    result = audit(
        population, members=members, trainer=trainer, attacks=["base"], shadows=4, evaluation=Evaluation(claim=claim)
    )
    assert result.privacy is not None
    assert not result.privacy.contradicted


def test_a_false_guarantee_is_contradicted(overfitted: AuditResult) -> None:
    verdict = audit_evidence(
        overfitted.evidence,
        members=overfitted.members,
        attacks=PAPER,
        evaluation=Evaluation(claim=PrivacyClaim(epsilon=0.1, delta=1e-6)),
    ).privacy
    assert verdict is not None
    assert verdict.contradicted


NO_CLAIMS: dict[str, tuple[Any, str]] = {
    "a pair": ((2.0, 1e-5), r"claim: \(2.0, 1e-05\) is no claim; give PrivacyClaim\("),
    "a number": (2.0, r"claim: 2.0 is no claim"),
    "a text": ("2.0", r"claim: '2.0' is no claim"),
    "no epsilon": ({"delta": 1e-5}, r"claim: \{'delta': 1e-05\} is no claim"),
    "another key": ({"epsilon": 2.0, "mu": 1.0}, "claim: .* is no claim"),
    "text in it": ({"epsilon": "2.0"}, "claim: epsilon: '2.0' is not a number"),
    "below zero": ({"epsilon": -1.0}, "claim: epsilon -1.0, delta 0.0; use a finite epsilon"),
}


@pytest.mark.parametrize("kind", NO_CLAIMS)
def test_what_is_no_claim_is_refused_before_the_training(kind: str) -> None:
    def untrained(data: Any, members: Any, seed: int) -> Any:
        raise AssertionError("nothing is trained")

    given, message = NO_CLAIMS[kind]
    population = Population(np.zeros((40, 2)), np.arange(40) % 2)
    calls: list[Any] = [
        lambda: audit(population, trainer=untrained, evaluation=Evaluation(claim=given)),
        lambda: audit_targets(population, trainer=untrained, evaluation=Evaluation(claim=given)),
        lambda: graph_audit(
            citation_graph(nodes=120, classes=3), trainer=untrained, evaluation=Evaluation(claim=given)
        ),
        lambda: audit_targets(
            citation_graph(nodes=120, classes=3), trainer=untrained, evaluation=Evaluation(claim=given)
        ),
        lambda: audit_evidence(Evidence(target_loss=np.arange(9.0)), evaluation=Evaluation(claim=given)),
    ]
    for call in calls:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert len(caught.value.faults) == 1


def test_a_claim_may_be_given_as_audit_files_write_it(overfitted: AuditResult) -> None:
    for given in ({"epsilon": 8, "delta": 1e-5}, {"epsilon": 0.1}):
        verdict = audit_evidence(
            overfitted.evidence, members=overfitted.members, attacks=["base"], evaluation=Evaluation(claim=given)
        ).privacy
        assert verdict is not None
        assert verdict.claim == PrivacyClaim(**given)
        assert verdict.contradicted == (given["epsilon"] < 1)


@pytest.mark.parametrize("kind", ["sklearn", "torch"])
def test_adult_end_to_end_by_the_same_three_lines(real_data: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    population = adult(records=2400).population
    members = random_subsets(len(population), models=1, fraction=0.5, seed=0)[0]
    boosted = SklearnTrainer(estimator=GradientBoostingClassifier(n_estimators=25, max_depth=8))
    plain = TorchTrainer(module=mlp(population.x.shape[1], 2, hidden=(128,)), epochs=20, batch_size=64)
    trainer: Any = {"sklearn": boosted, "torch": plain}[kind]

    model = trainer(population, members, seed=1)
    result = audit(population, model=model, members=members, trainer=trainer, attacks=PAPER, shadows=4)
    metrics = result.outcomes["base"].metrics

    assert metrics is not None
    assert metrics.auc_interval.low > 0.52
    assert {rate.wanted for rate in metrics.rates} == {0.01, 0.001}
    assert np.isnan(result.table()["flagged@0.01"][1])  # LiRA's spread needs more than four shadows to simulate with
    assert "lira has no threshold" in " ".join(result.summary().notes)


POPULATION = Population(np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2)
FOREST = SklearnTrainer(estimator=RandomForestClassifier(3))
MEMBERS = np.arange(60) < 30


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shadows": 7}, "7 is not a positive even number"),
        ({"members": np.ones(60, dtype=bool)}, "both members and non-members"),
        ({"members": MEMBERS[:10]}, "members: shape"),
        ({"evaluation": Evaluation(fprs=[0.01])}, "with 30 non-members a false-positive rate of 0.01 is not"),
        ({"attacks": ["rmai", "lria"]}, r'attacks\[0\]: "rmai" is not an attack.*\nattacks\[1\]: "lria"'),
        ({"attacks": []}, "none given"),
        ({"attacks": [{"gamma": 2}]}, "needs a name"),
        ({"attacks": [{"name": "rmia", "gama": 2}]}, "'gama' is not a parameter"),
        ({"attacker": Attacker(prior=1.5)}, "prior"),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(changed: dict[str, Any], message: str) -> None:
    def never(population: Population, members: BoolArray, seed: int) -> Any:
        raise AssertionError("a model was trained")

    options: dict[str, Any] = {"members": MEMBERS, "shadows": 4} | changed
    with pytest.raises(InputError, match=message):
        audit(POPULATION, members=options.pop("members"), trainer=never, **options)


def test_two_settings_of_one_attack_stand_side_by_side() -> None:
    evidence, members = gaussian_evidence(records=200, models=4, shift=1.0, seed=0)
    attacks: list[Any] = ["rmia", {"name": "rmia", "gamma": 2.0}]
    assert list(audit_evidence(evidence, members=members, attacks=attacks).outcomes) == ["rmia", "rmia-2"]


def test_without_members_records_are_ranked_and_nothing_is_measured() -> None:
    evidence, _ = gaussian_evidence(records=200, models=8, shift=1.0, seed=0)
    result = audit_evidence(evidence, attacks=["base"])
    assert result.privacy is None
    assert list(result.table()) == ["attack", "threshold@0.01", "flagged@0.01", "flagged@fdr0.1", "seconds"]
    assert "not known" in result.summary().verdict
    assert result.roc().height == 0


def test_a_small_sample_says_which_rates_it_cannot_resolve() -> None:
    result = audit(POPULATION, members=MEMBERS, trainer=FOREST, attacks=["base"], shadows=2)
    assert result.fprs == ()
    assert "no false-positive rate of 1 % or less is measurable" in " ".join(result.summary().notes)
    assert "AUC" in result.summary().verdict
    few = audit(
        POPULATION, members=MEMBERS, trainer=FOREST, attacks=["base"], shadows=2, evaluation=Evaluation(fprs=[0.1])
    )
    assert "base has no threshold: shadows: 2 shadow models are too few" in " ".join(few.summary().notes)
