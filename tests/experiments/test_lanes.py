from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse.cli import main
from glasshouse_experiments import EXPERIMENTS, reproduce_all
from glasshouse_experiments.jobs import Job, Order
from glasshouse_experiments.lanes import run_lanes
from glasshouse_experiments.settings import Preset

TINY = Preset(targets=1, datasets=("synthetic", "cora"), epochs=0.01, most_shadows=8)
NAMES = {"synthetic": ("accuracy", "rmia-beta"), "cora": ("accuracy",)}


def order(out: Path) -> Order:
    return Order(preset="tiny", size=TINY, out=out, pools=out / "pools", progress=False)


def test_data_sets_side_by_side_make_the_tables_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))  # Cora is not there
    jobs = [Job(name, EXPERIMENTS.find(name)[0], dataset) for dataset, names in NAMES.items() for name in names]
    clock = [Job("wall-clock", part, "synthetic") for part in EXPERIMENTS.find("wall-clock")]
    lanes, alone = order(tmp_path / "lanes"), order(tmp_path / "alone")
    run_lanes([*jobs, *clock], lanes, lanes=2)
    (told,) = capfd.readouterr().err.splitlines()
    assert told.startswith("cora (accuracy): ")
    assert told.endswith("there is no such file.")
    for job in jobs[:2]:
        job.run(alone)
    written = {path.relative_to(lanes.place): path.read_bytes() for path in lanes.place.rglob("*.csv")}
    assert written == {path.relative_to(alone.place): path.read_bytes() for path in alone.place.rglob("*.csv")}
    assert len(written) == 2  # a clock that others run beside would be wrong
    monkeypatch.setattr("joblib.externals.loky.backend.get_context", lambda _: None)
    run_lanes(jobs[:2], lanes, lanes=2)  # all finished: no process is started


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
