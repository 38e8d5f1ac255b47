"""Small torch networks for tables and small images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from torch import nn

__all__ = ["cnn", "mlp"]


def mlp(inputs: int, outputs: int, *, hidden: Sequence[int] = (128,), dropout: float = 0.0) -> Callable[[], nn.Module]:
    """A factory of multi-layer perceptrons: flatten, then linear layers with ReLU and dropout between them.

    Args:
        inputs: features per record, after flattening.
        outputs: classes; 1 gives a binary model with one logit.
        hidden: widths of the hidden layers.
        dropout: share of hidden values dropped while training.

    Example:
        >>> import torch
        >>> mlp(4, 3, hidden=(8,))()(torch.zeros(2, 2, 2)).shape
        torch.Size([2, 3])
    """

    def build() -> nn.Module:
        widths = [inputs, *hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in itertools.pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
            if dropout > 0:
                layers.append(nn.Dropout(dropout))
        return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    return build


def cnn(channels: int, outputs: int, *, widths: Sequence[int] = (16, 32, 64)) -> Callable[[], nn.Module]:
    """A factory of small convolutional networks: 3 x 3 convolutions, each followed by ReLU and a halved image.

    What is left of the image is averaged to 2 x 2 places before the last, linear layer.

    Args:
        channels: colours of the input.
        outputs: classes.
        widths: channels after each convolution.

    Example:
        >>> import torch
        >>> cnn(3, 10)()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def build() -> nn.Module:
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise([channels, *widths]):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * widths[-1], outputs))

    return build
