"""What an audit does beside its attacks: checks, profiles of models, tests, and the report. Writes overhead.md.

    python benchmarks/scale/overhead.py [--turns 3]

A graph of 500 nodes and 500 records, with the usual attacks and eight shadow models. Processor time of all threads:
the smallest of several turns, of a whole audit with its report, of training, and of the attacks.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import make_classification

from glasshouse import Population, TorchTrainer, audit
from glasshouse.auditing import steps
from glasshouse.evaluation import run_attack
from glasshouse.graph import GNNTrainer, citation_graph
from glasshouse.graph import audit as audit_graph
from glasshouse.training import mlp


def graph() -> Any:
    """An audit of a small graph."""
    return audit_graph(citation_graph(nodes=500), trainer=GNNTrainer(), shadows=8, progress=False)


def records() -> Any:
    """An audit of few records."""
    x, y = make_classification(500, 20, n_informative=8, flip_y=0.2, random_state=0)
    trainer = TorchTrainer(module=mlp(20, 2), epochs=30, device="cpu")
    population = Population(x.astype(np.float32), y)
    return audit(population, members=np.arange(500) % 2 == 0, trainer=trainer, shadows=8, progress=False)


def spent(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds of a whole audit with its report, of its training and of its attacks."""
    seconds = dict.fromkeys(("whole", "training", "attacks"), 0.0)
    inside: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            began = time.process_time()
            inside.append(name)
            try:
                return function(*args, **named)
            finally:
                inside.pop()
                if not inside:
                    seconds[name] += time.process_time() - began

        return timed

    patches = [patch.object(steps, "run_attack", counted("attacks", run_attack))] + [
        patch.object(trainer, name, counted("training", getattr(trainer, name)))
        for trainer in (GNNTrainer, TorchTrainer)
        for name in ("__call__", "train_many")
    ]
    with tempfile.TemporaryDirectory() as folder:
        for one in patches:
            one.start()
        began = time.process_time()
        work().report(Path(folder) / "report.html")
        seconds["whole"] = time.process_time() - began
        for one in patches:
            one.stop()
    return seconds


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="after a first one, which compiles kernels")
    parser.add_argument("--machine", default="", help="a few words about it and what else it did")
    options = parser.parse_args()
    lines = ["| audit | whole, s | training, s | attacks, s | all else, s | times the attacks |", "| --- " * 6 + "|"]
    for name, work in (("a graph of 500 nodes", graph), ("500 records", records)):
        turns = [spent(work) for _ in range(options.turns + 1)][1:]
        whole, training, attacks = (min(one[key] for one in turns) for key in ("whole", "training", "attacks"))
        rest = min(one["whole"] - one["training"] - one["attacks"] for one in turns)
        lines.append(f"| {name} | {whole:.2f} | {training:.2f} | {attacks:.2f} | {rest:.2f} | {rest / attacks:.2f} |")
        print(lines[-1], flush=True)
    text = f"""# What an audit does beside its attacks

Written by `python benchmarks/scale/overhead.py`. {options.machine}. Eight shadow models and the usual attacks;
processor time, the smallest of {options.turns} turns. All else is checks, profiles of the models, their answers, tests,
and the report. At most 1.5 times the attacks are asked for.

{chr(10).join(lines)}
"""
    (Path(__file__).parent / "overhead.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
