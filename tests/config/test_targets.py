from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glasshouse import InputError, Population
from glasshouse.config.audit_file import PythonTarget, TrainedTarget
from glasshouse.data.named import Dataset

POPULATION = Population(np.zeros((100, 1)), np.arange(100) % 2)
DATA = Dataset(name="d", about="", population=POPULATION)
TOLD = np.arange(100) < 20
KNOWN = replace(DATA, members=TOLD)


def test_members_that_the_data_tells_come_before_a_random_share() -> None:
    assert TrainedTarget().load(KNOWN, Path(), 0)[1] is TOLD
    model, drawn = TrainedTarget(fraction=0.35).load(DATA, Path(), 0)
    assert model is None
    assert drawn.sum() == 35
    with pytest.raises(InputError, match="target.fraction: the data already defines the members"):
        TrainedTarget(fraction=0.35).load(KNOWN, Path(), 0)


def test_a_model_of_the_users_own_is_not_asked_with_features_that_it_cannot_know(tmp_path: Path) -> None:
    (tmp_path / "my_target.py").write_text("import numpy\ndef target():\n    return None, numpy.arange(100) < 20\n")
    target = PythonTarget(kind="python", factory="my_target:target")
    assert target.load(KNOWN, tmp_path, 0)[1].sum() == 20
    with pytest.raises(InputError, match="the members of my_target:target differ from those of the data"):
        target.load(replace(DATA, members=~TOLD), tmp_path, 0)
    encoded = Dataset(name="d", about="", population=POPULATION, remade=("town",))
    with pytest.raises(InputError, match="cannot know how Glasshouse made features of 'town'"):
        target.load(encoded, tmp_path, 0)
