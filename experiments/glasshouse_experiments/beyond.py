"""Beyond the paper: our own attacks beside all of the paper's, on the same targets and shadow models."""

from __future__ import annotations

import functools
from typing import Any

from joblib import cpu_count

from glasshouse.attacks import Attack, create
from glasshouse.evaluation.checks.calibration import binned, calibration_floor
from glasshouse.evidence import Mode
from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.iid import ATTACKS, OTHER_LIRA
from glasshouse_experiments.iid_bench import AttackOf, IidBench, cells_of
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.lineup import SAMPLERS, Lineup, gbase, modes, singles
from glasshouse_experiments.measures import at_threshold, collected, ranking
from glasshouse_experiments.rivals import against_rivals, rivals_page, rivals_picture
from glasshouse_experiments.samplers import NAMES
from glasshouse_experiments.settings import MISMATCHED

__all__ = ["beyond", "beyond_iid", "beyond_mismatch", "beyond_samplers"]

LIGHT = ("regressed", "bavaria", "shrunk-lira", "g-regressed")
ON_RECORDS = ("regressed", "bavaria", "shrunk-lira", "informia", "quantile", "stacked")
WANTED = 0.01
MANY = 128
ROUNDS_OF_MANY = (8, 4)  # every round asks 32 of them about each training set; a third one adds little there
FIRST_ROUND = (8,)  # in which targets of another kind are judged
WITH_MANY = ("cora", "citeseer")
SHOWN: dict[str, Any] = {"compare": against_rivals, "page": rivals_page, "overview": rivals_picture}


@experiment("beyond", heavy=("citeseer",), **SHOWN)
def beyond(bench: Bench) -> list[Cell]:
    """K = 8 online and 4 offline, and on small graphs K = 128 and 64."""
    cells = _against(bench, singles(8) | gbase(8, SAMPLERS), shadows=8, rounds=bench.setting.rounds)
    if bench.preset.most_shadows >= MANY and bench.setting.data in WITH_MANY:
        cells += _against(bench, singles(MANY) | gbase(MANY, {"G-BASE": "mia"}), shadows=MANY, rounds=ROUNDS_OF_MANY)
    return cells


@experiment("beyond-mismatch", settings=MISMATCHED, heavy=("citeseer",), **SHOWN)
def beyond_mismatch(bench: Bench) -> list[Cell]:
    """The same with shadow models of another architecture than the target's."""
    rivals = singles(8) | gbase(8, {"G-BASE (MIA)": "mia"})
    return _against(bench, rivals, shadows=8, rounds=FIRST_ROUND, table="beyond-mismatch")


def _against(
    bench: Bench, rivals: Lineup, *, shadows: int, rounds: tuple[int, ...], table: str = "beyond"
) -> list[Cell]:
    light: Lineup = {(mode, count, "", name): _made(name, mode) for mode, count in modes(shadows) for name in LIGHT}
    stacked: Lineup = {
        (mode, count, "", "g-stacked"): _made("g-stacked", mode, samples=rounds) for mode, count in modes(shadows)
    }
    name = bench.setting.paper_name
    cells = collected(bench.judged(rivals | light, shadows=shadows), ranking, table=table, dataset=name)
    found = list(bench.judged(stacked, shadows=shadows, fprs=(WANTED,)))
    return [
        *cells,
        *collected(found, ranking, table=table, dataset=name),
        *collected(found, _trust, table=table, dataset=name),
    ]


def _made(name: str, mode: Mode, **parameters: Any) -> Attack[Any]:
    return create(name, shared={"mode": mode, "jobs": cpu_count()}, **parameters)


def _trust(judged: Judged) -> dict[str, float]:
    """Whether its probabilities and its threshold are correct."""
    error = binned(judged.scores, judged.truth).error
    found = {"ece_pct": 100 * error, "ece_above_floor_pct": 100 * (error - calibration_floor(judged.scores))}
    for _, threshold, low, high in judged.thresholds:
        _, fpr = at_threshold(judged._replace(scores=judged.flag_scores), threshold)
        found |= {"fpr_at_threshold_pct": fpr, "threshold_kept_pct": 100.0 * (100 * low <= fpr <= 100 * high)}
    return found


@experiment("beyond", settings=RECORD_SETTINGS, bench=IidBench, compare=against_rivals, page=rivals_page)
def beyond_iid(bench: IidBench) -> list[Cell]:
    """All of the paper's pool sizes that the preset reaches, online and offline."""
    own: dict[str, AttackOf] = {name: functools.partial(_made, name) for name in ON_RECORDS}
    return cells_of(bench, ATTACKS | OTHER_LIRA | own, ranking, table="beyond-iid")


@experiment("beyond-samplers", heavy=("citeseer",))
def beyond_samplers(bench: Bench) -> list[Cell]:
    """The paper's five and ours, online and offline; scores with the paper's samplers are those of its own table."""
    rounds = bench.judged(gbase(8, NAMES | {"Stacked": "stacked"}))
    return collected(rounds, ranking, table="sampling-strategies", dataset=bench.setting.paper_name)
