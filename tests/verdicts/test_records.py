"""What users bring as records: judged rightly, or refused in one line (docs/no-false-verdict.md).

What 5f6366e did not have is imported where it is used, so that every other test here can be run, and fails, there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from torch import Tensor, nn

from glasshouse import Attacker, Evidence, InputError, Population, SklearnTrainer, TorchTrainer, audit, audit_evidence
from glasshouse.attacks import BASE, LossThreshold
from glasshouse.attacks.attack import Attack
from glasshouse.auditing.result import AuditResult
from glasshouse.data import random_subsets
from glasshouse.evaluation import evaluate, roc
from glasshouse.evaluation.best import pick_best
from glasshouse.report import read_run, render_html
from tests.benchmarks.scripts import benchmark
from tests.strategies import PAPER

ESTIMATORS = benchmark("estimators").estimators(20)
ESTIMATORS["logistic"].set_params(solver="newton-cholesky")  # the same optimum, in 10 steps for 1 400
WEAK = ("SVC", "calibrated", "logistic")  # they leak, but 700 records show it over all thresholds only


def digits(records: int = 700, *, noisy: float = 0.2) -> Population:
    """Handwritten digits, a share of them mislabelled, so that remembering shows."""
    x, y = load_digits(return_X_y=True)
    source = np.random.default_rng(0)
    labels = np.where(source.random(len(y)) < noisy, source.integers(10, size=len(y)), y)
    return Population(x[:records], labels[:records])


def half(population: Population, seed: int = 1) -> Any:
    return np.random.default_rng(seed).random(len(population)) < 0.5


def audited(estimator: Any, **options: Any) -> AuditResult:
    population = digits()
    members = half(population)
    return audit(
        population, members=members, trainer=SklearnTrainer(estimator=estimator), shadows=6, progress=False, **options
    )


@pytest.fixture(scope="module")
def nearest() -> AuditResult:
    return audited(KNeighborsClassifier(n_neighbors=1), attacks=PAPER)


def test_tied_scores_speak_of_the_first_rate_that_can_be_reached(nearest: AuditResult) -> None:
    rate = nearest.outcomes["base"].metrics.rates[0]  # type: ignore[union-attr]
    assert rate.first is not None
    assert rate.tpr == 0.0  # nobody is called a member, and that is no measurement
    assert 0.01 < rate.first.fpr < rate.first.tpr
    verdict = nearest.summary().verdict
    assert "identifies 0.0 %" not in verdict
    assert f"identifies {100 * rate.first.tpr:.1f} % of" in verdict
    assert "scores are tied and no threshold flags fewer, so nothing can be measured at 1 %" in verdict


def test_tables_and_pages_never_print_a_zero_that_nobody_measured(nearest: AuditResult, tmp_path: Path) -> None:
    table = nearest.table()
    assert np.isnan(table["tpr@0.01"]).all()
    assert (table["tpr@first_fpr"] > table["first_fpr"]).all()
    summary = nearest.summary()
    page = render_html(summary)
    assert "the first reachable" in page
    assert "0.0 % <small>0.0–" not in page.split('id="thresholds"')[0]  # at a threshold nobody may really be found
    first = summary.attacks[0].metrics.rates[0]  # type: ignore[union-attr]
    assert f"at {100 * first.fpr:.1f} %: {100 * first.tpr:.1f} %" in page
    nearest.save(tmp_path / "run")
    assert read_run(tmp_path / "run").verdict == summary.verdict
    assert render_html(read_run(tmp_path / "run")) == render_html(read_run(tmp_path / "run"))
    assert f"at {100 * first.fpr:.1f}" in (tmp_path / "run" / "table.tex").read_text()


def test_tied_scores_still_bound_epsilon(nearest: AuditResult) -> None:
    assert nearest.privacy is not None
    assert nearest.privacy.epsilon > 0.2
    (threshold,) = nearest.outcomes["base"].thresholds
    assert threshold.first
    assert "base_decision" not in nearest.records()  # nobody can be called at the rate that was wanted


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_ordinary_estimator_reads_as_safe_where_members_can_be_told(name: str) -> None:
    summary = audited(ESTIMATORS[name]).summary()
    best = summary.attack(summary.strongest).metrics
    assert best is not None
    assert best.auc_interval.low > 0.5
    assert "identifies 0.0 %" not in summary.verdict
    assert best.rates[0].tpr > best.rates[0].chance or name in WEAK  # its interval rests on three non-members
    assert summary.verdict_attack is not None
    assert summary.verdict_attack.leak


def test_a_curve_without_ties_has_no_first_rate() -> None:
    source = np.random.default_rng(0)
    for _ in range(20):
        scores, members = source.normal(size=400), source.random(400) < 0.5
        assert all(rate.first is None for rate in evaluate(scores, members).rates)


def test_the_first_rate_is_that_of_the_highest_score() -> None:
    """Brute force: among all thresholds, the one that accuses fewest without accusing nobody."""
    source = np.random.default_rng(0)
    for _ in range(50):
        scores, members = source.integers(4, size=300).astype(float), source.random(300) < 0.5
        (rate,) = evaluate(scores, members, fprs=[0.01]).rates
        called = scores >= scores.max()
        fpr, tpr = float(called[~members].mean()), float(called[members].mean())
        if fpr <= 0.01:
            assert rate.first is None
        else:
            assert rate.first is not None
            assert (rate.first.fpr, rate.first.tpr) == pytest.approx((fpr, tpr))
            assert roc(scores, members).point_at(0.01) == 0


def test_thresholds_of_tied_scores_aim_at_the_first_rate_that_can_be_reached() -> None:
    from glasshouse.evaluation.thresholds import thresholds_from

    source = np.random.default_rng(0)
    pairs = [(source.integers(5, size=500).astype(float), source.random(500) < 0.5) for _ in range(4)]
    (first,) = thresholds_from(pairs, [0.01])
    assert first.first
    assert 0.1 < first.expected_fpr < 0.3
    continuous = [(source.normal(size=500), members) for _, members in pairs]
    assert [threshold.first for threshold in thresholds_from(continuous, [0.01])] == [False]


def test_a_threshold_of_targets_of_which_some_are_tied_never_falls_on_the_tie() -> None:
    """One of four simulated targets cannot keep the rate; the mean cut must not call its whole tie by rounding."""
    from glasshouse.evaluation.thresholds import thresholds_from

    members = np.arange(400) < 200
    tied = (np.where(np.arange(400) % 2, 0.6, 0.2), members)
    loose = (np.where(members & (np.arange(400) % 20 == 0), 0.6, 0.2), members)
    (threshold,) = thresholds_from([tied, loose, loose, loose], [0.01])
    assert threshold.value > 0.6


def test_best_weighs_tied_attacks_by_what_chance_leaves_of_their_first_step() -> None:
    members = np.arange(400) < 200
    tied = np.where(np.isin(np.arange(400), [*range(60), *range(200, 210)]), 1.0, 0.0)  # 30 % of members at 5 %
    fine = np.linspace(1, 0, 400)[np.random.default_rng(0).permutation(400)]  # chance
    trials = {"tied": lambda: (BASE(), [(tied, members)] * 2), "fine": lambda: (BASE(), [(fine, members)] * 2)}
    assert pick_best(trials, [0.01]).reason.startswith(
        "best picked tied: TPR at 1 % FPR 6.0 % ± 0.0 % (ties broken at random) on 2 simulated targets; next fine "
    )


def test_swapped_members_are_said_first_and_loudly() -> None:
    population = digits()
    members = half(population)
    trainer = SklearnTrainer(estimator=RandomForestClassifier(n_estimators=20))
    model = trainer(population, members, seed=0)
    right = audit(population, model=model, members=members, trainer=trainer, shadows=4, attacks=["base"])
    wrong = audit(population, model=model, members=~members, trainer=trainer, shadows=4, attacks=["base"])
    assert right.context.warnings == ()
    (warning,) = wrong.context.warnings
    assert warning.startswith("Members and non-members look swapped: the target fits the non-members better (accuracy ")
    assert render_html(wrong.summary()).index(warning[:40]) < render_html(wrong.summary()).index("shown (p ")


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_said_of_swapped_members_where_nothing_leaks(seed: int) -> None:
    source = np.random.default_rng(seed)
    loss = source.exponential(size=(7, 2000))
    evidence = Evidence(target_loss=loss[0], shadow_loss=loss[1:], shadow_members=source.random((6, 2000)) < 0.5)
    found = audit_evidence(evidence, members=source.random(2000) < 0.5, attacks=["base"])
    assert found.context.warnings == ()


def test_records_that_are_in_both_groups_are_said_first() -> None:
    population = digits(300)
    twice = Population(np.concatenate([population.x] * 2), np.concatenate([population.y] * 2))
    members = np.repeat([True, False], 300)
    trainer = SklearnTrainer(estimator=GaussianNB())
    found = audit(
        twice, model=trainer(twice, members, seed=0), members=members, trainer=trainer, shadows=4, attacks=["loss"]
    )
    (warning,) = found.context.warnings
    assert warning.startswith("300 of 300 non-members have the same features and label as a member")
    assert found.table()["auc"][0] == 0.5
    saved = audit_evidence(found.evidence, members=members, attacks=["loss"])
    assert saved.context.warnings[0].startswith("300 of 300 non-members have exactly the losses of a member")


def test_a_few_equal_records_are_a_note_and_none_are_nothing() -> None:
    population = digits(400)
    x = population.x.copy()
    members = random_subsets(400, models=1, fraction=0.5, seed=0)[0]  # the first half of the file has other writers
    inside, outside = np.flatnonzero(members)[0], np.flatnonzero(~members)[-1]
    x[outside], y = x[inside], population.y.copy()
    y[outside] = y[inside]
    trainer = SklearnTrainer(estimator=GaussianNB())
    found = audit(Population(x, y), members=members, trainer=trainer, shadows=4, attacks=["loss"])
    assert found.context.warnings == ()
    assert any(note.startswith("1 of 200 non-members") for note in found.context.notes)
    clean = audit(population, members=members, trainer=trainer, shadows=4, attacks=["loss"])
    assert (clean.context.warnings, clean.context.notes) == ((), ())


@dataclass(frozen=True, kw_only=True)
class Broken(Attack):
    """Fails when it meets the target, as a fault of ours or a strange value may make an attack do."""

    name = "broken"
    error: Exception

    def check(self, members: Any) -> None:
        pass

    def score(self, evidence: Evidence) -> Any:
        raise self.error


@pytest.mark.parametrize(
    "error", [InputError("scores: this record is strange."), ZeroDivisionError("division by zero")]
)
def test_an_attack_that_fails_after_the_training_fails_alone(error: Exception, tmp_path: Path) -> None:
    population = digits(200)
    trainer = SklearnTrainer(estimator=GaussianNB())
    found = audit(
        population, members=half(population), trainer=trainer, shadows=4, attacks=["loss", Broken(error=error)]
    )
    assert list(found.outcomes) == ["loss"]
    assert str(error) in found.left_out["broken"]
    assert str(error) in render_html(found.summary())
    found.save(tmp_path / "run")
    assert read_run(tmp_path / "run").left_out == found.left_out
    with pytest.raises(InputError, match="broken"):
        audit(population, members=half(population), trainer=trainer, shadows=4, attacks=[Broken(error=error)])


def test_what_an_attack_lacks_is_said_before_the_first_model_is_trained() -> None:
    """With a share of 0.7 and four models some record is in all of them, so LiRA has no out-model for it."""
    population = digits(200)

    def never(population: Population, members: Any, seed: int) -> Any:
        raise AssertionError("a model was trained")

    with pytest.raises(InputError, match="attacks: lira: shadow_members: record '.*' has 0 out-models") as refusal:
        audit(
            population,
            members=half(population),
            trainer=never,
            shadows=4,
            attacker=Attacker(fraction=0.7),
            attacks=["base", "lira", "regressed"],
        )
    assert len(refusal.value.faults) == 2
    with pytest.raises(InputError, match="best: shadows: 2 shadow models are too few"):
        audit(population, members=half(population), trainer=never, shadows=2, attacks=["best"])


def test_an_attack_without_references_takes_any_pool() -> None:
    LossThreshold().check(np.ones((2, 5), dtype=bool))


def test_a_target_that_knows_nothing_of_its_members_is_said_first() -> None:
    """Features that were scaled in training and not here: the attack finds nothing, and that says nothing."""
    population = digits(300)
    members = half(population)
    trainer = SklearnTrainer(estimator=RandomForestClassifier(n_estimators=20))
    model = trainer(Population(population.x / 16, population.y), members, seed=0)
    found = audit(population, model=model, members=members, trainer=trainer, shadows=4, attacks=["base"])
    assert found.context.warnings[0].startswith("The target gives its members a mean confidence of ")
    right = audit(population, members=members, trainer=trainer, shadows=4, attacks=["base"])
    assert right.context.warnings == ()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"population": GaussianNB()}, "population: GaussianNB is not a Population; make one: Population(x, y)."),
        ({"trainer": "GaussianNB"}, "trainer: str is not a trainer."),
        ({"members": np.arange(5)}, "From record numbers, make a mask with np.isin(np.arange(200), numbers)."),
    ],
)
def test_what_is_in_the_wrong_place_is_refused_in_one_line(changed: dict[str, Any], said: str) -> None:
    population = digits(200)
    given: dict[str, Any] = {"population": population, "members": half(population)}
    given |= {"model": None, "trainer": SklearnTrainer(estimator=GaussianNB())} | changed
    with pytest.raises(InputError) as refusal:
        audit(**given)
    assert said in str(refusal.value)
    with pytest.raises(InputError, match="estimator: is the class GaussianNB; give GaussianNB"):
        SklearnTrainer(estimator=GaussianNB)


def test_an_estimator_without_names_of_its_classes_answers_in_their_order() -> None:
    class Nameless:
        def __init__(self, inner: Any) -> None:
            self.predict_proba = inner.predict_proba

    population = digits(200)
    trainer = SklearnTrainer(estimator=GaussianNB())
    model = trainer(population, half(population), seed=0)
    named, nameless = (
        audit(
            population, model=one, members=half(population), trainer=trainer, shadows=4, attacks=["loss"]
        ).evidence.target_loss
        for one in (model, Nameless(model))
    )
    assert (named == nameless).all()


def test_members_in_the_wrong_order_are_said_first() -> None:
    population = digits(500)
    members = half(population)
    trainer = SklearnTrainer(estimator=RandomForestClassifier(n_estimators=20))
    model = trainer(population, members, seed=0)
    mixed = np.random.default_rng(5).permutation(members)
    for wrong, words in (
        (mixed, "The target does not fit its members better than the non-members"),
        (np.roll(members, 1), "The members look moved by one record: the target's answers fit np.roll(members, -1)"),
        (members[::-1], "The members look reversed: the target's answers fit members[::-1]"),
        (members, ""),
    ):
        for shadows in (4,) if wrong is mixed else (4, 0):
            given: dict[str, Any] = {"shadows": shadows, "attacks": ["base" if shadows else "loss"]}
            said = audit(population, model=model, members=wrong, trainer=trainer, **given).context.warnings
            assert said[0].startswith(words) if words else said == ()


def test_a_fitted_estimator_that_is_given_as_trainer_is_said_not_to_be_the_one_audited() -> None:
    population = digits(200)
    estimator = DecisionTreeClassifier()
    given: dict[str, Any] = {"shadows": 0, "attacks": ["loss"], "progress": False}
    assert not any("fitted already" in note for note in audit(population, trainer=estimator, **given).context.notes)
    estimator.fit(population.x, population.y)
    assert any("fitted already" in note for note in audit(population, trainer=estimator, **given).context.notes)
    members = half(population)
    own = audit(population, model=estimator, members=members, trainer=estimator, **given)
    assert not any("fitted already" in note for note in own.context.notes)


def test_a_training_function_that_forgets_its_members_is_said_first() -> None:
    """All records then train every model; before, the verdict was that no leak is shown."""
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(200, 3)), random.integers(2, size=200))

    def forgetful(population: Population, members: Any, seed: int) -> Any:
        return KNeighborsClassifier(3).fit(population.x, population.y)

    given: dict[str, Any] = {"members": np.arange(200) % 2 == 0, "shadows": 4, "attacks": ["base"], "progress": False}
    said = audit(population, trainer=forgetful, **given).context.warnings
    assert said[0].startswith("Shadow models that were trained on different records answer exactly alike")
    right = audit(population, trainer=KNeighborsClassifier(3), **given).context.warnings
    assert not any("exactly alike" in one for one in right)


class Noisy(nn.Module):
    """Random answers, although it is in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + torch.randn(len(x), 2)  # type: ignore[no-any-return]


class OfTheBatch(nn.Module):
    """Answers about a record depend on the other records of a query."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.layer(x))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("module", "told"), [(Noisy, True), (OfTheBatch, True), (lambda: nn.Linear(3, 2), False)])
def test_random_answers_of_a_target_that_the_audit_trained_are_said_too(module: Any, told: bool) -> None:
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(200, 3)).astype(np.float32), random.integers(2, size=200))
    trainer = TorchTrainer(module=module, epochs=2)
    result = audit(population, trainer=trainer, attacks=["base"], shadows=2, progress=False)
    assert told == any(one.startswith("The target's answer about a record changes") for one in result.context.warnings)


def test_a_target_with_random_answers_is_said_first() -> None:
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(200, 3)), random.integers(2, size=200))
    members = np.arange(200) % 2 == 0
    model = KNeighborsClassifier(3).fit(population.x[members], population.y[members])
    result = audit(
        population,
        model=lambda x: model.predict_proba(x) + random.normal(size=(len(x), 2)),
        members=members,
        shadows=0,
        attacks=["loss"],
        progress=False,
    )
    assert any(one.startswith("The target's answer about a record changes") for one in result.context.warnings)
