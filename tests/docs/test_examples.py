"""Every example runs as it stands, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forked import Forks

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def test_there_are_five_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints_its_table(example: Path, forks: Forks, tmp_path: Path) -> None:
    done = forks.run(example, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "auc" in done.stdout
