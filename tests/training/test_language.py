"""Language models: losses of tokens, adapters together and alone, and an audit with a known leak."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse import (
    Attacker,
    CausalLMTrainer,
    InputError,
    LabelOnly,
    LoRA,
    Population,
    TokenLoss,
    TorchTrainer,
    audit,
    tokenized,
)
from glasshouse.attacks import PartsBASE
from glasshouse.evaluation import auc
from glasshouse.query.losses import Batch
from glasshouse.report import render_html
from glasshouse.training import TransformersTrainer
from glasshouse.training.adapters import AdaptedBase

LETTERS = 12


class Tiny(nn.Module):
    """A causal model without dropout: the mean of all letters so far, and a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.inner = nn.Embedding(LETTERS + 1, 16), nn.Linear(16, 64)
        self.lm_head = nn.Linear(64, LETTERS + 1)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids) * attention_mask[..., None]
        decay = 0.5 ** (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).clamp(min=0).to(x.dtype)
        x = torch.tril(decay) @ x
        logits: torch.Tensor = self.lm_head(torch.tanh(self.inner(x)))
        return logits


def area(result: Any, name: str) -> float:
    return float(result.outcomes[name].metrics.auc)


def texts(count: int = 60, **more: Any) -> Any:
    random = np.random.default_rng(0)
    made = ["".join(random.choice(list("abcdefghijkl"), size=random.integers(4, 9))) for _ in range(count)]
    return tokenized(made, lambda text: [ord(letter) - 96 for letter in text], **more)


def halves(count: int = 60) -> np.ndarray:
    return np.arange(count) < count // 2


def test_losses_of_tokens_are_those_of_each_text_alone() -> None:
    population = texts(7)
    torch.manual_seed(0)
    model = Tiny()
    batch = Batch(population.x, population.y, population.ids)
    found = TokenLoss(reference=model, details=True)(model, batch)
    for at in range(7):
        length = int(population.x["attention_mask"][at].sum())
        numbers = torch.from_numpy(population.x["input_ids"][at, :length])
        known = model(numbers[None], torch.ones(1, length))[0].log_softmax(-1)[:-1]
        by_hand = -known[torch.arange(length - 1), numbers[1:]]
        assert np.allclose(found["loss"][at, : length - 1], by_hand.detach(), atol=1e-5)
        assert np.isnan(found["loss"][at, length - 1 :]).all()
        share = known.exp()
        mean = (share * known).sum(-1)
        assert np.allclose(found["mean"][at, : length - 1], mean.detach(), atol=1e-5)
        spread = (share * (known - mean[:, None]) ** 2).sum(-1).sqrt()
        assert np.allclose(found["spread"][at, : length - 1], spread.detach(), atol=1e-3)
        assert np.array_equal(found["right"][at, : length - 1] == 1, (known.argmax(-1) == numbers[1:]).numpy())
    assert np.array_equal(found["reference"], found["loss"], equal_nan=True)
    api = TokenLoss()(lambda x: -np.nan_to_num(found["loss"]), batch)
    assert np.allclose(api["loss"], found["loss"], equal_nan=True)
    with pytest.raises(InputError, match="some log-probabilities are positive"):
        TokenLoss()(lambda x: np.ones_like(found["loss"]), batch)


def test_an_api_of_the_likeliest_tokens_is_used_at_its_resolution() -> None:
    population = texts(5)
    batch = Batch(population.x, population.y, population.ids)
    torch.manual_seed(0)
    model = Tiny()
    every, few = TokenLoss()(model, batch)["loss"], TokenLoss(top=3)(model, batch)["loss"]
    numbers = torch.from_numpy(population.x["input_ids"])
    known = model(numbers, torch.from_numpy(population.x["attention_mask"])).log_softmax(-1)[:, :-1]
    likely = (known.argsort(-1, descending=True)[..., :3] == numbers[:, 1:, None]).any(-1).numpy()
    there = ~np.isnan(every)
    assert (few[there & ~likely] == 12).all()
    assert np.array_equal(few[there & likely], every[there & likely])
    assert (there & likely).any()

    def api(x: Any) -> Any:
        return np.where(likely, -np.nan_to_num(every), -np.inf)

    assert np.array_equal(TokenLoss(top=3)(api, batch)["loss"], few, equal_nan=True)
    assert "only the log-probabilities of the 3 likeliest tokens" in TokenLoss(top=3).notes[0]
    with pytest.raises(InputError, match=r"no log-probability; .* give TokenLoss\(top=k\)"):
        TokenLoss()(api, batch)
    with pytest.raises(InputError, match="reference and details need all"):
        TokenLoss(top=3, details=True)


@pytest.mark.parametrize("kind", ["linear", "Conv1D"])
def test_an_adapted_layer_is_the_layer_with_a_product_added(kind: str) -> None:
    class Conv1D(nn.Module):  # as in transformers, with its weights the other way round
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

    layer = nn.Linear(5, 3, bias=False) if kind == "linear" else Conv1D()
    weight = layer.weight if kind == "linear" else layer.weight.T
    base = AdaptedBase(nn.Sequential(layer), LoRA(rank=2, scale=0.7))
    first, second, x = torch.randn(3, 2, 5), torch.randn(3, 3, 2), torch.randn(6, 4, 5)
    with base.using({"0": (first, second)}) as model:
        found = model(x)
    for record in range(6):
        whole = weight + 0.7 * second[record // 2] @ first[record // 2]
        assert torch.allclose(found[record], x[record] @ whole.T, atol=1e-5)
    assert torch.allclose(base.model(x), x @ weight.T, atol=1e-6)
    with pytest.raises(InputError, match="fits no linear layer"):
        AdaptedBase(nn.Sequential(nn.ReLU()), LoRA())


def test_adapters_together_are_those_of_each_model_alone() -> None:
    population, members = texts(), np.stack([halves(), ~halves(), np.roll(halves(), 7)])
    trainer = CausalLMTrainer(module=Tiny, epochs=2, batch_size=8, adapters=LoRA(rank=4, layers="inner"))
    together = trainer.train_many(population, members, [1, 2, 3])
    for model, who, seed in zip(together, members, [1, 2, 3], strict=True):
        alone = trainer(population, who, seed)
        assert model.state_dict().keys() == {"inner:A", "inner:B"}
        for name, value in model.state_dict().items():
            assert torch.allclose(value, alone.state_dict()[name], atol=1e-5)
        again = trainer.restore(population, model.state_dict())
        x = {name: torch.from_numpy(part) for name, part in population.x.items()}
        assert torch.equal(again(**x), model(**x))
        assert float((again(**x) - trainer._base.model(**x)).abs().max()) > 0.01
    assert not torch.equal(together[0].state_dict()["inner:B"], together[1].state_dict()["inner:B"])


@pytest.mark.parametrize("adapters", [None, LoRA(rank=16, layers="inner|lm_head")])
def test_members_texts_are_found(adapters: LoRA | None, tmp_path: Any) -> None:
    population = texts(120)
    trainer = CausalLMTrainer(module=Tiny, epochs=60, batch_size=8, learning_rate=0.01, adapters=adapters)
    named = ["loss", "base", "base-parts", "lira-parts", "wbc", "ez-mia", "min-k++", "zlib"]
    torch.manual_seed(0)
    loss = TokenLoss(reference=Tiny(), details=True)
    pool = tmp_path / "pool"
    result = audit(
        population, members=halves(120), trainer=trainer, loss=loss, shadows=4, attacks=named, pool=pool, progress=False
    )
    assert not result.left_out
    assert area(result, "base-parts") > 0.8
    assert area(result, "base-parts") > area(result, "loss")
    again = audit(
        population, members=halves(120), trainer=trainer, loss=loss, shadows=4, attacks=named, pool=pool, progress=False
    )
    assert np.array_equal(again.outcomes["base-parts"].scores, result.outcomes["base-parts"].scores)
    page = " ".join(render_html(result.summary()).split())
    gentler, tried = "CausalLMTrainer(module=make_model, epochs=30)", "the log-probability of every token"
    for told in ("TokenLoss(top=5)", gentler, tried, "such as Opacus", "but for the likeliest continuation of texts"):
        assert told in page, told
    for other in ("LabelOnly", "PrivateTrainer(", "kind: mlp", "glasshouse advise", "predicted class"):
        assert other not in page, other
    assert result.context.settings["loss"] == "TokenLoss"


def test_persons_are_audited_by_all_of_their_texts() -> None:
    """Three texts of each person: all of them train a model or none, and what their tokens tell is joined."""
    persons = np.arange(120) // 3
    found = audit(
        texts(120, unit=persons),
        members=persons < 20,
        trainer=CausalLMTrainer(module=Tiny, epochs=40, batch_size=8, learning_rate=0.01),
        loss=TokenLoss(),
        shadows=4,
        attacks=["base-parts"],
        progress=False,
    )
    scores = found.outcomes["base-parts"].scores
    assert scores.shape == (40,)
    assert (found.evidence.shadow_members.sum(axis=1) == 20).all()
    assert found.by_unit is not None
    alone = auc(PartsBASE().score(found.by_unit.rows.evidence), persons < 20)
    assert auc(scores, found.evidence.ids.astype(int) < 20) > max(alone, 0.9)


@pytest.mark.parametrize("adapters", [None, LoRA(rank=4, layers="inner")])
def test_one_model_may_be_given_for_every_training(adapters: LoRA | None) -> None:
    """The twin makes a fresh model each time; the user's own is in the mode it was in, also after it was asked."""
    population, masks = texts(), np.stack([halves(), ~halves(), np.roll(halves(), 7)])
    torch.manual_seed(0)
    own = Tiny()
    weights = copy.deepcopy(own.state_dict())
    how: dict[str, Any] = {"epochs": 2, "batch_size": 8, "adapters": adapters}
    fresh = CausalLMTrainer(module=lambda: copy.deepcopy(own), **how)
    twins = fresh.train_many(population, masks, [1, 2, 3])
    for _ in range(2):  # two audits of one session
        found = CausalLMTrainer(module=lambda: own, **how).train_many(population, masks, [1, 2, 3])
        for one, twin in zip(found, twins, strict=True):
            assert all(torch.equal(value, twin.state_dict()[name]) for name, value in one.state_dict().items())
    if adapters is None:
        assert all(torch.equal(value, weights[name]) for name, value in own.state_dict().items())
        TokenLoss()(own, Batch(population.x, population.y, population.ids))
        assert own.training


def test_a_pipeline_is_its_model() -> None:
    transformers = pytest.importorskip("transformers")
    population, model = texts(7), Tiny().eval()
    pipeline = object.__new__(transformers.TextGenerationPipeline)
    pipeline.model = model
    batch = Batch(population.x, population.y, population.ids)
    told, known = (TokenLoss()(one, batch)["loss"] for one in (pipeline, model))
    assert np.array_equal(told, known, equal_nan=True)


def test_what_is_not_a_text_is_refused() -> None:
    with pytest.raises(InputError, match=r"make it by tokenized\(texts, tokenizer\)"):
        audit(Population(np.ones((8, 2)), halves(8)), model=Tiny(), members=halves(8), loss=TokenLoss(), shadows=0)
    with pytest.raises(InputError, match="record 1 has fewer than two tokens"):
        tokenized(["ab", "a"], lambda text: [ord(letter) for letter in text])
    with pytest.raises(InputError, match="give one text per record"):
        tokenized([1, 2], lambda text: [1, 2])
    with pytest.raises(InputError, match=r"make it by tokenized\(texts, tokenizer\)"):
        CausalLMTrainer(module=Tiny)(Population.for_loss(np.ones((4, 2))), np.array([1, 1, 0, 0], bool), 0)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("texts.txt", "ab\n\nabc\n"),
        ("texts.jsonl", '{"text": "ab"}\n{"text": "abc"}\n'),
        ("texts.csv", "id,text\n1,ab\n2,abc\n"),
    ],
)
def test_texts_come_from_files(name: str, written: str, tmp_path: Any) -> None:
    (tmp_path / name).write_text(written)
    found = tokenized(tmp_path / name, lambda text: [ord(letter) for letter in text])
    assert found.x["attention_mask"].sum(axis=1).tolist() == [2, 3]
    if name != "texts.txt":
        with pytest.raises(InputError, match="record 0 has no text named 'body'; say column="):
            tokenized(tmp_path / name, lambda text: [ord(letter) for letter in text], column="body")


def test_elsewhere_a_language_model_is_refused_with_where_it_belongs() -> None:
    rows, labels = texts(20), np.arange(20) % 2
    population = Population(rows.x, labels)
    real = Population(rows.x, np.linspace(0.0, 1.0, 20), regression=True)
    named = r"train it with CausalLMTrainer and audit tokenized\(texts, tokenizer\) with audit\(…, loss=TokenLoss\(\)\)"
    more: dict[str, Any] = {"members": halves(20), "shadows": 0, "model": Tiny().eval()}
    for asked, attacker in ((population, Attacker()), (real, Attacker()), (population, Attacker(query=LabelOnly()))):
        with pytest.raises(InputError, match=named):
            audit(asked, attacker=attacker, **more)
    for trainer in (TorchTrainer(module=Tiny), TransformersTrainer(module=Tiny)):
        with pytest.raises(InputError, match=named):
            trainer(population, halves(20), 0)
