from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import glasshouse
from glasshouse_experiments.source_commit import STAMP, source_commit, write_stamp


def git(tree: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    command = ["git", "-C", str(tree), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with one commit."""
    package = tmp_path / "src" / "glasshouse"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "First")
    monkeypatch.setattr(glasshouse, "__file__", str(package / "__init__.py"))
    return tmp_path


def test_the_commit_is_that_of_the_code_and_changes_of_the_code_are_said(tree: Path) -> None:
    commit = git(tree, "rev-parse", "HEAD")
    assert source_commit(tree) == commit
    (tree / "results.csv").write_text("what a run writes")
    assert source_commit(tree) == commit
    (tree / "src" / "glasshouse" / "__init__.py").write_text("changed = True")
    assert source_commit(tree) == f"{commit} with changes"


def test_code_from_elsewhere_has_no_commit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment inside another project's repository is not its source."""
    monkeypatch.setattr(glasshouse, "__file__", str(tree / ".venv" / "lib" / "glasshouse" / "__init__.py"))
    assert source_commit(tree) == "unknown"


def test_a_repository_that_git_cannot_read_is_unknown(tree: Path) -> None:
    (tree / ".git" / "HEAD").write_text("damaged")
    assert source_commit(tree) == "unknown"


def test_a_copy_without_its_repository_knows_its_commit_from_the_stamp(tree: Path) -> None:
    commit = git(tree, "rev-parse", "HEAD")
    write_stamp(tree)
    (tree / ".git").rename(tree / "elsewhere")
    assert source_commit(tree) == commit
    code = tree / "src" / "glasshouse" / "__init__.py"
    code.write_text("changed = True")
    assert source_commit(tree) == f"{commit} with changes"
    (tree / STAMP).write_text("damaged")
    assert source_commit(tree) == "unknown"
