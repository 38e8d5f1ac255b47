"""Who trains which shadow model: never by the target's random stream, and always as planned."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError, Population
from glasshouse.data import random_subsets
from glasshouse.pool import ShadowPool

POPULATION = Population(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)


def answers(population: Any, members: Any, seed: int) -> Any:
    return lambda x: x[:, :2]


def test_shadows_never_share_the_targets_stream_at_any_share() -> None:
    for fraction in (0.35, 0.7):
        target = random_subsets(20, models=1, fraction=fraction, seed=0)[0]
        shadows = ShadowPool.plan(POPULATION, answers, shadows=4, fraction=fraction, seed=0).members
        assert not (shadows == target).all(axis=1).any()


def test_models_that_were_trained_on_other_records_are_refused(tmp_path: Path) -> None:
    pool = ShadowPool.plan(POPULATION, answers, shadows=4, fraction=0.35, folder=tmp_path)
    drawn_before = random_subsets(20, models=4, fraction=0.35, seed=0)  # by the stream of older versions
    dataclasses.replace(pool, members=drawn_before).train()
    with pytest.raises(InputError, match="model 0: was trained on other records than this pool plans for it"):
        pool.train()


def test_an_older_pool_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "pool.json").write_text(json.dumps({"format": 1, "data": "x", "trainer": "y"}))
    with pytest.raises(InputError, match="format 1 is from another version of Glasshouse"):
        ShadowPool.plan(POPULATION, answers, shadows=2, folder=tmp_path).train()
