"""Models that give labels and nothing else: how often a record keeps its label when it is changed at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import logits_from_probabilities, refuse_not_finite
from glasshouse.core.optional import is_module, is_tensor
from glasshouse.core.outputs import ends_in_sigmoid, losses_from_logits, of_tokens, unwrapped
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import Population, select
from glasshouse.query.adapters import KeptAnswers, asker
from glasshouse.query.classify import Answers, QueryOptions

if TYPE_CHECKING:
    import torch

_NO_LABEL = -1  # scores that are not finite have no largest one
_BLOCK = 1024  # records that share a random stream; it does not depend on the batch size, so neither does the noise


@dataclass(frozen=True, kw_only=True)
class LabelOnly(QueryOptions):
    """Ask the target and all shadow models for labels alone, about each record and changed copies of it.

    A record deep inside its class keeps its label under much noise, one near a border loses it early; training moves
    borders away from members (Choquette-Choo et al., ICML 2021). The first query is the record itself. The noise of the
    others grows evenly up to its largest, so the share of queries with a class measures a distance in that direction.
    These shares take the place of probabilities, in steps of one vote, and every attack runs on them.

    It is much weaker than an audit with probabilities: what it does not find may still be there.

    Args:
        votes: queries per record and model.
        noise: largest standard deviation of the Gaussian noise, in standard deviations of each feature.
        flips: largest share of features that are 0 or 1 and are flipped instead.
        augmentation: ``(batch, torch.Generator) -> batch``, such as `CropAndFlip`, in place of noise: for images, and
            for records that are not numbers.
        seed: of the noise, which is the same for all models.

    Example:
        >>> population = Population(np.array([[2.0], [0.1], [-2.0]]), ["yes", "yes", "no"])
        >>> how = LabelOnly(votes=8)
        >>> loss = how.answers(lambda x: np.where(x[:, 0] > 0, "yes", "no"), population).loss
        >>> bool(loss[0] < loss[1])  # the second record is near the border
        True
    """

    labels_only: ClassVar[bool] = True

    votes: int = 32
    noise: float = 1.0
    flips: float = 0.2
    augmentation: Callable[[Any, torch.Generator], Any] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.temperature != 1.0:
            raise InputError("temperature: labels have none; leave it out of LabelOnly.")
        if self.votes < 2:
            raise InputError(f"votes: {self.votes} is too few; a single query has no distance. Use 32.")
        if not self.noise > 0 or not 0 < self.flips <= 0.5:
            raise InputError("noise, flips: give positive numbers, and flips of at most 0.5.")

    def answers(self, model: Any, population: Population) -> Answers:
        """Losses of one model from shares of votes; whether it is right is judged by the record itself."""
        kept = model if isinstance(model, KeptAnswers) else self.kept(model, population)
        kept.check_question(labels_only=True)
        logits = kept.population_logits
        return Answers(
            loss=losses_from_logits(logits, population.y),
            correct=np.asarray(kept.correct),
            logits=logits.astype(np.float32) if self.keep_logits else None,
            resolution=1 / self.votes,
            notes=(self.note,),
        )

    def kept(self, model: Any, population: Population) -> KeptAnswers:
        """Shares of votes, as logits; see `QueryOptions.kept`."""
        labels = predicted_labels(model, population, how=self)
        counts = np.zeros((len(population), len(population.classes)))
        correct, wrong = np.zeros((2, len(population)), dtype=np.bool_)
        for vote in range(self.votes):
            for rows, x in self._changed(population, vote):
                batches = range(0, len(rows), self.batch_size)
                parts = (select(x, np.arange(start, min(start + self.batch_size, len(rows)))) for start in batches)
                codes = np.concatenate([labels(part) for part in parts])
                wrong[rows] |= codes == _NO_LABEL
                counts[rows, codes] += 1
                if vote == 0:
                    correct[rows] = codes == population.y[rows]
        if wrong.any():
            refuse_not_finite(wrong, population.ids, place="model")
        return KeptAnswers(logits_from_probabilities(counts / self.votes), correct)

    @property
    def note(self) -> str:
        """What a report says about it."""
        return (
            f"Label-only: models were asked for labels alone, {self.votes} times per record and model, and shares of "
            f"votes take the place of probabilities. This attack is weak: probabilities may show a leak that it does "
            f"not."
        )

    def _changed(self, population: Population, vote: int) -> Iterator[tuple[IntArray, Any]]:
        """Rows and their records, changed for one vote; the first vote asks about the records themselves."""
        change = self._augmented if self.augmentation else _noise(population, self, vote / (self.votes - 1))
        for start in range(0, len(population), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(population)))
            x = select(population.x, rows)
            yield rows, change(x, vote, start) if vote else x

    def _augmented(self, x: Any, vote: int, start: int) -> Any:
        assert self.augmentation is not None  # noqa: S101 (for the type checker: checked by the caller)
        import torch

        from glasshouse.training.inputs import tensor_of

        random = torch.Generator().manual_seed(seed_for(self.seed, "label-only", vote, start))
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub":
            return self.augmentation(x, random)
        return np.asarray(self.augmentation(tensor_of(x), random))


def predicted_labels(
    model: Any, population: Population, *, how: QueryOptions | None = None
) -> Callable[[Any], IntArray]:
    """A function from a batch to the columns [B] of the classes that a model gives; -1 where scores are not finite.

    It answers with the population's labels [B], scores [B, C], or one logit [B] of a module for two classes.
    """
    ask = asker(model, population, device=None if how is None else how.device, what="labels")
    if not is_module(model):
        return lambda x: _codes(ask(x), population)
    import torch

    border = 0.5 if ends_in_sigmoid(model) else 0.0

    def codes(x: Any) -> IntArray:
        given = unwrapped(ask(x))
        if len(population.classes) == 2 and given.is_floating_point() and given.numel() == len(given):
            z = given.reshape(-1, 1).double() - border  # one logit per record
            given = torch.cat([-z, z], dim=1)
        return _codes(given, population)

    return codes


def _codes(answer: Any, population: Population) -> IntArray:
    plain = unwrapped(answer)
    values = np.asarray(plain.detach().cpu() if is_tensor(plain) else plain)
    classes = population.classes
    if values.ndim == 2 and values.shape[1] == len(classes) and values.dtype.kind in "fiub":
        # NaN if any is; minus infinity is a class that is ruled out, which does not hide the largest
        sure = np.isfinite(values.max(axis=1))
        return np.where(sure, values.argmax(axis=1), _NO_LABEL).astype(np.int64)
    flat = values.reshape(-1)
    comparable = (flat.dtype.kind in "US") == (classes.dtype.kind in "US")
    outside: BoolArray = ~np.isin(flat, classes) if comparable else np.ones(len(flat), dtype=np.bool_)
    if outside.any() or values.size != len(values):
        shown = flat[outside].tolist()[0] if outside.any() else f"an array of shape {values.shape}"
        raise InputError(
            f"model: a label-only audit expects the population's own labels, such as {classes.tolist()[0]!r}, one per "
            f"record, or scores of all {len(classes)} classes; it answered {shown!r}.{of_tokens(values.shape)}"
        )
    return np.searchsorted(classes, flat).astype(np.int64)


def _noise(population: Population, how: LabelOnly, size: float) -> Callable[[Any, int, int], Any]:
    """Adds noise of a share ``size`` of the largest to records, with the same draws for every model."""
    plain = _numbers(population.x)
    binary = np.asarray(((plain == 0) | (plain == 1)).all(axis=0))  # of each feature
    if plain.dtype.kind != "f" and not binary.all():
        raise InputError(
            f"query: LabelOnly adds noise to real numbers, and the features are of type {plain.dtype}. Convert them to "
            f"float where noise makes sense, or give augmentation=…."
        )
    spread: FloatArray = np.where(binary, 0.0, plain.std(axis=0, dtype=np.float64)) * (how.noise * size)

    def change(batch: Any, vote: int, start: int) -> Any:
        given = _numbers(batch)
        random = generator(how.seed, "label-only", vote, start)
        flipped = binary & (random.random(given.shape, dtype=np.float32) < how.flips * size)
        moved = given + spread * random.standard_normal(given.shape, dtype=np.float32)
        made = np.where(flipped, 1 - given.astype(np.int8), moved).astype(given.dtype)
        if is_tensor(batch):
            import torch

            return torch.from_numpy(made).to(batch.device)
        return type(batch)(made, index=batch.index, columns=batch.columns) if hasattr(batch, "iloc") else made

    return change


def _numbers(x: Any) -> NDArray[Any]:
    """Features as an array; what noise cannot be added to is refused."""
    values = x.detach().cpu().numpy() if is_tensor(x) else x.to_numpy() if hasattr(x, "iloc") else x
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
        raise InputError(
            f"query: LabelOnly adds noise to arrays of numbers, and the features are a {type(x).__name__} of something "
            f"else. Give augmentation=…, a function (batch, torch.Generator) -> changed batch."
        )
    return values
