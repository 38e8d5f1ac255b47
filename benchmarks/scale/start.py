"""From nothing to a first verdict: ``python benchmarks/scale/start.py [--against TREE]``.

The wheel is built and installed by pip, without its cache, into an empty environment; there the README's lines run as
they stand, in an empty folder. Then the commands that a user waits for, in fresh processes after one that compiled: the
smallest processor time of seven counts, since other work on the machine only adds to it. TREE is a checkout of another
version, whose installation and start are measured too.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

HERE = Path(__file__).parents[2]
STARTS = {
    "`glasshouse --help`": ("glasshouse", "--help"),
    "`glasshouse --version`": ("glasshouse", "--version"),
    "`import glasshouse`": ("python", "-c", "import glasshouse"),
    "python alone": ("python", "-c", "pass"),
}
REPEATS = 7


def spent(command: list[str], folder: Path) -> tuple[float, float, str]:
    """Seconds by the clock and of the processor that a command takes, and what it prints."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GLASSHOUSE"))}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=mine, capture_output=True, text=True, check=False)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command[:4])}: {done.stderr[-2000:]}")
    return ended - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def megabytes(folder: Path) -> float:
    """The size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def readme_lines(tree: Path) -> str:
    """The Python block of the README."""
    found = re.search(r"^```python\n(.*?)^```$", (tree / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def measured(tree: Path, *, verdict: bool) -> list[tuple[str, str]]:
    """Rows of the table for one version: what is measured, and its figure."""
    with tempfile.TemporaryDirectory() as place:
        home, began = Path(place), time.perf_counter()
        (home / "empty").mkdir()
        bin_ = home / "venv" / "bin"
        spent([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home)], tree)
        venv.create(home / "venv", with_pip=True)
        bare, (wheel,) = megabytes(home / "venv"), home.glob("*.whl")
        made = time.perf_counter() - began
        clock, work, _ = spent([str(bin_ / "pip"), "install", "--no-cache-dir", "--quiet", str(wheel)], home)
        listed = spent([str(bin_ / "pip"), "list", "--format=freeze"], home)[2].split()
        rows = [
            ("wheel", f"{wheel.stat().st_size / 1e6:.2f} MB"),
            ("packages that `pip install` brings", f"{len(listed) - 2}"),  # without pip and setuptools
            ("torch among them", "yes" if any(one.startswith("torch==") for one in listed) else "no"),
            ("installed", f"{megabytes(home / 'venv') - bare:.0f} MB"),
            ("build and empty environment", f"{made:.1f} s"),
            ("`pip install`, download included", f"{clock:.1f} s ({work:.1f} s of processor)"),
        ]
        if verdict:
            (home / "first.py").write_text(readme_lines(tree))
            seconds, used, said = spent([str(bin_ / "python"), str(home / "first.py")], home / "empty")
            assert "High exposure" in said
            assert (home / "empty" / "runs" / "digits" / "report.html").is_file()
            rows += [
                ("the README's lines, report included", f"{seconds:.1f} s ({used:.1f} s of processor)"),
                ("**first verdict, installation included**", f"**{made + clock + seconds:.0f} s** (limit 180 s)"),
            ]
        for name, command in STARTS.items():
            start = [str(bin_ / command[0]), *command[1:]]
            spent(start, home)
            rows.append((name, f"{min(spent(start, home)[1] for _ in range(REPEATS)):.3f} s of processor"))
    return rows


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    tree = parser.parse_args().against
    commit = "this version"
    columns = {commit: dict(measured(HERE, verdict=True))}
    if tree is not None:
        described = subprocess.run(
            ["git", "rev-parse", "--short=7", "HEAD"], cwd=tree, capture_output=True, text=True, check=True
        )
        columns[described.stdout.strip()] = dict(measured(tree, verdict=False))
    print("# From nothing to a first verdict\n")
    print(f"`python benchmarks/scale/start.py`: Python {platform.python_version()}, {os.cpu_count()} cores.")
    print("A version that needs torch gets the build of PyPI, which brings CUDA.\n")
    print(f"| | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    for name in columns[commit]:
        print(f"| {name} | {' | '.join(column.get(name, '–') for column in columns.values())} |")


if __name__ == "__main__":
    main()
