"""Settings of i.i.d. records: the paper's images and trainers (App. "i.i.d. Data"), and two tabular data sets."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from glasshouse.core.registry import Registry
from glasshouse.training import CropAndFlip, EarlyStopping, OneCycle, TorchTrainer, WideResNet, cnn, mlp

__all__ = ["RECORD_SETTINGS", "RecordSetting"]


@dataclass(frozen=True, kw_only=True)
class RecordSetting:
    """One column of the paper's i.i.d. tables, or a small version of it.

    Args:
        name: of the setting and of its files.
        data: a name for `load_dataset`.
        options: for `load_dataset`, such as ``first`` or ``records``.
        paper_name: what the paper's tables call the data; another name if the figures are not comparable.
        model: what they call the architecture.
        trainer: with all of its epochs.
        together: models trained at once, which a killed run loses; 1 where they cannot be batched.
        note: what differs from the paper, written next to the figures.

    Example:
        >>> quicker = RECORD_SETTINGS.find("cifar10").changed(options={"first": 20_000}, epochs=12, augmentation=None)
        >>> quicker.trainer.epochs, quicker.trainer.batch_size, dict(quicker.options)
        (12, 500, {'first': 20000})
    """

    name: str
    data: str
    options: Mapping[str, Any] = field(default_factory=dict)
    paper_name: str
    model: str
    trainer: TorchTrainer
    together: int = 1
    note: str = ""

    def changed(self, *, options: Mapping[str, Any] | None = None, **training: Any) -> Self:
        """The same with other options for the data, or with other fields of the trainer."""
        trainer = dataclasses.replace(self.trainer, **training)
        return dataclasses.replace(self, trainer=trainer, options=self.options if options is None else options)


# 500 per step divide half of the images evenly: all steps have one shape, and torch.compile compiles only one.
_COMMON: dict[str, Any] = {"batch_size": 500, "augmentation": CropAndFlip()}


def _early_stopped(classes: int) -> TorchTrainer:
    """As in the paper: up to 100 epochs, augmented, stopped early; the optimizer is our choice, since it names none."""
    return TorchTrainer(
        module=functools.partial(WideResNet, classes=classes),
        optimizer=functools.partial(torch.optim.Adam, lr=1e-3),
        epochs=100,
        early_stopping=EarlyStopping(patience=10),
        **_COMMON,
    )


def _one_cycle(classes: int) -> TorchTrainer:
    return TorchTrainer(
        module=functools.partial(WideResNet, classes=classes),
        optimizer=functools.partial(torch.optim.SGD, lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=OneCycle(),
        epochs=20,
        **_COMMON,
    )


RECORD_SETTINGS: Registry[RecordSetting] = Registry("a data set of records")
for _name, _title, _classes, _accuracy in (
    ("cifar10", "CIFAR-10", 10, "93.73 % and 80.45 %"),
    ("cifar100", "CIFAR-100", 100, "75.97 % and 49.89 %"),
):
    _common = {"data": _name, "paper_name": _title, "model": "WRN-28-2"}
    _printed = f"The paper's models are right on {_accuracy} of members and others."
    RECORD_SETTINGS.add(
        _name,
        RecordSetting(
            name=_name,
            trainer=_early_stopped(_classes),
            note=f"The paper does not name its optimizer; this is Adam. {_printed}",
            **_common,  # type: ignore[arg-type]
        ),
    )
    RECORD_SETTINGS.add(
        f"{_name}-fast",
        RecordSetting(
            name=f"{_name}-fast",
            trainer=_one_cycle(_classes),
            note=f"One cycle of few epochs, where the paper stops up to 100 epochs early. {_printed}",
            **_common,  # type: ignore[arg-type]
        ),
    )
RECORD_SETTINGS.add(
    "cifar10-small",
    RecordSetting(
        name="cifar10-small",
        data="cifar10",
        options={"records": 2000, "first": 10_000},
        paper_name="CIFAR-10 (2000 images)",
        model="small CNN",
        trainer=TorchTrainer(module=cnn(3, 10), epochs=30, batch_size=50),
        note="A taste, not the paper's: 2000 images and a small network without augmentation.",
    ),
)
RECORD_SETTINGS.add(
    "digits",
    RecordSetting(
        name="digits",
        data="digits",
        paper_name="Digits",
        model="MLP",
        trainer=TorchTrainer(module=mlp(64, 10), epochs=200),
        together=8,
        note="A taste, not the paper's: scikit-learn's digits, a tenth of the labels made wrong on purpose, and a "
        "perceptron.",
    ),
)
RECORD_SETTINGS.add(
    "adult",
    RecordSetting(
        name="adult",
        data="adult",
        options={"records": 10_000},
        paper_name="Adult",
        model="MLP",
        trainer=TorchTrainer(module=mlp(106, 2, hidden=(256,)), epochs=60),
        together=8,
        note="Not in the paper: 10 000 records of UCI Adult and a perceptron trained for 60 epochs.",
    ),
)
