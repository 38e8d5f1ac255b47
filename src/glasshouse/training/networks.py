"""Small torch networks for tables and small images, and wide residual networks (Zagoruyko and Komodakis, 2016).

The paper uses a wide residual network of depth 28 and width 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from glasshouse.core.errors import InputError


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


class WideResNet(nn.Module):
    """A pre-activation residual network in three groups; between them the image is halved, the channels are doubled.

    Args:
        classes: how many logits it gives.
        depth: layers in all, 6n + 4.
        width: factor on the 16, 32 and 64 channels of the groups.
        channels: colours of the input.

    Example:
        >>> model = WideResNet(classes=10, depth=10, width=1).eval()
        >>> model(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(self, *, classes: int, depth: int = 28, width: int = 2, channels: int = 3) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise InputError(f"depth: {depth} is not 6n + 4; use 10, 16, 22, 28, 40, …")
        blocks = (depth - 4) // 6
        widths = [16, 16 * width, 32 * width, 64 * width]
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.groups = nn.Sequential(
            *[
                _Block(widths[group] if block == 0 else widths[group + 1], widths[group + 1], stride)
                for group, first_stride in enumerate((1, 2, 2))
                for block, stride in enumerate([first_stride] + [1] * (blocks - 1))
            ]
        )
        self.norm = nn.BatchNorm2d(widths[-1])
        self.head = nn.Linear(widths[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, classes] of images [B, channels, H, W]."""
        x = torch.relu(self.norm(self.groups(self.stem(x))))
        return self.head(x.mean(dim=(2, 3)))  # type: ignore[no-any-return]


class _Block(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut, normalised before each."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.norm_1 = nn.BatchNorm2d(before)
        self.conv_1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.norm_2 = nn.BatchNorm2d(after)
        self.conv_2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        reshaped = before != after or stride != 1
        self.shortcut = nn.Conv2d(before, after, 1, stride=stride, bias=False) if reshaped else None

    def forward(self, x: Tensor) -> Tensor:
        active = torch.relu(self.norm_1(x))
        kept = x if self.shortcut is None else self.shortcut(active)
        return kept + self.conv_2(torch.relu(self.norm_2(self.conv_1(active))))  # type: ignore[no-any-return]
