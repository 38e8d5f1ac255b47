"""A model in a few words, from the description of its trainer."""

from __future__ import annotations

import re

__all__ = ["model_words"]

_LONGEST = 160
_ESTIMATOR = re.compile(r"estimator=(\w+)")


def model_words(trainer: str) -> str:
    """What trained the model, without the parameters that are listed under "How to repeat it".

    Example:
        >>> model_words("PrivateTrainer(module=<function mlp>, epsilon=3.0, delta=1e-05)")
        'a network trained with differential privacy (epsilon 3.0)'
        >>> model_words("SklearnTrainer(estimator=RandomForestClassifier(n_estimators=200))")
        'RandomForestClassifier'
    """
    if not trainer or trainer.startswith("none:"):
        return "given to the audit as it is; its training is not known here"
    if trainer.startswith("GNNTrainer"):
        network = re.search(r"architecture='([^']+)'", trainer) if "model=None" in trainer else None
        return f"a graph neural network ({network[1] if network else 'its owner’s'})"
    if trainer.startswith("PrivateTrainer"):
        epsilon = re.search(r"epsilon=([\d.e+-]+)", trainer)
        return f"a network trained with differential privacy (epsilon {epsilon[1] if epsilon else 'not known'})"
    if found := _ESTIMATOR.search(trainer):
        return found[1]
    if trainer.startswith("TorchTrainer"):
        return "a network trained with PyTorch"
    return trainer if len(trainer) <= _LONGEST else f"{trainer[: _LONGEST - 1]}…"
