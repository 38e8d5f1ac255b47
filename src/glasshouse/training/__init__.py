"""Trainers: ``(population, members, seed) -> model``, ours and the user's."""

from glasshouse.training.lightning import LightningTrainer
from glasshouse.training.networks import WideResNet, cnn, mlp
from glasshouse.training.private import PrivateTrainer
from glasshouse.training.schedules import CropAndFlip, EarlyStopping, OneCycle
from glasshouse.training.sklearn import SklearnTrainer
from glasshouse.training.torch import TorchTrainer
from glasshouse.training.trainer import Trainer, Versioned
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
