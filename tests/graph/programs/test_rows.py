"""Row-wise operations of several models at once give what each model gives alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.nn import MLP, BatchNorm, LayerNorm

from glasshouse.graph.programs.rows import stacked_modules

WIDTH, MODELS = 6, 3


class Odd(nn.Module):
    """Operations without a form for all models: they are mapped, or asked one model at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.lin = nn.Parameter(torch.randn(WIDTH)), nn.Linear(WIDTH // 2, 2)

    def forward(self, rows: Tensor) -> Tensor:
        left, right = rows.chunk(2, dim=-1)
        return F.log_softmax(self.lin(left * right.softmax(-1)), dim=1) + self.scale[:2].clamp(min=0)


class Memory(nn.Module):
    """A recurrent network over the columns, which ``vmap`` cannot take."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(1, 4, batch_first=True)

    def forward(self, rows: Tensor) -> Tensor:
        return self.cells(rows.unsqueeze(-1))[0][:, -1]  # type: ignore[no-any-return]


OPERATIONS: dict[str, Any] = {
    "ReLU": nn.ReLU,
    "ReLU in place": lambda: nn.ReLU(inplace=True),
    "PReLU": lambda: nn.PReLU(WIDTH),
    "Linear": lambda: nn.Linear(WIDTH, 4),
    "Linear without bias": lambda: nn.Linear(WIDTH, 4, bias=False),
    "BatchNorm1d": lambda: nn.BatchNorm1d(WIDTH),
    "BatchNorm1d without weights": lambda: nn.BatchNorm1d(WIDTH, affine=False),
    "PyG's BatchNorm": lambda: BatchNorm(WIDTH),
    "LayerNorm": lambda: nn.LayerNorm(WIDTH),
    "PyG's LayerNorm of rows": lambda: LayerNorm(WIDTH, mode="node"),
    "GroupNorm": lambda: nn.GroupNorm(2, WIDTH),
    "a perceptron": lambda: nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.ELU(), nn.Linear(8, 2)),
    "PyG's perceptron": lambda: MLP([WIDTH, 8, 2], act="leaky_relu", norm="layer_norm", norm_kwargs={"mode": "node"}),
    "odd operations": Odd,
    "an LSTM": Memory,
}


def made(name: str) -> list[nn.Module]:
    """Modules whose weights and statistics all differ."""
    models = [OPERATIONS[name]().double().eval() for _ in range(MODELS)]
    for model in models:
        for key, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) + 0.3 if key.endswith("var") else torch.randn_like(value))
    return models


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("shared", [False, True], ids=["own rows", "the same rows"])
def test_all_models_at_once_are_each_model_alone(name: str, shared: bool) -> None:
    torch.manual_seed(len(name))
    models = made(name)
    rows = torch.randn(11, 1 if shared else MODELS, WIDTH, dtype=torch.float64)
    before = rows.clone()
    found = stacked_modules(models, rows[:4])(rows)
    with torch.no_grad():
        wanted = [model(rows[:, 0 if shared else k].clone()) for k, model in enumerate(models)]
    torch.testing.assert_close(found.expand(-1, MODELS, -1), torch.stack(wanted, dim=1))
    assert torch.equal(rows, before), "a toggle may read its inputs again"


def test_settings_of_a_norm_are_used() -> None:
    norm, rows = nn.LayerNorm(WIDTH, eps=10.0), torch.randn(5, 2, WIDTH)
    torch.testing.assert_close(stacked_modules([norm, norm], rows)(rows)[:, 1], norm(rows[:, 1]))


class Residual(nn.Module):
    """Its input is read again after the ReLU."""

    def forward(self, rows: Tensor) -> Tensor:
        return torch.relu(rows) + rows


@pytest.mark.parametrize("start", [nn.ReLU(), nn.ReLU(inplace=True), Residual()])
def test_writing_into_rows_that_nobody_else_needs_gives_the_same(start: nn.Module) -> None:
    models = [nn.Sequential(start, nn.Linear(WIDTH, 2)) for _ in range(MODELS)]
    rows = torch.randn(9, MODELS, WIDTH)
    function: Any = stacked_modules(models, rows[:4])
    torch.testing.assert_close(function.overwriting(rows.clone()), function(rows))
