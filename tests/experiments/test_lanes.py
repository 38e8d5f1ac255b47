from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from glasshouse.cli import main
from glasshouse_experiments import EXPERIMENTS, reproduce_all
from glasshouse_experiments.jobs import Job, Order
from glasshouse_experiments.lanes import run_lanes
from glasshouse_experiments.settings import Preset

TINY = Preset(targets=1, datasets=("synthetic", "digits", "cora"), epochs=0.01, most_shadows=8)
CLOCK = [Job("wall-clock", part, "synthetic") for part in EXPERIMENTS.find("wall-clock")]


def order(out: Path) -> Order:
    return Order(preset="tiny", size=TINY, out=out, pools=out / "pools", progress=False)


def jobs(**names: tuple[str, ...]) -> list[Job]:
    return [Job(name, EXPERIMENTS.find(name)[0], dataset) for dataset, of in names.items() for name in of]


def tables(place: Path) -> dict[Path, bytes]:
    return {path.relative_to(place): path.read_bytes() for path in place.rglob("*.csv")}


def test_a_process_of_a_data_set_makes_the_tables_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process, because its start takes as long as ten of these tables."""
    lanes, alone, made = order(tmp_path / "lanes"), order(tmp_path / "alone"), jobs(synthetic=("accuracy", "rmia-beta"))
    run_lanes([*made, *CLOCK], lanes, lanes=2)
    for job in made:
        job.run(alone)
    assert tables(lanes.place) == tables(alone.place)
    assert len(tables(lanes.place)) == 2  # a clock that others run beside would be wrong
    monkeypatch.setattr("joblib.externals.loky.backend.get_context", lambda _: None)
    run_lanes(made, lanes, lanes=3)  # all finished: no process is started


class Here:
    """Stands for a process: it does its work when it is started, and has ended when it is looked at."""

    started: ClassVar[list[str]] = []

    def __init__(self, *, target: Callable[..., None], args: tuple[Any, ...], name: str) -> None:
        self.target, self.args, self.name = target, args, name
        self.sentinel, end = socket.socketpair()
        end.close()

    def start(self) -> None:
        self.started.append(self.name)
        self.target(*self.args)

    def is_alive(self) -> bool:
        self.sentinel.close()
        return False


@pytest.mark.parametrize("lanes", [1, 3])
def test_every_data_set_has_its_process_and_one_that_fails_does_not_stop_the_others(
    lanes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))  # Cora is not there
    monkeypatch.setattr("joblib.externals.loky.backend.get_context", lambda _: SimpleNamespace(Process=Here))
    for name in ("end_with", "share_gpu", "signal.signal"):  # what a process says of itself
        monkeypatch.setattr(f"glasshouse_experiments.lanes.{name}", lambda *_: None)
    monkeypatch.setattr(Here, "started", [])
    given = order(tmp_path / "lanes")
    run_lanes([*jobs(cora=("accuracy",), digits=("iid",), synthetic=("accuracy",)), *CLOCK], given, lanes=lanes)
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("cora (accuracy): ")
    assert told.endswith("there is no such file.")
    assert Here.started == ["cora", "digits", "synthetic"]
    assert sorted(map(str, tables(given.place))) == ["accuracy/synthetic.csv", "iid/digits.csv"]


def test_all_runs_in_lanes_first_and_then_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def remember(jobs: list[Job], order: Order, *, lanes: int) -> None:
        seen.extend(f"{job.name} {job.dataset} {lanes}" for job in jobs)

    monkeypatch.setattr("glasshouse_experiments.runner.run_lanes", remember)
    monkeypatch.setattr("glasshouse_experiments.jobs.Job.run", lambda job, order: seen.append(f"{job.name} again"))
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    assert list(reproduce_all(preset="quick", datasets=["digits"], lanes=2, out=tmp_path)) == []
    assert seen[:2] == ["accuracy digits 2", "thresholds digits 2"]
    assert seen[-1] == "beyond again"


def test_one_experiment_has_no_lanes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["glasshouse", "reproduce", "accuracy", "--lanes", "2"])
    with pytest.raises(SystemExit):
        main()
    assert "--lanes: only all" in capsys.readouterr().err
