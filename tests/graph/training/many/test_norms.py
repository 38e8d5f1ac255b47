from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.graph.training.many.graph import BatchedGraph
from glasshouse.graph.training.many.layers import batch_norm
from glasshouse.training.batches import ModuleBatch

WIDTH, SIZES = 5, (2, 40, 64)


def graphs() -> BatchedGraph:
    none = torch.empty(2, 0).long()
    return BatchedGraph.of([Data(x=torch.zeros(n, 1), edge_index=none, y=torch.zeros(n).long()) for n in SIZES])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": None}, {"momentum": 0.3, "eps": 0.1}, {"affine": False}, {"track_running_stats": False}],
)
def test_each_model_is_normalised_as_by_its_own_module(options: dict[str, float | None], training: bool) -> None:
    """Values, gradients and running statistics over three steps, with other values in the rows that fill graphs up."""
    random = torch.Generator().manual_seed(0)
    alone = [nn.BatchNorm1d(WIDTH, **options).train(training) for _ in SIZES]  # type: ignore[arg-type]
    for norm in alone:
        for tensor in (*norm.parameters(), norm.running_mean, norm.running_var):
            if tensor is not None:
                tensor.data.copy_(torch.rand(WIDTH, generator=random) + 0.5)
    batch, graph = ModuleBatch(alone), graphs()
    weights: dict[str, Tensor] = {**batch.parameters, **batch.buffers}
    for _ in range(3):
        hidden = torch.randn(len(SIZES), graph.size, WIDTH, generator=random) * 3 + 1
        upstream = torch.randn(hidden.shape, generator=random)
        for k, n in enumerate(SIZES):
            upstream[k, n:] = 0  # what fills a graph up never reaches a loss
        together = hidden.clone().requires_grad_()
        found = batch_norm(together, alone[0], weights, graph)
        found.backward(upstream)
        assert together.grad is not None
        for k, (norm, n) in enumerate(zip(alone, SIZES, strict=True)):
            own = hidden[k, :n].clone().requires_grad_()
            wanted = norm(own)
            wanted.backward(upstream[k, :n])
            torch.testing.assert_close(found[k, :n], wanted, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(together.grad[k, :n], own.grad, atol=1e-5, rtol=1e-5)
            assert not together.grad[k, n:].any()
            for name, parameter in norm.named_parameters():
                torch.testing.assert_close(batch.parameters[name].grad[k], parameter.grad, atol=1e-4, rtol=1e-5)  # type: ignore[index]
            for name, buffer in norm.named_buffers():
                torch.testing.assert_close(batch.buffers[name][k], buffer, atol=1e-5, rtol=1e-5)
