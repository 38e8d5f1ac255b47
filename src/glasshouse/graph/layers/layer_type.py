"""What a layer type is: one formula of a convolution, in the operations that both interpreters offer.

One interpreter computes the rows of stacked models that a toggle changes (`glasshouse.graph.rule.incremental`), the
other trains stacked models (`glasshouse.graph.training.many`). A layer of another type works too: it is measured, and
then asked itself about the rows that change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

Normalisation = Literal["symmetric", "mean", "none", "laplacian"]
Loops = Literal["added", "listed"]
Score = Callable[..., Tensor]  # (shown, asked, edge or None, *weights), each [..., heads, columns] -> [..., heads]
Message = Callable[[Tensor, Tensor, Any, Any], Tensor]  # (shown, sent, asked, edge) -> [..., heads, columns]


class NotDescribed(Exception):  # noqa: N818 (it is an answer, not a fault)
    """An interpreter cannot do what a formula asks for with these values; the layer itself is then asked."""


class Operations(Protocol):
    """What a formula is written in; values of nodes are opaque, and weights are named as in the layer.

    A name such as ``"lins.0"`` is a linear map (`torch.nn.Linear`) or a tensor; a number picks an entry of a tensor.
    """

    def linear(self, x: Any, name: str, *, bias: bool = True, towards: str | None = None) -> Any:
        """The linear map ``name`` of every row.

        A tensor [in, out] is a map too. With ``towards``, products of each head with that vector, [..., heads].
        """

    def rows(self, function: Callable[..., Tensor], *values: Any, weights: Sequence[str] = ()) -> Any:
        """A function of the same row of all values; beside tensors [..., width] it gets weights, as [..., numbers]."""

    def add(self, *values: Any, factors: Sequence[float] | None = None, bias: str | None = None) -> Any:
        """The sum of values, each times its factor, plus a bias."""

    def module(self, x: Any, name: str) -> Any:
        """A part of the layer that works on single rows, such as a perceptron; it is named in `LayerType.modules`."""

    def sum(
        self,
        x: Any,
        *,
        linear: str | None = None,
        bias: str | None = None,
        root: str | None = None,
        norm: Normalisation = "none",
        loops: Loops = "listed",
        fill: float = 1.0,
        own: float = 1.0,
        weight: Any = None,
        only: int | None = None,
        sums_first: bool = False,
    ) -> Any:
        """The sum of senders' values.

        Args:
            x: the values.
            linear: map of what is sent.
            bias: added to the sum.
            root: map of a node's own value, which is added.
            norm: ``"symmetric"`` divides by the root degrees of both ends, ``"mean"`` by the number of messages;
                ``"laplacian"`` is I less the Laplacian, scaled as `torch_geometric.nn.ChebConv` does.
            loops: ``"added"``: every node has one self-loop; ``"listed"``: those of the graph.
            fill: weight of an added self-loop, if edges have weights.
            own: what the message of a self-loop is multiplied with; the degree counts it once.
            weight: one number per edge.
            only: sum over the edges whose ``weight``, a kind then, is this one.
            sums_first: the sum of the features is worth keeping in training, since nothing else is made of them.
        """

    def max(
        self,
        x: Any,
        *,
        linear: str | None = None,
        bias: str | None = None,
        root: str | None = None,
        weight: Any = None,
    ) -> Any:
        """The largest of senders' values, 0 without any, then a linear map; arguments as of `sum`."""

    def module_of_sum(self, x: Any, name: str, *, own: str) -> Any:
        """``name(sum + (1 + own) x)``, in the order that costs least: linear maps and sums can be swapped."""

    def attend(
        self,
        x: Any,
        ends: Callable[[Any, Any], tuple[Any, Any, Any]],
        *,
        score: Score | None = None,
        message: Message | None = None,
        weights: Sequence[str] = (),
        heads: int = 1,
        concat: bool = True,
        mean: bool = True,
        loops: float | Literal["mean"] | None = None,
        edges: Any = None,
        edge: Callable[[Any, Any], Any] | None = None,
        dropout: float = 0.0,
        bias: str | None = None,
    ) -> Any:
        """Messages made for each pair of nodes, weighted by a softmax of scores.

        Args:
            x: the values.
            ends: from these operations on rows and the rows, what a node shows to receivers, what it sends, and what it
                asks senders for; each [..., heads * columns], the last may be None.
            score: of a pair; None if all senders count the same.
            message: of a pair; by default what is sent.
            weights: names of vectors [heads, columns] that the score gets.
            heads: how many softmaxes there are.
            concat: heads side by side, else their mean.
            mean: whether weights are divided by their sum.
            loops: the features of the self-loop that every node gets: a number, or ``"mean"`` for the mean of those of
                the other edges; None if those of the graph are used.
            edges: features of edges.
            edge: from the operations and rows of ``edges``, what an edge gives, [..., heads * columns].
            dropout: of weights in training.
            bias: added at the end.
        """


@dataclass(frozen=True)
class LeakySum:
    """GAT's score: the sum of what both ends and the edge give, through a leaky ReLU. Kernels know this one."""

    slope: float

    def __call__(self, shown: Tensor, asked: Tensor, edge: Tensor | None) -> Tensor:
        """Scores [..., heads] from parts [..., heads, 1]."""
        total = shown + asked if edge is None else shown + edge + asked
        return nn.functional.leaky_relu(total, self.slope).squeeze(-1)


def adds(layer: Any, *others: str) -> bool:
    """Whether a layer adds messages up, or does one of some other things with them."""
    return layer.aggr in ("add", "sum", *others)


_ELEMENTWISE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Identity)


def is_elementwise(act: Any) -> bool:
    """Whether an activation is None, or one that is known to work on each value alone.

    Example:
        >>> is_elementwise(nn.ReLU()), is_elementwise(nn.Softmax(dim=1))
        (True, False)
    """
    return act is None or (type(act) in _ELEMENTWISE and not getattr(act, "inplace", False))


def _steps(layer: Any) -> int:
    """As PyTorch Geometric's layers of several steps name their number."""
    steps = [getattr(layer, name, None) for name in ("K", "num_layers")]
    return max([step for step in steps if isinstance(step, int) and step > 0], default=1)


@dataclass(frozen=True, kw_only=True)
class LayerType:
    """What is known about one type of convolution.

    Args:
        convolution: the class itself; subclasses are not included, since they may compute something else.
        formula: what it computes: called with `Operations`, a layer, the value ``x``, and by name those of ``nodes``
            and ``edges`` that the layer is called with.
        can_toggle: whether the formula is right for a layer's options when it is evaluated. A layer with
            ``cached=True`` is never toggled.
        can_train: the same in training, with its dropout; by default as ``can_toggle``.
        nodes: parameters of ``forward`` with further values of nodes, such as ``x_0``.
        edges: parameters of ``forward`` with values of edges.
        modules: names of the parts that the formula uses as modules.
        steps: how many steps along the edges a layer takes.
        both_ways: whether it uses out-degrees, so that it is exact only where all edges go both ways.

    Example:
        >>> from torch_geometric.nn import GCNConv
        >>> LayerType(convolution=GCNConv, formula=lambda o, layer, x: o.sum(x, linear="lin")).steps(GCNConv(3, 2))
        1
    """

    convolution: type[nn.Module]
    formula: Callable[..., Any]
    can_toggle: Callable[[Any], bool] = adds
    can_train: Callable[[Any], bool] | None = None
    nodes: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    steps: Callable[[Any], int] = _steps
    both_ways: bool = False

    def takes(self, layer: Any, names: Mapping[str, Any]) -> bool:
        """Whether the formula knows all arguments of a call, and the direction of messages."""
        known = {"x", "edge_index", *self.nodes, *self.edges}
        return "x" in names and names.keys() <= known and bool(layer.flow == "source_to_target")

    def toggles(self, layer: Any) -> bool:
        """Whether the formula is right for a layer as it is evaluated."""
        return not getattr(layer, "cached", False) and not is_altered(layer) and bool(self.can_toggle(layer))

    def trains(self, layer: Any) -> bool:
        """The same for a layer as it is trained."""
        return bool((self.can_train or self.can_toggle)(layer)) and layer.flow == "source_to_target"


LAYER_TYPES: dict[type[nn.Module], LayerType] = {}


def register_layer_type(layer_type: LayerType) -> None:
    """Make a layer type known; a second one for the same class replaces the first.

    How far such a layer sees is then counted (`counted_layers`), not measured.

    Example:
        >>> from torch_geometric.nn import GraphConv
        >>> class OwnConv(GraphConv):
        ...     "A layer of one's own."
        >>> def formula(o, layer, x):
        ...     return o.sum(x, linear="lin_rel", bias="lin_rel.bias", root="lin_root")
        >>> register_layer_type(LayerType(convolution=OwnConv, formula=formula))
        >>> LAYER_TYPES.pop(OwnConv).formula is formula
        True
    """
    LAYER_TYPES[layer_type.convolution] = layer_type


def counted_layers(module: nn.Module) -> int:
    """Steps of all message-passing layers of a module; a layer that is used twice is counted once."""
    if not isinstance(module, MessagePassing):
        return sum(counted_layers(child) for child in module.children())
    kind = LAYER_TYPES.get(type(module))
    return (kind.steps if kind else _steps)(module)


_METHODS = ("forward", "message", "aggregate", "update", "propagate", "message_and_aggregate", "edge_update")


def is_altered(layer: nn.Module) -> bool:
    """Whether a layer of a known class does something else: it has hooks, or methods were put in place of its own."""
    return any(
        ("forward" in name and name.endswith("hooks") and bool(value)) or (name in _METHODS and callable(value))
        for part in layer.modules()
        for name, value in vars(part).items()
    )
