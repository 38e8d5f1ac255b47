"""The paper's cells as the authors' program computes them, where it differs from the text and a figure changes.

Their repository is MarcusLassila/MIA-audit-GNN; it was read, and nothing is copied from it. docs/authors.md names every
difference, and which of them this experiment switches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor, nn

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import area_under_roc, log_mean_exp
from glasshouse.core.randomness import generator, seed_for
from glasshouse.core.table import Table
from glasshouse.evidence import Evidence, Mode
from glasshouse.graph import Scene
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell, compared
from glasshouse_experiments.experiment import Part, experiment
from glasshouse_experiments.lineup import Lineup, modes
from glasshouse_experiments.measures import at_shares, collected, cuts, ranking
from glasshouse_experiments.settings import MISMATCHED

__all__ = [
    "MARK",
    "AuthorsBASE",
    "AuthorsGBASE",
    "AuthorsMLP",
    "AuthorsRMIA",
    "authors",
    "authors_beta",
    "authors_mismatch",
]

MARK = "authors' program"  # in the column "setting": these rows are not counted as ours
_SHARES = np.linspace(0.0, 1.0, 101)
_REFERENCES = slice(2, 10)  # of the one simulated target, shadow model 0: all but it and its complement, at most eight
_KEPT = 0.5  # share of edges that a query about the neighbourhood keeps


@dataclass(frozen=True, kw_only=True)
class AuthorsRMIA(GraphAttack):
    """RMIA with one ratio for each shadow model and each z, and a Z drawn from all nodes of the graph.

    p(x) is the mean over shadow models, as in the text. But p(z) is that of one shadow model after the other, in-models
    too, and offline without the correction by a. Scores are smaller than the text's, their order is the same. Offline
    a is the best on one simulated target.

    Args:
        mode: ``"online"``, or ``"offline"``.
        z_share: share of the graph's nodes that are in Z; the authors' logs have a half, one table says all.
        seed: of the draw of Z.

    Example:
        >>> AuthorsRMIA(mode="offline").name
        'authors-rmia'
    """

    name: ClassVar[str] = "authors-rmia"

    mode: Mode = "online"
    z_share: float = 0.5
    seed: int = 0

    def score(self, scene: Scene) -> FloatArray:
        """Shares of pairs of a shadow model and a z whose ratio is smaller, [nodes]."""
        every = scene.zero_hop
        count = len(every.target_loss)
        z = generator(self.seed, "Z").permutation(count)[: int(self.z_share * count)]
        ratios = np.sort((every.shadow_loss[:, z] - every.target_loss[z]).ravel())  # log p(z | target) / p(z | shadow)
        own = scene.of_nodes(every)
        usual = _usual(own.shadow_loss, own.shadow_members, self.mode, self._share(every))
        return np.asarray(np.searchsorted(ratios, -own.target_loss - usual, side="left") / len(ratios))

    def _share(self, every: Evidence) -> float:
        """Offline a: the one with the largest AUC over all nodes for shadow model 0 as the target."""
        if self.mode == "online":
            return 1.0
        return _best_on_one(every, lambda losses, members, share: _usual(losses, members, self.mode, share))


def _best_on_one(every: Evidence, usual: Callable[[FloatArray, BoolArray, float], FloatArray]) -> float:
    """The number in [0, 1] with the largest AUC over all nodes for shadow model 0 as the target.

    ``usual`` gives what is subtracted from its log-confidences, [N], from losses and members of the references.
    """
    losses, members = every.shadow_loss[_REFERENCES], every.shadow_members[_REFERENCES]

    def area(share: float) -> float:
        return area_under_roc(-every.shadow_loss[0] - usual(losses, members, share), every.shadow_members[0])

    return float(max(_SHARES, key=area))


def _usual(losses: FloatArray, members: BoolArray, mode: Mode, share: float) -> FloatArray:
    """Log p(x), [N], from the losses and members [K, N] of shadow models."""
    if mode == "online":
        return log_mean_exp(-losses)
    outside = np.exp(log_mean_exp(-losses, where=~members))
    return np.log(((1 + share) * outside + 1 - share) / 2)


@dataclass(frozen=True, kw_only=True)
class AuthorsBASE(GraphAttack):
    """Offline BASE with an α that is the best on one simulated target, not on all of them.

    Example:
        >>> AuthorsBASE().name
        'authors-base'
    """

    name: ClassVar[str] = "authors-base"
    posterior: ClassVar[bool] = True

    def score(self, scene: Scene) -> FloatArray:
        """Posteriors, [nodes]."""
        scale = _best_on_one(
            scene.zero_hop, lambda losses, members, share: share * log_mean_exp(-losses, where=~members)
        )
        own = scene.of_nodes(scene.zero_hop)
        usual = log_mean_exp(-own.shadow_loss, where=~own.shadow_members)
        return np.asarray(expit(-own.target_loss - scale * usual))


@dataclass(frozen=True, kw_only=True)
class AuthorsGBASE(GraphAttack):
    """Offline G-BASE (MIA) with the factor 0.9 of the authors' logs on the expected signal, and in its sampler's BASE.

    The text has a factor for BASE alone, and calls its benefit for G-BASE little to none.

    Args:
        scale: the factor.
        samples: M.
        seed: of the training sets.

    Example:
        >>> AuthorsGBASE().name, AuthorsGBASE().scale
        ('authors-g-base', 0.9)
    """

    name: ClassVar[str] = "authors-g-base"
    posterior: ClassVar[bool] = True

    scale: float = 0.9
    samples: int = 8
    seed: int = 0

    def score(self, scene: Scene) -> FloatArray:
        """Posteriors, [nodes]."""
        every, outside = scene.zero_hop, ~scene.shadow_members
        sure = expit(-every.target_loss - self.scale * log_mean_exp(-every.shadow_loss, where=outside))
        masks = generator(self.seed, "sets").random((self.samples, len(sure))) < sure
        signals, usable = scene.toggled(masks), outside[:, scene.nodes]
        odds = [-one[0] - self.scale * log_mean_exp(-one[1:], where=usable) for one in signals.swapaxes(0, 1)]
        return np.asarray(expit(odds).mean(axis=0))


@dataclass(frozen=True, kw_only=True)
class AuthorsMLP(GraphAttack):
    """The classifier attack on raw logits in the order of the classes, trained on all nodes with a fifth held out.

    A network of 128 hidden units, Adam with rate 1e-3 and decay 1e-4 on all examples at once, for up to 1000 epochs,
    and 50 after the last that was best on the held-out examples. The query about the neighbourhood keeps half of the
    edges; for the examples, only those within the members or within the others.

    Args:
        hops: ``(0,)`` for the node alone, ``(0, 2)`` with its neighbourhood.
        epochs: at most.
        seed: of weights, the held-out examples and the edges.

    Example:
        >>> AuthorsMLP(hops=(0, 2)).name
        'authors-mlp'
    """

    name: ClassVar[str] = "authors-mlp"
    posterior: ClassVar[bool] = True

    hops: tuple[int, ...] = (0,)
    epochs: int = 1000
    seed: int = 0
    network_: nn.Module | None = field(default=None, repr=False, compare=False)

    def tuned(self, scene: Scene) -> Self:
        """The same attack with a network that has learned from the shadow models."""
        if self.network_ is not None:
            return self
        random = torch.Generator().manual_seed(seed_for(self.seed, "edges of examples"))
        pairs = zip(scene.shadows, scene.shadow_members, strict=True)
        answers = torch.cat([self._answers(scene, model, who, random) for model, who in pairs])
        members = torch.from_numpy(scene.shadow_members.reshape(-1)).long()
        network = _trained(answers, members, epochs=self.epochs, seed=self.seed)
        return dataclasses.replace(self, network_=network)

    def score(self, scene: Scene) -> FloatArray:
        """Logits of membership, [nodes]."""
        network = self.tuned(scene).network_
        assert network is not None  # noqa: S101 (for the type checker: tuning fits)
        random = torch.Generator().manual_seed(seed_for(self.seed, "edges"))
        asked = self._answers(scene, scene.target, None, random)[torch.from_numpy(scene.nodes)]
        with torch.no_grad():
            return np.asarray(network(asked)[:, 1], dtype=np.float64)

    def _answers(self, scene: Scene, model: Any, who: BoolArray | None, random: torch.Generator) -> Tensor:
        """[n, C of each query] logits of one model about every node."""
        data = scene.data
        edges, found = data.edge_index, []
        if who is not None:
            side = torch.from_numpy(who).to(edges.device)
            edges = edges[:, side[edges[0]] == side[edges[1]]]
        edges = edges[:, torch.rand(edges.shape[1], generator=random).to(edges.device) < _KEPT]
        device = next(model.parameters()).device
        with torch.no_grad():
            for hops in self.hops:
                chosen = edges if hops else edges[:, :0]
                found.append(model.eval()(data.x.to(device), chosen.to(device)).float().cpu())
        return torch.cat(found, dim=1)


def _trained(examples: Tensor, members: Tensor, *, epochs: int, seed: int) -> nn.Module:
    """The network after training on four fifths of the examples, [R, F] with labels [R]."""
    with torch.random.fork_rng():
        torch.manual_seed(seed_for(seed, "weights"))
        network = nn.Sequential(nn.Linear(examples.shape[1], 128), nn.ReLU(), nn.Linear(128, 2))
        order = torch.randperm(len(examples))
    held, used = order[: len(order) // 5], order[len(order) // 5 :]
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4)
    best, waited = float("inf"), 0
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(examples[used]), members[used]).backward()
        optimizer.step()
        with torch.no_grad():
            loss = float(nn.functional.cross_entropy(network(examples[held]), members[held]))
        best, waited = (loss, 0) if loss < best else (best, waited + 1)
        if waited == 50:
            break
    return network


def beside_the_paper(cells: Iterable[Cell]) -> Table:
    """One row per cell beside the paper's, with `MARK` in the column "setting".

    Example:
        >>> cell = Cell("thresholds", "Cora", "online", "8", MARK, "RMIA", "threshold_at_fpr1", (0.84, 0.85))
        >>> row = next(beside_the_paper([cell]).rows())
        >>> row["setting"], row["paper_mean"], row["verdict"]
        ("authors' program", 0.8566, 'within 2 sd')
    """
    table = compared([cell._replace(setting="") for cell in cells])
    columns: dict[str, NDArray[Any]] = {name: table[name] for name in table}
    columns["setting"] = np.full(len(columns["table"]), MARK)
    return Table(columns)


@experiment("authors", compare=beside_the_paper)
def authors(bench: Bench) -> list[Cell]:
    """Thresholds with K = 8 and 4."""
    attacks: Lineup = {(mode, count, MARK, "RMIA"): AuthorsRMIA(mode=mode) for mode, count in modes(8)}
    attacks["offline", "4", MARK, "BASE"] = AuthorsBASE()
    attacks["offline", "4", MARK, "G-BASE"] = AuthorsGBASE()
    return collected(bench.judged(attacks), cuts, table="thresholds", dataset=bench.setting.paper_name)


@experiment("authors", datasets=("cora", "citeseer", "synthetic"), part=Part(name="beta"), compare=beside_the_paper)
def authors_beta(bench: Bench) -> list[Cell]:
    """RMIA cut at a fixed share β, with all nodes in Z, K = 256 and 128 or as many as the preset allows."""
    shadows = min(256, bench.preset.most_shadows)
    attacks: Lineup = {
        (mode, count, MARK, "RMIA"): AuthorsRMIA(mode=mode, z_share=1.0) for mode, count in modes(shadows)
    }
    return collected(
        bench.judged(attacks, shadows=shadows), _rates, table="rmia_fixed_beta_graph", dataset=bench.setting.paper_name
    )


@experiment(
    "authors",
    settings=MISMATCHED,
    part=Part(name="mismatch", wanted=lambda preset: not preset.light),
    compare=beside_the_paper,
)
def authors_mismatch(bench: Bench) -> list[Cell]:
    """The mismatched adversary's classifiers on raw logits."""
    attacks: Lineup = {
        ("online", "8", MARK, "MLP (0-hop)"): AuthorsMLP(hops=(0,)),
        ("online", "8", MARK, "MLP (0+2-hop)"): AuthorsMLP(hops=(0, 2)),
    }
    return collected(bench.judged(attacks), ranking, table="model-distr-shift", dataset=bench.setting.paper_name)


def _rates(judged: Judged) -> dict[str, float]:
    return at_shares(judged, (0.9, 0.99))
