"""Trainers: ``(population, members, seed) -> model``, ours and the user's; those of torch are imported when used."""

from typing import TYPE_CHECKING

from glasshouse.core.optional import lazy_exports
from glasshouse.training.sklearn import SklearnTrainer
from glasshouse.training.trainer import Trainer, Versioned

if TYPE_CHECKING:
    from glasshouse.training.libraries import LightningTrainer, PrivateTrainer, TransformersTrainer
    from glasshouse.training.networks import WideResNet, cnn, mlp
    from glasshouse.training.schedules import CropAndFlip, EarlyStopping, OneCycle
    from glasshouse.training.torch import TorchTrainer

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
__getattr__, __dir__ = lazy_exports(__name__)
