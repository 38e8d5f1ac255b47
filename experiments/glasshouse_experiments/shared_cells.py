"""Cells of the samplers' table that Table 1 has already: the same attacks on the same targets, under other names.

The paper prints the same figures in both of its tables (`tests/experiments/test_shared_cells.py`). `reproduce` finds
the kept scores; where these are gone, ``python -m glasshouse_experiments.shared_cells`` copies the rows of Table 1, and
the provenance of the copy says so.
"""

from __future__ import annotations

import json
from pathlib import Path

from glasshouse.table import Table
from glasshouse_experiments.experiment import EXPERIMENTS
from glasshouse_experiments.kept_results import Kept
from glasshouse_experiments.lineup import SAMPLERS
from glasshouse_experiments.runner import reproduce
from glasshouse_experiments.samplers import NAMES

__all__ = ["NAMES_IN_BOTH", "share"]

TREE = Path(__file__).resolve().parents[2]
_TITLES = {sampler: title for title, sampler in NAMES.items()}
NAMES_IN_BOTH = {name: _TITLES[sampler] for name, sampler in SAMPLERS.items()}  # in Table 1, and in the samplers' table
_PARTS = {"": ("independent", "mia"), "gibbs": ("gibbs",)}  # by the samplers' table's parts


def share(results: Path) -> list[Path]:
    """Copy what the samplers' table lacks from Table 1; return the files that were written.

    Args:
        results: folder of all experiments.
    """
    written = []
    for source in (Kept(results / "table-1", dataset) for dataset in EXPERIMENTS.find("samplers")[0].datasets):
        if not source.exists:
            continue
        for part, samplers in _PARTS.items():
            titles = {_TITLES[sampler] for sampler in samplers}
            whole, own = (Kept(results / "samplers", source.dataset, name) for name in ("", part))
            if own.exists or (whole.exists and titles & {row["attack"] for row in whole.rows()}):
                continue
            rows = [row for row in source.rows() if NAMES_IN_BOTH.get(row["attack"]) in titles]
            renamed = [row | {"table": "sampling-strategies", "attack": NAMES_IN_BOTH[row["attack"]]} for row in rows]
            made = json.loads(source.path.with_suffix(".json").read_text(encoding="utf-8"))
            told = made | {"taken_from": f"table-1/{source.path.name}: the same attacks on the same targets"}
            own.write(Table({key: [row[key] for row in renamed] for key in renamed[0]}), made=told)
            written.append(own.path)
    return written


if __name__ == "__main__":
    share(TREE / "results")
    reproduce("samplers", preset="paper", datasets=["cora"], out=TREE / "results")  # writes the page of all data sets
