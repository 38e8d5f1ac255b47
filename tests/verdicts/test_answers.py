"""What models answer: finite, whole and of a known kind, or refused in one line (docs/no-false-verdict.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from glasshouse import Evaluation, Evidence, InputError, LabelOnly, Population, audit, audit_evidence
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evidence import query
from glasshouse.graph import Scene
from glasshouse.graph import audit as graph_audit
from glasshouse.graph.models.profile import node_logits
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.regress import predict
from tests.verdicts.test_graph_outputs import returning
from tests.verdicts.test_graphs import DATA, MEMBERS, inductive_script

RANDOM = np.random.default_rng(0)
CLASSES = 4
X = RANDOM.normal(size=(600, 6))
Y = (X[:, :CLASSES] + RANDOM.gumbel(size=(600, CLASSES))).argmax(axis=1)
POPULATION = Population(X, Y, ids=[f"r{number}" for number in range(600)])
SPOILT = 102  # records whose features are large in one direction; the model divides 0 by 0 there
LIMIT = np.sort(X[:, 5])[-SPOILT]
NAMES = [f"r{number}" for number in np.flatnonzero(X[:, 5] >= LIMIT)]


def spoilt(answers: FloatArray, x: FloatArray, value: float = np.nan) -> FloatArray:
    """The answers with one that is not finite, in the spoilt records."""
    bad = answers.copy()
    bad[x[:, 5] >= LIMIT, ...] = np.where(np.arange(bad[0].size) == 0, value, bad[x[:, 5] >= LIMIT, ...])
    return bad


class Broken(LogisticRegression):  # type: ignore[misc]
    def predict_proba(self, x: FloatArray) -> FloatArray:
        return spoilt(super().predict_proba(x), x)


class Module(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.from_numpy(spoilt(x[:, :CLASSES].double().numpy(), x.double().numpy()))


def softmax(logits: FloatArray) -> FloatArray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


NOT_FINITE: dict[str, Callable[[], Any]] = {
    "an estimator's probabilities": lambda: query(Broken().fit(X, Y), POPULATION),
    "a function's probabilities": lambda: query(lambda x: spoilt(softmax(x[:, :CLASSES]), x), POPULATION),
    "a function's logits": lambda: query(lambda x: spoilt(x[:, :CLASSES], x), POPULATION),
    "an infinite logit": lambda: query(lambda x: spoilt(x[:, :CLASSES], x, np.inf), POPULATION),
    "a torch module": lambda: query(Module(), POPULATION),
    "one probability per record": lambda: query(
        lambda x: spoilt(1 / (1 + np.exp(-x[:, :1])), x), Population(X, Y > 1, ids=POPULATION.ids)
    ),
    "a regressor": lambda: predict(
        lambda x: spoilt(x[:, :1], x)[:, 0], Population(X, X[:, 1], ids=POPULATION.ids, regression=True)
    ),
    "labels from scores": lambda: LabelOnly(votes=2, noise=1e-9).answers(
        lambda x: spoilt(x[:, :CLASSES], x), POPULATION
    ),
    "answers that a pool kept": lambda: query(KeptAnswers(spoilt(X[:, :CLASSES], X)), POPULATION),
    "losses": lambda: Evidence(target_loss=spoilt(np.abs(X[:, :1]), X)[:, 0], ids=POPULATION.ids),
}


@pytest.mark.parametrize("kind", NOT_FINITE)
def test_answers_that_are_not_finite_are_refused_with_their_number_and_the_first_ids(kind: str) -> None:
    shown = ", ".join(repr(name) for name in NAMES[:5])
    with pytest.raises(InputError, match=f": NaN or infinite for {SPOILT} of 600 records: {shown}, …") as caught:
        NOT_FINITE[kind]()
    assert len(caught.value.faults) == 1


def test_a_shadow_model_or_a_target_that_is_not_finite_is_named() -> None:
    def model(*, bad: bool) -> Callable[[FloatArray], FloatArray]:
        return lambda x: spoilt(softmax(x[:, :CLASSES]), x) if bad else softmax(x[:, :CLASSES])

    def trainer(population: Any, members: BoolArray, seed: int) -> Any:
        return model(bad=bool(members[7]))

    for given, said in ((model(bad=True), "^target: NaN"), (model(bad=False), r"^shadow model [0-3]: NaN or infinite")):
        with pytest.raises(InputError, match=said):
            audit(POPULATION, model=given, members=Y > 1, trainer=trainer, shadows=4, attacks=["base"], progress=False)


def test_a_class_that_a_model_rules_out_is_no_fault_unless_it_decides_the_record() -> None:
    """Minus infinity for another class is a probability of 0 there, and changes no other probability."""
    others = np.arange(CLASSES) == (Y[:, None] + 1) % CLASSES
    logits = np.where(others, -np.inf, X[:, :CLASSES])
    place = {row.tobytes(): number for number, row in enumerate(X)}

    def model(x: FloatArray) -> FloatArray:
        return np.asarray(logits[[place[row.tobytes()] for row in x]])

    kept = np.where(others, 0.0, np.exp(X[:, :CLASSES]))
    wanted = -np.log(kept[np.arange(600), Y] / kept.sum(axis=1))
    found = query(model, POPULATION)
    np.testing.assert_allclose(found.loss, wanted, rtol=1e-9)
    with pytest.raises(InputError, match="model: NaN or infinite for 600 of 600 records"):
        query(lambda x: np.roll(model(x), -1, axis=1), POPULATION)  # the true class, each time
    sure = Population(np.arange(600.0)[:, None], Y)  # no other class is left: a loss of 0, and a margin without end
    with pytest.raises(InputError, match="model: NaN or infinite for 600 of 600 records"):
        query(lambda x: np.where(np.arange(CLASSES) == Y[x[:, 0].astype(int), None], 1.0, -np.inf), sure)


def test_nodes_of_a_graph_network_that_are_not_finite_are_refused() -> None:
    def hollow(hidden: Tensor, logits: Tensor) -> Tensor:
        return torch.where(torch.arange(len(logits))[:, None] % 4 == 1, torch.nan, logits)

    whole = lambda x, edge_index: hollow(x, x[:, :3])  # noqa: E731
    with pytest.raises(InputError, match=r"^model: NaN or infinite for \d+ of \d+ records: '1', '5', '9'"):
        next(node_logits([whole], DATA))
    fine = lambda x, edge_index: x[:, :3]  # noqa: E731
    names = [f"n{number}" for number in range(int(DATA.num_nodes))]
    scene = Scene(DATA, fine, [fine, whole], np.zeros((2, len(names)), dtype=bool), ids=names)
    with pytest.raises(InputError, match=r"^shadow model 1: NaN or infinite for \d+ of \d+ records: 'n1', 'n5'"):
        _ = scene.evidence
    with pytest.raises(InputError, match="^target: NaN"):
        owner: Any = returning(hollow)
        graph_audit(DATA, trainer=owner, attacks=["base"], shadows=2, evaluation=Evaluation(fprs=[0.1]))


def answers_of(logits: FloatArray, form: str) -> FloatArray:
    """Probabilities as interfaces give them."""
    whole = softmax(logits)
    if form.startswith("top"):
        least = np.sort(whole, axis=1)[:, -3:-2]
        whole = np.where(whole >= least, whole, 0.0)
    if form.endswith("rounded"):
        whole = whole.round(2)
    if form == "cut to two digits":
        whole = np.array([[float(f"{value:.1e}") for value in row] for row in whole])
    return np.asarray(whole)


@pytest.fixture(scope="module")
def made() -> tuple[FloatArray, BoolArray]:
    """Logits of nine models [9, N, 5] that raise the true class of their members, and who these are [9, N]."""
    random = np.random.default_rng(1)
    members = np.concatenate([half := random.random((5, 2000)) < 0.5, ~half[:4]])
    logits = random.normal(size=(2000, 5)) + random.normal(scale=0.3, size=(9, 2000, 5))
    labels = np.arange(2000) % 5
    logits[:, np.arange(2000), labels] += 4.0 * members * (random.random(2000) < 0.4)
    return logits, members


FORMS = ["rounded", "top three", "top three rounded", "cut to two digits"]


@pytest.mark.parametrize("form", FORMS)
def test_rounded_and_top_probabilities_find_what_whole_ones_find(made: tuple[FloatArray, BoolArray], form: str) -> None:
    """As logits, a difference of 0.9 in probability is one of 0.9 in loss, and hardly any member is identified."""
    logits, members = made
    population = Population(np.arange(2000.0)[:, None], np.arange(2000) % 5)

    def identified(form: str) -> tuple[float, tuple[str, ...]]:
        asked = [
            query(lambda x, one=one: answers_of(logits[one, x[:, 0].astype(int)], form), population) for one in range(9)
        ]
        evidence = Evidence(
            target_loss=asked[4].loss,
            shadow_loss=[one.loss for k, one in enumerate(asked) if k != 4],
            shadow_members=np.delete(members, 4, axis=0),
        )
        result = audit_evidence(evidence, members=members[4], attacks=["base"], evaluation=Evaluation(fprs=[0.01]))
        metrics = result.outcomes["base"].metrics
        assert metrics is not None
        return metrics.rates[0].tpr, asked[4].notes

    whole, _ = identified("whole")
    found, notes = identified(form)
    assert whole > 0.1
    assert found > 0.7 * whole
    wanted = "rounded" if form in ("rounded", "cut to two digits") else "likeliest classes alone"
    assert any(wanted in note for note in notes)


def test_an_estimator_that_rounds_is_used_at_its_resolution_and_one_that_does_not_sum_to_one_is_refused() -> None:
    class Rounding(LogisticRegression):  # type: ignore[misc]
        digits = 2

        def predict_proba(self, x: FloatArray) -> FloatArray:
            given = super().predict_proba(x)
            return np.asarray(given.round(self.digits) if self.digits else given**2)

    model = Rounding(C=100.0).fit(X, Y)
    exact = query(LogisticRegression(C=100.0).fit(X, Y), POPULATION).loss
    found = query(model, POPULATION)
    np.testing.assert_allclose(np.exp(-found.loss), np.exp(-exact), atol=0.02)
    assert "rounded probabilities" in found.notes[0]
    model.digits = 0
    with pytest.raises(InputError, match="predict_proba gave a row that sums to"):
        query(model, POPULATION)


def test_one_sigmoid_per_class_is_not_taken_for_rounded_or_top_probabilities() -> None:
    numbered = Population(np.arange(600.0)[:, None], Y)
    sigmoids = 1 / (1 + np.exp(-2 * X[:, :CLASSES]))
    for answers in (sigmoids, sigmoids.round(2)):
        (note,) = query(lambda x, answers=answers: answers[x[:, 0].astype(int)], numbered).notes
        assert note.startswith("The model answers with numbers between 0 and 1 that do not sum to 1; they are used as")


def test_rounded_answers_that_a_pool_keeps_are_read_as_they_were(tmp_path: Path) -> None:
    def trainer(population: Any, members: BoolArray, seed: int) -> Any:
        lift = np.random.default_rng(seed).normal(size=CLASSES)
        return lambda x: softmax(2 * x[:, :CLASSES] + lift).round(2)

    options: dict[str, Any] = {"members": Y > 1, "trainer": trainer, "shadows": 2, "attacks": ["base"]}
    kept, fresh = (audit(POPULATION, **options, pool=pool, progress=False) for pool in (tmp_path / "pool", None))
    np.testing.assert_allclose(kept.evidence.shadow_loss, fresh.evidence.shadow_loss, rtol=1e-12)


def test_a_graph_network_that_rounds_is_refused() -> None:
    with pytest.raises(InputError, match="model: it answers with rounded probabilities"):
        rounded = returning(lambda hidden, logits: logits.softmax(dim=1).mul(100).round().div(100))
        graph_audit(
            DATA,
            model=rounded(DATA, MEMBERS, 0),
            members=MEMBERS,
            trainer=inductive_script,
            attacks=["base"],
            shadows=2,
        )
