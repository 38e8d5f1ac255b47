from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.core.errors import MissingExtraError
from glasshouse.core.registry import Registry
from glasshouse_experiments import reproduce, reproduce_all
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import Part, experiment
from glasshouse_experiments.settings import SETTINGS, Preset, Setting

FEW, MANY = ("8", "4"), ("128", "64")


class Idle:
    """A bench that trains nothing."""

    def __init__(self, *, setting: Setting, **_: Any) -> None:
        self.setting, self.note = setting, "made up"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An experiment with two parts, and the parts that were run, in order."""
    ran: list[str] = []
    known: Registry[Any] = Registry("an experiment")
    for user in ("experiment", "runner", "lanes"):
        monkeypatch.setattr(f"glasshouse_experiments.{user}.EXPERIMENTS", known)
    presets: Registry[Preset] = Registry("a preset")
    presets.add("paper", Preset(targets=1, datasets=("cora",)))
    presets.add("small", Preset(targets=1, datasets=("cora",), most_shadows=8))
    monkeypatch.setattr("glasshouse_experiments.jobs.PRESETS", presets)

    def cells(bench: Idle, counts: tuple[str, ...]) -> list[Cell]:
        return [
            Cell("MIAGNN", bench.setting.paper_name, "online", count, "", "BASE", "auc_pct", (82.0,))
            for count in counts
        ]

    options: dict[str, Any] = {"settings": SETTINGS, "datasets": ("cora", "pubmed"), "bench": Idle}
    with_many = Part(
        name="many", holds=lambda row: row["K"] in MANY, wanted=lambda preset: preset.most_shadows >= int(MANY[0])
    )

    @experiment("parts", **options)
    def few(bench: Idle) -> list[Cell]:
        ran.append(f"few {bench.setting.data}")
        return cells(bench, FEW)

    @experiment("parts", part=with_many, **options)
    def many(bench: Idle) -> list[Cell]:
        ran.append(f"many {bench.setting.data}")
        return cells(bench, MANY)

    return ran


def test_a_missing_part_is_run_and_a_finished_one_is_not(runs: list[str], tmp_path: Path) -> None:
    reproduce("parts", out=tmp_path, preset="paper", datasets=["cora"])
    assert runs == ["few cora", "many cora"]
    folder = tmp_path / "parts"
    stamp = (folder / "cora.csv").stat().st_mtime_ns
    (folder / "cora-many.csv").unlink()
    table = reproduce("parts", out=tmp_path, preset="paper", datasets=["cora"])
    assert runs == ["few cora", "many cora", "many cora"]
    assert (folder / "cora.csv").stat().st_mtime_ns == stamp
    assert table["K"].tolist() == [*FEW, *MANY]
    for part in ("cora", "cora-many"):  # each says how it was made
        assert json.loads((folder / f"{part}.json").read_text())["seconds"] >= 0


def test_a_file_from_before_the_parts_counts_for_both_and_once(runs: list[str], tmp_path: Path) -> None:
    reproduce("parts", out=tmp_path, preset="paper", datasets=["cora"])
    folder = tmp_path / "parts"
    both = (folder / "cora.csv").read_text() + "".join((folder / "cora-many.csv").read_text().splitlines(True)[1:])
    (folder / "cora.csv").write_text(both)
    (folder / "cora-many.csv").unlink()
    table = reproduce("parts", out=tmp_path, preset="paper", datasets=["cora"])
    assert runs == ["few cora", "many cora"]
    assert table["K"].tolist() == [*FEW, *MANY]
    assert (tmp_path / "parts.csv").read_text() == both


def test_a_preset_with_few_shadow_models_leaves_the_other_part_out(runs: list[str], tmp_path: Path) -> None:
    table = reproduce("parts", out=tmp_path, preset="small", datasets=["cora", "pubmed"])
    assert runs == ["few cora", "few pubmed"]
    assert set(table["K"]) == set(FEW)


def test_the_page_keeps_the_parts_of_a_data_set_together(runs: list[str], tmp_path: Path) -> None:
    reproduce("parts", out=tmp_path, preset="paper", datasets=["pubmed", "cora"])
    rows = (tmp_path / "parts.csv").read_text().splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == ["Cora"] * 4 + ["Pubmed"] * 4
    assert runs == ["few pubmed", "many pubmed", "few cora", "many cora"]
    assert np.unique(rows).size == len(rows)


def test_a_part_can_be_run_alone(runs: list[str], tmp_path: Path) -> None:
    assert set(reproduce("parts", out=tmp_path, preset="paper", datasets=["cora"], part="many")["K"]) == set(MANY)
    reproduce("parts", out=tmp_path, preset="paper", datasets=["pubmed"], part="first")
    assert runs == ["many cora", "few pubmed"]
    with pytest.raises(InputError, match='parts has no part "mani". Did you mean "many"'):
        reproduce("parts", out=tmp_path, preset="paper", part="mani")


def test_an_experiment_without_its_library_is_named_after_the_others_have_run(
    runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @experiment("private", datasets=("cora",), bench=Idle)
    def private(bench: Idle) -> list[Cell]:
        raise MissingExtraError("DP-SGD", package="opacus", extra="dp")

    experiment("later", datasets=("cora",), bench=Idle)(
        lambda _: [Cell("MIAGNN", "Cora", "online", "8", "", "BASE", "auc_pct", (82.0,))]
    )
    done = []
    with pytest.raises(InputError, match=r"^cora \(private\): DP-SGD needs opacus"):
        for name, _ in reproduce_all(preset="paper", out=tmp_path):
            done.append(name)
    assert done == ["parts", "later"]


def test_a_data_set_whose_files_are_missing_does_not_stop_the_others(runs: list[str], tmp_path: Path) -> None:
    fault = "pubmed.x: no such file. Place it there."

    def cells(bench: Idle) -> list[Cell]:
        if bench.setting.data == "pubmed":
            raise InputError(fault)
        return [Cell("MIAGNN", bench.setting.paper_name, "online", "8", "", "BASE", "auc_pct", (82.0,))]

    for name in ("absent", "lost"):
        experiment(name, datasets=("pubmed", "cora"), bench=Idle)(cells)
    done = []
    with pytest.raises(InputError) as raised:
        for name, _ in reproduce_all(preset="paper", out=tmp_path, datasets=["pubmed", "cora"]):
            done.append(name)
    assert done == ["parts", "absent", "lost"]
    assert str(raised.value) == f"pubmed (absent, lost): {fault}"
    with pytest.raises(InputError, match=r"^pubmed \(lost\)"):
        reproduce("lost", preset="paper", out=tmp_path / "alone", datasets=["pubmed", "cora"])
    assert "Cora" in (tmp_path / "alone" / "lost.csv").read_text()
