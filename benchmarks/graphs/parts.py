"""Training a GNN by parts of a large graph: memory, time, accuracy.

Run: python benchmarks/graphs/parts.py; writes parts.md.

The graph is made up: 200 000 nodes, 2 million directed edges, 128 features, 10 classes. A two-layer GCN of width 128 is
trained on the graph of a random half of the nodes, with one thread, each way in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path

WAYS = {
    "all at once": ("None", 24),
    "RandomNodes(parts=8)": ("RandomNodes(parts=8)", 3),
    "Neighbors(fanout=(10, 10), size=1024)": ("Neighbors(fanout=(10, 10), size=1024)", 1),
}
SCRIPT = """
import json, sys, threading, time
from pathlib import Path
import numpy as np, torch
from glasshouse.graph import GNNTrainer, Neighbors, RandomNodes, citation_graph
from glasshouse.graph.training.setting import node_accuracy
batches, epochs, nodes = eval(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
data = citation_graph(nodes=nodes, classes=10, words=128, topic_words=30, mean_degree=10)
members = np.random.default_rng(0).random(nodes) < 0.5
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
peak, before = [resident()], resident()
def watch():
    while True:
        peak[0] = max(peak[0], resident())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
began = time.process_time()
model = GNNTrainer(hidden=128, epochs=epochs, batches=batches, device="cpu")(data, members, 0)
found = {"training": peak[0] - before, "seconds": time.process_time() - began}
peak[0] = resident()
found["accuracy"] = node_accuracy(model, data, ~members)
print(json.dumps(found | {"query": peak[0] - before}))
"""


def measured(way: str, nodes: int) -> dict[str, float]:
    """Memory beyond the data in MiB, CPU seconds, and accuracy on non-members, of one way to train."""
    batches, epochs = WAYS[way]
    command = [sys.executable, "-c", SCRIPT, batches, str(epochs), str(nodes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "parts.md")
    parser.add_argument("--nodes", type=int, default=200_000)
    options = parser.parse_args()
    rows = []
    for way, (_, epochs) in WAYS.items():
        one = measured(way, options.nodes)
        rows.append(
            f"| {way} | {epochs} | {one['training']:.0f} | {one['seconds']:.1f} | {one['accuracy']:.3f} "
            f"| {one['query']:.0f} |"
        )
    text = "\n".join(
        [
            "# Training by parts of a large graph",
            "",
            f"A made-up graph of {options.nodes:,} nodes, a GCN of width 128 on half of them, one thread, Python "
            f"{platform.python_version()}.",
            "Memory is what a process holds at most beyond the data. The query is about the graph of the non-members.",
            "",
            "| batches | epochs | training, MiB | training, CPU seconds | accuracy on non-members | query, MiB |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )
    print(text)
    options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
