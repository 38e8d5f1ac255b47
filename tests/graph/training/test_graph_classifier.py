from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from glasshouse import Evaluation, InputError, Population, SklearnTrainer, TorchTrainer, audit
from glasshouse.core.randomness import seed_for
from glasshouse.graph import GNNTrainer, GraphClassifierTrainer, adam, sgd
from glasshouse.query.classify import QueryOptions, population_logits
from glasshouse.training.batches import batches
from tests.graph.molecules import (
    Lazy,
    NamedOtherwise,
    OneLogit,
    PooledGCN,
    TakesBatch,
    TakesBonds,
    TakesData,
    molecules,
)

POPULATION = Population(molecules(60))
MEMBERS = np.random.default_rng(0).permutation(60) < 30
QUICK: dict[str, Any] = {"attacks": ["base"], "shadows": 2, "evaluation": Evaluation(fprs=[0.1])}


def trainer(module: Any = PooledGCN, **options: Any) -> GraphClassifierTrainer:
    return GraphClassifierTrainer(module=module, device="cpu", **({"epochs": 2} | options))


def weights(model: nn.Module) -> list[Tensor]:
    return [value.detach() for value in model.state_dict().values()]


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_training_is_the_plain_loop_over_batches_of_members(one_thread: None) -> None:
    """Written out: the same weights, to the last bit; with two threads, sums may be added in another order."""
    made = trainer(TakesData, epochs=3, batch_size=8, scheduler=lambda one: torch.optim.lr_scheduler.StepLR(one, 1))
    found = made(POPULATION, MEMBERS, 5)
    torch.manual_seed(seed_for(5, "weights"))
    model, order = TakesData(), torch.Generator().manual_seed(seed_for(5, "batches"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    inside = [POPULATION.x[row] for row in np.flatnonzero(MEMBERS).tolist()]
    for _ in range(3):
        for rows in batches(30, 8, order):
            batch = Batch.from_data_list([inside[row] for row in rows.tolist()])
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch)[0], batch.y).backward()
            optimizer.step()
        scheduler.step()
    assert same(found, model)
    assert not found.training


def test_the_same_seed_gives_the_same_weights_and_leaves_the_users_random_stream_alone() -> None:
    torch.manual_seed(7)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(7)
    first, again, other = (trainer()(POPULATION, MEMBERS, seed) for seed in (1, 1, 2))
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads
    assert same(first, again)
    assert not same(first, other)


def test_training_sees_only_the_members_and_the_populations_labels() -> None:
    """Other graphs, and the labels that graphs hold, are replaced by nonsense."""
    graphs = [graph.clone() for graph in POPULATION.x]
    for member, graph in zip(MEMBERS, graphs, strict=True):
        graph.y = 1 - graph.y
        if not member:
            graph.x = torch.rand_like(graph.x)
    scrambled = Population(graphs, POPULATION.y)
    assert same(trainer(TakesData)(POPULATION, MEMBERS, 0), trainer(TakesData)(scrambled, MEMBERS, 0))


@pytest.mark.parametrize("module", [PooledGCN, NamedOtherwise, TakesData, TakesBatch, TakesBonds, OneLogit, Lazy])
def test_modules_as_users_write_them_are_trained_asked_and_stored(module: type[nn.Module], tmp_path: Path) -> None:
    population = Population(molecules(40, bonds=module is TakesBonds))
    options: dict[str, Any] = {"trainer": trainer(module), "pool": tmp_path / "pool", **QUICK}
    first = audit(population, **options)
    assert [path.suffix for path in sorted((tmp_path / "pool").rglob("*.safetensors"))] == [".safetensors"] * 2
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "pool").rglob("*.safetensors")}
    again = audit(population, **options)
    assert times == {path: path.stat().st_mtime_ns for path in times}, "a stored model is not trained again"
    assert (first.evidence.shadow_loss == again.evidence.shadow_loss).all()


@pytest.mark.parametrize("module", [PooledGCN, TakesData, TakesBonds])
def test_answers_in_batches_are_those_about_each_graph_alone(module: type[nn.Module]) -> None:
    graphs = molecules(30, bonds=True)
    model = trainer(module)(Population(graphs), MEMBERS[:30], 0).train()  # a query puts it in evaluation mode
    found = population_logits(model, Population(graphs), how=QueryOptions(batch_size=7))
    model.eval()
    for graph, row in zip(graphs, found, strict=True):
        one = Batch.from_data_list([graph])
        with torch.no_grad():
            if module is PooledGCN:
                alone = model(one.x, one.edge_index, one.batch)
            else:
                alone = model(one)[0] if module is TakesData else model(one.x, one.edge_index, one.edge_attr, one.batch)
        assert np.allclose(row, alone["logits"] if isinstance(alone, dict) else alone, atol=1e-5)


def test_all_attacks_on_records_find_members_that_were_learned_by_heart(tmp_path: Path) -> None:
    """Features and labels at random: whoever is right about a graph has seen it."""
    source = torch.Generator().manual_seed(0)
    graphs = molecules(80)
    for graph in graphs:
        graph.x = torch.randn(graph.x.shape, generator=source)
    population = Population(graphs, np.random.default_rng(1).integers(2, size=80))
    made = trainer(lambda: PooledGCN(64), epochs=40, batch_size=20, optimizer=adam(0.02))
    result = audit(
        population, trainer=made, members=np.arange(80) % 2 == 0, shadows=4, evaluation=Evaluation(fprs=[0.1])
    )
    assert set(result.table()["attack"]) == {"base", "lira", "rmia", "stacked"}
    assert (result.table()["auc"] > 0.65).all()
    assert result.context.train_accuracy is not None
    assert result.context.train_accuracy > 0.8
    assert "GraphClassifierTrainer" in result.report(tmp_path / "report.html").read_text()


def test_members_that_were_not_drawn_at_random_are_noticed() -> None:
    """Members are the large graphs, as in a split by scaffold."""
    graphs = molecules(200)
    members = np.array([graph.num_nodes or 0 for graph in graphs]) > 8
    result = audit(Population(graphs), trainer=trainer(), members=members, **QUICK)
    assert result.random_members is not None
    assert result.random_members.found


def test_a_users_own_function_with_pygs_loader_and_its_target_as_a_callable(tmp_path: Path) -> None:
    def train(population: Population, members: np.ndarray, seed: int) -> nn.Module:
        torch.manual_seed(seed)
        model = PooledGCN()
        optimizer = torch.optim.Adam(model.parameters())
        for batch in DataLoader(population.x[members], batch_size=8, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()
        return model

    target = train(POPULATION, MEMBERS, 3).eval()

    def answer(data: Any) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(target(data.x, data.edge_index, data.batch).softmax(1))

    options: dict[str, Any] = {"members": MEMBERS, "trainer": train, **QUICK}
    plain = audit(POPULATION, model=target, **options)
    asked = audit(POPULATION, model=answer, pool=tmp_path / "pool", **options)
    assert np.allclose(plain.evidence.target_loss, asked.evidence.target_loss, atol=1e-5)
    assert np.allclose(plain.evidence.shadow_loss, asked.evidence.shadow_loss, atol=1e-5)


def test_what_is_sent_to_a_worker_trains_the_same_model() -> None:
    population, made = pickle.loads(pickle.dumps((POPULATION, trainer())))  # as worker processes get it
    assert population.fingerprint() == POPULATION.fingerprint()
    assert same(made(population, MEMBERS, 0), trainer()(POPULATION, MEMBERS, 0))


class Softmax(PooledGCN):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return super().forward(x, edge_index, batch).softmax(dim=1)


def test_a_module_that_ends_in_softmax_is_trained_on_logarithms(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="glasshouse"):
        soft, plain = (trainer(module, epochs=1, batch_size=30, optimizer=sgd(0.1))(POPULATION, MEMBERS, 0)
                       for module in (Softmax, PooledGCN))  # fmt: skip
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(weights(soft), weights(plain), strict=True))


class HiddenFirst(PooledGCN):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        hidden = self.pooled(x, edge_index, batch)
        return hidden, self.last(hidden)


class OfNodes(PooledGCN):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:  # type: ignore[override]
        return self.last(self.first(x, edge_index))


@pytest.mark.parametrize(
    ("population", "made", "message"),
    [
        (POPULATION, trainer(HiddenFirst), "gives 16 numbers per graph, but there are 2 classes"),
        (POPULATION, trainer(OfNodes), "which is one row per node. Pool the nodes"),
        (POPULATION, TorchTrainer(module=PooledGCN), "Train with glasshouse.graph.GraphClassifierTrainer"),
        (POPULATION, SklearnTrainer(estimator=LogisticRegression()), "Train with glasshouse.graph.GraphClassifierTr"),
        (POPULATION, GNNTrainer(), "GNNTrainer trains on the nodes of one graph. Pass GraphClassifierTrainer"),
        (Population(np.zeros((60, 2)), np.arange(60) % 2), trainer(), "trains on graphs: Population.graphs."),
        (Population(POPULATION.x, np.arange(60) % 3), trainer(), "gives 2 numbers per graph, but there are 3 classes"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(population: Population, made: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        audit(population, trainer=made, **QUICK)
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": PooledGCN()}, "is a PooledGCN that is already made"),
        ({"epochs": 0}, "epochs: 0 is too small"),
        ({"batch_size": 0}, "batch_size: 0 is too small"),
    ],
)
def test_senseless_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GraphClassifierTrainer(**({"module": PooledGCN} | options))
