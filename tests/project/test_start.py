"""What starting costs: nothing heavy is imported before it is used, and torch only where a model or data needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import glasshouse
import glasshouse.training
from glasshouse.evidence import Evidence, write_evidence

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "sklearn", "scipy", "pandas", "pydantic", "joblib", "numba", "ray")
# what Python imports first in every process, workers too
NO_TORCH = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
FOREST = """
import sys
from pathlib import Path
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from glasshouse import Attacker, LabelOnly, LocalProcesses, Population, audit, complementary_halves
from glasshouse.config import read_audit_file, run_audit_file

random = np.random.default_rng(0)
x = random.standard_normal((120, 5))
population = Population(x, (x[:, 0] + random.standard_normal(120) > 0).astype(int))
members = complementary_halves(120, models=2, seed=0)[0]
forest = RandomForestClassifier(n_estimators=8, random_state=0).fit(x[members], population.y[members])
labels = Attacker(query=LabelOnly(votes=4))
for more in ({"pool": "pool"}, {"attacker": labels}, {"compute": LocalProcesses(workers=1)}):
    result = audit(population, model=forest, members=members, trainer=forest, shadows=4, progress=False, **more)
run_audit_file(read_audit_file("audit.yaml"), folder=Path())
print(result.save("run"), "torch" in sys.modules)
"""
COMMANDS = """
import json, sys
from glasshouse.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        print(f"ended with {end.code}", flush=True)
"""
LATE = """
import sys
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from glasshouse import Population, SklearnTrainer

class Late(ClassifierMixin, BaseEstimator):
    def fit(self, x, y):
        import torch
        self.classes_, self.drawn_ = np.unique(y), torch.rand(1).item()
        return self
    def predict_proba(self, x):
        return np.full((len(x), 2), 0.5)

population, everyone = Population(np.zeros((4, 1)), [0, 1, 0, 1]), np.ones(4, dtype=bool)
before = "torch" in sys.modules
first, again, other = (SklearnTrainer(estimator=Late())(population, everyone, seed).drawn_ for seed in (0, 0, 1))
print(before, "torch" in sys.modules, first == again, first == other)
"""


def table(folder: Path) -> None:
    """A table, and an audit file for a forest on it."""
    (folder / "people.csv").write_text("age,income\n" + "".join(f"{row % 37},{row % 2}\n" for row in range(100)))
    (folder / "audit.yaml").write_text(
        "data: {name: file, path: people.csv, label: income}\nshadows: 4\nattacks: [base]\n"
        "trainer: {kind: sklearn, estimator: RandomForestClassifier, parameters: {n_estimators: 5}}\n"
    )


def run(folder: Path, *words: str, torch: bool = True) -> subprocess.CompletedProcess[str]:
    """A fresh process in a folder, in which torch may be missing."""
    first = folder / "first"
    first.mkdir(exist_ok=True)
    if not torch:
        (first / "sitecustomize.py").write_text(NO_TORCH)
    environment = os.environ | {"PYTHONPATH": f"{first}{os.pathsep}{ROOT / 'src'}", "OMP_NUM_THREADS": "1"}
    return subprocess.run(  # noqa: S603 (our own command)
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"]], ids=["import", "help", "version"])
def test_nothing_heavy_is_imported_before_it_is_used(words: list[str], tmp_path: Path) -> None:
    called = f"sys.argv[1:] = {words}\nfrom glasshouse.cli import main\ntry: main()\nexcept SystemExit: pass"
    code = (
        f"import sys, glasshouse\n{called if words else ''}\nprint([name for name in {HEAVY} if name in sys.modules])"
    )
    done = run(tmp_path, "-c", code)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize("torch", [False, True], ids=["missing", "installed"])
def test_a_forest_is_audited_and_its_report_saved_without_torch(torch: bool, tmp_path: Path) -> None:
    table(tmp_path)
    done = run(tmp_path, "-c", FOREST, torch=torch)
    assert done.stdout == "run False\n", done.stderr
    assert (tmp_path / "run" / "report.html").is_file()
    assert len(list((tmp_path / "pool").glob("**/*.safetensors"))) == 4


def test_commands_on_records_and_saved_losses_run_without_torch(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    shadow_members = random.random((6, 200)) < 0.5
    shadow_loss, target_loss = random.exponential(size=(6, 200)), random.exponential(size=200)
    evidence = Evidence(target_loss=target_loss, shadow_loss=shadow_loss, shadow_members=shadow_members)
    write_evidence(tmp_path / "losses.npz", evidence, members=random.random(200) < 0.5)
    table(tmp_path)
    commands = ("score losses.npz --json", "audit audit.yaml --out run", "report run", "doctor")
    done = run(tmp_path, "-c", COMMANDS, json.dumps([one.split() for one in commands]), torch=False)
    scored, *others = done.stdout.split("ended with 0\n")
    assert "stacked" in json.loads(scored)["attacks"], done.stderr
    assert len(others) == len(commands), done.stdout + done.stderr
    assert "since torch is not installed" in others[2]


def test_python_runs_the_package_as_the_command_does(tmp_path: Path) -> None:
    assert run(tmp_path, "-m", "glasshouse", "--version").stdout == f"glasshouse {glasshouse.__version__}\n"
    done = run(tmp_path, "-m", "glasshouse", "verify", "nothing")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "1 problem, nothing was run.")


def test_an_estimator_that_imports_torch_when_it_is_fitted_follows_the_seed_from_the_first_fit_on(
    tmp_path: Path,
) -> None:
    done = run(tmp_path, "-c", LATE)
    assert done.stdout == "False True True False\n", done.stderr


def test_what_needs_torch_says_in_one_line_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text("data: {name: digits}\ntrainer: {kind: mlp}\n")
    script = f"{COMMANDS}\nprint('next', file=sys.stderr)\nfrom glasshouse import TorchTrainer"
    done = run(tmp_path, "-c", script, '[["audit", "audit.yaml"]]', torch=False)
    command, code = done.stderr.split("next\n")
    for told in (command, code):
        assert "needs torch, which is not installed. Run: pip install 'glasshouse[torch]'" in told


@pytest.mark.parametrize("package", [glasshouse, glasshouse.training])
def test_a_package_has_all_names_that_it_exports_and_no_other(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    assert set(names) <= set(dir(package))
    assert all(getattr(package, name) is not None for name in names)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = package.no_such_name  # type: ignore[attr-defined]


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert glasshouse.__version__ == project["version"]
    assert callable(glasshouse.audit), "the function, not a module"
