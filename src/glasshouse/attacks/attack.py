"""What an attack is: one contract, whether it looks at losses of records or at models on a graph."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self

from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeVar

from glasshouse.arrays import BoolArray, FloatArray, TextArray
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.rehearsal import rehearse
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Kind
from glasshouse.evidence.simulation import SimulatedTarget

__all__ = ["Attack", "Judgement", "View", "seen_by"]


class View(Protocol):
    """What an attack may look at: `Evidence`, or a `Scene` of a graph. Who trained the target is not in it."""

    @property
    def ids(self) -> TextArray:
        """[N] names of the audited records."""

    @property
    def shadow_members(self) -> BoolArray:
        """[K, N] who trained which shadow model; of a graph, all nodes."""

    @property
    def evidence(self) -> Evidence:
        """Losses on the audited records, for attacks on records."""

    @property
    def offers(self) -> tuple[Kind, ...]:
        """Which kinds of attack can look at it."""

    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """The entries of the audited records, [N], of an array with one per record of the population."""

    def simulated(self) -> Iterator[SimulatedTarget[Any]]:
        """Each shadow model in turn as the target: the only place where anything is learned, tuned or thresholded."""


V = TypeVar("V", bound=View, default=Evidence)


class Judgement(NamedTuple):
    """What an attack says of a target.

    Args:
        scores: [N], higher means member.
        queries: made to models.
        warning: what a reader must know before believing the scores; mostly empty.
        details: figures that only this attack has, such as a sampler's acceptance rate.
        sampled: [M, N] training sets that were sampled on the way; None where none were.
    """

    scores: FloatArray
    queries: QueryCount
    warning: str = ""
    details: Mapping[str, float] = {}
    sampled: BoolArray | None = None


class Attack(abc.ABC, Generic[V]):
    """A way to score records: a frozen dataclass whose fields, keyword-only, are its parameters.

    ``Attack`` looks at `Evidence`; ``Attack[Scene]`` at a graph. What it learns is a field that ends in ``_``: `tuned`
    fills it, and files and reports do not show it. Its class attributes tell what it needs and gives: ``kind`` (what it
    looks at), ``needs_logits`` (all classes, not the loss alone), ``posterior`` (its score is a probability of
    membership) and ``version`` (raised when its scores change, so that no kept score of an earlier one is served).

    Example:
        >>> from glasshouse.attacks import create
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.1, 1.0]], shadow_members=[[1, 0]])
        >>> create("loss").score(evidence)
        array([-0.1, -2. ])
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "records"
    version: ClassVar[int] = 1
    needs_logits: ClassVar[bool] = False
    posterior: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.name

    @property
    def knows_truth(self) -> bool:
        """Whether it is told who trained the target: a limit for comparison, which is never the strongest attack."""
        return False

    @abc.abstractmethod
    def score(self, view: V) -> FloatArray:
        """Scores [N] of the audited records; higher means member."""

    def tuned(self, view: V) -> Self:
        """The same attack with every ``"auto"`` replaced by what it means for this pool, and all learned from it.

        A threshold belongs to one setting: simulated targets and the target must be scored with the same one. The
        view's target is not looked at.
        """
        return self

    def check(self, members: BoolArray) -> None:
        """Refuse, before anything is trained, a pool that it cannot judge by; one that takes long says it otherwise.

        Args:
            members: [K, N] who will train which shadow model.
        """
        if self.kind == "records" and not self.needs_logits:
            rehearse(self, members)

    def simulated_scores(self, view: V) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [N] of each simulated target and who trained it [N]: what thresholds and picks are made from.

        The attack is tuned for this pool beforehand. One that learns much from the pool overrides this, so that no
        simulated target is scored by what was learned from it.
        """
        for target in view.simulated():
            yield self.score(target.view), target.members

    def warning(self, view: V) -> str:
        """What a reader must know before believing the scores of this target; mostly empty."""
        return ""

    def queries(self, view: V) -> QueryCount:
        """How often it asks a model: the target and every shadow model about a record, offline only out-models."""
        offline = getattr(self, "mode", "online") == "offline"
        asked = ~view.shadow_members if offline else view.shadow_members | True
        return QueryCount(1 + float(asked.sum(axis=0).mean()))

    def judge(self, view: V) -> Judgement:
        """Scores, and what is reported beside them; one that finds both in one go overrides this."""
        return Judgement(self.score(view), self.queries(view), self.warning(view))


def seen_by(attack: Attack[Any], view: View) -> Any:
    """What of a view an attack looks at: the evidence of its records, or all of it.

    Example:
        >>> from glasshouse.attacks import create
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> seen_by(create("loss"), evidence) is evidence
        True
    """
    if attack.kind == "any":
        return view
    if attack.kind not in view.offers:
        raise InputError(f"{attack.name}: it asks models about parts of a graph, which it is not given here.")
    return view.evidence if attack.kind == "records" else view
