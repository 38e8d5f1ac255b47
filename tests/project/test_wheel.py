"""The wheel and the source archive: what is in them, and that the wheel alone runs outside the source tree."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, as `python -m build` makes them."""
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel; other packages are those of this environment, without Glasshouse.

    A line of a .pth file makes a folder's packages visible, but not the .pth files in it: so the installation of the
    source tree, which is such a file, is not seen.
    """
    home = tmp_path_factory.mktemp("empty")
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / "bin" / "python"
    wheel = next(built.glob("*.whl"))
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)], cwd=home, check=True
    )
    site = next((home / "venv" / "lib").glob("python*/site-packages"))
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


def run(home: Path, *command: str) -> str:
    """A program of the environment, as a user runs it: not in the source tree, and told nothing about it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "GLASSHOUSE"))}
    done = subprocess.run(  # noqa: S603
        [str(home / "venv" / "bin" / command[0]), *command[1:]],
        cwd=home,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tracked(*under: str) -> set[str]:
    """Files of the repository that git knows, below some folders."""
    listed = subprocess.run(["git", "ls-files", "-z", *under], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    if listed.returncode != 0:
        pytest.skip("not a git repository, so what belongs to it is not known")
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    package = {name for name in names if not re.match(r"glasshouse-[\d.]+\.dist-info/", name)}
    assert tracked("src/glasshouse") <= {f"src/{name}" for name in package}
    assert {f"src/{name}" for name in package} <= tracked("src/glasshouse") | _new_files()
    for needed in ("report/templates/report.html.j2", "report/appendix.toml", "cli/starters/table/people.csv"):
        assert f"glasshouse/{needed}" in package
    assert "glasshouse/py.typed" in package


def test_the_description_on_a_package_index_has_no_link_that_is_relative(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        (name,) = [one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
    page = MarkdownIt("commonmark").render(str(metadata.get_payload()))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert [one.split(", ") for one in metadata.get_all("Project-URL") or []] == [
        list(one) for one in project["urls"].items()
    ]
    source, version = project["urls"]["Source"], project["version"]
    links = re.findall(r'href="([^"]+)"', page)
    (picture,) = re.findall(r'src="([^"]+)"', page)
    assert len(links) > 20
    for kind, link in [("raw", picture), *(("blob", link) for link in links)]:
        start = f"{source}/{kind}/v{version}/"
        assert link.startswith(start)
        assert (ROOT / link.removeprefix(start)).is_file()


@pytest.mark.parametrize(
    ("address", "ends"), [("https://glasshouse.example/source", 1), ("https://forge.org/glasshouse", 0)]
)
def test_a_release_is_refused_until_the_project_has_an_address(address: str, ends: int, tmp_path: Path) -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    (step,) = [one for one in jobs["build"]["steps"] if "addresses" in one.get("name", "")]
    (tmp_path / "pyproject.toml").write_text(f'[project.urls]\nSource = "{address}"\n')
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == ends
    assert ("Set [project.urls]" in done.stdout) == bool(ends)


def test_the_source_archive_holds_nothing_that_git_does_not_know(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert names - {"PKG-INFO"} <= tracked() | _new_files()
    assert {"README.md", "LICENSE", "pyproject.toml", "src/glasshouse/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("runs/", "site/", ".venv/", "data/", "shared/"))]


def _new_files() -> set[str]:
    """Files that are about to be added: neither known to git nor ignored."""
    return tracked("--others", "--exclude-standard")


def test_the_wheel_runs_the_embedded_default_and_says_what_to_do_next(installed: Path) -> None:
    """As `make audit` runs it: a synthetic graph, all attacks side by side; from the wheel alone, with fewer models."""
    found = "from importlib.util import find_spec; print(find_spec('glasshouse').origin)"
    assert Path(run(installed, "python", "-c", found).strip()).is_relative_to(installed / "venv")
    said = run(installed, "glasshouse", "audit", "--shadows", "4", "--out", "run")
    assert "synthetic" in said
    for name in ("base", "lira", "rmia", "classifier", "g-classifier", "g-base-mia", "g-stacked"):
        assert name in said
    assert "Next, audit your own model" in said
    metrics = json.loads((installed / "run" / "metrics.json").read_text())
    assert metrics["attacks"]["base"]["auc"] > 0.7
    assert metrics["attacks"]["base"]["rates"][0]["tpr"] > 0.08


def test_the_wheel_writes_a_starter_that_runs(installed: Path) -> None:
    """The other kinds are run by tests/cli/test_new.py. Both commands in one process: to start one takes seconds."""
    commands = [["new", "table", "mine"], ["audit", "mine/audit.yaml", "--quiet", "--out", "mine/run"]]
    call = f"from glasshouse.cli import app\nfor words in {commands}: app(words, standalone_mode=False)"
    said = run(installed, "python", "-c", call)
    assert "Written: mine/audit.yaml" in said
    assert "Report: " in said
    assert (installed / "mine" / "run" / "report.html").is_file()


def test_the_last_step_of_the_workflow_runs_with_the_wheel(installed: Path) -> None:
    """What the workflow does on every Python, after the installation: a command that is wrong there is seen here."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))["jobs"]
    lines = jobs["versions"]["steps"][-1]["run"].splitlines()
    assert [line.split()[0] for line in lines] == ["glasshouse", "python"]
    for line in lines:
        said = run(installed, *line.split())
    assert "Report: " in said
