"""How long an attack takes once the models are trained (paper, App. on wall-clock time)."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.compute import available_cores
from glasshouse.core.table import Table
from glasshouse.evaluation import run_attack
from glasshouse.graph import GBASE, Scene
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell, compared
from glasshouse_experiments.clocks import BUSY, LOOP, OURS, clock_page, clock_picture
from glasshouse_experiments.ego_nets import ego_losses
from glasshouse_experiments.experiment import Part, experiment
from glasshouse_experiments.lineup import gbase, singles

__all__ = ["beside_the_paper", "loop_seconds", "wall_clock"]

DATASETS = ("pubmed", "flickr", "amazon-photo", "cora", "synthetic")
_NODES = 12  # the loop is measured on so many, each with one training set
_SMALL = 300  # nodes of the graph on which chains warm up


def beside_the_paper(cells: Iterable[Cell]) -> Table:
    """One row per cell beside the paper's seconds, which are those of another machine; ``setting`` names ours.

    Example:
        >>> cell = Cell("wall-clock-time", "Pubmed", "online", "8", "one GPU", "RMIA", "seconds", (0.01,))
        >>> row = next(beside_the_paper([cell]).rows())
        >>> row["setting"], row["paper_mean"], row["verdict"]
        ('one GPU', 0.50807, 'faster')
    """
    given = list(cells)
    table = compared([cell._replace(setting="") for cell in given])
    told = {name: table[name] for name in table}
    told["setting"] = np.array([cell.setting for cell in given])
    told["verdict"] = np.array([_verdict(row["mean"], row["paper_mean"]) for row in table.rows()])
    return Table(told)


def _verdict(ours: float, paper: float) -> str:
    if np.isnan(paper):
        return "not printed"
    return "faster" if ours < paper else "slower"


def _machine() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    cores = available_cores()
    return f"{cores} CPU core{'s' if cores > 1 else ''}"


def wall_clock(bench: Bench) -> list[Cell]:
    """Seconds of every attack on one target, without the i.i.d. attacks' queries, as in the paper.

    Beside G-BASE stand the seconds of the loop over nodes, measured on a few nodes and extrapolated.
    """
    attacks = singles(8) | gbase(8, {"G-BASE (MIA)": "mia", "G-BASE (Gibbs)": "gibbs"})
    warm, scene = (next(iter(bench.scenes())) for _ in range(2))  # a scene remembers what was asked
    for attack in attacks.values():  # compiling and loading happen once and are not the attack's own time
        chain = isinstance(attack, GBASE) and attack.sampler == "gibbs"
        run_attack(attack, _part_of(warm) if chain else warm, fprs=())
    _ = scene.evidence
    machine, found = _machine(), []
    for (mode, count, _, name), attack in attacks.items():
        place = ("wall-clock-time", bench.setting.paper_name, mode, count, machine, name)
        before = time.process_time()
        found.append(Cell(*place, OURS, (run_attack(attack, scene, fprs=()).seconds,)))
        found.append(Cell(*place, BUSY, (time.process_time() - before,)))
        if isinstance(attack, GBASE):
            found.append(Cell(*place, LOOP, (loop_seconds(scene, attack),)))
    return found


def loop_seconds(scene: Scene, attack: GBASE, *, nodes: int = _NODES) -> float:
    """What G-BASE takes by a loop over nodes and their ego-nets, as the paper's program works; extrapolated.

    The loop is measured on a few nodes, each with one training set, and multiplied by the number of pairs of a node and
    a training set: one for each audited node and sample; a Gibbs chain also visits every node of the graph.

    Args:
        scene: the target and its shadow models.
        attack: whose pairs are counted; offline asks only the shadow models that did not train on the node.
        nodes: how many are measured.
    """
    count = int(scene.data.num_nodes)
    random = np.random.default_rng(0)
    some = torch.from_numpy(random.choice(scene.nodes, size=min(nodes, len(scene.nodes)), replace=False))
    masks = torch.from_numpy(random.random((1, count)) < 0.5)
    share = 1.0 if attack.mode == "online" else float((~scene.shadow_members[:, scene.nodes]).mean())
    models = scene.models[: 1 + max(1, round(share * len(scene.shadows)))]
    ego_losses(models, scene.data, masks, some[:1])
    _finish()
    began = time.perf_counter()
    ego_losses(models, scene.data, masks, some)
    _finish()
    each = (time.perf_counter() - began) / len(some)
    visits = len(scene.nodes) + (attack.passes * count if attack.sampler == "gibbs" else 0)
    return each * attack.samples * visits


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _part_of(scene: Scene) -> Scene:
    """The same models on the first nodes of the graph."""
    data = scene.data
    inside = (data.edge_index < _SMALL).all(0)
    part = Data(x=data.x[:_SMALL], edge_index=data.edge_index[:, inside], y=data.y[:_SMALL])
    return Scene(part, scene.target, scene.shadows, scene.shadow_members[:, :_SMALL])


ON_CPU = Part(name="cpu", wanted=lambda _: not torch.cuda.is_available())
ON_GPU = Part(name="gpu", wanted=lambda _: torch.cuda.is_available())
for _part in (ON_CPU, ON_GPU):  # the same code; each machine has its own files
    experiment(
        "wall-clock",
        datasets=DATASETS,
        part=_part,
        alone=True,
        compare=beside_the_paper,
        page=clock_page,
        overview=clock_picture,
    )(wall_clock)
