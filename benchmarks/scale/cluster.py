"""Scoring on a Ray cluster: the bytes of one process, also if a node is lost, and how much faster two workers are.

Run: python benchmarks/scale/cluster.py [--graph cora] [--shadows 32] [--turns 2]. It starts a Ray cluster on this
machine, whose nodes have one core each, and writes cluster.md beside itself. Every process computes with one thread.
For each attack the pool is learned from, and the target and all simulated targets are scored: in this process, by one
worker, by two workers, and by two of which one node is killed meanwhile. Workers have started before the clock does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"}  # before torch is imported
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import torch

from glasshouse.attacks import Attack, create
from glasshouse.compute import RayCluster, spread, spreading_over
from glasshouse.graph import GNNTrainer, Scene, load_graph
from glasshouse.pool import ShadowPool

MakeScene = Callable[[], Scene]


class Row(NamedTuple):
    """One way to score: its name, the seconds that it took, those of processors, and a digest of all scores.

    ``processor`` is what this process used, and the worker that used most: what it would take, about, if nobody else
    used the machine, and no worker ever waited for another.
    """

    name: str
    seconds: float
    processor: float
    digest: str


def made_scene(graph: str, *, shadows: int, hidden: int, epochs: int) -> MakeScene:
    """A function that gives a new scene each time, which has asked nothing yet, over the same models."""
    data = load_graph(graph)
    trainer = GNNTrainer(hidden=hidden, epochs=epochs, device="cpu")
    pool = ShadowPool.plan(data, trainer, shadows=shadows + 2)
    models = list(pool)
    # the last model is the target; it and its complement stay outside of the pool
    return lambda: Scene(data, models[-1], models[:-2], pool.members[:-2])


def scored(attack: Attack[Any], scene: Scene) -> str:
    """A digest of the scores of the target and of all simulated targets."""
    attack = attack.tuned(scene)
    found = hashlib.sha256(attack.judge(scene).scores.tobytes())
    for scores, _ in attack.simulated_scores(scene):
        found.update(scores.tobytes())
    return found.hexdigest()[:16]


@contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """A Ray cluster on this machine with so many nodes of one core each; this process is a part of none of them."""
    from ray.cluster_utils import Cluster

    here = str(Path(__file__).parents[2] / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(nodes):
        started.add_node(num_cpus=1)
    try:
        yield started
    finally:
        started.shutdown()  # type: ignore[no-untyped-call]


def on_cluster(attack: Attack[Any], make: MakeScene, *, nodes: int, name: str, lost_after: float | None = None) -> Row:
    """Score by the workers of a cluster; if wanted, one of its nodes is killed after some seconds."""
    with cluster(nodes) as started, spreading_over(RayCluster(address=started.address)):
        before = used(nodes)
        if lost_after is not None:
            node = next(iter(started.worker_nodes))
            threading.Timer(lost_after, lambda: started.remove_node(node, allow_graceful=False)).start()
        scene, began, own = make(), time.perf_counter(), time.process_time()
        digest = scored(attack, scene)
        seconds, own = time.perf_counter() - began, time.process_time() - own
        left = len(started.worker_nodes)
        most = max(spent - before.get(process, 0.0) for process, spent in used(left).items())
    return Row(name if lost_after is None else f"{name} ({left} left at the end)", seconds, own + most, digest)


def used(nodes: int) -> dict[int, float]:
    """Processor seconds of each worker so far, by its process; the first call starts the workers."""
    return dict(found for _, found in spread(processor_time, (), list(range(4 * nodes)), seconds=3600.0))


def processor_time(task: int) -> tuple[int, float]:
    """What scoring needs is imported; it takes long enough that every worker gets such a task."""
    import glasshouse.graph  # noqa: F401

    time.sleep(1.0)
    return os.getpid(), time.process_time()


def measured(attack: Attack[Any], make: MakeScene, *, turns: int, lost_after: float) -> list[Row]:
    """All ways to score by one attack; of several turns the quickest, since others may use the machine too."""
    torch.set_num_threads(1)
    began, own = time.perf_counter(), time.process_time()
    digest = scored(attack, make())
    rows = [Row("this process", time.perf_counter() - began, time.process_time() - own, digest)]
    for nodes, name in ((1, "one worker"), (2, "two workers")):
        tried = [on_cluster(attack, make, nodes=nodes, name=name) for _ in range(turns)]
        rows.append(min(tried, key=lambda row: row.seconds))
    rows.append(on_cluster(attack, make, nodes=2, name="two workers, one node killed", lost_after=lost_after))
    return rows


def table(attack: str, rows: list[Row]) -> str:
    """One attack as Markdown."""
    lines = [f"## {attack}", "", "| | seconds | processor | digest of all scores |", "| --- | ---: | ---: | --- |"]
    lines += [f"| {row.name} | {row.seconds:.1f} | {row.processor:.1f} | `{row.digest}` |" for row in rows]
    same = "the same bytes everywhere" if len({row.digest for row in rows}) == 1 else "DIFFERENT BYTES"
    ratio, alone = rows[1].seconds / rows[2].seconds, rows[1].processor / rows[2].processor
    said = f"Two workers are {ratio:.2f} times as fast as one ({alone:.2f} by processor time); {same}.\n"
    return "\n".join([*lines, "", said])


def main() -> None:
    """Measure, print, and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="cora")
    parser.add_argument("--attacks", nargs="+", default=["g-base", "g-stacked"])
    parser.add_argument("--samples", type=int, default=48, help="training sets of g-base")
    parser.add_argument("--shadows", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=64, help="the paper has 64 on Cora")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--lost-after", type=float, default=8.0, help="seconds")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    given = parser.parse_args()
    make = made_scene(given.graph, shadows=given.shadows, hidden=given.hidden, epochs=given.epochs)
    parts = [
        "# Scoring on a cluster\n",
        f"Written by `python benchmarks/scale/cluster.py` on {given.graph} with {given.shadows} shadow models "
        f"(GCN, hidden "
        f"{given.hidden}): a Ray cluster on one machine, whose nodes have one core each; the quickest of {given.turns} "
        f"turns. Processor: the seconds of this process and of the busiest worker, what it would take about if nobody "
        f"else used the machine.\n",
    ]
    for name in given.attacks:
        more = {"samples": given.samples} if name == "g-base" else {}
        rows = measured(create(name, **more), make, turns=given.turns, lost_after=given.lost_after)
        parts.append(table(name, rows))
        print(parts[-1], flush=True)
        given.out.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
