"""Every command and code block of README and manual works as written, on small data.

A new block or command fails here until it runs, or stands in the short list of those that cannot, with the reason.
"""

from __future__ import annotations

import dataclasses
import functools
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data
from typer.testing import CliRunner

import glasshouse
import glasshouse_experiments as experiments
from glasshouse import Population, SklearnTrainer, audit_evidence, write_evidence
from glasshouse.cli import app
from glasshouse.compute import ThisProcess, chosen_compute
from glasshouse.core.registry import Registry
from glasshouse.core.table import Table
from glasshouse.graph import GNNTrainer, build_gnn, citation_graph
from glasshouse.report.redaction import read_or_make_key
from glasshouse_experiments.settings import PRESETS, Preset
from tests.config.made_up_adult import adult_rows
from tests.graph.molecules import molecules
from tests.manual import ROOT, TUTORIALS, blocks, commands_in_sentences, shell_lines
from tests.strategies import gaussian_evidence

CANNOT_RUN = {  # line -> why
    "make audit": "installs into .venv; the command that it runs afterwards is tested as `glasshouse audit`",
    "make test": "is this very test run",
    "glasshouse bench my_attack.py": "takes minutes; tests/cli/test_bench.py runs it with fewer targets",
    **dict.fromkeys(
        ("pip install glasshouse", "pip install 'glasshouse[torch]'", "pip install 'glasshouse[graph]'"),
        "installs from the network; tests/project/test_wheel.py installs the wheel",
    ),
}
SMALLER = {  # in the manual -> here
    "RUN RUN…": "RUN OTHER",  # two different runs
    "shadows=128": "shadows=4",
    "shadows=8": "shadows=4",
    "epochs=100": "epochs=3",
    "workers=4": "workers=1",  # each takes seconds to start; the README has two of them
    "--workers 4": "--workers 1",
    "--workers 2": "--workers 1",  # with workers it runs in tests/cli/test_commands.py
    "n_estimators: 200": "n_estimators: 5",
}
BLOCKS = [one for one in blocks() if one.page not in TUTORIALS]


def small(text: str) -> str:
    for there, here in SMALLER.items():
        text = text.replace(there, here)
    return text


@functools.cache
def tiny_graph() -> Any:
    return citation_graph(nodes=120, classes=3, words=60, topic_words=20, seed=0)


@functools.cache
def people() -> str:
    """A table of 240 persons as users have it: ids, numbers, a column of True and False, labels, members."""
    source = np.random.default_rng(0)
    rows = ["person,age,hours,married,income,trained_on"]
    for number in range(240):
        age, hours, married = source.normal(40, 12), source.normal(38, 9), bool(source.random() < 0.5)
        income = "high" if age + hours + 8 * source.normal() > 78 else "low"
        rows.append(f"p{number},{age:.2f},{hours:.2f},{married},{income},{'yes' if number % 2 else 'no'}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the manual names."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "people.csv").write_text(people())
    (folder / "adult.data").write_text(adult_rows())
    records = "data: {name: file, path: people.csv, label: income, id: person, member: trained_on}\n"
    short = "trainer: {kind: sklearn, estimator: LogisticRegression}\nattacks: [base]\nshadows: 4\n"
    for name in ("AUDIT.yaml", "audit.yaml"):
        (folder / name).write_text(records + short)
    evidence, members = gaussian_evidence(records=200, models=4, shift=2.0, seed=0)
    for file in ("EVIDENCE.npz", "losses.npz"):
        write_evidence(folder / file, evidence, members=members)
    read_or_make_key(folder / "RUN.key")
    (folder / "ids.txt").write_text("p7\np8\n")
    (folder / "risk.yaml").write_text("limits: [{figure: auc, most: 1.0}]\n")  # that every run keeps
    for run in ("RUN", "OTHER", "runs/one"):
        found = audit_evidence(evidence, members=members, attacks=["base"], title=run)
        context = dataclasses.replace(found.context, settings={**found.context.settings, "audit_file": "audit.yaml"})
        dataclasses.replace(found, context=context).save(folder / run)
    return folder


@pytest.fixture
def desk(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these files to work in; named graphs are tiny, and a cluster is this process."""
    folder = shutil.copytree(files, tmp_path / "desk")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GLASSHOUSE_DATA", str(folder))  # where the manual says that graphs by name are

    def load(name: str, **of_a_table: Any) -> Data:
        assert name in ("synthetic", "cora"), f"give {name} a small stand-in"
        return tiny_graph()

    for user in ("glasshouse.graph.load_graph", "glasshouse_experiments.bench.experiment_graph"):
        monkeypatch.setattr(user, load)
    monkeypatch.setattr(
        "glasshouse.cli.audit.chosen_compute",
        lambda *, workers, cluster, gpus: ThisProcess() if cluster else chosen_compute(workers=workers, gpus=gpus),
    )
    presets: Registry[Preset] = Registry("a preset")
    for name in ("quick", "paper"):
        presets.add(name, Preset(targets=1, datasets=("synthetic",), epochs=0.02, most_shadows=8))
    monkeypatch.setattr("glasshouse_experiments.jobs.PRESETS", presets)
    monkeypatch.setattr("glasshouse_experiments.reproduce_all", lambda **options: [("table-1", _reproduce(**options))])
    monkeypatch.setattr("glasshouse_experiments.reproduce", _reproduce)
    return folder


_MADE: list[Table] = []


def _reproduce(name: str = "table-1", *, preset: str, part: str | None = None, **options: Any) -> Table:
    """Table 1 on a made-up graph, once; other experiments are only looked up here, and run by tests/experiments."""
    found = experiments.EXPERIMENTS.find(name)
    assert part in (None, "first", *(one.part.name for one in found))
    PRESETS.find(preset)  # all presets are the same on this desk
    if not _MADE:
        plain = {option: value for option, value in options.items() if option not in ("datasets", "workers", "lanes")}
        _MADE.append(experiments.runner.reproduce("table-1", preset=preset, **plain))
    return _MADE[0]


def run(command: str) -> str:
    """A command line of ours in this process; it must end well."""
    program, *arguments = shlex.split(small(command))
    assert program == "glasshouse", f"say how {command!r} is run, or why it cannot be"
    done = CliRunner().invoke(app, arguments)
    well = (0, 3, 4) if arguments[0] == "check" else (0,)  # a judgement of the made-up run
    assert done.exit_code in well, f"{command}: {done.exception or done.output}"
    return done.output


@pytest.mark.parametrize("command", [line for line in shell_lines() if line not in CANNOT_RUN])
def test_a_command_of_a_shell_block_runs(command: str, desk: Path) -> None:
    assert run(command)


@pytest.mark.parametrize("command", [one for one in commands_in_sentences() if one not in shell_lines()])
def test_a_command_in_a_sentence_runs(command: str, desk: Path) -> None:
    """Those of shell blocks too are run above.

    Where only the command's name is mentioned, as in "`glasshouse report` makes the page again", it must exist.
    """
    bare = command.split()[1:] in (["report"], ["compare"], ["score"], ["reproduce"], ["new"], ["new", "table"])
    assert run(f"{command} --help" if bare else command)


def test_what_cannot_be_run_is_in_the_manual_and_has_its_target() -> None:
    lines = shell_lines()
    for line in CANNOT_RUN:
        assert line in lines, f"{line!r} is no longer in the manual; take it off the list"
        if line.startswith("make "):
            assert f"\n{line.removeprefix('make ')}:" in (ROOT / "Makefile").read_text()
    whole = "".join(block.text for block in BLOCKS) + "\n".join(lines)
    for there in SMALLER:
        assert there in whole, f"{there!r} is no longer in the manual; take it off the list"


def test_every_block_is_of_a_language_that_is_run_here() -> None:
    strange = [block.name for block in BLOCKS if block.language not in ("sh", "python", "yaml", "text")]
    assert not strange, f"say how these are run: {strange}"


@pytest.mark.parametrize("block", [one for one in BLOCKS if one.language == "yaml"], ids=lambda block: block.name)
def test_an_audit_file_of_the_manual_runs(block: Any, desk: Path) -> None:
    if block.text.startswith("--8<-- "):  # run by tests/report/test_policy.py
        assert block.text.split('"')[1] == "examples/release/risk.yaml"
        return
    (desk / "mine.yaml").write_text(small(block.text))
    assert "Report: " in run("glasshouse audit mine.yaml --out mine --quiet")


def names_for(text: str) -> dict[str, Any]:
    """What a block of Python takes for granted; each block gets no more than its own page speaks of."""
    source = np.random.default_rng(0)
    x = source.normal(size=(240, 4)).astype(np.float32)
    y = (x[:, 0] + source.normal(size=240) > 0).astype(int)
    members = np.arange(240) % 2 == 0
    classifier = LogisticRegression()
    population, trainer = Population(x, y), SklearnTrainer(estimator=classifier)
    model = LogisticRegression().fit(x[members], y[members])
    known: dict[str, Any] = {"x": x, "y": y, "members": members, "my_classifier": classifier, "my_model": model}
    if "GNNTrainer" in text:
        data, mask = tiny_graph(), torch.arange(120) % 2 == 0
        shape = {"features": data.num_features, "hidden": 8, "classes": int(data.y.max()) + 1}
        fresh = functools.partial(build_gnn, "gcn", **shape)
        mine = GNNTrainer(model=fresh, epochs=5, device="cpu")(data, mask.numpy(), 0)
        return {"data": data, "my_gnn": mine, "MyGNN": fresh, "mask": mask}
    if "GraphClassifierTrainer" in text:
        return {"graphs": molecules(240)}
    if "result." in text:
        return {
            "result": glasshouse.audit(
                population, model=model, members=members, trainer=trainer, shadows=4, attacks=["base"]
            )
        }
    return known | ({} if "population = " in text else {"model": model, "population": population, "trainer": trainer})


# the examples of bring.md need heavy libraries, and are run by tests/docs/test_bring.py; those of extending.md register
# things, and are run by tests/project/test_plugins.py in a process of their own; that of own-attack.md is run by
# tests/cli/test_bench.py; the README's is run alone by tests/docs/test_readme.py, and must print what the page shows
ELSEWHERE = ("bring.md", "extending.md", "own-attack.md", "README.md")
PYTHON = [one for one in BLOCKS if one.language == "python" and one.page not in ELSEWHERE]


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.name)
def test_a_block_of_python_runs(block: Any, desk: Path) -> None:
    """An example that is shown whole is run by tests/docs/test_examples.py, in a process of its own."""
    if block.text.startswith("--8<-- "):
        assert (ROOT / block.text.split('"')[1]).is_file()
        assert block.text.split('"')[1].startswith("examples/")
        return
    exec(compile(small(block.text), block.name, "exec"), names_for(block.text))  # noqa: S102 (our own manual)
