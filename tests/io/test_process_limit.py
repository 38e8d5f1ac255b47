"""A command takes at most twice its limit on memory, whatever its files hold, and near the limit it still ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("torch_geometric")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such limit")

# one process that has imported everything forks a child for each command, and reads the child's peak from the system
SCRIPT = r"""
import dataclasses, json, resource, sys
from pathlib import Path
import numpy as np
import memory_bombs as bombs
from glasshouse.auditing import targets
from glasshouse.config import data

bombs.MOST_PROCESSOR = 20  # of a command that asks for ever
folder, limit = Path(sys.argv[1]), 150 * 2**20
kept = []

def told(about, ended, most):
    kept.append([about, dataclasses.asdict(ended), bombs.faults(ended, most=most)])

baseline = 0
for models, records in [(4, 40), (2, 1_000_000), (400, 20_000), (4, 4_000_000)]:
    shown = {"target_loss": np.zeros(records), "shadow_loss": np.zeros((models, records))}
    np.savez_compressed(folder / "e.npz", **shown, shadow_members=bombs.halves(models, records))
    del shown
    command = ("score", str(folder / "e.npz"), "-q", "-a", "base", "-a", "rmia")
    ended = bombs.in_child(command, memory="150MiB")
    baseline = baseline or ended.peak
    told(f"{models} models, {records} records", ended, baseline + 2 * limit)
random, members = np.random.default_rng(0), bombs.halves(8, 400)
shown = {"target_loss": random.exponential(size=400), "shadow_loss": random.exponential(size=(8, 400))}
np.savez(folder / "small.npz", **shown, shadow_members=members, members=members[0])
for memory in ("1MiB", "40MiB"):
    ended = bombs.in_child(("score", str(folder / "small.npz"), "-q", "-a", "quantile"), memory=memory)
    told(f"a limit of {memory}", ended, baseline + 2 * limit)
made = folder / "made"
for number in (3, 7):
    with bombs.emptied(made):
        bomb = bombs.in_child_made(bombs.KINDS[number], np.random.default_rng(number), made, 0.2)
        told(f"{bomb.kind}, {bomb.about}", bombs.in_child(bomb.arguments, memory="150MiB"), baseline + 2.5 * limit)

def hungry(function):
    def taking(*given, **named):
        np.empty(3 * 2**27)  # 3 GiB, of which nothing is used
        return function(*given, **named)
    return taking

(folder / "digits.yaml").write_text(
    "{data: {name: digits}, trainer: {kind: sklearn, estimator: DecisionTreeClassifier}, attacks: [base], shadows: 2}"
)
command = ("audit", str(folder / "digits.yaml"), "-q", "--overwrite", "--out", str(folder / "run"))
for step, owner, name in [("reads", data.DigitsData, "load"), ("trains", targets, "audit")]:
    true = getattr(owner, name)
    setattr(owner, name, hungry(true))
    for memory in (None, "1GiB"):
        told(f"an audit {step} 3 GiB with --memory {memory}", bombs.in_child(command, memory=memory), 2**40)
    setattr(owner, name, true)
print(json.dumps(kept))
"""

# an estimator that takes much in workers alone
HUNGRY = """
import multiprocessing
import numpy as np
from sklearn.tree import DecisionTreeClassifier
from glasshouse import SklearnTrainer
from glasshouse.io.limits import current_limit

class Hungry(DecisionTreeClassifier):
    def fit(self, x, y):
        if multiprocessing.current_process().name != "MainProcess":
            if current_limit() != 1100 * 2**20:
                raise ValueError("a worker has another limit on files")
            np.empty(3 * 2**27)
        return super().fit(x, y)

def trainer():
    return SklearnTrainer(estimator=Hungry())
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, dict[str, Any], list[str]]]:
    """Commands, how they ended, and what is wrong with it."""
    place = Path(__file__).parents[2] / "benchmarks" / "robustness"
    path = os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", SCRIPT, str(tmp_path_factory.mktemp("bombs"))],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "8", "OPENBLAS_NUM_THREADS": "8"},
    )
    found: list[tuple[str, dict[str, Any], list[str]]] = json.loads(done.stdout)
    return found


@linux
def test_small_files_that_hold_much_stay_within_twice_the_limit_or_are_refused(ended: list[Any]) -> None:
    assert [(about, faults) for about, _, faults in ended if "limit" not in about and faults] == []
    assert {how["code"] for about, how, _ in ended if "limit" not in about} == {0, 2}


@linux
def test_a_command_ends_where_libraries_get_no_memory_for_threads_and_buffers(ended: list[Any]) -> None:
    """OpenMP would end the process, and OpenBLAS would ask for ever."""
    assert [(about, how["said"]) for about, how, faults in ended if "limit" in about and faults] == []


@linux
def test_a_lack_of_memory_is_one_line(ended: list[Any]) -> None:
    refused = [how["said"] for _, how, _ in ended if how["code"] == 2]
    assert refused
    for said in refused:
        assert "limit" in said
        assert len(said.splitlines()) <= 2  # with the count of problems


@linux
def test_an_audit_is_bounded_while_it_reads_and_where_memory_is_given_while_it_trains(ended: list[Any]) -> None:
    codes = {about: how["code"] for about, how, _ in ended if about.startswith("an audit")}
    assert codes == {
        "an audit reads 3 GiB with --memory None": 2,
        "an audit reads 3 GiB with --memory 1GiB": 2,
        "an audit trains 3 GiB with --memory None": 0,
        "an audit trains 3 GiB with --memory 1GiB": 2,
    }


@linux
def test_each_worker_has_the_limits_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "hungry.py").write_text(HUNGRY)
    text = "{data: {name: digits}, trainer: {kind: python, factory: 'hungry:trainer'}, attacks: [base], shadows: 2}"
    (tmp_path / "audit.yaml").write_text(text)
    command = [sys.executable, "-P", "-m", "glasshouse", "audit", "audit.yaml", "-q", "--trust-code"]
    done = subprocess.run(  # noqa: S603
        [*command, "--workers", "2", "--memory", "1100MiB"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "MemoryError: Unable to allocate 3.00 GiB" in done.stderr
    assert len(done.stderr.splitlines()) <= 2
