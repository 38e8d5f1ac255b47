"""Trainers: ``(population, members, seed) -> model``, ours and the user's."""

from glasshouse.training.augmentation import CropAndFlip
from glasshouse.training.early_stopping import EarlyStopping
from glasshouse.training.lightning_trainer import LightningTrainer
from glasshouse.training.networks import cnn, mlp
from glasshouse.training.private_trainer import PrivateTrainer
from glasshouse.training.schedules import OneCycle
from glasshouse.training.sklearn_trainer import SklearnTrainer
from glasshouse.training.torch_trainer import TorchTrainer
from glasshouse.training.trainer import Trainer
from glasshouse.training.transformers_trainer import TransformersTrainer
from glasshouse.training.versioned import Versioned
from glasshouse.training.wide_resnet import WideResNet

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
