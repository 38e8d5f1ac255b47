"""What an attack is: one contract, for losses of records and for models on a graph; and attacks by name."""

from __future__ import annotations

import abc
import functools
import inspect
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypeVar

from glasshouse.compute import is_worth_spreading, spread_in_order
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.randomness import generator
from glasshouse.core.registry import Registry
from glasshouse.evidence import Evidence, Kind
from glasshouse.evidence.simulation import SimulatedTarget, check_simulation, reference_rows


class QueryCount(NamedTuple):
    """One query is one model asked about one record, or about one node of one graph.

    Example:
        >>> QueryCount(per_record=9.0, shared=100).total(50)
        550
    """

    per_record: float  # for each judged record, mean over records; of the target and the shadow models together
    shared: int = 0  # made once for all records, such as about RMIA's population Z or what a classifier learns from

    def total(self, records: int) -> int:
        """Queries needed to judge this many records."""
        return round(self.per_record * records) + self.shared


_LOG = logging.getLogger("glasshouse")

_ANSWERS = 20_000_000  # at most so many random losses; if there are more, only some records are tried
_RECORDS = 1000


def rehearse(attack: Any, members: BoolArray) -> None:
    """Let an attack score random losses of models with these members [K, N] to come, so that it can refuse them.

    If there are very many records, only some are tried; those with the fewest in- and out-models are among them.
    """
    chosen = np.arange(members.shape[1])
    if members.size > _ANSWERS and not any(np.ndim(value) for value in vars(attack).values()):  # one number per record
        order = np.argsort(members.sum(axis=0), kind="stable")  # by in-models: the first, the last, and some others
        places = np.concatenate([[0, len(order) - 1], np.linspace(0, len(order) - 1, _RECORDS).astype(np.intp)])
        chosen = np.unique(order[np.unique(places)])
    losses = generator(0, "rehearsal").exponential(size=(len(members) + 1, len(chosen)))
    evidence = Evidence(
        target_loss=losses[0],
        shadow_loss=losses[1:],
        shadow_members=members[:, chosen],
        ids=chosen.astype(str),
        labels=np.zeros(len(chosen)),
    )
    try:
        attack.tuned(evidence).score(evidence)
    except InputError:
        raise
    except Exception as error:  # it may need what random evidence does not have
        _LOG.debug("The attack %s could not be tried beforehand: %s", attack.name, error)


class View(Protocol):
    """What an attack may look at: `Evidence`, or a `Scene` of a graph. It does not contain the target's members."""

    @property
    def ids(self) -> TextArray:
        """[N] names of the audited records."""

    @property
    def shadow_members(self) -> BoolArray:
        """[K, N] members of each shadow model; for a graph, over all nodes."""

    @property
    def evidence(self) -> Evidence:
        """Losses on the audited records, for attacks on records."""

    @property
    def offers(self) -> tuple[Kind, ...]:
        """Which kinds of attack can use it."""

    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """The entries of the audited records, [N], from an array with one entry per record of the population."""

    def simulated(self) -> Iterator[SimulatedTarget[Any]]:
        """Each shadow model in turn as the target: the only place where anything is learned, tuned or thresholded."""

    def simulated_target(self, k: int) -> SimulatedTarget[Any]:
        """Shadow model k as the target."""

    def in_place_of(self, k: int) -> Any:
        """The same target, compared only with the references of simulated target k."""


V = TypeVar("V", bound=View, default=Evidence)


class Judgement(NamedTuple):
    """What an attack finds about a target."""

    scores: FloatArray  # [N], higher means member
    queries: QueryCount  # how often models were asked
    warning: str = ""  # what a reader must know before believing the scores; usually empty
    details: Mapping[str, float] = {}  # figures that only this attack has, such as a sampler's acceptance rate
    sampled: BoolArray | None = None  # [M, N] training sets that were sampled on the way; None if there were none


# methods of an attack whose first argument is what it looks at
_LOOKING = (
    *("score", "flag_scores", "tuned", "judge", "queries", "warning", "log_odds"),
    *("simulated_scores", "simulated_seconds", "score_simulated"),
)


def _looking(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method of an attack, but given the part of a view that the attack looks at."""
    name = list(inspect.signature(method).parameters)[1]  # users may name the argument

    @functools.wraps(method)
    def seeing(self: Attack[Any], *given: Any, **named: Any) -> Any:
        if given:
            return method(self, seen_by(self, given[0]), *given[1:], **named)
        return method(self, **named | ({name: seen_by(self, named[name])} if name in named else {}))

    return seeing


def _look(cls: type[Any]) -> None:
    """Give the methods of an attack the part of a view that it looks at."""
    for name in _LOOKING:
        if name in vars(cls) and not getattr(method := vars(cls)[name], "__isabstractmethod__", False):
            setattr(cls, name, _looking(method))


class Attack(abc.ABC, Generic[V]):
    """A way to score records: a frozen dataclass whose fields, keyword-only, are its parameters.

    ``Attack`` looks at `Evidence`, ``Attack[Scene]`` at a graph; given a `Scene`, an attack on records looks at its
    evidence (`seen_by`), and what an attack cannot look at is refused in one line. What it learns is kept in
    fields that end in ``_``: `tuned` fills them, and files and reports do not show them.

    Class attributes describe what it needs and gives: ``kind`` (what it looks at), ``needs_logits`` (all classes,
    not the loss alone), ``needs_public`` (records known to be outside), ``needs_trace`` (losses from the target's
    training), ``needs_parts`` (losses of the parts of a record, such as tokens), ``least_models`` (shadow models
    that it needs, 0 if it looks at the target alone), ``posterior`` (its score is a probability of membership),
    ``candidate`` (``"best"`` tries it), ``likelihood_ratio`` (its score compares two likelihoods), ``log_ratio`` (it is
    the logarithm of their ratio),
    ``quick_simulation`` (it has a way of its own to score simulated targets, for the time alone), ``needs_classes``
    (why it cannot attack a regression) and ``version`` (raised when its scores change, so that stored scores of an
    earlier version are not used).

    Example:
        >>> from glasshouse.attacks import create
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.1, 1.0]], shadow_members=[[1, 0]])
        >>> create("loss").score(evidence)
        array([-0.1, -2. ])
    """

    name: ClassVar[str]
    kind: ClassVar[Kind] = "records"
    version: ClassVar[int] = 1
    _learns_elsewhere: ClassVar[bool] = False  # offline it asks in-models about other records than the judged one
    needs_logits: ClassVar[bool] = False
    needs_public: ClassVar[bool] = False
    needs_trace: ClassVar[bool] = False
    needs_parts: ClassVar[bool] = False
    least_models: ClassVar[int] = 1
    posterior: ClassVar[bool] = False
    candidate: ClassVar[bool] = False
    likelihood_ratio: ClassVar[bool] = False
    log_ratio: ClassVar[bool] = False
    quick_simulation: ClassVar[bool] = False  # `simulated_scores` is its own, but learns no more than `tuned` does
    needs_classes: ClassVar[str] = ""  # why a regression, which has no classes, cannot be attacked; empty if it can

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _look(cls)

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.name

    @property
    def knows_truth(self) -> bool:
        """Whether it is given what no attacker has, such as the members: a limit, never the strongest attack."""
        return False

    @property
    def learns_much(self) -> bool:
        """Whether it learns more than a few numbers from a pool, so that it scores simulated targets in its own way."""
        own = type(self)
        same = (own.simulated_scores, own.score_simulated) == (Attack.simulated_scores, Attack.score_simulated)
        return not (same or self.quick_simulation)

    @abc.abstractmethod
    def score(self, view: V) -> FloatArray:
        """Scores [N] of the audited records; higher means member."""

    def tuned(self, view: V) -> Self:
        """The same attack with every ``"auto"`` replaced by its value for this pool, and all learned from it.

        It does not look at the view's target. A few numbers, from all records, cannot remember a model: simulated
        targets may be scored by those that were fitted to them too.
        """
        return self

    def check(self, members: BoolArray) -> None:
        """Refuse a pool with these members [K, N] that it cannot use, before anything is trained.

        By default the attack is tried on random losses. An attack for which that takes long overrides this.
        """
        self.check_models(len(members))
        needs_more = self.needs_logits or self.needs_public or self.needs_trace or self.needs_parts
        if self.kind == "records" and not needs_more:
            rehearse(self, members)

    def check_models(self, models: int) -> None:
        """Refuse fewer shadow models than it needs at least."""
        if models < self.least_models:
            raise InputError(
                "it compares the target with shadow models, and there are none. Train 8 (shadows=8), or name attacks "
                "that need none, such as loss."
            )

    def simulated_scores(self, view: V) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [N] and members [N] of each simulated target, by the attack tuned for this pool.

        An attack that learns much overrides this, so that none is scored by what was learned from it.
        """
        check_simulation(len(view.shadow_members))
        seconds = self.simulated_seconds(view) if is_worth_spreading() else None
        if seconds is not None and not is_worth_spreading(seconds):  # a prediction that falls short is not trusted:
            seconds = None  # the first target is then scored here, and measured
        yield from spread_in_order(
            type(self).score_simulated, (self, view), range(len(view.shadow_members)), seconds=seconds
        )

    def simulated_seconds(self, view: V) -> float | None:
        """How long all simulated targets should take in this process; None if only a trial can tell."""
        return None

    def score_simulated(self, view: V, k: int) -> tuple[FloatArray, BoolArray]:
        """Scores [N] and members [N] of the simulated target that shadow model k plays."""
        if isinstance(view, Evidence) and not self.least_models:  # a copy of the others would take most of the time
            alone: Any = view.among(np.empty((0, 1), dtype=np.intp), model=k)
            return self.score(alone), view.shadow_members[k]
        target = view.simulated_target(k)
        return self.score(target.view), target.members

    def flag_scores(self, view: V) -> FloatArray:
        """Scores [N] of the target that may be compared with those of simulated targets: thresholds judge these.

        More references make a score vary less, so the target takes the place of the first simulated target, with the
        references of that one. The attack is tuned for the whole pool beforehand.
        """
        seen: Any = view
        if isinstance(view, Evidence) and not self.needs_logits:
            seen = view.losses_alone()  # logits, which would be copied, are much larger than losses
            if (found := next(iter(self.scores_among(seen, [reference_rows(view.shadow_members, 0)])))) is not None:
                return found  # also without a copy of the losses, if the attack knows how
        return self.score(seen.in_place_of(0))

    def scores_among(self, evidence: Evidence, sets: Sequence[NDArray[np.intp]]) -> Iterator[FloatArray | None]:
        """Scores [N] of the target beside some of the shadow models, for each set of rows [R, 1] or [R, N].

        For attacks on records; None where it refuses a set. What was learned from the whole pool is not learned again.
        """
        losses: Any = evidence.losses_alone()
        for rows in sets:
            try:
                yield self.score(losses.among(rows))
            except InputError:  # too few models for this attack, as for simulated targets
                yield None

    def warning(self, view: V) -> str:
        """What a reader must know before believing the scores of this target; usually empty."""
        return ""

    def queries(self, view: V) -> QueryCount:
        """How often it asks a model: per record the target and every shadow model, offline only the out-models."""
        if not self.least_models:
            return QueryCount(1.0)
        offline = getattr(self, "mode", "online") == "offline"
        asked = ~view.shadow_members if offline else view.shadow_members | True
        shared = int(view.shadow_members.sum()) if offline and self._learns_elsewhere else 0
        return QueryCount(1 + float(asked.sum(axis=0).mean()), shared)

    def judge(self, view: V) -> Judgement:
        """Scores, and what is reported with them; an attack that finds both at once overrides this."""
        return Judgement(self.score(view), self.queries(view), self.warning(view))


_look(Attack)


def seen_by(attack: Attack[Any], view: View) -> Any:
    """The part of a view that an attack looks at: the evidence about its records, or all of it."""
    if not hasattr(view, "offers") or not hasattr(view, "shadow_members"):
        raise InputError(
            f"{attack.name}: it cannot look at a {type(view).__name__}; give Evidence, or the Scene of a graph."
        )
    if attack.kind != "any" and attack.kind not in view.offers:
        raise InputError(f"{attack.name}: it asks models about parts of a graph; there is no graph here. Leave it out.")
    if attack.kind != "records":
        return view
    evidence = view.evidence
    if attack.needs_classes and evidence.regression:
        raise InputError(f"{attack.name}: it cannot attack a regression: {attack.needs_classes}. Leave it out.")
    return evidence


AttackType = TypeVar("AttackType", bound=type[Attack[Any]])
_ATTACKS: Registry[type[Attack[Any]]] = Registry("an attack")

# attacks on graphs are imported when the first of them is needed: their libraries take seconds to import
for _name, _module in (
    *(("g-base", "g_base"), ("g-regressed", "two_queries"), ("g-stacked", "g_stacked")),
    *(("g-classifier", "two_queries"), ("g-base-tempered", "g_base")),
    *((_name, "g_edge") for _name in ("g-edge", "edge-posteriors", "edge-features", "edge-influence")),
):
    _ATTACKS.add_lazy(_name, module=f"glasshouse.graph.attacks.{_module}")


def register(name: str) -> Callable[[AttackType], AttackType]:
    """Class decorator that makes an attack known by name, to `create`, to audit files and to the command line.

    Example:
        >>> "base" in attack_names()
        True
    """

    def decorate(attack: AttackType) -> AttackType:
        attack.name = name
        _ATTACKS.add(name, attack)
        return attack

    return decorate


def find_attack(name: str) -> type[Attack[Any]]:
    """The class of an attack; an unknown name is refused, with similar names and all known ones."""
    return _ATTACKS.find(name)


def attack_names(*, graph: bool = True) -> list[str]:
    """Names of all attacks in the order in which they were registered, those on graphs last or left out.

    Example:
        >>> "g-base" in attack_names(), "g-base" in attack_names(graph=False)
        (True, False)
    """
    lazy, of_graphs = _ATTACKS.lazy(), ("graph", "edges")
    on_graphs = [name for name in _ATTACKS.names() if name in lazy or find_attack(name).kind in of_graphs]
    on_records = [name for name in _ATTACKS.names() if name not in on_graphs]
    return on_records + (on_graphs if graph else [])


def create(name: str, *, shared: Mapping[str, Any] | None = None, **parameters: Any) -> Attack[Any]:
    """An attack by name.

    Args:
        name: a registered name.
        shared: parameters for those attacks that have them, such as the audit's ``mode`` and ``prior``.
        **parameters: parameters of this attack; an unknown one is refused.

    Example:
        >>> create("lira", shared={"mode": "offline", "prior": 0.1})
        LiRA(mode='offline', variance='auto')
    """
    return _ATTACKS.create(name, shared=shared, **parameters)  # type: ignore[no-any-return]


AttackChoice = str | Attack[Any] | Mapping[str, Any]


def chosen_attacks(
    attacks: Sequence[AttackChoice] | str,
    *,
    offers: Sequence[Kind] = ("records",),
    prior: float | ArrayLike = 0.5,
    nodes: IntArray | None = None,
    **shared: Any,
) -> dict[str, Attack[Any]]:
    """The chosen attacks by unique names: a second attack with a name gets a number. All faults are raised at once.

    Attacks by name get of the prior and of the ``shared`` parameters what they have. For attacks on records, a prior
    per record of the population is cut to the audited ``nodes``.
    """
    own = prior if nodes is None or np.ndim(prior) == 0 else np.asarray(prior)[nodes]
    made: dict[str, Attack[Any]] = {}
    faults: list[str] = []
    for index, choice in enumerate([attacks] if isinstance(attacks, str) else attacks):
        try:
            attack = _made(choice, prior, own, shared)
            if attack.kind == "edges" and "edges" not in offers:
                raise InputError(f'"{attack.name}" is about edges. Pass it to glasshouse.graph.audit_edges.')
            if attack.kind == "graph" and "graph" not in offers:
                raise InputError(f'"{attack.name}" needs a graph, and this audit is of records. Leave it out.')
        except InputError as error:
            faults += [f"attacks[{index}]: {fault}" for fault in error.faults]
            continue
        name = attack.label
        count = sum(bool(re.fullmatch(rf"{re.escape(name)}(-\d+)?", known)) for known in made)
        made[name if count == 0 else f"{name}-{count + 1}"] = attack
    if not attacks:
        faults.append("attacks: none given; name at least one.")
    raise_faults(faults)
    return made


def _made(choice: Any, prior: Any, own: Any, shared: Mapping[str, Any]) -> Attack[Any]:
    if isinstance(choice, Attack):
        return choice
    if isinstance(choice, type):
        name = choice.__name__
        raise InputError(f"{name} is not an attack; give a name, a mapping or an attack object such as {name}().")
    if not isinstance(choice, str | Mapping):
        raise InputError(f"{type(choice).__name__} is not an attack; give a name, a mapping or an attack object.")
    parameters = {"name": choice} if isinstance(choice, str) else dict(choice)
    if "name" not in parameters:
        raise InputError("a mapping needs a name, such as {name: rmia, gamma: 2}.")
    name = str(parameters.pop("name"))
    expected = own if find_attack(name).kind == "records" else prior
    return create(name, shared={**shared, "prior": expected}, **parameters)
