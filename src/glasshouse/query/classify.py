"""Query a model about every record: logits and losses, in batches, on the model's own device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from glasshouse.core import numerics, outputs
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.optional import is_module
from glasshouse.data import Population, Records, row_batches, select
from glasshouse.query.adapters import LABELS_ADVICE, KeptAnswers, asker, margin_notes
from glasshouse.query.vote_step import ShareFinder, Shares, StepFinder, shares_note, whole_shares

Kind = Literal["logits", "probabilities"] | Shares
Read = TypeVar("Read")
Batch = tuple[IntArray, FloatArray]

_ROWS_NOTE = (
    "The model answers with probabilities (rows are not negative and sum to 1), so they are used as such, not as "
    "logits."
)
_COLUMN_NOTE = (
    "The model answers with one probability per record (all are between 0 and 1), so they are used as such, not as "
    "logits."
)
UNSTEADY = (
    "The target's answer about a record changes with the other records of a query, or from one query to the next. An "
    "audit asks once, so its figures are those of one answer: who asks more often, or about single records, may find "
    "more. Switch random layers off, and let an answer depend on its own record alone."
)
ASKED_TWICE = 4  # records, among others and among themselves
_UNSURE_NOTE = (
    "The model answers with one number per record, all between 0 and 1; they fit the labels better as logits than as "
    "probabilities, and are used as logits. If they are probabilities, answer with those of both classes."
)


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """How a model is queried.

    Args:
        batch_size: records per batch.
        temperature: logits are divided by it before the loss is computed; 1 leaves them as they are.
        device: where a torch module runs; by default where its weights are.
        keep_logits: whether the logits of all classes are kept, for attacks that use more than the loss.

    Example:
        >>> QueryOptions(temperature=2.0).batch_size
        1024
    """

    labels_only: ClassVar[bool] = False  # `LabelOnly` asks for labels and nothing else
    classes_only: ClassVar[bool] = False  # whether it changes probabilities, which a regression has not
    own: ClassVar[bool] = False  # `OwnLoss` asks for a loss of the user's own

    batch_size: int = 1024
    temperature: float = 1.0
    device: str | None = None
    keep_logits: bool = False

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise InputError(f"temperature: {self.temperature} is not positive; 1 leaves the logits as they are.")

    def answers(self, model: Any, population: Population) -> Answers:
        """What `query` gives."""
        loss = np.empty(len(population))
        correct = np.empty(len(population), dtype=np.bool_)
        kept = np.empty((len(population), len(population.classes)), dtype=np.float32) if self.keep_logits else None

        def read(source: _Source) -> Answers:
            chosen = np.empty(len(population), dtype=np.int64)
            for rows, logits in source:
                labels = population.y[rows]
                loss[rows] = outputs.losses_from_logits(logits, labels, temperature=self.temperature)
                chosen[rows] = logits.argmax(axis=1)
                correct[rows] = chosen[rows] == labels
                if kept is not None:
                    kept[rows] = logits / self.temperature
            order = outputs.column_order_note(chosen, population.y, population.classes)
            return Answers(loss, correct, kept, source.steps.resolution(), (*source.notes, *order))

        return _decided(model, population, self, read)

    def kept(self, model: Any, population: Population) -> KeptAnswers:
        """What a pool keeps of a model that it cannot rebuild: all that this question can be answered from later."""
        if isinstance(model, KeptAnswers):
            model.check_question(labels_only=False)
            return model
        return KeptAnswers(population_logits(model, population, how=self))

    @property
    def question(self) -> QueryOptions:
        """The options without those that change no kept answer; where two are equal, so is what is kept."""
        return dataclasses.replace(self, **vars(QueryOptions()))


@dataclass(frozen=True, kw_only=True)
class CoarseAnswers(QueryOptions):
    """Ask models as if they gave rounded probabilities, or those of their likeliest classes alone.

    It shows what an owner gains who answers so; the models themselves need no change, and a pool serves both questions.

    Args:
        digits: decimals that are left of each probability; None leaves all.
        top: how many of the likeliest classes are given, 0 stands for the others; None gives all.

    Example:
        >>> population = Population(np.array([[2.0], [-1.0]]), [1, 0])
        >>> CoarseAnswers(digits=1).answers(lambda x: x[:, 0], population).loss.round(3)
        array([0.105, 0.357])
    """

    classes_only: ClassVar[bool] = True

    digits: int | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.digits is not None and not 1 <= self.digits <= 6:
            raise InputError(f"digits: {self.digits} is not a number of decimals from 1 to 6.")
        if self.top is not None and self.top < 1:
            raise InputError(f"top: {self.top} is too small; give 1 class or more.")

    def answers(self, model: Any, population: Population) -> Answers:
        """Losses of one model from what is left of its probabilities."""
        known = softmax(self.kept(model, population).population_logits, axis=1)
        if self.top is not None and self.top < known.shape[1]:
            least = np.sort(known, axis=1)[:, -self.top, None]
            known = whole_shares(np.where(known >= least, known, 0.0), Shares("top"))
        if self.digits is not None:
            known = whole_shares(known.round(self.digits), Shares("rounded", 10.0**-self.digits))
        return super().answers(KeptAnswers(numerics.logits_from_probabilities(known)), population)

    @property
    def question(self) -> QueryOptions:
        """That of whole answers, which are kept."""
        return QueryOptions()


class Answers(NamedTuple):
    """A model's answers about a population."""

    loss: FloatArray  # [N]
    correct: BoolArray  # [N] whether the most likely class is the true one; empty where there are no classes
    logits: NDArray[np.float32] | None  # [N, C] if they are kept
    # the step between its probabilities, such as 0.01 for a forest of 100 trees; None if it gives logits or has no such
    # step. Losses are not clipped by it yet: all models of an audit are clipped by one step
    resolution: float | None = None
    notes: tuple[str, ...] = ()  # what was noticed about the answers, in sentences for a report
    # [N, T] "loss" of the parts of each record, NaN where it has no such part; what else is told, by name
    parts: Mapping[str, NDArray[Any]] | None = None

    def figures(self, members: BoolArray) -> dict[str, float]:
        """How well the model does on its members [N] and on others, as a report shows it."""
        if not self.correct.size:
            return {}
        return {"train_accuracy": accuracy(self, members), "test_accuracy": accuracy(self, ~members)}


def query(model: Any, population: Population, *, how: QueryOptions | None = None) -> Answers:
    """Losses of one model on every record, float64.

    A torch module gives logits, an estimator has ``predict_proba``, a callable is ``x -> logits``, with columns in the
    order of ``population.classes``; an estimator's ``classes_`` say its own order. One logit per record means a binary
    model. Modules and callables may give probabilities instead, which is detected from all records, and may wrap their
    answer in a dict, a tuple or an object with ``logits``.
    """
    if population.regression:
        raise InputError(
            "population: it is a regression, and one model alone has no likelihood; ask for its predictions with "
            "glasshouse.query.regress.predict."
        )
    return (how or QueryOptions()).answers(model, population)


def accuracy(answers: Answers, who: BoolArray) -> float:
    """Share of right answers among the records of a mask; NaN if the mask is empty."""
    return float(answers.correct[who].mean()) if who.any() else float("nan")


def population_logits(model: Any, population: Population, *, how: QueryOptions | None = None) -> FloatArray:
    """Logits [N, C] about every record, columns in the order of ``population.classes``."""
    return _decided(
        model, population, how or QueryOptions(), lambda source: np.concatenate([logits for _, logits in source])
    )


def check_model(model: Any, population: Population, *, how: QueryOptions | None = None) -> tuple[str, ...]:
    """Refuse a model that cannot answer, such as one that is not fitted, before any shadow model is trained.

    A warning if its answer about a record changes with the other records of a query, or from query to query.
    """
    if isinstance(model, KeptAnswers):
        return ()
    ask = asker(model, population, device=None if how is None else how.device)
    first = ask(select(population.x, np.arange(min(2 * ASKED_TWICE, len(population)))))
    if len(population) < 2 * ASKED_TWICE or isinstance(population.x, Records):  # of graphs, their own asker compares
        return ()
    again = ask(select(population.x, np.arange(ASKED_TWICE)))
    both = [outputs.array_of(outputs.unwrapped(one)) for one in (first, again)]
    if both[0].shape != (2 * ASKED_TWICE, *both[1].shape[1:]) or len(both[1]) != ASKED_TWICE:
        return ()  # its shape is refused later, with what is expected
    return (UNSTEADY,) if outputs.differing(both[0][:ASKED_TWICE], both[1]).any() else ()


def _decided(model: Any, population: Population, how: QueryOptions, read: Callable[[_Source], Read]) -> Read:
    """What ``read`` makes of the logits; all batches are read as one kind, so after a wrong guess it starts again."""
    source = _Source(model, population, how)
    found = read(source)
    while seen := source.otherwise():
        source = _Source(model, population, how, **seen)
        found = read(source)
    return found


class _Source:
    """Rows and their logits [rows, C], batch by batch, from any form of answer.

    By default the first batch decides of which ``kind`` the answers are; `otherwise` tells at the end if all of them
    show another. With ``underflows`` a probability of 0 is one that is too small for its type.
    """

    def __init__(
        self,
        model: Any,
        population: Population,
        how: QueryOptions,
        *,
        kind: Kind | None = None,
        underflows: bool = False,
    ) -> None:
        self.population, self.how, self.kind, self.underflows = population, how, kind, underflows
        self.sigmoid = outputs.ends_in_sigmoid(model)
        self.steps, self.shares = StepFinder(), ShareFinder()
        self.guessed = kind is None
        self.mixed = False  # whether a later batch does not hold probabilities
        self.fault: InputError | None = None
        self.notes = margin_notes(model)
        self.lowest, self.highest = np.inf, -np.inf  # of what is taken for logits
        self.kept: NDArray[Any] | None = None
        if isinstance(model, KeptAnswers):
            model.check_question(labels_only=False)
            self.kept = model.population_logits
        else:
            self.ask = asker(model, population, device=how.device)
        self.estimator = self.kept is None and not is_module(model) and hasattr(model, "predict_proba")

    def __iter__(self) -> Iterator[Batch]:
        classes = len(self.population.classes)
        column: list[NDArray[Any]] = []
        for rows, answer in self._finite_answers():
            if classes == 2 and answer.size == len(rows) and not self.estimator:
                column.append(answer.reshape(-1))  # a few numbers show little; all of them are judged together
                continue
            answer = _checked_shape(answer, len(rows), classes)
            if self.kept is None and self.guessed:
                self.shares.add(answer)
            yield rows, self._logits(answer)
        if column:
            yield np.arange(len(self.population)), self._two_columns(np.concatenate(column))
        if 0 <= self.lowest < self.highest <= 1:
            self.notes = (outputs.SHARES_NOTE,)

    def otherwise(self) -> dict[str, Any]:
        """How all answers, which have been read, should be read instead; empty if they were read right."""
        if self.guessed and (shares := self.shares.found()) is not None:
            return {"kind": shares}
        if self.fault is not None:
            raise self.fault
        if self.guessed and self.mixed:
            return {"kind": "logits"}
        again = self.steps.underflows() and not self.underflows  # seen too late for the first batches
        return {"kind": self.kind, "underflows": True} if again else {}

    def _finite_answers(self) -> Iterator[tuple[IntArray, NDArray[Any]]]:
        """Rows and answers, batch by batch; after the last one, all that are not finite are refused together."""
        wrong = np.zeros(len(self.population), dtype=np.bool_)
        for rows in row_batches(self.population.x, len(self.population), self.how.batch_size):
            given = self.kept[rows] if self.kept is not None else self.ask(select(self.population.x, rows))
            outputs.check_order_of_outputs(given, len(self.population.classes))
            answer = outputs.array_of(outputs.unwrapped(given))
            logits = answer.shape == (len(rows), len(self.population.classes)) and not self.estimator
            if answer.shape[:1] == (len(rows),):  # another shape is refused for what it is
                wrong[rows] = numerics.not_finite(answer, self.population.y[rows] if logits else None)
            if not wrong[rows].any():
                yield rows, answer
        if wrong.any():
            numerics.refuse_not_finite(wrong, self.population.ids, place="model")

    def _logits(self, answer: NDArray[Any]) -> FloatArray:
        if isinstance(self.kind, Shares):
            whole = whole_shares(answer, self.kind)
            self.notes = (shares_note(self.kind),)
            self.steps.add(whole)
            return numerics.logits_from_probabilities(whole)
        if self.estimator:
            try:
                outputs.check_probabilities(answer, "model: predict_proba")
            except InputError as error:  # refused when all rows show that they were not rounded
                self.fault = self.fault or error
        likely = self.estimator or (self.kind != "logits" and outputs.looks_like_probabilities(answer))
        if not self.estimator:
            self.kind = self.kind or ("probabilities" if likely else "logits")
            self.mixed |= self.kind == "probabilities" and not likely
        if likely:
            self.notes = () if self.estimator else (_ROWS_NOTE,)
            self.steps.add(answer)
            return numerics.logits_from_probabilities(answer, underflows=self.underflows)
        if self.kept is not None and (known := numerics.probabilities_from_logits(answer)) is not None:
            self.steps.add(known)
        if self.kept is None:
            outputs.check_not_counts(answer)
        self.lowest = min(self.lowest, float(answer.min(initial=np.inf)))
        self.highest = max(self.highest, float(answer.max(initial=-np.inf)))
        return numerics.finite_logits(answer.astype(np.float64))

    def _two_columns(self, column: NDArray[Any]) -> FloatArray:
        """One logit z per record becomes [0, z]; one probability p becomes the logarithms of [1 - p, p]."""
        labels = self.population.y
        if np.isin(column, (0, 1)).all() and 0 < np.count_nonzero(column) < len(column):
            raise InputError(
                f"model: it answered every record with exactly 0 or 1, which look like class numbers. Give logits, or "
                f"probabilities of both classes, [N, 2]. {LABELS_ADVICE}"
            )
        inside = bool(column.any() and ((column >= 0) & (column <= 1)).all())
        if inside and (self.sigmoid or outputs.looks_like_probability_column(column, labels)):
            self.notes = (_COLUMN_NOTE,)
            both = np.stack([1 - column, column], axis=1)
            self.steps.add(both)
            return numerics.logits_from_probabilities(both, underflows=self.underflows)
        if inside:
            self.notes = (_UNSURE_NOTE,)
        wide = column.astype(np.float64)
        return np.stack([np.zeros(len(wide)), wide], axis=1)


def _checked_shape(answer: NDArray[Any], records: int, classes: int) -> NDArray[Any]:
    if answer.shape == (records, classes):
        return answer
    if answer.size == records and np.isin(answer, np.arange(classes)).all():
        raise InputError(
            f"model: it answered with class numbers; an audit needs logits or probabilities, [{records}, {classes}]. "
            f"{LABELS_ADVICE}"
        )
    real = " If it predicts real numbers, say Population(x, y, regression=True)." if answer.size == records else ""
    raise InputError(
        f"model: it answered {records} records with shape {answer.shape}; expected [{records}, {classes}], one "
        f"logit for each of the population's {classes} classes.{real}{outputs.of_tokens(answer.shape)}"
    )
