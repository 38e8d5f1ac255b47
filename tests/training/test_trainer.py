from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from glasshouse import CausalLMTrainer, InputError, SklearnTrainer, TorchTrainer
from glasshouse.graph import GNNTrainer, GraphClassifierTrainer, PrivateGNNTrainer
from glasshouse.training import Trainer, mlp
from glasshouse.training.trainer import check_trainer


def test_ours_and_a_plain_function_are_trainers() -> None:
    from sklearn.naive_bayes import GaussianNB

    assert isinstance(TorchTrainer(module=mlp(2, 2)), Trainer)
    assert isinstance(SklearnTrainer(estimator=GaussianNB()), Trainer)
    assert isinstance(lambda population, members, seed: None, Trainer)
    assert not isinstance(3, Trainer)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_by_every_trainer() -> None:
    made: dict[str, Any] = {"module": lambda: nn.Linear(1, 1), "device": "cuda"}
    trainers: list[Any] = [kind(**made) for kind in (TorchTrainer, CausalLMTrainer, GraphClassifierTrainer)]
    for trainer in (*trainers, GNNTrainer(device="cuda:0"), PrivateGNNTrainer(epsilon=1.0, device="cuda")):
        with pytest.raises(InputError, match="device: torch finds no GPU for 'cuda"):
            assert trainer.place


def test_a_model_in_place_of_a_trainer_gets_the_line_that_makes_one() -> None:
    from sklearn.naive_bayes import GaussianNB

    cases: list[tuple[Any, str]] = [
        (GaussianNB(), r"GaussianNB is not a trainer. It is an estimator: pass SklearnTrainer\(estimator=…\)"),
        (GaussianNB, r"pass SklearnTrainer\(estimator=GaussianNB\(…\)\)"),
        (nn.Linear(1, 1), r"Pass TorchTrainer\(module=…\) with what makes a fresh Linear"),
        (nn.Linear, r"Pass TorchTrainer\(module=…\)"),
        ("forest", "str is not a trainer. Pass TorchTrainer, SklearnTrainer"),
    ]
    for given, message in cases:
        with pytest.raises(InputError, match=message):
            check_trainer(given)


def test_on_a_graph_the_line_names_what_trains_on_one() -> None:
    """Before, it led to SklearnTrainer, which ended in a traceback."""
    from sklearn.naive_bayes import GaussianNB

    for given in (GaussianNB(), SklearnTrainer(estimator=GaussianNB()), TorchTrainer(module=mlp(2, 2))):
        with pytest.raises(InputError, match=r"is not a trainer\. On a graph pass GNNTrainer\(…\), or a function"):
            check_trainer(given, graph=True)
    with pytest.raises(InputError, match=r"pass GNNTrainer\(model=lambda: Linear\(…\)\)"):
        check_trainer(nn.Linear, graph=True)


def test_text_for_a_number_or_a_module_is_refused_before_training() -> None:
    made: Any = TorchTrainer
    with pytest.raises(InputError, match="epochs: '20' is not a whole number; use one such as 20"):
        made(module=mlp(2, 2), epochs="20")
    with pytest.raises(InputError, match=r"module: 'mlp' is a name\. Give what makes a fresh module"):
        made(module="mlp")
