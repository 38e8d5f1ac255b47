"""Every example of docs/bring.md runs as it stands, and its row of the table says how long it is."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse import InputError, Population, SklearnTrainer, audit
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import population_logits, query
from glasshouse.training import LightningTrainer, TransformersTrainer
from glasshouse.training.trainer import seeded

table = importlib.import_module("docs.scripts.bring_table")
FIRST, *EXAMPLES = table.examples()
NAMES: dict[str, Any] = {}


def test_every_example_has_a_row_with_its_length_and_every_row_of_this_page_an_example() -> None:
    ours = [row for row in table.rows() if row.anchor.startswith("#")]
    assert [(row.anchor, row.lines) for row in ours] == [(one.anchor, one.lines) for one in EXAMPLES]
    assert [row.heading.lower() for row in ours] == [one.heading.lower() for one in EXAMPLES]
    assert all(row.seconds > 0 for row in table.rows())


def test_lines_are_what_a_user_writes() -> None:
    assert table.Example("", "import numpy\n\nx = 1\n\n\ndef f():\n    return x\n").lines == 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: re.sub(r"\W+", "-", example.heading))
def test_an_example_runs_silently_and_leaves_nothing_behind(
    example: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if not NAMES:
        FIRST.run(NAMES)
    if "TransformersTrainer" in example.code:
        pytest.importorskip("accelerate", reason="transformers.Trainer needs accelerate, which is not installed")
    monkeypatch.chdir(tmp_path)
    NAMES.pop("result", None)
    example.run(NAMES)
    assert 0.3 < NAMES["result"].table()["auc"][0] <= 1
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().out == ""


# What the examples do not show of libraries that are slow to import: the tests stand here so that one process imports
# them once.

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 4))
COLUMNS = np.where(np.arange(60) < 50, (X[:, 0] > 0).astype(int) * 2, 1)  # 0 and 2, and few records of class 1
POPULATION = Population(X, np.array(["a", "b", "c"])[COLUMNS])
LACKING = (np.arange(60) % 2 == 0) & (COLUMNS != 1)


def networks() -> dict[str, Any]:
    """Trainers of the same linear network, by library."""
    import lightning
    from skorch import NeuralNetClassifier

    class Network(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.layer(x)
            return found

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            x, y = batch
            return nn.functional.cross_entropy(self(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.5)

    options = {"criterion": nn.CrossEntropyLoss, "max_epochs": 20, "lr": 0.5, "train_split": None}
    return {
        "lightning": LightningTrainer(module=Network, epochs=20, batch_size=8),
        "skorch": SklearnTrainer(estimator=NeuralNetClassifier(lambda: nn.Linear(4, 3), batch_size=8, **options)),
    }


@pytest.mark.parametrize("name", ["lightning", "skorch"])
def test_networks_of_other_libraries_learn_are_seeded_and_survive_a_lacking_class(name: str, tmp_path: Path) -> None:
    trainer = networks()[name]
    first, again, other = (trainer(POPULATION, LACKING, seed=seed) for seed in (0, 0, 1))
    logits = population_logits(first, POPULATION)
    np.testing.assert_array_equal(population_logits(again, POPULATION), logits)
    assert not np.array_equal(population_logits(other, POPULATION), logits)
    answers = query(first, POPULATION)
    assert answers.correct[LACKING].mean() > 0.8
    assert not answers.correct[COLUMNS == 1].any()
    pool = ShadowPool.plan(POPULATION, trainer, shadows=2, folder=tmp_path)
    kept = [query(model, POPULATION).loss for model in pool]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path in tmp_path.glob("model-00001*"):
        path.unlink()
    np.testing.assert_array_equal([query(model, POPULATION).loss for model in pool], kept)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    fresh = [query(model, POPULATION).loss for model in ShadowPool.plan(POPULATION, trainer, shadows=2)]
    np.testing.assert_allclose(kept, fresh, rtol=1e-6)


def test_lightning_takes_the_steps_that_its_module_says() -> None:
    """Against a plain loop: one step per epoch over all members, so that no order of batches matters."""
    trainer = dataclasses.replace(networks()["lightning"], batch_size=1000, epochs=3)
    with seeded(4):
        model = trainer.module()
    x, y = torch.from_numpy(X[LACKING].astype(np.float32)), torch.from_numpy(COLUMNS[LACKING])
    optimizer = model.configure_optimizers()
    for _ in range(3):
        optimizer.zero_grad()
        model.training_step((x, y), 0).backward()
        optimizer.step()
    found = trainer(POPULATION, LACKING, seed=4)
    torch.testing.assert_close(found.layer.weight, model.layer.weight)


def test_lightning_hands_over_what_the_user_wants_and_refuses_what_cannot_be_trained() -> None:
    trainer = networks()["lightning"]
    seen: list[Any] = []

    def batch(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append((x.dtype, y.dtype, len(x)))
        return x, y

    dataclasses.replace(trainer, batch=batch, trainer_options={"max_epochs": 1}, batch_size=12)(POPULATION, LACKING, 0)
    sizes = [count for _, _, count in seen]
    assert [kind for *kind, _ in seen] == [[torch.float32, torch.int64]] * len(seen)
    assert sum(sizes) in (LACKING.sum(), LACKING.sum() - 1)
    with pytest.raises(InputError, match="could not be trained by lightning.Trainer: ValueError: "):
        dataclasses.replace(trainer, batch=lambda x, y: (x, y, y))(POPULATION, LACKING, 0)
    with pytest.raises(InputError, match="module: Linear is not a LightningModule. Use TorchTrainer"):
        LightningTrainer(module=lambda: nn.Linear(4, 3))(POPULATION, LACKING, 0)
    with pytest.raises(InputError, match=r"trainer: Network is not a trainer. Pass LightningTrainer\(module=…\)"):
        audit(POPULATION, trainer=trainer.module())
    with pytest.raises(InputError, match="module: is a Network that is already made"):
        LightningTrainer(module=trainer.module())


def test_a_binary_network_of_skorch_and_a_module_that_is_already_made() -> None:
    from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier

    two = Population(X, np.where(X[:, 0] > 0, "yes", "no"))
    network = NeuralNetBinaryClassifier(lambda: nn.Linear(4, 1), max_epochs=20, lr=0.5, train_split=None)
    model = SklearnTrainer(estimator=network)(two, LACKING, seed=0)
    assert query(model, two).correct[LACKING].mean() > 0.8
    assert query(model.model, Population(X, X[:, 0] > 0)).correct[LACKING].mean() > 0.8  # float64, asked as it is
    with pytest.raises(InputError, match="estimator: module: is a Linear that is already made"):
        SklearnTrainer(estimator=NeuralNetClassifier(nn.Linear(4, 3)))


def test_transformers_say_what_they_cannot_do() -> None:
    transformers: Any = importlib.import_module("transformers")

    tiny: dict[str, Any] = {
        "vocab_size": 9,
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 4,
    }

    def fresh() -> Any:
        return transformers.BertForSequenceClassification(transformers.BertConfig(**tiny, num_labels=1))

    with pytest.raises(InputError, match=r"Pass TransformersTrainer\(module=…\) with what makes a fresh BertFor"):
        audit(POPULATION, trainer=fresh())
    population = Population(RANDOM.integers(9, size=(20, 3)), np.arange(20) % 2)
    if importlib.util.find_spec("accelerate") is None:
        with pytest.raises(InputError, match=r"needs transformers with accelerate.*pip install 'glasshouse\[text\]'"):
            TransformersTrainer(module=fresh)(population, np.arange(20) < 10, seed=0)
    else:
        with pytest.raises(InputError, match="num_labels=1 makes transformers train a regression"):
            TransformersTrainer(module=fresh)(population, np.arange(20) < 10, seed=0)
