from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from glasshouse import InputError, Population, PrivateTrainer, TorchTrainer
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
        ({"kind": "sklearn", "estimator": "SVC", "parameters": {"x": 1}}, "refuses them"),
        ({"kind": "sklearn", "estimator": "RidgeClassifier"}, "has no predict_proba"),
    ],
)
def test_trainers_that_do_not_fit_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(section, TABLE)
