"""The operations of stacked models on kept values, and how a layer's formula becomes such operations.

The weights of one layer of several models are detached and in one tensor.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP

from glasshouse.graph.layers.layer_type import Normalisation, NotDescribed
from glasshouse.graph.programs.program import MessageStep, arguments_of, toggled_type
from glasshouse.graph.programs.rows import RowFunction, project, stacked_modules
from glasshouse.graph.rule.incremental.any_layer import Unknown
from glasshouse.graph.rule.incremental.attention import Attention, EdgeValues, Ends
from glasshouse.graph.rule.incremental.layer import Layer
from glasshouse.graph.rule.incremental.maximum import Maximum
from glasshouse.graph.rule.incremental.sum import Loops, Scaling, Summed

SAMPLE = 4  # rows that every value has while a program is lowered, to learn widths and to compare ways to compute


@dataclass(frozen=True, eq=False)
class Slot:
    """A value of the stacked program."""

    number: int  # its place
    sample: Tensor  # a few rows [rows, models or 1, width] of random numbers, of its width and type
    fixed: bool  # whether it depends on a node's own features alone, so that no toggle changes it

    @property
    def width(self) -> int:
        """Columns of one model."""
        return int(self.sample.shape[2])

    @property
    def shared(self) -> bool:
        """Whether it is the same for all models, [rows, 1, width]."""
        return int(self.sample.shape[1]) == 1


@dataclass(frozen=True, kw_only=True, eq=False)
class MessageOperation:
    """A stacked layer that reads one value."""

    layer: Layer
    source: Slot
    result: Slot


@dataclass(frozen=True, kw_only=True, eq=False)
class RowOperation:
    """A row-wise function of one or several values."""

    function: RowFunction
    sources: tuple[Slot, ...]
    result: Slot


Operation = MessageOperation | RowOperation


def sources_of(operation: Operation) -> tuple[Slot, ...]:
    """The values that an operation reads."""
    return (operation.source,) if isinstance(operation, MessageOperation) else operation.sources


@dataclass(kw_only=True)
class Builder:
    """Collects the operations of K models; a layer type adds those of its layer."""

    models: int  # K
    device: torch.device  # of the weights
    dtype: torch.dtype  # that the models compute in
    operations: list[Operation] = field(default_factory=list)
    _slots: int = 0

    def features(self, x: Tensor) -> Slot:
        """The nodes' features [n, width], which all models share; whole numbers stay so, as they may be codes."""
        rows = x[:SAMPLE].to(self.device)
        return self._slot((rows.to(self.dtype) if x.is_floating_point() else rows).unsqueeze(1), fixed=True)

    def message(self, layer: Layer, source: Slot, *, shared: bool = False) -> Slot:
        """Add one step of message passing; ``shared`` if its result is the same for all models."""
        result = self._slot(self._random(1 if shared else self.models, layer.width), fixed=False)
        self.operations.append(MessageOperation(layer=layer, source=source, result=result))
        return result

    def rows(self, function: RowFunction, *sources: Slot) -> Slot:
        """Add a function that makes each row from the same rows of its sources, [rows, models or 1, width]."""
        sample = function(*[source.sample for source in sources])
        result = self._slot(sample, fixed=all(source.fixed for source in sources))
        self.operations.append(RowOperation(function=function, sources=sources, result=result))
        return result

    def _random(self, models: int, width: int) -> Tensor:
        source = torch.Generator().manual_seed(self._slots)
        return torch.randn(SAMPLE, models, width, generator=source).to(self.device, self.dtype)

    def _slot(self, sample: Tensor, *, fixed: bool) -> Slot:
        self._slots += 1
        return Slot(self._slots - 1, sample, fixed)


def formula_operations(
    step: MessageStep, layers: Sequence[Any], build: Builder, slots: Mapping[str, Slot], edges: Mapping[str, Tensor]
) -> Slot | None:
    """Add one message-passing call by the formula of its type; None if there is none that fits.

    ``slots`` are the values of nodes by name, ``edges`` those of edges, [edges, models or 1, ...].
    """
    kind, before = toggled_type(layers[0], step), len(build.operations)
    if kind is None:
        return None
    names = {argument: value.name for argument, value in arguments_of(layers[0], step).items()}
    try:
        nodes = {argument: slots[names[argument]] for argument in ("x", *kind.nodes) if argument in names}
        given = {argument: edges[names[argument]] for argument in kind.edges if argument in names}
        made: Slot = kind.formula(_Toggling(layers, build), layers[0], **nodes, **given)
    except (NotDescribed, KeyError):  # values of edges that no formula understands
        del build.operations[before:]
        return None
    return made


def asked_operation(
    step: MessageStep,
    layers: Sequence[Callable[..., Tensor]],
    build: Builder,
    slots: Mapping[str, Slot],
    edges: Mapping[str, Tensor],
    **options: Any,
) -> Slot:
    """Add one call of layers that are asked themselves; arguments as of `formula_operations`, options of `Unknown`."""
    sources = [slots[name] for name in step.inputs]
    joined = sources[0] if len(sources) == 1 else build.rows(_joined, *sources)
    widths = tuple(source.width for source in sources)
    values = {name: edges[name] for name in step.edges}
    layer = Unknown(step=step, layers=layers, widths=widths, edges=values, sample=joined.sample, **options)
    return build.message(layer, joined)


def _joined(*rows: Tensor) -> Tensor:
    """Values side by side, [rows, models, sum of widths]."""
    models = max(one.shape[1] for one in rows)
    return torch.cat([one.expand(-1, models, -1) for one in rows], dim=2)


class _Rows:
    """The row-wise part of `glasshouse.graph.layers.layer_type.Operations` on rows [rows, models or 1, width]."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = layers
        self._known: dict[tuple[Any, ...], Any] = {}

    def _once(self, make: Callable[..., Any], *names: Any) -> Any:
        if (make, *names) not in self._known:
            self._known[(make, *names)] = make(*names)
        return self._known[(make, *names)]

    def found(self, name: str) -> list[Any]:
        """What all layers have under a name."""
        return [functools.reduce(_part, name.split("."), layer) for layer in self.layers]

    def maps(self, name: str) -> Tensor:
        """The weights of linear maps, [models, width, out]."""
        found = [one.weight.T if hasattr(one, "weight") else one for one in self.found(name)]
        return torch.stack([one.detach() for one in found]).contiguous()

    def vectors(self, name: str | None) -> Tensor | None:
        """Vectors of all models, [models, numbers], or None if they have none."""
        found = [None] if name is None else self.found(name)
        if found[0] is None:
            return None
        return torch.stack([torch.as_tensor(one).detach().reshape(-1) for one in found])

    def _affine(self, name: str, bias: bool, towards: str | None) -> tuple[Tensor, Tensor | None]:
        weight = self.maps(name)
        shift = self.vectors(f"{name}.bias") if bias and isinstance(self.found(name)[0], nn.Module) else None
        if towards is not None:
            vector = torch.cat([one.detach() for one in self.found(towards)]).unsqueeze(1)  # [models, 1, heads, ...]
            weight = (weight.view(*weight.shape[:2], *vector.shape[2:]) * vector).sum(-1)
        return weight, shift

    def linear(self, x: Tensor, name: str, *, bias: bool = True, towards: str | None = None) -> Tensor:
        weight, shift = self._once(self._affine, name, bias, towards)
        made = project(x, weight)
        return made if shift is None else made + shift

    def rows(self, function: Callable[..., Tensor], *values: Tensor, weights: Sequence[str] = ()) -> Tensor:
        return function(*values, *[self._once(self.vectors, name) for name in weights])


def _part(owner: Any, name: str) -> Any:
    if owner is None:
        return None
    return owner[int(name)] if name.isdigit() else getattr(owner, name)


class _Toggling(_Rows):
    """`glasshouse.graph.layers.layer_type.Operations` that add operations of stacked models to a builder."""

    def __init__(self, layers: Sequence[Any], build: Builder) -> None:
        super().__init__(layers)
        self.build = build
        self.on_rows = _Rows(layers)

    def linear(self, x: Any, name: str, *, bias: bool = True, towards: str | None = None) -> Any:
        return self.build.rows(lambda rows: self.on_rows.linear(rows, name, bias=bias, towards=towards), x)

    def rows(self, function: Callable[..., Tensor], *values: Any, weights: Sequence[str] = ()) -> Any:
        if not weights:
            return self.build.rows(function, *values)
        return self.build.rows(functools.partial(self.on_rows.rows, function, weights=weights), *values)

    def add(self, *values: Slot, factors: Sequence[float] | None = None, bias: str | None = None) -> Slot:
        shift, factors = self.vectors(bias), factors or [1.0] * len(values)

        def apply(*rows: Tensor) -> Tensor:
            scaled = [row if factor == 1 else factor * row for row, factor in zip(rows, factors, strict=True)]
            total = functools.reduce(torch.add, scaled)
            return total if shift is None else total + shift

        return self.build.rows(apply, *values)

    def module(self, x: Slot, name: str) -> Slot:
        return self.build.rows(stacked_modules(self.found(name), x.sample), x)

    def sum(
        self,
        x: Slot,
        *,
        linear: str | None = None,
        bias: str | None = None,
        root: str | None = None,
        norm: Normalisation = "none",
        loops: Loops = "listed",
        weight: Tensor | None = None,
        only: int | None = None,
        sums_first: bool = False,
        **factors: float,
    ) -> Slot:
        if norm == "laplacian":  # the largest entry of the Laplacian is 1, which PyTorch Geometric scales it by
            norm, loops = "symmetric", "dropped"
        edges = _shared(weight)
        if edges is not None and only is not None:
            edges = (edges == only).to(self.build.dtype)
        how = Scaling(normalisation=norm, loops=loops, edge_weight=edges, weighted_mean=only is not None, **factors)
        maps, roots = (None if name is None else self.maps(name) for name in (linear, root))
        sample = x.sample if maps is None else maps
        layer = Summed(weight=maps, root=roots, bias=self.vectors(bias), scaling=how, sample=sample)
        return self.build.message(layer, x, shared=layer.models == 1 and x.shared)

    def max(
        self, x: Slot, *, linear: str, bias: str | None = None, root: str | None = None, weight: Tensor | None = None
    ) -> Slot:
        if weight is not None:
            raise NotDescribed
        own = None if root is None else self.maps(root)
        return self.build.message(Maximum(weight=self.maps(linear), root=own, bias=self.vectors(bias)), x)

    def module_of_sum(self, x: Slot, name: str, *, own: str) -> Slot:
        """The first linear map commutes with the sum; the steps after it are applied to each finished row."""
        modules, share = self.found(name), torch.stack([torch.as_tensor(one).reshape(-1) for one in self.found(own)])
        first = _first_map(modules[0])
        if first is None:
            return self.module(self.build.rows(lambda sums, x: sums + (1 + share) * x, self.sum(x), x), name)
        maps, rest = f"{name}.{first}", [_after_first(one) for one in modules]
        weight = self.maps(maps)
        root = weight * (1 + share.to(weight)).unsqueeze(2)
        layer = Summed(weight=weight, bias=self.vectors(f"{maps}.bias"), root=root, sample=weight)
        sums = self.build.message(layer, x)
        return self.build.rows(stacked_modules(rest, sums.sample), sums) if len(list(rest[0].children())) else sums

    def attend(
        self,
        x: Slot,
        ends: Callable[[Any, Any], tuple[Any, Any, Any]],
        *,
        score: Callable[..., Tensor] | None = None,
        message: Callable[..., Tensor] | None = None,
        weights: Sequence[str] = (),
        heads: int = 1,
        edges: Tensor | None = None,
        edge: Callable[[Any, Any], Any] | None = None,
        dropout: float = 0.0,
        bias: str | None = None,
        **options: Any,
    ) -> Slot:
        rows, given = self.on_rows, None
        if edges is not None:
            if edges.ndim > 3:
                raise NotDescribed
            edges = (edges.unsqueeze(2) if edges.ndim == 2 else edges).to(self.build.dtype)
            given = EdgeValues(values=edges, map=None if edge is None else functools.partial(edge, rows))
        vectors = [self.maps(name).flatten(1).unflatten(1, (heads, -1)) for name in weights]

        def parts(inputs: Tensor) -> Ends:
            shown, sent, asked = ends(rows, inputs)
            one = sent.unflatten(2, (heads, -1))
            other = one if shown is None or shown is sent else shown.unflatten(2, (heads, -1))
            return Ends(other, one, None if asked is None else asked.unflatten(2, (heads, -1)))

        layer = Attention(
            ends=parts,
            sample=x.sample,
            score=functools.partial(_scored, score, vectors) if score and vectors else score,
            message=message,
            edges=given,
            bias=self.vectors(bias),
            **options,
        )
        return self.build.message(layer, x, shared=layer.models == 1 and x.shared)


def _scored(score: Callable[..., Tensor], vectors: Sequence[Tensor], *parts: Tensor | None) -> Tensor:
    return score(*parts, *vectors)


def _shared(weight: Tensor | None) -> Tensor | None:
    """One number per edge, [edges], from [edges, 1]; weights that differ between models are not described."""
    if weight is not None and (weight.ndim != 2 or weight.shape[1] != 1):
        raise NotDescribed
    return None if weight is None else weight[:, 0]


def _first_map(module: Any) -> str | None:
    """The name of the linear map that a perceptron starts with, if it does."""
    if type(module) is MLP and len(module.lins):
        return "lins.0"
    parts = list(module.children())
    return "0" if type(module) is nn.Sequential and parts and type(parts[0]) is nn.Linear else None


def _after_first(module: Any) -> Any:
    """A perceptron without its first linear map."""
    if type(module) is not MLP:
        return module[1:]
    rest = copy.deepcopy(module)
    rest.lins[0] = nn.Identity()
    return rest
