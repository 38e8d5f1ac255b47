"""Low-rank adapters (LoRA, Hu et al., ICLR 2022) on one frozen base: of one model, or of several in one pass.

The base is in memory once. Every adapted layer adds, to what the base's layer gives, the product of two thin matrices;
with several sets of them, the first part of a batch passes through the first set, the next through the second, and so
on. No set's gradient depends on another one, so models that are trained together are those that are trained alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.core.errors import InputError, number_faults, raise_faults
from glasshouse.core.randomness import seed_for

Pair = tuple[Tensor, Tensor]  # [K, rank, inputs] and [K, outputs, rank]


@dataclass(frozen=True, kw_only=True)
class LoRA:
    """Which layers are adapted, and how.

    Args:
        rank: width of the thin matrices.
        scale: what their product is multiplied by.
        layers: a regular expression that names of layers are searched for; by default all linear layers but the head.

    Example:
        >>> LoRA(layers="attn").rank
        8
    """

    rank: int = 8
    scale: float = 2.0
    layers: str = r"^(?!.*(lm_head|embed_out)$)"

    def __post_init__(self) -> None:
        raise_faults(number_faults(self, at_least={"rank": 1}))


class AdaptedBase:
    """A frozen model whose chosen layers can be adapted; it is changed in place, once for all bases of this model."""

    def __init__(self, model: nn.Module, how: LoRA) -> None:
        self.model, self.how = model.requires_grad_(False).eval(), how
        self.layers: dict[str, _Adapted] = {}
        for name, layer in list(model.named_modules()):
            parent, _, own = name.rpartition(".")
            above = model.get_submodule(parent)
            if not name or isinstance(above, _Adapted) or not re.search(how.layers, name):
                continue
            if not isinstance(layer, _Adapted) and (sizes := _sizes(layer)) is not None:
                layer = _Adapted(layer, sizes)
                setattr(above, own, layer)
            if isinstance(layer, _Adapted):
                self.layers[name.replace(".", "/")] = layer  # a parameter's name holds no full stop
        if not self.layers:
            raise InputError(f"layers: {how.layers!r} fits no linear layer of {type(model).__name__}.")

    def fresh(self, seeds: list[int], device: torch.device) -> dict[str, Pair]:
        """New adapters for each seed, by layer; they change nothing yet."""
        found = {}
        for name, layer in self.layers.items():
            inputs, outputs = layer.sizes
            first = []
            for seed in seeds:
                random = torch.Generator().manual_seed(seed_for(seed, "adapter", name))
                first.append(torch.randn(self.how.rank, inputs, generator=random) / inputs**0.5)
            found[name] = (torch.stack(first).to(device), torch.zeros(len(seeds), outputs, self.how.rank).to(device))
        return found

    @contextlib.contextmanager
    def using(self, pairs: Mapping[str, Pair]) -> Iterator[nn.Module]:
        """The base with these adapters."""
        for name, pair in pairs.items():
            self.layers[name].pair, self.layers[name].scale = pair, self.how.scale
        try:
            yield self.model
        finally:
            for layer in self.layers.values():
                layer.pair = None


class AdaptedModel(nn.Module):
    """A base, which other models share, with one set of adapters; its weights are those of the adapters alone.

    They are both matrices of each layer, [rank, inputs] and [outputs, rank], by ``layer:A`` and ``layer:B``.
    """

    def __init__(self, base: AdaptedBase, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        if wrong := weights.keys() ^ {f"{name}:{side}" for name in base.layers for side in "AB"}:
            raise InputError(f"the adapters do not fit the base: {min(wrong)!r} is there for one of them alone.")
        self._base = (base,)  # in a tuple, so that the base is no part of this module
        for name, value in weights.items():
            self.register_parameter(name, nn.Parameter(value.clone(), requires_grad=False))

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the adapted base answers."""
        base = self._base[0]
        held = dict(self.named_parameters())
        pairs = {name: (held[f"{name}:A"][None], held[f"{name}:B"][None]) for name in base.layers}
        with base.using(pairs) as model:
            return model(*inputs, **named)

    def _apply(self, fn: Any, recurse: bool = True) -> AdaptedModel:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._base[0].model._apply(fn)  # the base goes where its adapters go
        return self


class _Adapted(nn.Module):
    """A frozen linear layer, and what adapters add to it."""

    scale: float

    def __init__(self, layer: nn.Module, sizes: tuple[int, int]) -> None:
        super().__init__()
        self.layer, self.sizes = layer, sizes
        self.pair: Pair | None = None

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.layer(x)
        if self.pair is None:
            return given
        first, second = (one.to(x.dtype) for one in self.pair)
        wide = x.reshape(len(first), -1, x.shape[-1])  # [K, records of each model, inputs]
        added = wide @ first.transpose(1, 2) @ second.transpose(1, 2)
        return given + self.scale * added.reshape(given.shape)


def _sizes(layer: nn.Module) -> tuple[int, int] | None:
    """Inputs and outputs of a linear layer; the ``Conv1D`` of transformers has its weights the other way round."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if type(layer).__name__ == "Conv1D" and isinstance(weight := getattr(layer, "weight", None), Tensor):
        return weight.shape[0], weight.shape[1]
    return None
