"""Peak memory: it grows with the losses, not with the models. Run: python benchmarks/scale/memory.py; writes memory.md.

Each case runs in its own process, whose largest resident size is read from the system. Records: 20 000 of them with 8
and with 64 shadow models of half a million weights. Graph: an audit of Cora with 128 shadow models
(``GLASSHOUSE_DATA``).
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from pathlib import Path

RECORDS = """
import resource, sys
import numpy as np
from glasshouse import Population, TorchTrainer, audit
from glasshouse.training import mlp
shadows = int(sys.argv[1])
random = np.random.default_rng(0)
population = Population(random.normal(size=(20_000, 50)).astype(np.float32), random.integers(5, size=20_000))
trainer = TorchTrainer(module=mlp(50, 5, hidden=(700, 700)), epochs=1, batch_size=2048, device="cpu")
audit(None, population, np.arange(20_000) < 10_000, trainer, shadows=shadows, progress=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
GRAPH = """
import resource, sys
from glasshouse import Evaluation
from glasshouse.graph import GNNTrainer, audit, load_graph
trainer = GNNTrainer(hidden=64, epochs=5, device="cpu")
options = {"attacks": ["base", "lira", "rmia", {"name": "g-base", "sampler": "mia"}], "progress": False}
audit(load_graph("cora"), trainer=trainer, shadows=int(sys.argv[1]), evaluation=Evaluation(fprs=[]), **options)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak(script: str, shadows: int) -> float:
    """Largest resident size of a process, MiB."""
    done = subprocess.run([sys.executable, "-c", script, str(shadows)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "memory.md")
    options = parser.parse_args()
    few, many = peak(RECORDS, 8), peak(RECORDS, 64)
    grown = 56 * 20_000 * (8 + 1) / 2**20  # a float64 loss and a membership bit per model and record
    graph = peak(GRAPH, 128)
    text = f"""# Peak memory

Largest resident size of a separate process, Python {platform.python_version()}, torch included.

| case | MiB | |
| --- | --- | --- |
| 20 000 records, 8 shadow models | {few:.0f} | |
| 20 000 records, 64 shadow models | {many:.0f} | {many - few:+.0f}, of which losses and members {grown:.0f} |
| audit of Cora with 128 shadow models (BASE, LiRA, RMIA, G-BASE) | {graph:.0f} | limit 2048 |
"""
    print(text)
    options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
