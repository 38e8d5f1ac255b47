from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.experiments import EXPERIMENTS, reproduce, settings
from glasshouse.experiments.settings import Preset, Setting
from glasshouse.graph import GNNTrainer
from glasshouse.graph.trainer import adam


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The synthetic graph in a column of its own, two targets, few epochs."""
    import copy

    for name in ("SETTINGS", "PRESETS"):
        changed = copy.deepcopy(getattr(settings, name))
        monkeypatch.setattr(settings, name, changed)
        monkeypatch.setattr(f"glasshouse.experiments.runner.{name}", changed)
    trainer = GNNTrainer(hidden=8, epochs=10, optimizer=adam(0.02), device="cpu")
    tiny = Setting(data="synthetic", paper_name="Synthetic", model="GCN", trainer=trainer, note="Made up.")
    settings.SETTINGS.add("synthetic", tiny)
    settings.PRESETS.add("tiny", Preset(targets=2, datasets=("synthetic",)))


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize("name", ["accuracy", "table-1", "samplers", "vary-m"])
def test_every_experiment_runs_and_a_second_call_reads_what_the_first_kept(name: str, tmp_path: Path) -> None:
    first = reproduce(name, preset="tiny", out=tmp_path / "out", pools=tmp_path / "pools", progress=False)
    path = tmp_path / "out" / "tiny" / f"{name}-synthetic.csv"
    stamp = path.stat().st_mtime_ns
    again = reproduce(name, preset="tiny", out=tmp_path / "out", pools=tmp_path / "pools", progress=False)
    assert path.stat().st_mtime_ns == stamp
    assert first["mean"].tolist() == again["mean"].tolist()
    assert set(first["verdict"]) == {"not printed"}
    assert "Made up." in (tmp_path / "out" / "tiny" / f"{name}.md").read_text()


def test_names_are_checked() -> None:
    assert EXPERIMENTS.names() == ["accuracy", "samplers", "table-1", "vary-m"]
    with pytest.raises(InputError, match='"table-2" is not an experiment. Did you mean "table-1"'):
        reproduce("table-2")
    with pytest.raises(InputError, match='"fast" is not a preset'):
        reproduce("accuracy", preset="fast")
