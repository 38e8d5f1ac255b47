"""Beyond the paper on i.i.d. data: our own attacks beside the paper's, on the same targets and shadow models."""

from __future__ import annotations

import functools

from joblib import cpu_count

from glasshouse.attacks import Attack, create
from glasshouse.evidence import Mode
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.iid import ATTACKS, OTHER_LIRA
from glasshouse_experiments.iid_bench import AttackOf, IidBench, cells_of
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.measures import ranking
from glasshouse_experiments.rivals import against_rivals, rivals_page

__all__ = ["beyond_iid"]

LIGHT = ("regressed", "bavaria", "shrunk-lira", "informia", "quantile", "stacked")


@experiment("beyond", settings=RECORD_SETTINGS, bench=IidBench, compare=against_rivals, page=rivals_page)
def beyond_iid(bench: IidBench) -> list[Cell]:
    """All of the paper's pool sizes that the preset reaches, online and offline."""
    own: dict[str, AttackOf] = {name: functools.partial(_made, name) for name in LIGHT}
    return cells_of(bench, ATTACKS | OTHER_LIRA | own, ranking, table="beyond-iid")


def _made(name: str, mode: Mode) -> Attack:
    return create(name, shared={"mode": mode, "jobs": cpu_count()})
