"""What `make quick` runs: the tests of the modules and rooms that differ from a commit.

``python -m tests.changed [COMMIT]`` prints the arguments for pytest, nothing if no tests belong to what changed. The
commit is ``HEAD`` by default. The whole suite is `make test`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
SOURCE = PurePosixPath("src/glasshouse")


def changed_files(commit: str) -> list[str]:
    """Files that differ from the commit, and those that git does not know yet."""
    commands = (["git", "diff", "--name-only", commit], ["git", "ls-files", "--others", "--exclude-standard"])
    found = [subprocess.run(one, cwd=ROOT, capture_output=True, text=True, check=True) for one in commands]  # noqa: S603
    return [name for one in found for name in one.stdout.splitlines()]


def paths_for(files: Iterable[str], root: Path = ROOT) -> list[str]:
    """The tests of changed files: a module's own file and doctests, else those of its room; a changed test itself.

    >>> paths_for(["src/glasshouse/attacks/base.py", "README.md"])
    ['src/glasshouse/attacks/base.py', 'tests/attacks/test_base.py']
    """
    chosen = set()
    for file in map(PurePosixPath, files):
        if not (root / file).exists() or file.suffix != ".py":
            continue
        if file.is_relative_to("tests") and file.name.startswith("test_"):
            chosen.add(str(file))
        if file.is_relative_to(SOURCE):
            chosen.add(str(file))
            room = PurePosixPath("tests") / file.relative_to(SOURCE).parent
            own = room / f"test_{file.name}"
            while not (root / own).exists() and not (root / room).is_dir():
                room = room.parent
            chosen.add(str(own if (root / own).exists() else room))
    rooms = [one for one in chosen if (root / one).is_dir()]
    return sorted(one for one in chosen if not any(one != room and one.startswith(f"{room}/") for room in rooms))


if __name__ == "__main__":
    sys.stdout.write(" ".join(paths_for(changed_files((sys.argv[1:] or ["HEAD"])[0]))) + "\n")
