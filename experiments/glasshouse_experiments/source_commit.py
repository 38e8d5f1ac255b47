"""The commit of the source tree that made a figure."""

from __future__ import annotations

import subprocess
from pathlib import Path

import glasshouse

__all__ = ["source_commit"]

TREE = Path(__file__).resolve().parents[2]


def source_commit(tree: Path = TREE) -> str:
    """The commit of the source tree that the code runs from, or ``"unknown"`` if there is none.

    If code was changed since, ``" with changes"`` follows. Other files do not count: the results themselves are written
    into the tree.

    Args:
        tree: root of the source tree; the one that holds this file by default.

    Example:
        >>> source_commit(Path("/nowhere"))
        'unknown'
    """
    # a repository around an installed package is not its source, and glasshouse may be installed from elsewhere
    if not (tree / ".git").exists() or Path(glasshouse.__file__).resolve().parents[2] != tree.resolve():
        return "unknown"
    try:
        commit = _git(tree, "rev-parse", "HEAD")
        changed = _git(tree, "status", "--porcelain", "--", "src", "experiments")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit} with changes" if changed else commit


def _git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
