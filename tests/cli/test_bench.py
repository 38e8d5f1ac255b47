"""A user's own attack beside ours; the attack is the one that docs/own-attack.md shows."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import glasshouse.attacks.attack as rooms
from glasshouse.cli import app, research
from glasshouse.core.errors import InputError
from glasshouse.evaluation import AcrossTargets
from glasshouse.evaluation.intervals import Interval
from glasshouse.graph import GNNTrainer, citation_graph
from glasshouse.report.figures import FIGURES
from tests.manual import blocks

PAGE = [one for one in blocks() if one.page == "own-attack.md"]
ATTACK = next(one.text for one in PAGE if one.language == "python")
SMALL = ["--targets", "2", "--shadows", "4", "--quiet"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the attack of the manual; what is registered here is forgotten."""
    (tmp_path / "my_attack.py").write_text(ATTACK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rooms, "_ATTACKS", copy.deepcopy(rooms._ATTACKS))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments])


def test_an_attack_is_compared_in_a_table_for_the_terminal_one_for_a_paper_and_a_picture(desk: Path) -> None:
    done = run("my_attack.py", "--on", "digits", "-a", "base", "-a", "loss", *SMALL)
    assert done.exit_code == 0, done.exception
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split(" 0.")[0].strip() for line in lines[2:5]} == {"> gap", "base", "loss"}
    aucs = [float(re.findall(r"(\d\.\d+) ±", line)[0]) for line in lines[2:5]]
    assert aucs == sorted(aucs, reverse=True)
    table = (desk / "runs" / "bench" / "bench.tex").read_text()
    assert table.count(r"\mathbf") >= table.count("r", table.index("{l"), table.index("}", table.index("{l"))) == 2
    assert all(word in table for word in (r"\toprule", r"\cmidrule(lr){2-3}", r"TPR at 1 \% FPR (\%)", r"\bottomrule"))
    picture = (desk / "runs" / "bench" / "bench.svg").read_text()
    assert "var(" not in picture
    drawn = ET.fromstring(picture)  # noqa: S314 (our own)
    curves = [one for one in drawn.iter() if one.get("class", "").startswith("curve")]
    assert len(curves) == 3 + 3  # in the picture and in its legend


def test_attacks_on_records_are_compared_on_a_graph_too(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = citation_graph(nodes=240, classes=3, seed=0), GNNTrainer(hidden=8, epochs=3, device="cpu")
    known = copy.deepcopy(research.BENCHES)
    known.add("graph", research.Bench("a small graph, GCN", lambda: small))
    monkeypatch.setattr(research, "BENCHES", known)
    done = run("my_attack.py", "--on", "graph", "-a", "base", *SMALL)
    assert done.exit_code == 0, done.exception
    assert "a small graph, GCN: means over 2 targets" in done.output
    assert "> gap" in done.output


def test_ours_are_all_that_can_use_the_pool() -> None:
    records = research.rivals(graph=False, shadows=8)
    assert {"stacked", "lira", "loss"} <= set(records)
    assert not {"best", "public-quantile", "trace", "g-base"} & set(records)
    assert set(research.rivals(graph=True, shadows=8)) - set(records) == {
        "g-base",
        "g-base-tempered",
        "g-regressed",
        "g-stacked",
        "g-classifier",
    }


def test_the_page_shows_all_of_ours_and_the_example() -> None:
    """Its table is from the real command, which takes minutes."""
    shown = next(one.text for one in PAGE if one.language == "text")
    first, second = shown.split("citation graph, GCN: ")
    for part, graph in ((first, False), (second, True)):
        names = re.findall(r"^(?:  |> )([\w-]+) +0\.\d+ ±", part, flags=re.MULTILINE)
        assert {name.removesuffix("-mia") for name in names} == {"gap", *research.rivals(graph=graph, shadows=8)}


def test_half_of_an_interval_is_not_cut_off_where_the_interval_is() -> None:
    wide = AcrossTargets(mean=0.9, std=0.1, targets=2, interval=Interval(0.0, 1.0))
    assert research._cell(FIGURES["auc"], wide, " ± ") == "0.900 ± 0.898"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no such file of Python"),
        ("x = 1\n", "registers no attack under a new name"),
        ("import nothing_of_this_name\n", "No module named 'nothing_of_this_name' ("),
    ],
)
def test_a_file_without_an_attack_is_one_line(desk: Path, text: str | None, said: str) -> None:
    if text is not None:
        (desk / "other.py").write_text(text)
    done = run("other.py", *SMALL)
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)
    assert not (desk / "runs").exists()


def test_an_unknown_benchmark_is_answered_with_the_known_ones(desk: Path) -> None:
    assert "Known: digits, graph" in str(run("my_attack.py", "--on", "cora", *SMALL).exception)
