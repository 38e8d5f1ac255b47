"""Trainers: ``(population, members, seed) -> model``, ours and the user's; those of torch are imported when used."""

from typing import TYPE_CHECKING

from glasshouse.core.optional import lazy_exports
from glasshouse.training.sklearn import SklearnTrainer
from glasshouse.training.trainer import Trainer, Versioned

if TYPE_CHECKING:
    from glasshouse.training.lightning import LightningTrainer
    from glasshouse.training.networks import WideResNet, cnn, mlp
    from glasshouse.training.private import PrivateTrainer
    from glasshouse.training.schedules import CropAndFlip, EarlyStopping, OneCycle
    from glasshouse.training.torch import TorchTrainer
    from glasshouse.training.transformers import TransformersTrainer

__all__ = [
    "CropAndFlip",
    "EarlyStopping",
    "LightningTrainer",
    "OneCycle",
    "PrivateTrainer",
    "SklearnTrainer",
    "TorchTrainer",
    "Trainer",
    "TransformersTrainer",
    "Versioned",
    "WideResNet",
    "cnn",
    "mlp",
]
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "glasshouse.training.lightning": ["LightningTrainer"],
        "glasshouse.training.networks": ["WideResNet", "cnn", "mlp"],
        "glasshouse.training.private": ["PrivateTrainer"],
        "glasshouse.training.schedules": ["CropAndFlip", "EarlyStopping", "OneCycle"],
        "glasshouse.training.torch": ["TorchTrainer"],
        "glasshouse.training.transformers": ["TransformersTrainer"],
    },
)
