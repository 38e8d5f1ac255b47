from __future__ import annotations

import functools
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from torch import nn
from typer.testing import CliRunner

from glasshouse import (
    Attacker,
    CoarseAnswers,
    Defence,
    InputError,
    Population,
    SklearnTrainer,
    TorchTrainer,
    advise,
    audit,
    audit_evidence,
)
from glasshouse.auditing.defences import defences_for, with_dropout
from glasshouse.auditing.trials import _chosen
from glasshouse.cli import app
from glasshouse.evaluation import Interval
from glasshouse.query.classify import query
from glasshouse.report import read_run
from glasshouse.report.advice import Advice, MeasuredDefence
from glasshouse.report.decision.next_steps import next_steps
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.html import render_advice
from glasshouse.report.pictures.privacy import Point, tradeoff_picture
from glasshouse.report.run_folder import keep_advice, run_faults
from tests.strategies import gaussian_evidence


def noisy_labels(records: int = 400) -> Population:
    random = np.random.default_rng(0)
    x = random.normal(size=(records, 3))
    return Population(x, (x[:, 0] + random.normal(size=records) > 0).astype(int))


def measured(name: str, *, leak: float, simulated: float, accuracy: float = 0.9) -> MeasuredDefence:
    around = Interval(leak - 0.01, leak + 0.01)
    figures: dict[str, Any] = {"leak": leak, "interval": around, "simulated": simulated, "accuracy": accuracy}
    return MeasuredDefence(
        name=name, code="f(<x>)", attack="base", accuracy_interval=Interval(0.8, 1.0), seconds=1.0, **figures
    )


def test_a_defence_is_chosen_by_simulated_targets_and_not_by_its_own_target() -> None:
    before = measured("as it is", leak=0.5, simulated=0.5)
    lucky, good = measured("lucky", leak=0.01, simulated=0.4), measured("good", leak=0.3, simulated=0.2)
    costly = measured("costly", leak=0.0, simulated=0.0, accuracy=0.8)
    tried = [(Defence(name=one.name), one) for one in (lucky, good, costly)]
    chosen = _chosen(before, tried, 0.01)
    assert chosen is not None
    assert chosen[1] is good
    assert _chosen(before, [(Defence(name="worse"), measured("worse", leak=0.1, simulated=0.6))], 0.01) is None
    assert _chosen(before, tried, 0.2) == (tried[2][0], costly), "who accepts the cost gets what leaks least"


@given(
    logits=st.lists(st.lists(st.floats(-8, 8), min_size=3, max_size=3), min_size=12, max_size=30),
    digits=st.integers(1, 3),
)
@settings(max_examples=25)
def test_rounded_answers_have_the_losses_of_a_model_that_rounds(logits: list[list[float]], digits: int) -> None:
    """Asked for two decimals, a model gives the losses of one that answers so itself."""
    known = softmax(np.array(logits), axis=1)
    labels = np.arange(len(known)) % 3
    population = Population(np.arange(len(known), dtype=float)[:, None], labels)
    asked = query(lambda x: known[x[:, 0].astype(int)], population, how=CoarseAnswers(digits=digits)).loss
    rounded = known.round(digits)
    rounded[~rounded.any(axis=1)] = 1
    own = (rounded / rounded.sum(axis=1, keepdims=True))[np.arange(len(known)), labels]
    inside = (own > 0) & (own < 1)
    np.testing.assert_allclose(asked[inside], -np.log(own[inside]), rtol=1e-6, atol=1e-9)


def test_of_the_likeliest_classes_alone_the_others_share_what_is_left() -> None:
    population = Population(np.arange(9.0)[:, None], np.arange(9) % 3)
    known = np.tile([0.7, 0.2, 0.1], (9, 1))
    loss = query(lambda x: known[: len(x)], population, how=CoarseAnswers(top=1)).loss
    np.testing.assert_allclose(np.exp(-loss[:3]), [0.7, 0.15, 0.15], atol=1e-6)
    with pytest.raises(InputError, match="digits"):
        CoarseAnswers(digits=0)
    with pytest.raises(InputError, match="top"):
        CoarseAnswers(top=0)


@pytest.mark.parametrize(
    ("estimator", "first", "never"),
    [
        (RandomForestClassifier(), "min_samples_leaf=5", "n_estimators=25"),
        (RandomForestClassifier(min_samples_leaf=10), "min_samples_leaf=20", "min_samples_leaf=5"),
        (GradientBoostingClassifier(), "min_samples_leaf=5", "max_depth=8"),
        (make_pipeline(StandardScaler(), LogisticRegression(C=2.0)), "C=0.2", "max_iter=25"),
        (SVC(C=1.0, probability=False), "C=0.1", "max_iter=-1"),
    ],
)
def test_an_estimator_is_only_made_gentler(estimator: Any, first: str, never: str) -> None:
    proposed = defences_for(SklearnTrainer(estimator=estimator), noisy_labels())
    names = [one.name for one in proposed]
    assert names[0] == first
    assert never not in names
    assert names[-1] == "labels alone"
    changed = proposed[0].trainer
    assert isinstance(changed, SklearnTrainer)
    assert changed.estimator is not estimator
    assert estimator.get_params() != changed.estimator.get_params()


def test_a_module_is_trained_more_gently() -> None:
    trainer = TorchTrainer(module=functools.partial(nn.Linear, 3, 2), epochs=8)
    proposed = {one.name: one.trainer for one in defences_for(trainer, noisy_labels())}
    assert {"epochs=4", "epochs=2", "early stopping", "weight_decay=0.01", "dropout=0.5"} <= proposed.keys()
    gentler: Any = proposed["weight_decay=0.01"]
    assert gentler.optimizer(nn.Linear(1, 1).parameters()).defaults["weight_decay"] == 0.01
    own = with_dropout(lambda: nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 2)), 0.5)
    assert [part.p for part in own.modules() if isinstance(part, nn.Dropout)] == [0.5], (
        "its own layer, and no second one"
    )
    with pytest.raises(InputError, match="neither dropout nor a linear layer"):
        with_dropout(nn.Identity, 0.5)


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Advice, Path]:
    pools = tmp_path_factory.mktemp("pools")
    return _advise(pools), pools


def _advise(pools: Path, **options: Any) -> Advice:
    return advise(
        noisy_labels(),
        trainer=DecisionTreeClassifier(),
        defences=[
            Defence(
                name="min_samples_leaf=40",
                trainer=SklearnTrainer(estimator=DecisionTreeClassifier(min_samples_leaf=40)),
            ),
            Defence(name="1 decimal", query=CoarseAnswers(digits=1)),
            Defence(name="broken", trainer=lambda population, members, seed: lambda x: x[:, :1] * np.nan),
        ],
        attacks=["base"],
        shadows=4,
        pool=pools,
        progress=False,
        **options,
    )


def test_a_tree_that_knows_its_records_by_heart_is_advised_larger_leaves(advice: tuple[Advice, Path]) -> None:
    found, _ = advice
    assert found.advised is not None
    assert found.fresh is not None
    assert found.advised.name == "min_samples_leaf=40"
    assert found.advised.simulated == min(one.simulated for one in found.tried) < found.before.simulated
    assert found.fresh.name == "min_samples_leaf=40, fresh target"
    low, high = found.advised.interval
    assert low <= found.fresh.leak <= high
    assert list(found.left_out) == ["broken"]
    told = " ".join(found.sentences())
    assert "Advised: min_samples_leaf=40 (leak −" in told
    assert "On a fresh target" in told
    assert found.table()["number"].tolist() == [1, 2, 3, 4]


def test_intervals_are_corrected_for_all_that_was_tried(advice: tuple[Advice, Path]) -> None:
    found, pools = advice
    many = _advise(pools, confidence=0.5)
    assert many.before.interval.high - many.before.interval.low < found.before.interval.high - found.before.interval.low


def test_an_advice_goes_on_with_the_pools_that_are_there(
    advice: tuple[Advice, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, pools = advice
    fits: list[int] = []
    fit = DecisionTreeClassifier.fit

    def counted(self: Any, *data: Any, **more: Any) -> Any:
        fits.append(1)
        return fit(self, *data, **more)

    monkeypatch.setattr(DecisionTreeClassifier, "fit", counted)
    again = _advise(pools)
    assert len(fits) == 4, "the four targets; no shadow model"
    assert [row | {"seconds": 0} for row in again.table().rows()] == [
        row | {"seconds": 0} for row in found.table().rows()
    ]


def test_what_there_is_no_time_for_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="minutes: 1e-09 is too little"):
        _advise(tmp_path, minutes=1e-9)


def test_nothing_is_advised_where_nothing_helps(advice: tuple[Advice, Path]) -> None:
    found, _ = advice
    none = Advice(
        fpr=None, before=found.before, tried=(), advised=None, fresh=None, left_out={"a<b": "<i>"}, most_accuracy=0.01
    )
    assert none.sentences()[0].startswith("No defence is advised: of 0 defences tried")
    page = render_advice(none, title="<script>")
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    with pytest.raises(InputError, match="defences: none is known"):
        advise(noisy_labels(), trainer=DecisionTreeClassifier(), defences=[])


def test_no_number_hides_another_in_the_picture() -> None:
    """Rounded answers often leave the leak and the accuracy as they are."""
    around = Interval(0.1, 0.9)
    points = [Point(1 + number, 0.5, around, 0.5, around) for number in range(3)] + [Point(4, 0.8, around, 0.8, around)]
    drawn = str(tradeoff_picture(points, fpr=0.01))
    circles = re.findall(r'<circle [^>]*?cx="([\d.]+)" cy="([\d.]+)"', drawn)
    places = [(float(x), float(y)) for x, y in circles]
    assert len(places) == 4
    for one, other in itertools.combinations(places, 2):
        assert math.dist(one, other) >= 17, "two radii apart, but for rounding"
    lines = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)" y1="[\d.]+" y2="[\d.]+" class="bar', drawn)
    upright = [first for first, last in lines if first == last]
    assert len(set(upright[:3])) == 1, "the bars stay where they are"


def test_the_page_of_a_run_quotes_what_was_measured(advice: tuple[Advice, Path], tmp_path: Path) -> None:
    found, _ = advice
    result = audit(noisy_labels(), trainer=DecisionTreeClassifier(), attacks=["base"], shadows=4, progress=False)
    plain = [step.title for step in next_steps(result.summary(), rating_of(result.summary()))]
    assert "Measure which defence helps this model" in plain
    result.advised(found).save(tmp_path / "run")
    summary = read_run(tmp_path / "run")
    assert summary.advice == found, "kept with the run"
    steps = next_steps(summary, rating_of(summary))
    assert steps[0].title == "Use min_samples_leaf=40, as measured"
    assert "(leak −" in steps[0].why
    assert "Measure which defence" not in " ".join(step.title for step in steps)
    assert "Use min_samples_leaf=40, as measured" in (tmp_path / "run" / "report.html").read_text()
    result.save(tmp_path / "later")
    keep_advice(tmp_path / "later", found)
    assert read_run(tmp_path / "later").advice == found


def test_the_command_advises_on_a_run_that_an_audit_file_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = np.random.default_rng(0)
    rows = [f"{age:.3f},{hours:.3f},{age + source.normal() > 0}\n" for age, hours in source.normal(size=(300, 2))]
    (tmp_path / "people.csv").write_text("".join(["age,hours,rich\n", *rows]))
    (tmp_path / "audit.yaml").write_text(
        "data: {name: file, path: people.csv, label: rich}\ntrainer: {kind: sklearn, estimator: GaussianNB}\n"
        "attacks: [base]\nshadows: 4\n"
    )
    asked = ["audit", "audit.yaml", "--out", "run", "--advise", "1e-9", "--quiet"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    before = read_run(tmp_path / "run").advice
    assert before is not None
    assert not before.tried, "there was no time"
    done = CliRunner().invoke(app, ["advise", "run", "--quiet"])
    assert done.exit_code == 0, done.output
    assert "dvise" in done.output
    assert not run_faults(tmp_path / "run")
    assert (tmp_path / "runs" / "advice" / "advice.csv").read_text().startswith("number,defence,attack,leak")
    after = read_run(tmp_path / "run").advice
    assert after is not None
    assert after.tried
    made_by_hand = audit_evidence(*gaussian_evidence(records=200, models=4, shift=1.0, seed=0)[:1], attacks=["base"])
    made_by_hand.save(tmp_path / "other")
    assert isinstance(CliRunner().invoke(app, ["advise", "other"]).exception, InputError)


def test_what_cannot_be_advised_on_is_refused_before_anything_is_trained() -> None:
    """Rounding was once ignored without a word where a regression was audited."""
    real = Population(np.arange(40.0)[:, None], np.arange(40.0), regression=True)
    with pytest.raises(InputError, match="data: is a regression"):
        advise(real, trainer=DecisionTreeRegressor())
    for wrong in ({"shadows": 2}, {"minutes": float("nan")}, {"minutes": -1.0}):
        options: dict[str, Any] = wrong
        with pytest.raises(InputError, match=next(iter(wrong))):
            advise(noisy_labels(), trainer=DecisionTreeClassifier(), **options)
    with pytest.raises(InputError, match="a regression has no probabilities; leave out CoarseAnswers"):
        audit(real, trainer=DecisionTreeRegressor(), attacker=Attacker(query=CoarseAnswers(digits=1)), shadows=2)
