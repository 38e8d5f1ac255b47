from __future__ import annotations

from glasshouse import SklearnTrainer, TorchTrainer
from glasshouse.training import Trainer, mlp


def test_ours_and_a_plain_function_are_trainers() -> None:
    from sklearn.naive_bayes import GaussianNB

    assert isinstance(TorchTrainer(module=mlp(2, 2)), Trainer)
    assert isinstance(SklearnTrainer(estimator=GaussianNB()), Trainer)
    assert isinstance(lambda population, members, seed: None, Trainer)
    assert not isinstance(3, Trainer)
