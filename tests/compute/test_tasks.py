"""Long steps of scoring as tasks: the same bytes wherever they run, each thing sent once, short work at home."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse import InputError
from glasshouse.attacks import create
from glasshouse.attacks.cross_fit import cross_fit
from glasshouse.attacks.learners import Boosted, Linear
from glasshouse.compute import Compute, RayCluster, ThisProcess, is_worth_spreading, spread, spreading_over
from glasshouse.compute.ray import _Connected
from glasshouse.compute.serialise import NotSentError, Parcels, open_parcel, receive_from
from glasshouse.data import complementary_halves
from glasshouse.graph import GNNTrainer, Scene, audit, citation_graph
from glasshouse.graph.attacks.g_base import GBASE
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.rule.toggling import toggle_answers
from glasshouse.graph.sampling.gibbs import gibbs_masks

DATA = citation_graph(nodes=120, classes=3)
MEMBERS = complementary_halves(120, models=4, seed=0)


def networks(count: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [build_gnn("gcn", features=DATA.x.shape[1], hidden=4, classes=3) for _ in range(count)]


MODELS = networks(5)


def scene() -> Scene:
    """A new one, which has asked nothing yet."""
    return Scene(DATA, MODELS[0], MODELS[1:], MEMBERS)


class Recorded:
    """A place that does all tasks here, as a worker would: from bytes, and notes what it was given."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.parcels = Parcels(self.kept.__setitem__, self.kept.__delitem__)
        self.runs: list[int] = []

    @contextmanager
    def opened(self) -> Iterator[Compute]:
        yield self

    def run(self, function: Any, shared: tuple[Any, ...], tasks: Any) -> Iterator[tuple[int, Any]]:
        key = self.parcels.pack((function, shared))
        self.runs.append(len(tasks))
        receive_from(self.kept.__getitem__, anew=len(self.runs) == 1)
        work, given = open_parcel(key)
        found = [(at, work(*given, task)) for at, task in enumerate(tasks)]
        yield from reversed(found)  # tasks end in any order


@pytest.fixture
def everything_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any work is worth the way, and blocks are small."""
    monkeypatch.setattr("glasshouse.compute.base._START", 0.0)
    monkeypatch.setattr("glasshouse.compute.base._GO_ON", 0.0)
    monkeypatch.setattr("glasshouse.compute.base._BUNDLE", 0.0)


@pytest.mark.usefixtures("everything_travels")
@pytest.mark.parametrize(("engine", "seconds"), [("compiled", 0.02), ("layered", 1e-5)])
def test_toggles_in_blocks_are_the_same_bytes_wherever_they_are_answered(
    engine: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    masks, nodes = torch.rand(3, 120, generator=torch.manual_seed(1)) < 0.5, torch.arange(0, 120, 2)
    whole = toggle_answers(MODELS, DATA, masks, nodes, engine=engine)
    for length in ("_SECONDS", "_SHORT"):
        monkeypatch.setattr(f"glasshouse.graph.rule.engines.{length}", seconds)
    here = toggle_answers(MODELS, DATA, masks, nodes, engine=engine)
    place = Recorded()
    with spreading_over(place):
        there = toggle_answers(MODELS, DATA, masks, nodes, engine=engine)
    assert place.runs
    assert place.runs[0] >= 3
    for near, away, all_at_once in zip(here, there, whole, strict=True):
        assert torch.equal(near, away)
        torch.testing.assert_close(near, all_at_once)
    if engine == "compiled":  # it says of itself that blocks change nothing
        assert torch.equal(there.signal, whole.signal)


@pytest.mark.usefixtures("everything_travels")
@pytest.mark.parametrize("attack", [create("g-base", samples=2), create("loss"), create("g-stacked", samples=(2, 2))])
def test_attacks_score_the_same_bytes_by_workers(attack: Any) -> None:
    def scores(place: Any) -> list[Any]:
        view = scene() if attack.kind == "graph" else scene().evidence
        with spreading_over(place):
            tuned = attack.tuned(view)
            return [tuned.score(view), *[found for found, _ in tuned.simulated_scores(view)]]

    place = Recorded()
    for near, away in zip(scores(None), scores(place), strict=True):
        np.testing.assert_array_equal(near, away)
    assert place.runs, "nothing was given to the workers"


@pytest.mark.usefixtures("everything_travels")
@pytest.mark.parametrize(("expected", "sent"), [(100.0, 4), (0.0, 3)])
def test_no_worker_waits_for_a_first_simulated_target_if_the_time_of_all_is_foreseen(
    expected: float, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.compute.base._START", 1e-9)
    monkeypatch.setattr("glasshouse.graph.attacks.g_base.toggle_seconds", lambda *_, **__: expected / 4)
    attack, place = create("g-base", samples=2), Recorded()
    with spreading_over(place):
        found = list(attack.simulated_scores(scene()))
    assert len(found) == 4
    assert place.runs == [sent], "all four, or all but one that was measured here"


@pytest.mark.usefixtures("everything_travels")
def test_the_compute_of_an_audit_trains_and_scores() -> None:
    def scores(place: Compute | None) -> Any:
        trainer = GNNTrainer(hidden=4, epochs=2, device="cpu")
        found = audit(DATA, trainer=trainer, attacks=[GBASE(samples=2)], shadows=4, compute=place, progress=False)
        return next(iter(found.outcomes.values()))

    place = Recorded()
    here, there = scores(ThisProcess()), scores(place)
    np.testing.assert_array_equal(here.scores, there.scores)
    assert here.thresholds == there.thresholds
    assert len(place.runs) > 1, "only the training was given to the workers"


@pytest.mark.usefixtures("everything_travels")
def test_chains_walk_the_same_way_by_workers() -> None:
    place = Recorded()
    here, _ = gibbs_masks(MODELS, DATA, chains=3, passes=1, seed=4)
    with spreading_over(place):
        there, _ = gibbs_masks(MODELS, DATA, chains=3, passes=1, seed=4)
    np.testing.assert_array_equal(here, there)
    assert place.runs == [3]


@pytest.mark.usefixtures("everything_travels")
def test_fits_are_the_same_by_workers_and_each_is_counted() -> None:
    known = np.random.default_rng(0).normal(size=(4, 60, 2))
    done: list[int] = []

    def fitted() -> Any:
        return cross_fit(
            lambda target, records: known[target, records],
            known[:, :, 0] > 0,
            groups=np.array([0, 0, 1, 1]),
            folds=np.arange(60) % 2,
            learners={"linear": Linear(), "boosted": Boosted(rounds=2)},
            seed=0,
            done=done.append,
        )

    here, place = fitted(), Recorded()
    with spreading_over(place):
        there = fitted()
    np.testing.assert_array_equal(here.held_out, there.held_out)
    assert place.runs == [8]
    assert done == [1] * 16


def test_short_work_stays_at_home_and_long_work_travels_in_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    place, now = Recorded(), [0.0]
    monkeypatch.setattr("glasshouse.compute.base.time", SimpleNamespace(perf_counter=lambda: now[0]))

    def long(task: int) -> None:
        now[0] += 0.1

    with spreading_over(place):
        assert dict(spread(pow, (2,), list(range(5)))) == {n: 2**n for n in range(5)}  # the first took no time
        assert place.runs == []
        assert not is_worth_spreading(1.0)
        assert is_worth_spreading(100.0)
        assert dict(spread(pow, (2,), list(range(5)), seconds=100.0)) == {n: 2**n for n in range(5)}
        assert place.runs == [5]
        dict(spread(pow, (2,), list(range(100)), seconds=2.0))  # 20 ms each
        assert place.runs == [5, 4]
        monkeypatch.setattr("glasshouse.compute.base._GO_ON", 0.05)
        dict(spread(long, (), [1, 2, 3]))  # the first is measured, the others travel together
        assert place.runs == [5, 4, 1]
    assert not is_worth_spreading()


def test_a_model_and_a_graph_travel_once_and_what_was_written_to_travels_again() -> None:
    kept: dict[str, bytes] = {}
    parcels = Parcels(kept.__setitem__, kept.__delitem__)
    features = torch.ones(200, 200)
    first = parcels.pack((MODELS[0], features))
    receive_from(kept.__getitem__)
    model, x = open_parcel(first)
    count = len(kept)
    again, same = open_parcel(parcels.pack({"scene": [MODELS[0], features]}))["scene"]
    assert again is model
    assert same is x
    assert len(kept) == count + 1, "only the new parcel itself"
    features += 1
    (other,) = open_parcel(parcels.pack((features,)))
    assert torch.equal(other, features)
    for _ in range(10):
        parcels.forget(parcels.pack(()))
    assert not any(len(content) > 1000 for content in kept.values()), "what nobody used was not dropped"


def test_what_cannot_be_sent_is_done_here_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    lock = threading.Lock()
    with spreading_over(Recorded()):
        found = dict(spread(lambda task: bool(lock) and task, (), [1, 2], seconds=100.0))
    assert found == {0: 1, 1: 2}
    assert "This step stays in this process: TypeError: cannot pickle '_thread.lock' object." in caplog.text


def test_an_error_of_a_task_is_not_taken_for_something_that_cannot_be_sent() -> None:
    def refuse(task: int) -> None:
        raise InputError(f"task: {task} is refused.")

    with spreading_over(Recorded()), pytest.raises(InputError, match="task: 0 is refused"):
        list(spread(refuse, (), [0, 1], seconds=100.0))
    assert not issubclass(InputError, NotSentError)


def test_what_a_task_reserves_is_told_to_ray() -> None:
    told: list[dict[str, float]] = []

    class Ray:
        def put(self, content: bytes) -> bytes:
            return content

        def remote(self, **options: float) -> Any:
            told.append(options)
            raise InputError("enough")

    with pytest.raises(InputError, match="enough"):
        list(_Connected(RayCluster(cpus=2, gpus=0.5), Ray()).run(pow, (2,), [1]))
    assert (told[0]["num_cpus"], told[0]["num_gpus"]) == (2, 0.5)


def test_a_share_of_a_gpu_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="a part of one GPU, or whole ones"):
        RayCluster(gpus=1.5)
    with pytest.raises(InputError, match="less than none"):
        RayCluster(gpus=-1)
