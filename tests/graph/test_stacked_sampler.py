from __future__ import annotations

import numpy as np

from glasshouse.graph.samplers import Request, draw
from glasshouse.population import complementary_halves
from tests.graph.scenes import trained_scene


def request(prior: float = 0.5) -> Request:
    return Request(samples=6, prior=np.full(240, prior), mode="online", passes=1, seed=0)


def test_it_hits_members_more_often_than_zero_hop_queries_do() -> None:
    scene = trained_scene(shadows=8)
    stacked, simple, blind = (draw(name, scene, request()).precision for name in ("stacked", "mia", "independent"))
    assert stacked is not None
    assert simple is not None
    assert blind is not None
    assert stacked > simple > blind


def test_the_prior_moves_how_many_are_sampled_and_the_truth_moves_nothing() -> None:
    scene = trained_scene(shadows=8)
    few, many = (draw("stacked", scene, request(prior)).masks.sum() for prior in (0.1, 0.9))
    assert few < many
    other = type(scene)(
        scene.data,
        scene.target,
        scene.shadows,
        scene.shadow_members,
        truth=complementary_halves(240, models=2, seed=9)[0],
    )
    assert (draw("stacked", scene, request()).masks == draw("stacked", other, request()).masks).all()
