"""How long the Markov chains over membership masks take. Run: python benchmarks/graphs/chains.py; writes chains.md.

Gibbs: one sweep with exact conditionals, eight chains, eight shadow models. Metropolis-Hastings: microseconds per
step that flips a fixed number of nodes on average, on a small and on a large graph, against a forward pass of all
models per step. Data come from ``GLASSHOUSE_DATA``; weights are freshly initialised.
"""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

import torch
from torch_geometric.data import Data

from glasshouse.graph.data.load import load_graph
from glasshouse.graph.models.networks import GNN, build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.sampling.chain_state import forward_losses
from glasshouse.graph.sampling.gibbs import gibbs_masks
from glasshouse.graph.sampling.metropolis import metropolis_masks


def models_for(data: Data, architecture: str, hidden: int, count: int = 9) -> list[GNN]:
    """Untrained models of the graph's shape."""
    torch.manual_seed(0)
    classes = int(data.y.max()) + 1
    return [
        build_gnn(architecture, features=data.x.shape[1], hidden=hidden, classes=classes).eval() for _ in range(count)
    ]


def gibbs_row(name: str, data: Data, architecture: str, hidden: int, limit: float | None) -> str:
    """First call (with compiling) and second call of one sweep."""
    models = models_for(data, architecture, hidden)
    first = gibbs_masks(models, data, chains=8)[1].seconds
    second = gibbs_masks(models, data, chains=8, seed=1)[1].seconds
    allowed = "" if limit is None else f"{limit:g} s"
    return f"| {name} {architecture} {hidden} | {first:.2f} | {second:.2f} | {allowed} |"


def metropolis_row(name: str, data: Data, flips: int, steps: int = 2000) -> str:
    """Microseconds per step, compiled and by forward passes."""
    models = models_for(data, "gcn", 64)
    share = flips / int(data.num_nodes)
    metropolis_masks(models, data, samples=1, burn_in=0, thinning=10, flip_share=share)  # compile
    base = metropolis_masks(models, data, samples=1, burn_in=0, thinning=10, flip_share=share)[1].seconds
    full = metropolis_masks(models, data, samples=1, burn_in=0, thinning=steps, flip_share=share)[1].seconds
    quick = (full - base) / (steps - 10)  # without the start-up, which builds the state once
    ask = forward_losses(profile_models(models, data), data)
    mask = torch.rand(int(data.num_nodes)).numpy() < 0.5
    ask(mask)
    started = time.perf_counter()
    ask(mask)
    slow = time.perf_counter() - started
    return f"| {name} gcn 64 | {int(data.num_nodes)} | {1e6 * quick:.0f} | {1e6 * slow:.0f} | {slow / quick:.0f} |"


def main() -> None:
    """Measure, print, and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "chains.md")
    options = parser.parse_args()
    cora, pubmed, github = (load_graph(name) for name in ("cora", "pubmed", "github"))
    lines = [
        "# Chains over membership masks",
        "",
        f"{torch.get_num_threads()} CPU threads, torch {torch.__version__}, Python {platform.python_version()}.",
        "",
        "Gibbs, one sweep, exact conditionals, eight chains, eight shadow models and the target:",
        "",
        "| case | first call s | s | limit |",
        "| --- | --- | --- | --- |",
        gibbs_row("Cora", cora, "gcn", 64, 2.0),
        gibbs_row("PubMed", pubmed, "gcn", 64, None),
        gibbs_row("PubMed", pubmed, "sage", 128, 60.0),
        gibbs_row("GitHub", github, "sage", 64, None),
        "",
        "Metropolis-Hastings, four flips per step on average, all nine models:",
        "",
        "| case | nodes | µs per step | µs per forward pass of all models | times faster |",
        "| --- | --- | --- | --- | --- |",
        metropolis_row("Cora", cora, 4),
        metropolis_row("PubMed", pubmed, 4),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
