"""Trainers: ``(population, members, seed) -> model``, ours and the user's."""

from glasshouse.training.augmentation import CropAndFlip
from glasshouse.training.networks import mlp
from glasshouse.training.private_trainer import PrivateTrainer
from glasshouse.training.sklearn_trainer import SklearnTrainer
from glasshouse.training.torch_trainer import EarlyStopping, TorchTrainer
from glasshouse.training.trainer import Trainer
from glasshouse.training.wide_resnet import WideResNet

__all__ = [
    "CropAndFlip",
    "EarlyStopping",
    "PrivateTrainer",
    "SklearnTrainer",
    "TorchTrainer",
    "Trainer",
    "WideResNet",
    "mlp",
]
