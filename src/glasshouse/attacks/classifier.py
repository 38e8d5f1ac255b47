"""The shadow classifier (Shokri et al., S&P 2017): a network learns members from how shadow models answer."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.preprocessing import StandardScaler

from glasshouse.attacks.attack import Attack, QueryCount, V, register
from glasshouse.attacks.perceptron import Perceptron, train_perceptrons
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.digests import digest_arrays
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.randomness import generator, seed_for
from glasshouse.evidence import Evidence

_FLOOR = -30.0  # log-probabilities below this all mean "never"; without a bound they would dominate the scaling
_TOGETHER = 4  # networks that are trained at once: the numbers of one step still fit into the cache


class Case(NamedTuple):
    """What a network learns from (features [R, F] of answers, members [R]), and what it is asked about, [N, F]."""

    answers: FloatArray
    members: BoolArray
    asked: FloatArray


@dataclass(frozen=True, kw_only=True)
class LearnedClassifier(Attack[V]):
    """A network per set of references that tells members by what models answer, on records or on graphs."""

    posterior: ClassVar[bool] = True

    hidden: tuple[int, ...] = (64,)
    examples: int = 100_000
    epochs: int = 20
    seed: int = 0

    @abc.abstractmethod
    def _case(self, view: V) -> Case:
        """What the target's network learns from, all of it, and what it is asked about."""

    def score(self, view: V) -> FloatArray:
        """Probabilities of membership, [N]."""
        return next(self._scored([self._drawn(view)]))

    def simulated_scores(self, view: V) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members [N] of each simulated target; the same references have the same network."""
        ahead, along = itertools.tee((self._drawn(target.view), target.members) for target in view.simulated())
        return zip(self._scored(case for case, _ in ahead), (members for _, members in along), strict=True)

    def _drawn(self, view: V) -> Case:
        """The case with as many examples as the network learns from."""
        case = self._case(view)
        if len(case.answers) <= self.examples:
            return case
        some = generator(self.seed, "classifier").permutation(len(case.answers))[: self.examples]
        return case._replace(answers=case.answers[some], members=case.members[some])

    def _scored(self, cases: Iterable[Case]) -> Iterator[FloatArray]:
        """Probabilities of membership [N] for each case; a network is shared by cases with the same examples."""
        known: dict[str, tuple[StandardScaler, Perceptron]] = {}  # with the scale of the features it learned from
        coming = iter(cases)
        while held := list(itertools.islice(coming, 2 * _TOGETHER)):
            digests = [digest_arrays([case.answers, case.members]) for case in held]
            new = {digest: case for digest, case in zip(digests, held, strict=True) if digest not in known}
            for size in {len(case.answers) for case in new.values()}:
                alike = [digest for digest, case in new.items() if len(case.answers) == size]
                for start in range(0, len(alike), _TOGETHER):
                    known |= self._trained({digest: new[digest] for digest in alike[start : start + _TOGETHER]})
            for digest, case in zip(digests, held, strict=True):
                scaler, network = known[digest]
                yield network.probabilities(scaler.transform(case.asked))

    def _trained(self, cases: dict[str, Case]) -> dict[str, tuple[StandardScaler, Perceptron]]:
        """A network for each case, under the same key; all cases have as many examples."""
        scalers = {key: StandardScaler().fit(case.answers) for key, case in cases.items()}
        examples = [(scalers[key].transform(case.answers), case.members) for key, case in cases.items()]
        networks = train_perceptrons(
            examples,
            hidden=self.hidden,
            epochs=self.epochs,
            batch=min(256, len(examples[0][1])),
            seed=seed_for(self.seed, "network") % 2**32,
        )
        return {key: (scalers[key], network) for key, network in zip(cases, networks, strict=True)}


@register("classifier")
@dataclass(frozen=True, kw_only=True)
class ShadowClassifier(LearnedClassifier):
    """A multi-layer perceptron on sorted class probabilities (as logs), trained on all shadow models' answers.

    It also sees the probability of the true class, as Shokri's does. It uses shadow models as examples and not as
    references for a record, so it has one form only.

    Args:
        hidden: widths of its hidden layers.
        examples: how many answers it learns from, at most; drawn at random.
        epochs: passes over them.
        seed: seed of its weights, batches and draw.
        true_class: whether it sees the true class's margin and log-probability besides the sorted ones. The paper's MLP
            does not.

    Example:
        >>> logits = np.array([[[4.0, 0.0], [0.0, 0.5]], [[0.5, 0.0], [0.0, 4.0]]])  # [K, N, C]
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 0.1], shadow_loss=[[0.1, 1.0], [1.0, 0.1]], shadow_members=[[1, 0], [0, 1]],
        ...     target_logits=logits[0], shadow_logits=logits,
        ... )
        >>> scores = ShadowClassifier(epochs=200).score(evidence)
        >>> bool(scores[0] > scores[1])
        True
    """

    needs_logits: ClassVar[bool] = True
    needs_classes: ClassVar[str] = "it looks at the probabilities of all classes"

    # not in the repr, by which experiments that were run before this option existed find their stored scores
    true_class: bool = field(default=True, repr=False)

    def _case(self, evidence: Evidence) -> Case:
        if evidence.target_logits is None or evidence.shadow_logits is None:
            raise InputError(
                "classifier: it looks at all classes, but the evidence holds only losses. Give logits or "
                "probabilities, or leave this attack out."
            )
        answers = sorted_log_probabilities(evidence.shadow_logits.reshape(-1, evidence.shadow_logits.shape[-1]))
        asked = sorted_log_probabilities(evidence.target_logits)
        if self.true_class:
            answers = np.column_stack([answers, _true_class(evidence.shadow_loss.reshape(-1))])
            asked = np.column_stack([asked, _true_class(evidence.target_loss)])
        return Case(answers, evidence.shadow_members.reshape(-1), asked)

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target once per record; shadow models for the examples that it learns from."""
        return QueryCount(1.0, shared=min(self.examples, evidence.shadow_members.size))


def _true_class(loss: FloatArray) -> FloatArray:
    """Margins and log-probabilities of the true classes, [rows, 2], within the bounds of the others."""
    return np.stack([np.clip(loss_to_margin(loss), _FLOOR, -_FLOOR), np.maximum(-loss, _FLOOR)], axis=1)


def sorted_log_probabilities(logits: NDArray[Any]) -> FloatArray:
    """Log-probabilities [rows, C], largest first, so that the order of the classes does not matter."""
    sorted_up = np.sort(log_softmax(np.asarray(logits, dtype=np.float64), axis=-1), axis=-1)
    return np.asarray(np.maximum(sorted_up[:, ::-1], _FLOOR))
