"""benchmarks/paper/whole_run.py on made-up sittings."""

from __future__ import annotations

import json
from pathlib import Path

from tests.benchmarks.scripts import benchmark


def written(folder: Path, job: str, seconds: float) -> None:
    path = folder / f"{job}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"seconds": seconds, "training_seconds": seconds / 2, "commit": "abcdef0123", "machine": "a GPU"}
    path.write_text(json.dumps(told))
    path.with_suffix(".csv").write_text("figures")


def test_sittings_add_up_and_the_next_one_goes_on_from_what_is_finished(tmp_path: Path) -> None:
    whole_run = benchmark("whole_run")
    jobs = whole_run.wanted()
    assert {"table-1/amazon-photo-many", "wall-clock/pubmed-gpu", "dp-bound/digits"} <= set(jobs)
    assert not [job for job in jobs if job.endswith("-cpu")]
    results, second = tmp_path / "results", "table-1/amazon-photo-many"
    written(results, "accuracy/cora", 10.0)
    first = whole_run.sitting(results, seconds=600.0, how="2 lanes", before=[])
    written(results, second, 40.0)
    both = [first, whole_run.sitting(results, seconds=400.0, how="3 lanes", before=[first])]
    assert [list(one["tables"]) for one in both] == [["accuracy/cora"], [second]]
    text = whole_run.page(both)
    assert "in 2 sittings of 1000 s in all: 2 of " in text
    assert "| 2 | 400 | 3 lanes | 1 | abcdef0 |" in text
    assert "| amazon-photo | 1 | " in text
    assert " | 40 | 20 |" in text
    left = text.splitlines()[-1]
    assert left.startswith("Left: accuracy/citeseer, ")
    assert second not in left
    assert "cifar10" not in left
    assert whole_run.begin(tmp_path / "next", results, both) == 4
    assert (tmp_path / "next" / f"{second}.csv").read_text() == "figures"
