from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from glasshouse.cli import app, doctor
from glasshouse.cli.doctor import extras, installed_version


def facts(**environment: str | None) -> dict[str, dict[str, str]]:
    done = CliRunner().invoke(app, ["doctor", "--json"], env=environment)
    assert done.exit_code == 0, done.exception
    return {fact["subject"]: fact for fact in json.loads(done.output)}


def test_the_doctor_tells_versions_cores_memory_and_folders(tmp_path: Path) -> None:
    found = facts(GLASSHOUSE_DATA=str(tmp_path))
    assert found["torch"]["found"] == importlib.metadata.version("torch")
    assert int(found["cores"]["found"]) >= 1
    assert float(found["memory"]["found"].removesuffix(" GiB")) > 0.5
    assert str(tmp_path) in found["data folder"]["found"]
    assert found["extra graph"]["found"].startswith("numba ")
    kept = Path(found["compiled kernels"]["found"].removeprefix("kept in "))
    assert kept.parent.is_dir()


def test_what_is_missing_comes_with_the_command_to_get_it_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_ray(package: str) -> str | None:
        return None if package == "ray" else installed_version(package)

    monkeypatch.setattr(doctor, "installed_version", without_ray)
    monkeypatch.setattr("shutil.which", lambda name: None)
    found = facts(GLASSHOUSE_DATA=str(tmp_path / "none"))
    assert found["extra cluster"]["hint"] == "Run: pip install 'glasshouse[cluster]'"
    assert [found[name]["status"] for name in ("extra cluster", "browser", "data folder")] == ["absent"] * 3
    assert "set GLASSHOUSE_DATA" in found["data folder"]["hint"]


def test_a_tree_that_is_not_installed_and_kernels_that_cannot_be_kept_are_faults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(requirements: Any = None) -> dict[str, list[str]]:
        raise importlib.metadata.PackageNotFoundError("glasshouse")

    monkeypatch.setattr(doctor, "extras", unknown)
    monkeypatch.setattr("glasshouse.graph.rule.two_layers.kernels.kernel_folder", lambda: None)  # the user has none
    lines = CliRunner().invoke(app, ["doctor"]).output.splitlines()
    assert any(line.startswith("fault   extras: not known") for line in lines)
    assert any(line.startswith("fault   compiled kernels:") and "XDG_CACHE_HOME" in line for line in lines)
    assert lines[-1] == "2 of these must be fixed for some audits."


def test_extras_are_those_of_the_project_file_without_the_developers() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(extras()) == set(project["optional-dependencies"]) - {"dev", "docs"}
    assert extras()["boosting"] == ["catboost", "lightgbm", "xgboost"]


def test_a_container_s_limit_counts_where_it_is_less_than_the_machine(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    machine = doctor._memory(tmp_path / "none")
    assert machine is not None
    for text, wanted in (("1000\n", 1000), ("max\n", machine), (f"{10 * machine}\n", machine)):
        limit.write_text(text)
        assert doctor._memory(limit) == wanted
