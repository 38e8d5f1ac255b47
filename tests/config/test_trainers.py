from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter

from glasshouse import InputError, Population, PrivateTrainer, SklearnTrainer, TorchTrainer
from glasshouse.config import read_audit_file
from glasshouse.config.trainers import TrainerSection
from glasshouse.training import WideResNet

TABLE = Population(np.zeros((4, 3)), [0, 1, 0, 1])
IMAGES = Population(np.zeros((4, 3, 8, 8), dtype=np.float32), [0, 1, 0, 1])


def built(section: dict[str, Any], population: Population) -> Any:
    return TypeAdapter(TrainerSection).validate_python(section).build(population, Path())


def test_networks_take_the_shape_of_the_data() -> None:
    trainer = built({"kind": "mlp", "hidden": [7], "learning_rate": 0.1}, TABLE)
    assert isinstance(trainer, TorchTrainer)
    assert [tuple(p.shape) for p in trainer.module().parameters()] == [(7, 3), (7,), (2, 7), (2,)]
    wide = built({"kind": "wide-resnet", "depth": 10, "width": 1}, IMAGES)
    assert isinstance(wide.module(), WideResNet)
    assert isinstance(built({"kind": "mlp", "epsilon": 2.0}, TABLE), PrivateTrainer)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"kind": "wide-resnet"}, "needs images"),
        ({"kind": "sklearn", "estimator": "NoSuchClassifier"}, "has no classifier 'NoSuchClassifier'"),
        ({"kind": "sklearn", "estimator": "RandomForest"}, 'Did you mean "RandomForestClassifier"?'),
        (
            {"kind": "sklearn", "estimator": "SVC", "parameters": {"C": "big"}},
            "SVC refuses them: The 'C' parameter .* instead.$",
        ),
        ({"kind": "sklearn", "estimator": "SVC", "parameters": {"x": 1}}, "refuses them"),
    ],
)
def test_trainers_that_do_not_fit_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(section, TABLE)


def test_a_network_is_not_given_large_numbers_without_a_word() -> None:
    section: Any = TypeAdapter(TrainerSection).validate_python({"kind": "mlp"})
    large = Population(np.array([[1.0, 250_000.0], [0.0, 10.0]]), [0, 1])
    assert "add standardise: true" in section.advice(large)[0]
    assert section.advice(TABLE) == section.advice(IMAGES) == ()
    forest: Any = TypeAdapter(TrainerSection).validate_python({"kind": "sklearn", "estimator": "SVC"})
    assert forest.advice(large) == ()


@pytest.mark.parametrize("trainer", [{"kind": "lightgbm"}, {"kind": "sklearn", "estimator": "SVC"}])
def test_parameters_of_an_estimator_stand_apart_from_the_keys(tmp_path: Path, trainer: dict[str, Any]) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(yaml.safe_dump({"trainer": trainer | {"max_depth": 3}}))
    with pytest.raises(InputError) as caught:
        read_audit_file(path)
    wanted = "trainer: 'max_depth' is not a key here; if the estimator takes it, write parameters: {max_depth: 3}."
    assert str(caught.value) == f"{path}: {wanted}"


def test_trainers_of_a_regression() -> None:
    numbers = Population(TABLE.x, np.linspace(0.0, 1.0, len(TABLE)), regression=True)
    assert isinstance(built({"kind": "sklearn", "estimator": "Ridge"}, numbers), SklearnTrainer)
    network = built({"kind": "mlp", "hidden": [7]}, numbers)
    assert [tuple(p.shape) for p in network.module().parameters()][-1] == (1,)
    with pytest.raises(InputError, match="has no regressor 'LogisticRegression'"):
        built({"kind": "sklearn", "estimator": "LogisticRegression"}, numbers)
    with pytest.raises(InputError, match="a wide-resnet gives classes, but the data is a regression"):
        built({"kind": "wide-resnet"}, numbers)
