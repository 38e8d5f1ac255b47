"""The commit of the source tree that made a figure."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import glasshouse
from glasshouse.io.files import write_file

__all__ = ["source_commit", "write_stamp"]

TREE = Path(__file__).resolve().parents[2]
STAMP = Path("runs") / "source.json"  # git ignores this folder
_FOLDERS = ("src", "experiments")


def source_commit(tree: Path = TREE) -> str:
    """The commit of the source tree that the code runs from, or ``"unknown"`` if there is none.

    If code was changed since, ``" with changes"`` follows. Other files do not count: the results themselves are written
    into the tree. A copy of the tree without its repository, on another machine, knows the commit from its stamp.

    Args:
        tree: root of the source tree; the one that holds this file by default.

    Example:
        >>> source_commit(Path("/nowhere"))
        'unknown'
    """
    # a repository around an installed package is not its source, and glasshouse may be installed from elsewhere
    if Path(glasshouse.__file__).resolve().parents[2] != tree.resolve():
        return "unknown"
    stamped = _stamped(tree)  # of a copy whose repository, if it has one, may be older than its code
    if not (tree / ".git").exists() or not stamped.endswith(("unknown", "with changes")):
        return stamped
    try:
        commit = _git(tree, "rev-parse", "HEAD")
        changed = _git(tree, "status", "--porcelain", "--", *_FOLDERS)
    except (OSError, subprocess.CalledProcessError):
        return _stamped(tree)
    return f"{commit} with changes" if changed else commit


def write_stamp(tree: Path = TREE) -> Path:
    """Write the commit, and a checksum of the code, into ``runs/source.json``, for a copy of the tree without ``.git``.

    ``python -m glasshouse_experiments.source_commit`` does it before the tree is copied.
    """
    told = {"commit": source_commit(tree), "code": _checksum(tree)}
    return write_file(tree / STAMP, json.dumps(told, indent=1) + "\n")


def _stamped(tree: Path) -> str:
    try:
        told = json.loads((tree / STAMP).read_text(encoding="utf-8"))
        commit, code = str(told["commit"]), told["code"]
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"
    return commit if code == _checksum(tree) or commit.endswith("with changes") else f"{commit} with changes"


def _checksum(tree: Path) -> str:
    """SHA-256 of every file of code, by its place in the tree."""
    found = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((tree / folder).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".csv", ".sh") and "__pycache__" not in path.parts:
                found.update(
                    f"{path.relative_to(tree).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
                )
    return found.hexdigest()


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


if __name__ == "__main__":
    write_stamp()
