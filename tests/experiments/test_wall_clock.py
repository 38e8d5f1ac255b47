from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glasshouse.graph import GBASE, Scene, citation_graph
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.sampling.samplers import SAMPLERS, SamplingRequest, draw
from glasshouse_experiments import wall_clock
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.clocks import BUSY, LOOP, OURS, clock_page, clock_picture, timings
from glasshouse_experiments.vary_m import First
from glasshouse_experiments.wall_clock import beside_the_paper, loop_seconds


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Untrained models on a made-up graph: times and chains do not need more."""
    data = citation_graph(nodes=40, classes=3, mean_degree=2.0, seed=0)
    torch.manual_seed(0)
    models = [build_gnn("gcn", features=data.x.shape[1], hidden=4, classes=3) for _ in range(5)]
    half = np.arange(40) % 2 == 0
    return Scene(data, models[0], models[1:], [half, ~half, half, ~half], nodes=np.arange(20))


def test_the_loop_is_multiplied_by_the_pairs_that_an_attack_asks_about(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    clock = iter(range(100))
    clocks = SimpleNamespace(perf_counter=lambda: float(next(clock)))  # every call takes one second
    monkeypatch.setattr("glasshouse_experiments.wall_clock.time", clocks)
    monkeypatch.setattr(
        wall_clock, "ego_losses", lambda models, data, masks, nodes: asked.append((len(models), len(nodes)))
    )
    assert loop_seconds(scene, GBASE(sampler="mia"), nodes=2) == 1 / 2 * 8 * 20
    assert loop_seconds(scene, GBASE(sampler="gibbs", passes=3), nodes=2) == 1 / 2 * 8 * (20 + 3 * 40)
    assert asked[1::2] == [(5, 2), (5, 2)]
    loop_seconds(scene, GBASE(mode="offline"), nodes=2)
    assert asked[-1] == (3, 2)  # the target and the half that did not train on a node


def test_our_seconds_stand_beside_the_loops_and_the_papers() -> None:
    place = ("wall-clock-time", "Pubmed", "online", "8", "one GPU", "G-BASE (MIA)")
    other = ("wall-clock-time", "Cora", "online", "8", "one GPU", "BASE")
    ours = [Cell(*place, metric, (seconds,)) for metric, seconds in ((OURS, 2.0), (BUSY, 12.0), (LOOP, 900.0))]
    table = beside_the_paper([*ours, Cell(*other, OURS, (0.5,))])
    assert table["verdict"].tolist() == ["faster", *["not printed"] * 3]
    first, second = timings(table)
    assert (first.ours, first.busy, first.loop, first.paper) == (2.0, 12.0, 900.0, 684.11)
    assert math.isnan(second.loop)
    page = clock_page(table, "wall-clock")
    assert "| Pubmed | G-BASE (MIA) | online | 8 | one GPU | 2 | 12 | 900 | 450 | 684 | 342 |" in page
    assert "| Cora | BASE | online | 8 | one GPU | 0.5 | – | – | – | – | – |" in page
    assert clock_picture(table).count("<circle") == 3 + 1 + 3  # and three in the key


@pytest.mark.parametrize("name", ["gibbs", "mia", "independent"])
@pytest.mark.parametrize("mode", ["online", "offline"])
def test_the_first_of_many_training_sets_are_those_drawn_alone(name: str, mode: str, scene: Scene) -> None:
    request = SamplingRequest(samples=3, prior=np.full(40, 0.5), mode=mode, passes=1, seed=7)  # type: ignore[arg-type]
    first = First(name, 5)
    np.testing.assert_array_equal(first(scene, request), draw(SAMPLERS.find(name), scene, request).masks)
    kept = first.drawn[mode][1]
    first(scene, request)
    assert first.drawn[mode][1] is kept


def test_chains_warm_up_on_some_of_the_nodes(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall_clock, "_SMALL", 10)
    part = wall_clock._part_of(scene)
    assert (int(part.data.num_nodes), part.shadow_members.shape) == (10, (4, 10))
    assert int(part.data.edge_index.max()) < 10
