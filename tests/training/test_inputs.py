"""What a torch module gets: whole numbers if it takes them, floats in its own precision, dicts by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
import torch
from torch import Tensor, nn

from glasshouse import InputError, Population, PrivateTrainer, TorchTrainer, audit, mlp
from glasshouse.query.classify import population_logits
from glasshouse.training.inputs import reader_for, tensor_of
from glasshouse.training.schedules import EarlyStopping
from glasshouse.training.torch import probe_batching

RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.integers(0, 20, (80, 6))
Y = RANDOM.integers(2, size=80)
MEMBERS = np.arange(80) < 40


def bag() -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(20, 4), nn.Linear(4, 2))


class Masked(nn.Module):
    """As a model of transformers: inputs by name, an answer with logits."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(20, 4), nn.Linear(4, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> dict[str, Any]:
        rows = self.table(input_ids)
        if attention_mask is not None:
            rows = rows * attention_mask[..., None]
        return {"logits": self.out(rows.mean(dim=1)), "hidden": rows}


def test_whole_numbers_stay_whole_numbers_for_an_embedding() -> None:
    for x in (TOKENS, TOKENS.astype(np.uint8), torch.from_numpy(TOKENS), torch.from_numpy(TOKENS).int()):
        assert torch.equal(reader_for(bag(), x)(x), torch.from_numpy(TOKENS))  # type: ignore[arg-type]
    trained = TorchTrainer(module=bag, epochs=2, device="cpu")(Population(TOKENS, Y), MEMBERS, 0)
    assert population_logits(trained, Population(TOKENS, Y)).shape == (80, 2)


def test_whole_numbers_are_floats_for_a_linear_layer() -> None:
    """As they were before; a frame of truth values and numbers too."""
    frame = pandas.DataFrame({"a": TOKENS[:, 0], "b": TOKENS[:, 1] > 9, "c": TOKENS[:, 2] / 2})
    expected = torch.tensor(frame.to_numpy(dtype=np.float32))
    assert torch.equal(reader_for(nn.Linear(3, 2), frame)(frame), expected)  # type: ignore[arg-type]
    models = [
        TorchTrainer(module=mlp(6, 2, hidden=(4,)), epochs=2, device="cpu")(Population(x, Y), MEMBERS, 0)
        for x in (TOKENS, TOKENS.astype(np.float32), TOKENS.astype(np.uint8), scipy.sparse.csr_matrix(TOKENS))
    ]
    for model in models[1:]:
        for one, other in zip(models[0].parameters(), model.parameters(), strict=True):
            assert torch.equal(one, other)


def test_floats_get_the_precision_of_the_weights() -> None:
    x = RANDOM.normal(size=(5, 3))
    for given in (x, torch.from_numpy(x), torch.from_numpy(x).half()):
        assert reader_for(nn.Linear(3, 2), given)(given).dtype == torch.float32  # type: ignore[union-attr]
    double = reader_for(nn.Linear(3, 2).double(), x)(x)
    assert torch.equal(double, torch.from_numpy(x))  # type: ignore[arg-type]
    assert tensor_of(x).dtype == torch.float32
    kept = reader_for(nn.Identity(), torch.from_numpy(x))(torch.from_numpy(x))
    assert torch.equal(kept, torch.from_numpy(x)), "a module without weights gets a tensor as it is"  # type: ignore[arg-type]


def test_the_trial_changes_neither_the_module_nor_random_numbers() -> None:
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2)).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    reader_for(module, TOKENS)
    assert torch.equal(torch.rand(1), expected)
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_dict_trains_the_model_that_one_tensor_trains() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x)  # type: ignore[no-any-return]

    x = RANDOM.normal(size=(80, 6)).astype(np.float32)
    plain, named = Population(x, Y), Population({"x": x}, Y)
    for stopping in (None, EarlyStopping(patience=1)):
        trainer = TorchTrainer(module=Named, epochs=4, batch_size=16, device="cpu", early_stopping=stopping)
        one, other = (trainer(population, MEMBERS, 3) for population in (plain, named))
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
        assert (population_logits(one, plain) == population_logits(other, named)).all()
    masks = np.stack([MEMBERS, ~MEMBERS])
    many = trainer.train_many(named, masks, [0, 1])
    single = trainer(named, MEMBERS, 0)
    assert all(torch.equal(a, b) for a, b in zip(many[0].parameters(), single.parameters(), strict=True))


def test_an_audit_of_token_numbers_runs_and_models_are_trained_one_at_a_time() -> None:
    population = Population({"input_ids": TOKENS, "attention_mask": np.ones_like(TOKENS)}, Y)
    trainer = TorchTrainer(module=Masked, epochs=2, device="cpu")
    obstacle = probe_batching(trainer, population).obstacle
    assert obstacle == "the records are a dict of arrays, and models are batched on one tensor"
    result = audit(population, members=MEMBERS, trainer=trainer, attacks=["base"], shadows=2, progress=False)
    assert result.outcomes["base"].metrics is not None
    assert result.random_members is not None


def test_what_a_module_cannot_take_is_said_in_one_line() -> None:
    cases: list[tuple[Any, Any, str]] = [
        ({"input_ids": TOKENS, "token_type_ids": TOKENS}, Masked, "cannot be called with input_ids, token_type_ids:"),
        (TOKENS + 15, bag, "neither as whole numbers .* nor as floats"),
        ({"input_ids": TOKENS + 15}, Masked, "index out of range"),
        (np.vstack([TOKENS[:-1], [99] * 6]), bag, "neither as whole numbers"),
        (torch.from_numpy(np.vstack([TOKENS[:-1], [99] * 6])), bag, "neither as whole numbers"),
        ({"input_ids": np.vstack([TOKENS[:-1], [-100] * 6])}, Masked, "index out of range"),
        (TOKENS / 2, mlp(7, 2), r"module: it cannot be called with records of shape \[6\]: mat1 and mat2"),
        ([f"text {number}" for number in range(80)], mlp(7, 2), "features are texts. Give token numbers"),
        (pandas.DataFrame({"a": ["x"] * 80, "b": 1.0}), mlp(2, 2), "the column 'a' holds .*pandas.get_dummies"),
        (pandas.DataFrame({"a": ["1"] * 80, "b": 1.0}), mlp(2, 2), "the column 'a' holds "),
        ({"input_ids": ["a"] * 80}, Masked, "population: input_ids: torch models need numbers"),
    ]
    for x, module, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            TorchTrainer(module=module, epochs=1, device="cpu")(Population(x, Y), MEMBERS, 0)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"model: it failed on records of shape \[6\]: mat1 and mat2"):
        population_logits(nn.Linear(7, 2), Population(TOKENS / 2, Y))


def test_differential_privacy_takes_one_tensor() -> None:
    pytest.importorskip("opacus", reason="the extra `dp` is not installed")
    trainer = PrivateTrainer(module=Masked, epsilon=3.0, delta=1e-3, epochs=1)
    with pytest.raises(InputError, match="DP-SGD trains on one tensor, not on a dict"):
        trainer(Population({"input_ids": TOKENS}, Y), MEMBERS, 0)


def test_empty_cells_are_refused_before_training_unless_the_module_fills_them() -> None:
    frame = pandas.DataFrame({"age": TOKENS[:, 0], "hours": np.where(TOKENS[:, 1] > 9, np.nan, 1.0)})
    population = Population(frame, Y)
    trainer = TorchTrainer(module=mlp(2, 2), epochs=1, device="cpu")
    count = int(frame["hours"][MEMBERS].isna().sum())
    with pytest.raises(InputError, match=f"population: hours: the value is NaN in {count} of 40 training records"):
        trainer(population, MEMBERS, 0)
    with pytest.raises(InputError, match="population: hours: the value is NaN"):
        trainer.train_many(population, np.stack([MEMBERS, ~MEMBERS]), [0, 1])
    filled = TorchTrainer(module=Filled, epochs=1, device="cpu")(Population({"x": frame.to_numpy()}, Y), MEMBERS, 0)
    assert all(torch.isfinite(values).all() for values in filled.parameters())


class Filled(nn.Module):
    """Puts 0 in place of NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.nan_to_num(x))  # type: ignore[no-any-return]
