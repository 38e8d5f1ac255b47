"""Every example runs as it stands, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))

# Other people's libraries take seconds to import, so that each example is a fork of one process that has done it;
# ours is imported by the example.
SCRIPT = """
import os, runpy, sys
import scipy.stats, sklearn.ensemble, torch, torch_geometric.data
for line in sys.stdin:
    example, folder = line.split()
    child = os.fork()
    if not child:
        os.chdir(folder)
        for name, stream in (("out", 1), ("err", 2)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
        sys.argv, sys.path[0], code = [example], os.path.dirname(example), 1
        try:
            runpy.run_path(example, run_name="__main__")
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        sys.stdout.flush()
        os._exit(code)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def awake() -> Iterator[subprocess.Popen[str]]:
    """A process that runs an example in a child for each line "example folder", and writes how the child ended."""
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        yield process
        process.stdin.close()  # type: ignore[union-attr]


def test_there_are_five_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_its_table(
    example: Path, awake: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("example")
    assert awake.stdin is not None
    assert awake.stdout is not None
    awake.stdin.write(f"{example} {folder}\n")
    awake.stdin.flush()
    assert awake.stdout.readline() == "0\n", (folder / "err").read_text()
    assert "auc" in (folder / "out").read_text()
