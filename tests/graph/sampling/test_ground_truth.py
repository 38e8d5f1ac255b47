from __future__ import annotations

import numpy as np
import pytest

from glasshouse.core.errors import InputError
from glasshouse.graph import GBASE, GroundTruth, SamplingRequest, Scene
from glasshouse.graph.sampling.samplers import SAMPLERS
from tests.graph.random_graphs import random_models
from tests.graph.simple_graphs import simple_graph

DATA = simple_graph(size=6, edges=8, seed=0)
TARGET, *SHADOWS = random_models("gcn", layers=2, count=3)
SCENE = Scene(DATA, TARGET, SHADOWS, np.arange(12).reshape(2, 6) % 2 == 0)
REQUEST = SamplingRequest(samples=3, prior=np.full(6, 0.5), mode="online", passes=1, seed=0)


def test_every_sample_is_the_mask_that_was_told() -> None:
    members = [True, False, True, True, False, False]
    samples = GroundTruth(members)(SCENE, REQUEST)
    assert samples.masks.tolist() == [members] * 3
    assert samples.queries == 0


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="members"):
        GroundTruth([True, False])(SCENE, REQUEST)


def test_the_bare_name_is_refused_since_an_attack_does_not_know_the_members() -> None:
    with pytest.raises(InputError, match=r"GroundTruth\(members\)"):
        SAMPLERS.find("truth")(SCENE, REQUEST)


def test_the_members_are_not_in_what_a_report_shows() -> None:
    assert repr(GroundTruth([True, False])) == "GroundTruth()"
    assert GBASE(sampler=GroundTruth([True])).knows_truth
