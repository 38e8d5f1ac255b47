from __future__ import annotations

from pathlib import Path

import numpy as np

from glasshouse import Population
from glasshouse.config.targets import TrainedTarget

POPULATION = Population(np.zeros((100, 1)), np.arange(100) % 2)


def test_members_that_the_data_tells_come_before_a_random_share() -> None:
    told = np.arange(100) < 20
    assert TrainedTarget().load(POPULATION, told, Path(), 0)[1] is told
    model, drawn = TrainedTarget(fraction=0.35).load(POPULATION, None, Path(), 0)
    assert model is None
    assert drawn.sum() == 35
