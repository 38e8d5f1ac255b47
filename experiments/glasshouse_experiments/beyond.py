"""Beyond the paper: our own attacks beside all of the paper's, on the same targets and shadow models."""

from __future__ import annotations

from typing import Any

from joblib import cpu_count

from glasshouse.attacks import Attack, create
from glasshouse.evaluation.checks.calibration import binned, calibration_floor
from glasshouse.evidence import Mode
from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import SAMPLERS, Lineup, gbase, modes, singles
from glasshouse_experiments.measures import at_threshold, collected, ranking
from glasshouse_experiments.rivals import against_rivals, rivals_page
from glasshouse_experiments.rivals_picture import rivals_picture
from glasshouse_experiments.settings import MISMATCHED

__all__ = ["beyond", "beyond_mismatch"]

LIGHT = ("regressed", "bavaria", "shrunk-lira", "g-regressed")
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
    learned: dict[str, Any] = {"samples": rounds, "jobs": cpu_count()}
    stacked: Lineup = {
        (mode, count, "", "g-stacked"): _made("g-stacked", mode, **learned) for mode, count in modes(shadows)
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
    return create(name, shared={"mode": mode}, **parameters)


def _trust(judged: Judged) -> dict[str, float]:
    """Whether its probabilities and its threshold are correct."""
    error = binned(judged.scores, judged.truth).error
    found = {"ece_pct": 100 * error, "ece_above_floor_pct": 100 * (error - calibration_floor(judged.scores))}
    for _, threshold, low, high in judged.thresholds:
        _, fpr = at_threshold(judged._replace(scores=judged.flag_scores), threshold)
        found |= {"fpr_at_threshold_pct": fpr, "threshold_kept_pct": 100.0 * (100 * low <= fpr <= 100 * high)}
    return found
