"""Theorem 1 against enumeration, and what each of G-BASE's approximations costs. Writes theorem_1.md.

On a graph of a few nodes all training sets are enumerated. A model is one of a grid of two-layer GCNs, drawn with the
probability that the paper assumes: exp(-sum of the members' losses) times a prior. So the posterior of membership is a
sum, and the theorem's right side is another sum, over S from the product's own engine.

Then the paper's explanation of its gap: shadow models of their own for each node and sampled training set, trained on
these sets, in place of one pool for all; on a graph of 60 nodes with models that are really trained.

    python benchmarks/paper/theorem_1.py
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import expit, log_softmax, logsumexp
from torch_geometric.data import Data

from glasshouse.attacks import BASE, Attack
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import area_under_roc, log_mean_exp
from glasshouse.core.outputs import tensor_losses
from glasshouse.data import complementary_halves
from glasshouse.graph import GBASE, GNNTrainer, Scene, load_graph
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.toggling import toggle_losses

HOPS: tuple[Hops, ...] = ("affected", "model")


@dataclass(frozen=True, eq=False, kw_only=True)
class World:
    """A graph so small, and models so few, that every sum of the theorem can be written out.

    Args:
        data: the graph, n nodes.
        models: G models.
        prior: log p(θ | M, X, A), [2^n, G]; one that depends on M gives Λ other than 1.
        share: λ.
    """

    data: Data
    models: list[Any]
    prior: FloatArray
    share: float = 0.5
    known: dict[Hops, FloatArray] = field(default_factory=dict)

    @cached_property
    def masks(self) -> BoolArray:
        """[2^n, n] every training set; bit v of its number says whether node v is in it."""
        return all_sets(int(self.data.num_nodes))

    @cached_property
    def log_model(self) -> FloatArray:
        """Log p(θ | M, G), [2^n, G]: losses on the graph that M induces, from plain calls of the models."""
        found = np.array([[_loss_on(model, self.data, mask) for model in self.models] for mask in self.masks])
        return np.asarray(log_softmax(-found + self.prior, axis=1))

    @cached_property
    def log_set(self) -> FloatArray:
        """Log P(M | θ, G), [2^n, G]."""
        size, n = self.masks.sum(axis=1), self.masks.shape[1]
        known = size * np.log(self.share) + (n - size) * np.log1p(-self.share)
        joint = self.log_model + known[:, None]
        return np.asarray(joint - logsumexp(joint, axis=0))

    def signal(self, hops: Hops) -> FloatArray:
        """S of eq. (6), [G, 2^n, n], by the product's engine."""
        if hops not in self.known:
            nodes, masks = torch.arange(self.masks.shape[1]), torch.from_numpy(self.masks)
            self.known[hops] = np.asarray(toggle_losses(self.models, self.data, masks, nodes, hops=hops).numpy())
        return self.known[hops]

    def exact(self) -> FloatArray:
        """P(m_v = 1 | θ, G), [G, n], by Bayes' rule over all training sets."""
        return np.asarray(np.exp(self.log_set).T @ self.masks)

    def theorem(self, *, hops: Hops = "model", ratio: bool = True, own_models: bool = True) -> FloatArray:
        """The right side of Theorem 1, [G, n].

        Args:
            hops: ``"model"`` sums over the L-hop neighbourhood, as the theorem says; ``"affected"`` over every node
                whose prediction changes.
            ratio: whether Λ is used, or set to 1.
            own_models: whether the integral is over p(φ | m_v = 0, M̃, G), or over p(φ | G) as in G-BASE.
        """
        n = self.masks.shape[1]
        found = np.zeros((len(self.models), n))
        size = self.masks.sum(axis=1)
        drawn = size * np.log(self.share) + (n - size) * np.log1p(-self.share)
        some = logsumexp(self.log_model + drawn[:, None], axis=0)  # of a model trained on a random set
        for v in range(n):
            without = np.flatnonzero(~self.masks[:, v])
            with_v = without | (1 << v)
            lam = self.prior[with_v] - self.prior[without] if ratio else np.zeros((len(without), len(self.models)))
            value = -self.signal(hops)[:, without, v].T + lam  # [M̃, G]
            over = self.log_model[without] if own_models else some
            expected = logsumexp(value + over, axis=1)
            probability = np.exp(np.logaddexp(self.log_set[without], self.log_set[with_v]))  # P(M̃ | θ)
            odds = value - expected[:, None] + np.log(self.share / (1 - self.share))
            found[:, v] = (probability * expit(odds)).sum(axis=0)
        return found


def all_sets(n: int) -> BoolArray:
    """Every subset of n nodes, [2^n, n].

    Example:
        >>> all_sets(2).tolist()
        [[False, False], [True, False], [False, True], [True, True]]
    """
    return np.asarray((np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1)


def small_world(*, nodes: int = 8, seed: int = 0, dependent: bool = False, share: float = 0.5) -> World:
    """A random graph with noisy labels, and a grid of two-layer GCNs with one hidden unit.

    Args:
        nodes: n.
        seed: of graph, features and labels.
        dependent: whether small models are likelier before the labels are seen where the training set is small.
        share: λ.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(nodes, 2)).astype(np.float32)
    pairs = np.array([pair for pair in itertools.combinations(range(nodes), 2) if random.random() < 2.5 / nodes])
    pairs = pairs.reshape(-1, 2).T
    edges = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    y = torch.from_numpy(((x[:, 0] + random.normal(size=nodes)) > 0).astype(np.int64))
    angles, scales, biases = np.arange(10) * np.pi / 5, (-6.0, -2.0, 2.0, 6.0), (0.0, 0.7)
    models, sizes = [], []
    for angle, scale, bias in itertools.product(angles, scales, biases):
        model = build_gnn("gcn", features=2, hidden=1, classes=2).eval()
        values = {
            (1, 2): [[np.cos(angle), np.sin(angle)]],
            (2, 1): [[scale], [-scale]],
            (1,): [bias],
            (2,): [0.0, 0.0],
        }
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.tensor(values[tuple(parameter.shape)], dtype=torch.float32))
        models.append(model)
        sizes.append(abs(scale))
    inside = all_sets(nodes).sum(axis=1)
    spread = 1.0 + inside[:, None] if dependent else np.full((2**nodes, 1), 10.0)
    prior = log_softmax(-np.array(sizes) / spread, axis=1)
    return World(
        data=Data(x=torch.from_numpy(x), edge_index=edges, y=y), models=models, prior=np.asarray(prior), share=share
    )


def _loss_on(model: Any, data: Data, mask: BoolArray) -> float:
    """The sum of the members' losses on the graph that they induce."""
    inside = torch.from_numpy(mask)
    edges = data.edge_index[:, inside[data.edge_index].all(0)]
    with torch.no_grad():
        return float(tensor_losses(model(data.x, edges), data.y)[inside].sum())


def played(world: World, *, games: int, shadows: int, seed: int) -> tuple[dict[str, FloatArray], BoolArray]:
    """Posteriors of every node in many games, [games * n] by name, and who was a member."""
    random = np.random.default_rng(seed)
    n = world.masks.shape[1]
    sums = {
        "the exact posterior": world.exact(),
        "Theorem 1 over every node whose prediction changes": world.theorem(hops="affected"),
        "Theorem 1 over the L-hop neighbourhood": world.theorem(),
        "the same with Λ = 1": world.theorem(ratio=False),
        "the same with models of any training set in the integral, all of them": world.theorem(
            ratio=False, own_models=False
        ),
    }
    attacks: dict[str, Attack[Any]] = {
        f"G-BASE (MI), K = {shadows}, M = 8": GBASE(sampler="independent"),
        f"G-BASE (MIA), K = {shadows}, M = 8": GBASE(sampler="mia"),
        f"G-BASE (Gibbs), K = {shadows}, M = 8": GBASE(sampler="gibbs", passes=3),
        f"BASE, K = {shadows}": BASE(),
    }
    found: dict[str, list[FloatArray]] = {name: [] for name in (*sums, *attacks)}
    truth = []
    for game in range(games):
        members = np.asarray(random.random(n) < world.share)
        theta = _drawn(world, members, random)
        halves = complementary_halves(n, models=shadows, seed=seed * 10_000 + game)
        chosen = [_drawn(world, half, random) for half in halves]
        scene = Scene(world.data, world.models[theta], [world.models[k] for k in chosen], halves)
        truth.append(members)
        for name, posterior in sums.items():
            found[name].append(posterior[theta])
        for name, attack in attacks.items():
            found[name].append(attack.score(scene))
    return {name: np.concatenate(scores) for name, scores in found.items()}, np.concatenate(truth)


def _drawn(world: World, members: BoolArray, random: np.random.Generator) -> int:
    """A model trained on a set: its number."""
    row = world.log_model[int((members * 2 ** np.arange(len(members))).sum())]
    return int(random.choice(len(row), p=np.exp(row)))


def log_loss(posterior: FloatArray, truth: BoolArray) -> float:
    """Mean of -log of the posterior of what is true: what the exact posterior makes smallest."""
    sure = np.clip(posterior, 1e-12, 1 - 1e-12)
    return float(-np.log(np.where(truth, sure, 1 - sure)).mean())


def own_shadows(
    *, nodes: int, targets: int, samples: int, shadows: int, epochs: int, seed: int
) -> list[dict[str, Any]]:
    """G-BASE with one pool for all nodes, and with K models for each node and sampled training set, trained without it.

    The sampled sets are the same. All models are GCNs of one trainer, on a part of a made-up graph.
    """
    whole = load_graph("synthetic")
    edges = whole.edge_index[:, (whole.edge_index < nodes).all(0)]
    data = Data(x=whole.x[:nodes], edge_index=edges, y=whole.y[:nodes])
    trainer = GNNTrainer(architecture="gcn", hidden=16, epochs=epochs)
    random = np.random.default_rng(seed)
    halves = complementary_halves(nodes, models=shadows, seed=seed)
    pool = trainer.train_many(data, halves, list(range(shadows)))
    rows = []
    for number in range(targets):
        members = random.permutation(nodes) < nodes // 2
        target = trainer(data, members, 1000 + number)
        scene = Scene(data, target, pool, halves)
        for name in ("independent", "mia"):
            judged = GBASE(sampler=name, samples=samples).judge(scene)
            masks = judged.sampled
            assert masks is not None
            own = np.zeros(nodes)
            for v in range(nodes):
                without = np.repeat(masks, shadows, axis=0)
                without[:, v] = False
                seeds = [2000 + 100 * v + one for one in range(len(without))]
                models = trainer.train_many(data, without, seeds)
                for i, mask in enumerate(masks):
                    some = [target, *models[i * shadows : (i + 1) * shadows]]
                    signal = toggle_losses(some, data, torch.from_numpy(mask[None]), torch.tensor([v]))[:, 0, 0]
                    value = -signal.numpy()
                    own[v] += expit(value[0] - log_mean_exp(value[1:, None])[0]) / samples
            for kind, scores in (("one pool", judged.scores), ("own models", own)):
                figures = {"auc": 100 * area_under_roc(scores, members), "log loss": log_loss(scores, members)}
                rows.append({"target": number, "sampler": name, "shadow models": kind} | figures)
    return rows


def page(
    worlds: dict[str, tuple[FloatArray, dict[str, FloatArray], BoolArray]], rows: list[dict[str, Any]], told: str
) -> str:
    """What was measured, as Markdown."""
    lines = ["# Theorem 1 against enumeration", "", told, ""]
    for title, ((every, near), found, truth) in worlds.items():
        lines += [f"## {title}", "", "Largest difference between the theorem's right side and the exact posterior:"]
        lines += [f"{every:.1e} over every node whose prediction changes, {near:.1e} over the L-hop neighbourhood."]
        lines += ["", "| score | AUC | log loss | mean distance to the exact posterior |", "| --- | --- | --- | --- |"]
        best = found["the exact posterior"]
        for name, scores in found.items():
            area, loss = 100 * area_under_roc(scores, truth), log_loss(scores, truth)
            lines.append(f"| {name} | {area:.2f} | {loss:.4f} | {np.abs(scores - best).mean():.4f} |")
        lines.append("")
    lines += ["## Shadow models of each node and sampled set", ""]
    lines += ["| sampler | shadow models | AUC, mean over targets | sd | log loss |", "| --- | --- | --- | --- | --- |"]
    for key in dict.fromkeys((row["sampler"], row["shadow models"]) for row in rows):
        some = [row for row in rows if (row["sampler"], row["shadow models"]) == key]
        areas, losses = (np.array([row[name] for row in some]) for name in ("auc", "log loss"))
        lines.append(f"| {key[0]} | {key[1]} | {areas.mean():.2f} | {areas.std(ddof=1):.2f} | {losses.mean():.4f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "theorem_1.md")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--games", type=int, default=300)
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument("--own", type=int, nargs=2, default=(60, 4), help="nodes and targets of the second part")
    options = parser.parse_args()
    worlds = {}
    for dependent in (False, True):
        gaps, found, truth = [], [], []
        for seed in range(options.graphs):
            world = small_world(nodes=options.nodes, seed=seed, dependent=dependent)
            gaps.append([float(np.abs(world.theorem(hops=hops) - world.exact()).max()) for hops in HOPS])
            scores, members = played(world, games=options.games, shadows=8, seed=seed)
            found.append(scores)
            truth.append(members)
        joined = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        title = (
            "A prior that depends on the size of the training set" if dependent else "A prior without the training set"
        )
        worlds[title] = np.max(gaps, axis=0), joined, np.concatenate(truth)
        print(title, gaps, flush=True)
    nodes, targets = options.own
    rows = own_shadows(nodes=nodes, targets=targets, samples=4, shadows=8, epochs=100, seed=0)
    told = (
        f"{options.graphs} graphs of {options.nodes} nodes, {options.games} games on each, λ = 0.5, 80 models; eight "
        f"shadow models by Algorithm 1. Last table: {targets} targets, {nodes} nodes of the synthetic graph, GCN with "
        f"16 hidden units, 100 epochs, M = 4, K = 8, so {4 * 8 * nodes} models of its own per target and sampler. "
        f"Written by `python benchmarks/paper/theorem_1.py`."
    )
    options.out.write_text(page(worlds, rows, told), encoding="utf-8")


if __name__ == "__main__":
    main()
