"""A graph neural network as users write it, around given convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

__all__ = ["Mine"]


class Mine(nn.Module):
    """A user's module around given convolutions; perhaps with BatchNorm and residuals."""

    def __init__(self, convolutions: Sequence[nn.Module], *, rich: bool = False) -> None:
        super().__init__()
        self.convolutions, self.rich = nn.ModuleList(convolutions), rich
        inner = [int(layer.out_channels) * int(getattr(layer, "heads", 1)) for layer in convolutions[:-1]]  # type: ignore[arg-type]
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in inner)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Log-probabilities [n, classes]."""
        for number, convolution in enumerate(self.convolutions[:-1]):
            hidden = convolution(x, edge_index)
            hidden = (self.norms[number](hidden) if self.rich else hidden).relu()
            hidden = hidden + x if self.rich and number else hidden
            x = nn.functional.dropout(hidden, 0.5, self.training)
        return nn.functional.log_softmax(self.convolutions[-1](x, edge_index), dim=-1)
