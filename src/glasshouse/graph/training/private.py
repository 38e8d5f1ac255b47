r"""A trainer with a node-level guarantee: degrees bounded by sampling, gradients clipped for each node, and noise.

*Neighbouring graphs* differ in one node: in one of them it is there, with its features, its label and its at most D
edges, and in the other it is not. Why the training is private, in short (docs/private-graphs.md has it in full):

The model is a network on the features of a node beside means over its neighbourhoods, up to H steps away. These means
have no weights, so the gradient of node u's loss follows from what lies within H steps of u. It is clipped to length C.
If node v goes, its own clipped gradient goes (length C at most), and those of the nodes within H steps of v change (2 C
at most each). With at most D edges at each node there are at most :math:`R = \sum_{h=1}^{H} D (D-1)^{h-1}` of these.
So the sum of all clipped gradients has sensitivity :math:`C (1 + 2R)`. Each step adds Gaussian noise of :math:`s` times
that to the sum over all nodes. T such steps are, together, one Gaussian mechanism: :math:`\sqrt T / s`-Gaussian private
(Dong, Roth and Su 2022, Corollary 2), and ε at δ follows exactly. What is published is noise and the number of steps;
the number of training nodes is taken as known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, number_faults, raise_faults
from glasshouse.core.randomness import generator, seed_for
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evaluation.privacy.bounds import gaussian_epsilon
from glasshouse.graph.data.population import induced
from glasshouse.graph.models.calls import held_values
from glasshouse.graph.training.trainer import NodeTrainer

_LARGEST = 1e4  # noise beyond which no training is worth its name


class NeighborhoodNetwork(nn.Module):
    """Layers on a node's features, of length 1, beside the means over its neighbourhoods of 1 to ``hops`` steps.

    Example:
        >>> NeighborhoodNetwork(3, 2, hops=1)(torch.eye(3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, features: int, classes: int, *, hops: int, hidden: int | None = None) -> None:
        super().__init__()
        self.hops, self.mean = hops, SimpleConv(aggr="mean")  # 0 where there are none
        width = features * (1 + hops)
        layers: list[nn.Module] = [nn.Linear(width, classes)]
        if hidden is not None:
            layers = [nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, classes)]
        self.layers = nn.Sequential(*layers)

    def columns(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """[n, features * (1 + hops)] what the layers are given."""
        last = nn.functional.normalize(x.float(), dim=1)
        parts = [last]
        for _ in range(self.hops):
            last = self.mean(last, edge_index)
            parts.append(last)
        return torch.cat(parts, dim=1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits [n, classes]."""
        return self.layers(self.columns(x, edge_index))  # type: ignore[no-any-return]


def bounded_edges(edge_index: Tensor, count: int, *, degree: int, seed: int) -> Tensor:
    """Edges in a random order, each in both directions, of which one is kept while both ends have room: [2, kept].

    Example:
        >>> star = torch.tensor([[0, 0, 0], [1, 2, 3]])
        >>> bounded_edges(star, 4, degree=2, seed=0).shape
        torch.Size([2, 4])
    """
    ends = np.sort(edge_index.cpu().numpy(), axis=0)
    pairs = np.unique((ends[0] * count + ends[1])[ends[0] != ends[1]])
    room, kept = np.full(count, degree), []
    for key in generator(seed, "bounded degrees").permutation(pairs).tolist():
        a, b = divmod(key, count)
        if room[a] and room[b]:
            room[[a, b]] -= 1
            kept.append((a, b))
    found = torch.tensor(kept, dtype=torch.long).reshape(-1, 2).t()
    return torch.cat([found, found.flip(0)], dim=1).to(edge_index.device)


def private_noise(epsilon: float, delta: float, steps: int) -> float:
    """The noise multiplier s with which T steps are (ε, δ)-private, exactly: those of `gaussian_epsilon` at √T / s.

    Example:
        >>> round(private_noise(8.0, 1e-5, 50), 2)
        4.24
    """
    if math.isinf(epsilon):
        return 0.0

    def excess(noise: float) -> float:
        return gaussian_epsilon(math.sqrt(steps) / noise, delta) - epsilon

    if excess(_LARGEST) > 0:
        raise InputError(f"claim: ε = {epsilon:g} after {steps} steps needs more noise than any training survives.")
    return float(brentq(excess, 1e-2, _LARGEST))


@dataclass(frozen=True, kw_only=True)
class PrivateGNNTrainer(NodeTrainer):
    """Trains a GNN with node-level differential privacy, on graphs of bounded degree.

    Neighbouring graphs differ in one node with its at most ``degree`` edges. If the graph has nodes with more edges,
    some are left out by `bounded_edges` before training. Which are kept depends on the whole graph, and this step is
    not covered: the guarantee is about the graph that it leaves.

    Args:
        epsilon: ε of the claim; infinite for clipping without noise.
        delta: δ of the claim.
        hops: how many steps along the edges the model looks; 0 for DP-SGD on the features alone, the baseline.
        degree: D, the most edges of a node in training.
        hidden: width of a hidden layer; None for a linear model, which has fewer weights to drown in noise.
        clip: C, the length to which the gradient of a node is clipped.
        epochs: T, steps over all nodes.
        lr: learning rate of the mean gradient, with momentum 0.9.
        device: where to train; by default the CPU.

    Example:
        >>> from glasshouse.graph import citation_graph
        >>> trainer = PrivateGNNTrainer(epsilon=8.0, epochs=5)
        >>> data = citation_graph(nodes=120, classes=2)
        >>> trainer(data, np.ones(120, dtype=bool), seed=0)(data.x, data.edge_index).shape
        torch.Size([120, 2])
    """

    epsilon: float
    delta: float = 1e-5
    hops: int = 1
    degree: int = 3
    hidden: int | None = None
    clip: float = 1.0
    epochs: int = 50
    lr: float = 2.0
    device: str = "cpu"

    def __post_init__(self) -> None:
        least, positive = {"hops": 0, "degree": 1, "epochs": 1}, ("epsilon", "delta", "clip", "lr")
        raise_faults(number_faults(self, at_least=least, positive=positive, shares=("delta",)))

    @property
    def touched(self) -> int:
        """R: how many other nodes' gradients one node can change."""
        return sum(self.degree * (self.degree - 1) ** (step - 1) for step in range(1, self.hops + 1))

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on the sum of gradients."""
        return private_noise(self.epsilon, self.delta, self.epochs) * self.clip * (1 + 2 * self.touched)

    @property
    def claim(self) -> PrivacyClaim | None:
        """The guarantee, for `Evaluation(claim=…)`; None without noise."""
        return None if math.isinf(self.epsilon) else PrivacyClaim(epsilon=self.epsilon, delta=self.delta)

    def __call__(self, data: Data, members: BoolArray, seed: int) -> nn.Module:
        """A trained `NeighborhoodNetwork` in evaluation mode."""
        if held_values(data):
            raise InputError("data: its edges have values, for which no guarantee is known here. Leave them out.")
        graph = induced(data, members, device=self.place)
        if not bool((graph.y >= 0).all()):
            raise InputError("data.y: private training needs a label for every member.")
        edges = bounded_edges(graph.edge_index, len(graph.x), degree=self.degree, seed=seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed_for(seed, "weights"))
            model = self.untrained(data).to(self.place)
        source = torch.Generator(self.place).manual_seed(seed_for(seed, "noise"))
        columns, weights = model.columns(graph.x, edges), dict(model.layers.named_parameters())
        velocity = {name: torch.zeros_like(value) for name, value in weights.items()}
        std, count = self.noise, len(columns)
        for _ in range(self.epochs):
            total = clipped_sum(model.layers, columns, graph.y, clip=self.clip)
            with torch.no_grad():
                for name, value in weights.items():
                    noise = torch.randn(value.shape, generator=source, device=value.device)
                    velocity[name].mul_(0.9).add_((total[name] + std * noise) / count)
                    value.sub_(self.lr * velocity[name])
        return model.eval()

    def untrained(self, data: Data) -> NeighborhoodNetwork:
        """A fresh module for this graph."""
        return NeighborhoodNetwork(int(data.x.shape[1]), int(data.y.max()) + 1, hops=self.hops, hidden=self.hidden)


def clipped_sum(layers: nn.Sequential, columns: Tensor, labels: Tensor, *, clip: float) -> dict[str, Tensor]:
    """The sum over nodes of each node's gradient, clipped to a length, by name of the weight.

    The gradient of a node in a linear layer is the product of what goes into the layer and of the gradient that comes
    back to it, so lengths and sums need no node's gradient as a whole.

    Args:
        layers: linear layers and functions of single values, from columns [n, width] to logits [n, C].
        columns: of all nodes [n, width].
        labels: [n].
        clip: the largest length of the gradient of one node, over all weights together.
    """
    value, given, found = columns, [], []
    for layer in layers:
        given += [value.detach()] if isinstance(layer, nn.Linear) else []
        value = layer(value)
        found += [value] if isinstance(layer, nn.Linear) else []
    back = torch.autograd.grad(nn.functional.cross_entropy(value, labels, reduction="sum"), found)
    squares = [one.square().sum(1) * (1 + a.square().sum(1)) for a, one in zip(given, back, strict=True)]
    share = clip / torch.stack(squares).sum(0).sqrt().clamp(min=clip)  # 1 where it is short enough
    total = []
    for a, one in zip(given, back, strict=True):
        total += [(one * share.unsqueeze(1)).t() @ a, share @ one]
    return dict(zip(dict(layers.named_parameters()), total, strict=True))
