"""What engines, chains and training in one pass give, as digests: every engine on every module of the zoo.

A change that should move code and nothing else is held against the version before it, on the same machine::

    python -m tests.same_bytes_engines write /tmp/before.json         # in a checkout of the version before
    python -m tests.same_bytes_engines write /tmp/after.json          # in this one
    python -m tests.same_bytes_engines compare /tmp/before.json /tmp/after.json

``--device cuda`` is its twin on a GPU. A slice of it is a test (`tests/test_same_bytes.py`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.graph import GNNTrainer, build_gnn
from glasshouse.graph.rule.toggling import toggle_answers
from glasshouse.graph.sampling.gibbs import gibbs_masks
from glasshouse.graph.sampling.metropolis import metropolis_masks
from tests.graph.weighted_zoo import EDGE_FEATURES, WEIGHTED_ZOO
from tests.graph.zoo import CLASSES, EVERYWHERE, FEATURES, PYG, ZOO
from tests.same_bytes import Digests, differences

ENGINES = ("auto", "compiled", "layered", "packed", "whole")
NETWORKS = ("gcn", "sage", "gat", "sage-mean", "gin", "sgc")
_NODES = 40


def hub_graph(*, directed: bool = False) -> Data:
    """Random edges, and a hub that half of the nodes are joined to; one-way edges come with self-loops."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, _NODES, (2, 90))
    spokes = np.arange(1, _NODES, 2)
    ends = np.concatenate([ends, [spokes, np.zeros_like(spokes)]], axis=1)
    if not directed:
        ends = ends[:, ends[0] != ends[1]]
        ends = np.unique(np.concatenate([ends, ends[::-1]], axis=1), axis=1)
    x = rng.normal(size=(_NODES, FEATURES)).astype(np.float32)
    labels = torch.from_numpy(rng.integers(0, CLASSES, _NODES))
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(ends).long(), y=labels)


def with_values(data: Data, names: Iterable[str]) -> Data:
    """The graph with weights, features or kinds of its edges."""
    rng, edges = np.random.default_rng(1), data.edge_index.shape[1]
    if "edge_weight" in names:
        data.edge_weight = torch.from_numpy(rng.random(edges).astype(np.float32))
    if "edge_attr" in names:
        data.edge_attr = torch.from_numpy(rng.normal(size=(edges, EDGE_FEATURES)).astype(np.float32))
    if "kinds" in names:
        data.edge_attr = torch.from_numpy(rng.integers(0, 3, edges))
    return data


def digest(*tensors: Tensor) -> dict[str, Any]:
    """Of the bytes, and how large they are together, for machines that round otherwise."""
    arrays = [np.ascontiguousarray(tensor.detach().cpu().numpy()) for tensor in tensors]
    found = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]
    return {"digest": found, "size": float(sum(np.abs(array.astype(float)).sum() for array in arrays))}


def of_toggles(name: str, make: Callable[[], Any], data: Data, *, device: str, few: bool = False) -> Digests:
    """Three models under two masks, by every engine; a refusal counts by its kind."""
    masks = torch.from_numpy(np.random.default_rng(5).random((2, _NODES)) < 0.5)[: 1 if few else 2]
    nodes = torch.arange(0, _NODES, 2)[: 6 if few else None]
    torch.manual_seed(0)
    models = [make() for _ in range(3)]
    models = [model.eval().to(device) if isinstance(model, nn.Module) else model for model in models]
    found: Digests = {}
    for engine in ENGINES:
        for hops in ("model", "affected"):
            try:
                answers = toggle_answers(models, data, masks, nodes, engine=engine, hops=hops)
            except Exception as refusal:
                found[f"{name} | {engine} {hops}"] = {"refused": type(refusal).__name__}
            else:
                found[f"{name} | {engine} {hops}"] = digest(answers.signal, answers.own)
    return found


def of_chains(name: str, make: Callable[[], nn.Module], data: Data, *, device: str) -> Digests:
    """Masks of both kinds of chains, online and offline."""
    torch.manual_seed(0)
    models = [make().eval().to(device) for _ in range(3)]
    found: Digests = {}
    for mode, usable in (("online", None), ("offline", np.array([[True, False] * 20, [False, True] * 20]))):
        walked = gibbs_masks(models, data, chains=2, seed=1, usable_shadows=usable)[0]
        found[f"gibbs {name} {mode}"] = digest(torch.as_tensor(walked))
        steps = {"samples": 2, "burn_in": 60, "thinning": 10, "chains": 2}
        walked = metropolis_masks(models, data, seed=1, usable_shadows=usable, **steps)[0]
        found[f"metropolis {name} {mode}"] = digest(torch.as_tensor(walked))
    return found


def of_training(name: str, trainer: GNNTrainer, data: Data, *, seeds: Sequence[int], rng: int = 2) -> Digests:
    """Weights after training in one pass."""
    members = np.random.default_rng(rng).random((len(seeds), _NODES)) < 0.6
    try:
        models = trainer.train_many(data, members, [*seeds])
    except Exception as refusal:
        return {f"trained {name}": {"refused": type(refusal).__name__}}
    return {f"trained {name}": digest(*[value for model in models for value in model.state_dict().values()])}


def of_network(name: str, *, device: str = "cpu") -> Digests:
    """One of our own networks: toggles, chains and training."""

    def make() -> nn.Module:
        return build_gnn(name, features=FEATURES, hidden=8, classes=CLASSES)

    trainer = GNNTrainer(architecture=name, hidden=8, epochs=3, device=device)
    found = of_toggles(f"ours | {name}", make, hub_graph(), device=device)
    found |= of_chains(name, make, hub_graph(), device=device)
    return found | of_training(name, trainer, hub_graph(), seeds=[1, 2, 3, 4])


def everything(*, device: str = "cpu") -> Digests:
    """Every engine on every module of the zoo, chains, and training in one pass."""
    found: Digests = {}
    for shape, data in (("both ways", hub_graph()), ("one way, loops", hub_graph(directed=True))):
        for name, (make, _) in {**ZOO, **PYG}.items():
            found |= of_toggles(f"{shape} | {name}", make, data, device=device)
        for name, whole in EVERYWHERE.items():
            found |= of_toggles(f"{shape} | {name}", whole, data, device=device, few=True)
    for name, animal in WEIGHTED_ZOO.items():
        data = with_values(hub_graph(), animal.values)
        found |= of_toggles(f"values | {name}", animal.make, data, device=device, few=animal.hops is None)
    for name in NETWORKS:
        found |= of_network(name, device=device)
    for name, (make, _) in {**ZOO, **PYG}.items():
        if not name.startswith("callable"):
            trainer = GNNTrainer(model=make, epochs=2, device=device)
            found |= of_training(name, trainer, hub_graph(), seeds=[1, 2])
    return found


def main() -> int:
    """Write digests, or compare two files of them; 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--device", default="cpu", help="cuda: on a GPU")
    given = parser.parse_args()
    if given.what == "write":
        torch.set_num_threads(1)
        given.files[0].write_text(json.dumps(everything(device=given.device), indent=1) + "\n")
        return 0
    before, after = (json.loads(file.read_text()) for file in given.files)
    lines = differences(before, after)
    sys.stdout.write("\n".join([*lines, f"{len(before) - len(lines)} of {len(before)} are the same"]) + "\n")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
