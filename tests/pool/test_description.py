"""A trainer is known by everything that it does: no change goes unseen, and none is seen where there is none."""

from __future__ import annotations

import collections
import functools
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import nn

from glasshouse import InputError, Population, SklearnTrainer, TorchTrainer
from glasshouse.pool import ShadowPool
from glasshouse.pool.description import describe, differences, digest_of
from glasshouse.training import Versioned, mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(RANDOM.normal(size=(20, 3)).astype(np.float32), np.arange(20) % 2)


def answer(x: np.ndarray) -> np.ndarray:
    return x[:, :2]


def closure(rate: float) -> Callable[..., Any]:
    def train(population: Any, members: Any, seed: int) -> Any:
        return lambda x: rate * answer(x)

    return train


class Own:
    """A trainer object of a user's own."""

    def __init__(self, strength: float, weights: Any = None) -> None:
        self.strength = strength
        self.weights = weights

    def __call__(self, population: Any, members: Any, seed: int) -> Any:
        return lambda x: self.strength * answer(x)

    def train(self, population: Any, members: Any, seed: int) -> Any:
        return self(population, members, seed)


class Slotted:
    __slots__ = ("rate",)

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, population: Any, members: Any, seed: int) -> Any:
        return lambda x: self.rate * answer(x)


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3, width)


def with_default(rate: float) -> Callable[..., Any]:
    def train(population: Any, members: Any, seed: int, rate: float = rate, *, more: float = rate) -> Any:
        return answer

    return train


def settled(population: Any, members: Any, seed: int, rate: float = 1.0) -> Any:
    return lambda x: rate * answer(x)


def torch_trainer(**options: Any) -> TorchTrainer:
    settings: dict[str, Any] = {"module": mlp(3, 2, hidden=(4,)), "epochs": 1, "device": "cpu"}
    return TorchTrainer(**settings | options)


def from_source(source: str) -> Any:
    """The trainer that a script of the user's would define."""
    inside: dict[str, Any] = {"__name__": "script"}
    exec(compile(textwrap.dedent(source), "script.py", "exec"), inside)  # noqa: S102
    return inside["train"]


SCRIPT = """
RATE = 0.1
def helper(x):
    return x[:, :2] * 2.0
def train(population, members, seed):
    return lambda x: helper(x) * RATE
"""

CHANGES: dict[str, tuple[Any, Any, str]] = {
    "a closure's value": (closure(0.1), closure(0.2), "trainer.closure.rate"),
    "an attribute": (Own(0.1), Own(0.2), "trainer.strength"),
    "an attribute in a slot": (Slotted(0.1), Slotted(0.2), "trainer.rate"),
    "an array that it holds": (Own(1, np.zeros(9)), Own(1, np.eye(3).ravel()), "trainer.weights.(sha256)"),
    "a tensor that it holds": (Own(1, torch.zeros(9)), Own(1, torch.ones(9)), "trainer.weights.(sha256)"),
    "a network that it holds": (Own(1, Net(2)), Own(1, Net(3)), "trainer.weights._modules.layer.out_features"),
    "a bound method's object": (Own(0.1).train, Own(0.2).train, "trainer.of.strength"),
    "a partial": (
        functools.partial(settled, rate=0.1),
        functools.partial(settled, rate=0.2),
        "trainer.keywords.rate",
    ),
    "a lambda for the optimizer": (
        torch_trainer(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.1)),
        torch_trainer(optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.2)),
        "trainer.optimizer.code.constants[",
    ),
    "a lambda for the augmentation": (
        torch_trainer(augmentation=lambda batch, generator: batch),
        torch_trainer(augmentation=lambda batch, generator: batch.flip(-1)),
        "trainer.augmentation.code",
    ),
    "a default": (with_default(0.1), with_default(0.2), "trainer.defaults.rate"),
    "a global constant": (
        from_source(SCRIPT),
        from_source(SCRIPT.replace("RATE = 0.1", "RATE = 0.2")),
        "trainer.globals.RATE",
    ),
    "a helper's code": (
        from_source(SCRIPT),
        from_source(SCRIPT.replace("* 2.0", "* 3.0")),
        "trainer.globals.helper.code.constants[",
    ),
    "a network's width": (
        torch_trainer(),
        torch_trainer(module=mlp(3, 2, hidden=(5,))),
        "trainer.module.closure.hidden[0]",
    ),
    "a setting of an estimator": (
        SklearnTrainer(estimator=LogisticRegression(C=1.0)),
        SklearnTrainer(estimator=LogisticRegression(C=2.0)),
        "trainer.estimator.C",
    ),
    "a version": (Versioned(answer, version="1"), Versioned(answer, version="2"), "trainer.(version)"),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_is_seen_and_its_place_is_named(change: str) -> None:
    before, now, place = CHANGES[change]
    found = differences(describe(before), describe(now))
    assert any(path.startswith(place) for path, _, _ in found), found
    assert describe(before) == describe(before)


@pytest.mark.parametrize("change", ["a closure's value", "an attribute", "a default", "a helper's code", "a partial"])
def test_a_pool_is_refused_after_a_change_and_the_message_shows_it(tmp_path: Path, change: str) -> None:
    before, now, place = CHANGES[change]
    ShadowPool.plan(POPULATION, before, shadows=2, folder=tmp_path / "pool").train()
    with pytest.raises(InputError) as refused:
        ShadowPool.plan(POPULATION, now, shadows=2, folder=tmp_path / "pool").train()
    assert f"pool: {place}" in str(refused.value)
    assert "the pool was made with " in str(refused.value)
    assert "no value" not in str(refused.value)
    ShadowPool.plan(POPULATION, before, shadows=2, folder=tmp_path / "pool").train()


def test_a_torch_pool_is_refused_after_another_optimizer_or_augmentation(tmp_path: Path) -> None:
    for change in ("a lambda for the optimizer", "a lambda for the augmentation"):
        before, now, place = CHANGES[change]
        ShadowPool.plan(POPULATION, before, shadows=2, folder=tmp_path / change).train()
        with pytest.raises(InputError, match="the pool was made with") as refused:
            ShadowPool.plan(POPULATION, now, shadows=2, folder=tmp_path / change).train()
        assert place in str(refused.value)


def test_the_message_shows_both_values(tmp_path: Path) -> None:
    ShadowPool.plan(POPULATION, closure(0.1), shadows=2, folder=tmp_path).train()
    with pytest.raises(InputError, match=r"trainer\.closure\.rate: the pool was made with 0\.1, not 0\.25\."):
        ShadowPool.plan(POPULATION, closure(0.25), shadows=2, folder=tmp_path).train()


def test_comments_docstrings_and_places_do_not_matter() -> None:
    moved = """
    # a comment, and another order

    def train(population, members, seed):
        '''Trains.'''
        # why
        return lambda x: helper(
            x
        ) * RATE


    def helper(x):
        '''Doubles.'''
        return x[:, :2] * 2.0
    RATE = 0.1
    UNUSED = 3
    """
    assert digest_of(describe(from_source(moved))) == digest_of(describe(from_source(SCRIPT)))


def test_code_that_is_reached_through_modules_decorators_and_classes_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def described_with(helper: str) -> str:
        (tmp_path / "my_helper.py").write_text(helper)
        for name in ("my_helper", "my_training"):
            sys.modules.pop(name, None)
        import importlib

        importlib.invalidate_caches()
        return digest_of(describe(importlib.import_module("my_training").train))

    (tmp_path / "my_training.py").write_text(
        "import functools, torch, my_helper\n"
        "class Base:\n    def scale(self):\n        from my_helper import late\n        return late()\n"
        "class Net(Base):\n    factor = 2\n"
        "@torch.no_grad()\ndef build():\n    return Net().scale() * my_helper.rate()\n"
        "def train(population, members, seed):\n    return build()\n"
    )
    helper = "def rate():\n    return 0.1\ndef late():\n    return 7\n"
    first = described_with(helper)
    assert first == described_with(helper + "def unused():\n    return 9\n")
    assert first != described_with(helper.replace("0.1", "0.25"))
    assert first != described_with(helper.replace("7", "8"))


def test_a_fresh_process_describes_the_same_trainer_the_same(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        textwrap.dedent(
            """
            import functools, sys
            import numpy as np, torch
            from sklearn.ensemble import RandomForestClassifier
            from glasshouse import SklearnTrainer, TorchTrainer
            from glasshouse.pool.description import describe, digest_of
            from glasshouse.training import CropAndFlip, OneCycle

            NAMES = {"ann", "bob", "eve", "joe"}

            class Net(torch.nn.Module):
                def forward(self, x):
                    return x if x in {"a", "b", "c"} else NAMES

            class Mine:
                def __init__(self):
                    self.me, self.names, self.table = self, set("hello"), {1: "a", "b": np.arange(100)}
                def __call__(self, population, members, seed):
                    return self.table

            trainers = [
                TorchTrainer(
                    module=lambda: Net(),
                    optimizer=functools.partial(torch.optim.SGD, lr=0.1),
                    augmentation=CropAndFlip(),
                    schedule=OneCycle(),
                ),
                SklearnTrainer(estimator=RandomForestClassifier(5)),
                Mine(),
                lambda population, members, seed: NAMES,
            ]
            print([digest_of(describe(trainer)) for trainer in trainers])
            """
        )
    )
    found = set()
    for seed in ("1", "2"):  # with which all three sets are in another order
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, str(tmp_path / "own.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("odd", ["file", "generator", "lock"])
def test_what_cannot_be_described_is_refused_with_a_store_and_works_with_a_version(tmp_path: Path, odd: str) -> None:
    import threading

    log = (tmp_path / "log.txt").open("w")
    held = {"file": log, "generator": (n for n in range(3)), "lock": threading.Lock()}[odd]
    trainer = Own(1.0, held)
    with pytest.raises(InputError, match=r"trainer\.weights: holds an object of type .*training\.Versioned\("):
        ShadowPool.plan(POPULATION, trainer, shadows=2, folder=tmp_path / "pool").train()
    assert not (tmp_path / "pool" / "pool.json").exists()
    assert len(list(ShadowPool.plan(POPULATION, trainer, shadows=2))) == 2
    versioned = Versioned(trainer, version="1")
    assert len(list(ShadowPool.plan(POPULATION, versioned, shadows=2, folder=tmp_path / "pool"))) == 2
    assert len(list(ShadowPool.plan(POPULATION, versioned, shadows=2, folder=tmp_path / "pool"))) == 2
    with pytest.raises(InputError, match=r"trainer\.\(version\): the pool was made with 1, not 2"):
        ShadowPool.plan(POPULATION, Versioned(trainer, version="2"), shadows=2, folder=tmp_path / "pool").train()
    log.close()


def test_a_trainer_that_keeps_notes_can_be_used_with_a_store(tmp_path: Path) -> None:
    notes: list[int] = []

    def train(population: Any, members: Any, seed: int) -> Any:
        notes.append(seed)
        return answer

    assert len(list(ShadowPool.plan(POPULATION, train, shadows=4, folder=tmp_path / "a"))) == 4
    with pytest.raises(InputError, match=r"trainer\.closure\.notes"):
        ShadowPool.plan(POPULATION, train, shadows=4, folder=tmp_path / "a").train()
    for _ in range(2):
        ShadowPool.plan(POPULATION, Versioned(train, version="1"), shadows=4, folder=tmp_path / "b").train()
    assert len(notes) == 8


def test_a_version_passes_on_what_a_trainer_can_do() -> None:
    trainer = Versioned(torch_trainer(), version="1")
    assert hasattr(trainer, "restore")
    assert not hasattr(Versioned(settled, version="1"), "restore")
    with pytest.raises(InputError, match="is not a version"):
        Versioned(settled, version=" ")


def test_large_values_are_kept_as_digests() -> None:
    text = json.dumps(describe(closure(list(range(100_000)))))  # type: ignore[arg-type]
    assert len(text) < 5_000
    assert describe(closure([*range(99), 0])) != describe(closure(list(range(100))))  # type: ignore[arg-type]


class Secretive(Own):
    def __getstate__(self) -> dict[str, Any]:
        return {}


def test_what_an_object_leaves_out_of_its_copies_is_described_too() -> None:
    assert describe(Secretive(0.1)) != describe(Secretive(0.2))


def test_common_things_that_a_trainer_holds_are_described_by_their_values() -> None:
    pandas = pytest.importorskip("pandas")
    data = pytest.importorskip("torch_geometric.data")
    held: list[Callable[[int], Any]] = [
        lambda n: pandas.DataFrame({"a": [n, 2]}),
        lambda n: data.Data(x=torch.full((3,), n)),
        lambda n: scipy.sparse.csr_matrix(np.full((2, 2), n)),
        lambda n: np.random.default_rng(n),
        lambda n: np.random.RandomState(n),
        lambda n: torch.Generator().manual_seed(n),
        lambda n: torch.full((9,), n, dtype=torch.bfloat16),
        lambda n: np.array(["a", n], dtype=object),
        lambda n: collections.OrderedDict(a=n),
        lambda n: collections.deque([n]),
        lambda n: Path(str(n)),
        lambda n: range(n),
        lambda n: [np.log1p, np.mean, torch.relu, len, "x".join][n],
        lambda n: torch.device("cpu", n),
        lambda n: torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=n),
    ]
    for make in held:
        assert describe(make(1)) == describe(make(1))
        assert describe(make(1)) != describe(make(2))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(PLAIN, PLAIN)
def test_plain_values_are_described_alike_where_they_read_alike(one: Any, other: Any) -> None:
    def read(value: Any) -> str:
        return json.dumps(value, sort_keys=True)

    alike = read(one) == read(other)
    first, second = (describe(json.loads(read(value))) for value in (one, other))
    assert (digest_of(first) == digest_of(second)) == alike
    assert (differences(first, second) == []) == alike


def test_a_changed_constant_is_shown_as_just_that() -> None:
    before, now, _ = CHANGES["a helper's code"]
    assert differences(describe(before), describe(now)) == [
        ("trainer.globals.helper.code.constants[2]", "2.0", "3.0"),
    ]


def test_things_that_hold_themselves_end() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    assert describe(ring) == [1, {"(same as)": "trainer"}]
