from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from glasshouse_experiments.causes import CAUSES, cause_of
from glasshouse_experiments.cells import paper_rows
from glasshouse_experiments.claims import DOCS
from glasshouse_experiments.counting import ONE_CYCLE, TREE, Count, can_be_run, counted, counts_table, run_cells

RESULTS = TREE / "results"


def kept(folder: Path, name: str, dataset: str) -> Path:
    """The file of an experiment on a data set."""
    (folder / name).mkdir(exist_ok=True)
    return folder / name / f"{dataset}.csv"


def test_every_count_adds_up_and_no_cell_counts_twice() -> None:
    lines = [line.strip("|").split("|") for line in counts_table(RESULTS).splitlines()[2:]]
    counts = {cells[0].strip(): Count(*map(int, cells[1:])) for cells in lines}
    for count in counts.values():
        assert count.run == count.within + count.explained + count.unexplained
        assert count.run <= count.possible <= count.printed
    whole, _, *tables = counts.values()
    assert whole == Count(*map(sum, zip(*tables, strict=True)))
    assert whole.printed == len(paper_rows())


def test_the_counts_are_those_of_the_pages_of_the_experiments() -> None:
    """Counted another way: from the files of the data sets, row by row."""
    lines: dict[str, str] = {}
    for path in RESULTS.glob("*/*.csv"):
        if not path.parent.name.startswith(("beyond", "ablation", "roc", "authors")):
            trained_as_printed = path.with_name(f"{path.stem.removesuffix(ONE_CYCLE)}.csv")
            known = "" if trained_as_printed == path else trained_as_printed.read_text(encoding="utf-8")
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                name = ",".join(line.split(",")[:7])
                if f"{name}," not in known:
                    lines[f"{path} {name}"] = line.rsplit(",", 1)[1]
    dull = Counter(lines.values())
    found = Counter(row["verdict"] for row in run_cells(RESULTS))
    names = ("within 2 sd", "above", "below")
    assert [found[name] for name in names] == [dull[name] for name in names]


def test_each_cause_covers_a_cell_that_was_run_and_lies_outside() -> None:
    outside = [row for row in run_cells(RESULTS) if row["verdict"] != "within 2 sd"]
    used = [cause_of(row) for row in outside]
    unused = [cause for cause in CAUSES if cause not in used]
    assert not unused
    story = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert all(cause.why in " ".join(story.split()) for cause in used if cause), "the page gives the same reason"


def test_a_difference_counts_as_explained_only_if_a_cause_covers_it() -> None:
    row: dict[str, Any] = {"table": "thresholds", "dataset": "Cora", "mode": "online", "attack": "RMIA"}
    row["verdict"] = "above"
    rows = [row, row | {"attack": "BASE"}, row | {"verdict": "within 2 sd"}]
    assert counted(rows, rows) == Count(3, 3, 3, 1, 1, 1)


def test_every_cell_that_was_run_is_among_those_that_can_be_run() -> None:
    assert all(can_be_run(row) for row in run_cells(RESULTS))
    left_out = {row["dataset"] for row in paper_rows() if not can_be_run(row) and row["mode"] != "offline"}
    assert left_out == {"Flickr", "CIFAR-100"}


def test_a_machine_is_not_a_part_of_the_papers_cell(tmp_path: Path) -> None:
    head = "table,dataset,mode,K,setting,attack,metric,verdict\n"
    rows = [f"wall-clock-time,Pubmed,online,8,{machine},BASE,seconds,faster\n" for machine in ("2 cores", "one GPU")]
    kept(tmp_path, "wall-clock", "pubmed").write_text(head + "".join(rows))
    assert len(run_cells(tmp_path)) == 1


def test_cells_as_the_authors_compute_them_are_no_cells_of_ours_but_their_verdict_stands_beside(tmp_path: Path) -> None:
    head = "table,dataset,mode,K,setting,attack,metric,verdict\n"
    row = "thresholds,Cora,online,8,{},RMIA,threshold_at_fpr1,{}\n"
    kept(tmp_path, "thresholds", "cora").write_text(head + row.format("", "above"))
    kept(tmp_path, "authors", "cora").write_text(head + row.format("authors' program", "within 2 sd"))
    (cell,) = run_cells(tmp_path)
    assert (cell["verdict"], cell["authors"]) == ("above", "within 2 sd")
    assert cause_of(cell) is CAUSES[0]
    kept(tmp_path, "authors", "cora").write_text(head + row.format("authors' program", "below"))
    assert cause_of(run_cells(tmp_path)[0]) is CAUSES[1]


def test_models_trained_as_printed_count_before_those_of_one_cycle_whose_verdict_stands_beside(tmp_path: Path) -> None:
    head, row = "table,dataset,mode,K,setting,attack,metric,verdict\n", "iid,CIFAR-10,online,{},,LiRA,auc_pct,{}\n"
    kept(tmp_path, "iid", "cifar10").write_text(head + row.format(8, "below"))
    many = row.format(8, "within 2 sd") + row.format(32, "within 2 sd")
    kept(tmp_path, "iid", "cifar10-fast").write_text(head + many)
    few, more = run_cells(tmp_path)
    assert (few["K"], few["verdict"], few["cycle"], few["file"]) == ("8", "below", "within 2 sd", "cifar10")
    assert (more["K"], more["verdict"], more["cycle"], more["file"]) == ("32", "within 2 sd", "", "cifar10-fast")
    assert cause_of(few) is not None
