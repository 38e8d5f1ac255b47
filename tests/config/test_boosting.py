from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from glasshouse import InputError, Population, SklearnTrainer
from glasshouse.config.trainers import TrainerSection

RANDOM = np.random.default_rng(0)
TABLE = Population(RANDOM.normal(size=(60, 3)), np.arange(60) % 3)
KINDS = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier", "catboost": "CatBoostClassifier"}


def built(kind: str, **parameters: Any) -> Any:
    pytest.importorskip(kind, reason="the extra `boosting` is not installed")
    section = TypeAdapter(TrainerSection).validate_python({"kind": kind, "parameters": parameters})
    return section.build(TABLE, Path())


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_reach_the_librarys_classifier_and_the_same_seed_gives_the_same_model(kind: str) -> None:
    trainer = built(kind, n_estimators=3, max_depth=2, learning_rate=0.5)
    assert isinstance(trainer, SklearnTrainer)
    assert type(trainer.estimator).__name__ == KINDS[kind]
    assert trainer.estimator.get_params()["n_estimators"] == 3, "a trial must not change it"
    half = np.arange(60) < 40
    one, two = (trainer(TABLE, half, seed=7).predict_proba(TABLE.x) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert one.shape == (60, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning_rte": 0.1}, "'learning_rte' is not a parameter of {}. Did you mean \"learning_rate\"?"),
        ({"learning_rate": "fast"}, "{} refuses them: "),
        ({"n_estimators": "many"}, "{} refuses them: "),
    ],
)
def test_wrong_parameters_are_one_line_before_the_long_work(
    kind: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        built(kind, **parameters)
    assert str(caught.value).startswith("trainer.parameters: " + message.format(KINDS[kind]))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("lightgbm", "machines"),
        ("lightgbm", "workers"),  # another name of machines
        ("lightgbm", "model_output"),
        ("lightgbm", "forcedsplits_filename"),
        ("catboost", "train_dir"),
        ("catboost", "snapshot_file"),
    ],
)
def test_files_and_machines_that_a_parameter_names_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"trainer.parameters: {name}: names files or machines"):
        built(kind, **{name: str(tmp_path / "evil")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name"), [("xgboost", "n_jobs"), ("lightgbm", "nthread"), ("catboost", "thread_count")]
)
def test_more_threads_than_any_machine_has_are_refused(kind: str, name: str) -> None:
    with pytest.raises(InputError, match=f"trainer.parameters: {name}: more than 1024 threads"):
        built(kind, **{name: 100_000})


def test_one_thread_unless_the_user_says_otherwise() -> None:
    """Two threads of a small model on a busy machine wait for each other: 4 s of work took 22 s."""
    assert built("lightgbm").estimator.get_params()["n_jobs"] == 1
    assert built("catboost").estimator.get_params()["thread_count"] == 1
    found = built("xgboost", nthread=2).estimator.get_params()
    assert (found["n_jobs"], found["nthread"]) == (None, 2)


def test_other_names_that_a_library_knows_are_passed_on() -> None:
    assert built("xgboost", eta=0.5).estimator.get_params()["eta"] == 0.5
    assert built("lightgbm", feature_fraction=0.5).estimator.get_params()["feature_fraction"] == 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_library_that_is_not_installed_is_one_line_with_the_extra(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    section = TypeAdapter(TrainerSection).validate_python({"kind": kind})
    with pytest.raises(InputError, match=rf"kind: {kind} needs {kind}, which is not .* 'glasshouse\[boosting\]'"):
        section.build(TABLE, Path())
