"""How long an attack takes once the models are trained (paper, App. on wall-clock time)."""

from __future__ import annotations

from glasshouse.evaluation import run_attack
from glasshouse_experiments.bench import Bench, Judged, Name
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.lineup import gbase, singles
from glasshouse_experiments.measures import collected
from glasshouse_experiments.runner import experiment

__all__ = ["wall_clock"]

TARGETS = 3  # times vary little, and each is measured again


@experiment("wall-clock", datasets=("cora", "pubmed", "flickr", "amazon-photo", "synthetic"))
def wall_clock(bench: Bench) -> list[Cell]:
    """Seconds per target, without queries of the i.i.d. attacks, as in the paper; the first run only warms up."""
    attacks = singles(8) | gbase(8, {"G-BASE (MIA)": "mia", "G-BASE (Gibbs)": "gibbs"})
    rounds: list[dict[Name, Judged]] = []
    for scene, _ in zip(bench.scenes(), range(TARGETS), strict=False):
        if not rounds:  # compiling and loading happen once and are not the attack's own time
            for attack in attacks.values():
                run_attack(attack, scene, fprs=())
        outcomes = {name: run_attack(attack, scene, fprs=()) for name, attack in attacks.items()}
        rounds.append({name: Judged(one.scores, scene.nodes >= 0, one.seconds) for name, one in outcomes.items()})
    return collected(rounds, _seconds, table="wall-clock-time", dataset=bench.setting.paper_name)


def _seconds(judged: Judged) -> dict[str, float]:
    return {"seconds": judged.seconds}
