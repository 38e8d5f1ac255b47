"""The best attack for a pool, by how many members of simulated targets it finds. The target is not used."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks.attack import Attack, View, attack_names, create, find_attack, register, seen_by
from glasshouse.attacks.by_unit import for_view
from glasshouse.attacks.cross_fit import power_at_low_rates, standard_gain
from glasshouse.attacks.prior import check_prior
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.digests import digest_arrays
from glasshouse.core.errors import InputError
from glasshouse.core.progress import showing
from glasshouse.evaluation.metrics import DEFAULT_FPRS
from glasshouse.evaluation.roc import SortedScores, allowed_wrong, checked
from glasshouse.evaluation.thresholds import Scored, Simulation
from glasshouse.evidence import Evidence, Kind, Mode
from glasshouse.evidence.simulation import check_simulation


class AttackCache:
    """What the attacks of one audit learn from the pool, and their scores of the simulated targets, once each.

    These scores are as large as the evidence, for each attack; without ``keep`` they are gone after their use.
    """

    def __init__(self, view: View, *, progress: bool | None = False, keep: bool = True) -> None:
        self.view = view
        self.progress = progress
        self.keep = keep
        self._tuned: dict[object, Attack[Any]] = {}
        self._simulated: dict[object, Scored] = {}

    def tuned(self, attack: Attack[Any]) -> Attack[Any]:
        """The attack, tuned for the pool."""
        key = _key(attack)
        if key not in self._tuned:
            with showing(self.progress, label=f"Attack {attack.name}, what it learns"):
                settled = attack.tuned(seen_by(attack, self.view))
            self._tuned[key] = self._tuned[_key(settled)] = settled
        return self._tuned[key]

    def simulated(self, attack: Attack[Any]) -> Scored:
        """Scores and members [N] of every simulated target, by the tuned attack."""
        settled = self.tuned(attack)
        key = _key(settled)
        if (found := self._simulated.get(key)) is None:
            found = Simulation(attack=settled, view=seen_by(settled, self.view), progress=self.progress)
            if self.keep:
                found = self._simulated[key] = list(found)
        return found


def _key(attack: Attack[Any]) -> object:
    """What two attacks have in common that score alike: their type and parameters, without what they learned."""
    described: dict[str, dataclasses.Field[Any]] | None = getattr(attack, "__dataclass_fields__", None)
    if described is None:  # a user's own class: only the same object is the same attack
        return attack
    values = [getattr(attack, name) for name, one in described.items() if one.compare]
    return type(attack), *(digest_arrays([one]) if isinstance(one, np.ndarray) else repr(one) for one in values)


_COARSE = 0.1  # the rate to pick by if too few records were audited to resolve any wanted rate
_USUAL = "stacked"  # on records; over many problems, none of the others was better on average
_ENOUGH = 10_000  # records on which the others are tried
_CLEARLY = 2.0  # standard errors; with four targets and six others, one of them is above 1 by chance in many pools


@dataclass(frozen=True, eq=False)
class Pick:
    """The attack that did best, and why."""

    name: str  # name of the attack
    attack: Attack[Any]  # the attack, tuned for the pool
    simulated: Scored  # its scores [N] and the members [N] of every simulated target; thresholds use them too
    reason: str  # one sentence


@register("best")
@dataclass(frozen=True, kw_only=True)
class Best(Attack[View]):
    """The candidate that finds most members of simulated targets.

    On records it is ``stacked``, unless another finds more on the same simulated targets by more than two standard
    errors, on average at false-positive rates of 0.1, 0.3, 1 and 3 %. Of many records, the others are tried on 10 000.
    On a graph, or without ``stacked``, it is the candidate that finds most at the smallest wanted rate; there, attacks
    on records (with zero-hop queries) and attacks on graphs compete.

    The choice uses neither the target nor its members, so it does not make the reported figures too good.

    Args:
        mode: ``"online"`` or ``"offline"``, for all candidates.
        prior: λ, the share of members expected before looking at the model: one number, or one per record (on a graph,
            per node of the graph).
        fprs: wanted false-positive rates; the smallest that simulated targets can resolve decides.
        candidates: names of the attacks to try; by default every ``candidate`` attack that the view offers.
        seed: seed of every random choice.

    Example:
        >>> from glasshouse.evidence import Evidence
        >>> rng = np.random.default_rng(0)
        >>> members = np.repeat(np.tile([[1, 0], [0, 1]], (2, 1)), 100, axis=1).astype(bool)
        >>> loss = rng.exponential(np.where(members, 0.5, 1.0))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> Best(candidates=("loss", "base"), fprs=(0.1,)).pick(evidence).reason
        'best picked loss: TPR at 10 % FPR 25.0 % ± 1.3 % on 4 simulated targets; next base 18.3 %.'
    """

    kind: ClassVar[Kind] = "any"

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    fprs: tuple[float, ...] = DEFAULT_FPRS
    candidates: Sequence[str] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if "best" in (self.candidates or ()):
            raise InputError("candidates: best cannot be one of its own candidates.")
        for name in self.candidates or ():  # a misspelt candidate is refused before the long work
            find_attack(name)

    def check(self, members: BoolArray) -> None:
        """Refuse a pool with too few models to simulate targets; a candidate that cannot run is left out later."""
        check_simulation(len(members))

    def pick(self, view: View, cache: AttackCache | None = None) -> Pick:
        """The best candidate for this pool, which does not look at the target; ``cache`` is of the same pool."""
        known = AttackCache(view) if cache is None else cache
        names = self.candidates
        if names is None:
            names = [name for name in attack_names(graph="graph" in view.offers) if find_attack(name).candidate]
        trials = {name: functools.partial(self._trial, name, known) for name in names}
        if "graph" in view.offers or _USUAL not in names:
            return pick_best(trials, self.fprs)
        if not isinstance(view, Evidence) or view.records <= _ENOUGH:
            return pick_best(trials, self.fprs, usual=_USUAL)
        some = np.arange(0, view.records, -(-view.records // _ENOUGH))
        few = AttackCache(view.of_records(some))
        part = self if np.ndim(self.prior) == 0 else dataclasses.replace(self, prior=np.asarray(self.prior)[some])
        tried = {name: functools.partial(part._trial, name, few) for name in names}

        def usual() -> tuple[Attack[Any], Scored]:
            attack, scored = trials[_USUAL]()
            return attack, [(scores[some], members[some]) for scores, members in scored]

        pick = pick_best({**tried, _USUAL: usual}, self.fprs, usual=_USUAL)
        attack, simulated = trials[pick.name]()
        return Pick(pick.name, attack, simulated, f"{pick.reason} They were compared on {len(some)} of the records.")

    def _trial(self, name: str, cache: AttackCache) -> tuple[Attack[Any], Scored]:
        # attacks on records know only the audited nodes of a graph, attacks on graphs all of them
        whole = find_attack(name).kind != "records" or np.ndim(self.prior) == 0
        view = getattr(cache.view, "rows", cache.view)  # of a view of units, an attack looks at the rows
        prior = self.prior if whole else view.audited(self.prior)
        attack = for_view(create(name, shared={"mode": self.mode, "prior": prior, "seed": self.seed}), cache.view)
        return cache.tuned(attack), cache.simulated(attack)

    def score(self, view: View) -> FloatArray:
        """Scores of the picked attack, [N]; higher means member."""
        attack = self.pick(view).attack
        return attack.score(seen_by(attack, view))

    def simulated_scores(self, view: View) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of the simulated targets, by the picked attack."""
        yield from self.pick(view).simulated


def pick_best(
    trials: Mapping[str, Callable[[], tuple[Attack[Any], Scored]]], fprs: Sequence[float], *, usual: str | None = None
) -> Pick:
    """The attack with the largest mean TPR over simulated targets; AUC decides between equals.

    Tied scores are broken at random. ``trials`` tune an attack and score the simulated targets with it; an attack that
    refuses this pool is left out. The smallest rate that all simulated targets can resolve decides. But the ``usual``
    attack is kept unless others find more on the same targets by more than two standard errors, on average at several
    low rates; of those the one that finds most is picked.
    """
    scored: dict[str, tuple[Attack[Any], Scored]] = {}
    refusals: dict[str, InputError] = {}
    for name, trial in trials.items():
        try:
            scored[name] = trial()
        except InputError as error:
            refusals[name] = error
    if not scored:
        said = next(iter(refusals.values()), "no candidate was given.")
        raise InputError(f"attacks: best cannot pick. {said}")
    fewest = min(int((~members).sum()) for _, pairs in scored.values() for _, members in pairs)
    fpr = min((fpr for fpr in fprs if allowed_wrong(fpr, fewest) >= 1), default=_COARSE)
    ranked = {name: [SortedScores.of(*checked(*pair)) for pair in pairs] for name, (_, pairs) in scored.items()}
    found = {name: [one.rate_at(fpr) for one in targets] for name, targets in ranked.items()}
    rates = {name: np.array([rate for rate, _ in pairs]) for name, pairs in found.items()}
    tied = {name: "" if pairs[0][1] else " (ties broken at random)" for name, pairs in found.items()}
    areas = {name: float(np.mean([one.area for one in targets])) for name, targets in ranked.items()}
    order = sorted(scored, key=lambda name: (rates[name].mean(), areas[name]), reverse=True)
    kept = ""
    if usual in scored:
        powers = {name: _power(pairs) for name, (_, pairs) in scored.items()}
        better = [name for name in order if _gain(powers[name], powers[usual]) > _CLEARLY]
        first = max(better, key=lambda name: np.mean([*powers[name].values()]), default=usual)
        order = [first, *(name for name in order if name != first)]
        kept = "" if better else "; no other clearly finds more"
    best = order[0]
    spread = rates[best].std(ddof=1) / np.sqrt(len(rates[best]))
    reason = (
        f"best picked {best}: TPR at {100 * fpr:g} % FPR {100 * rates[best].mean():.1f} % ± {100 * spread:.1f} %"
        f"{tied[best]} on {len(rates[best])} simulated targets"
    )
    reason += "".join(f"; next {name} {100 * rates[name].mean():.1f} %{tied[name]}" for name in order[1:2])
    reason += kept if len(order) > 1 else "; no other ran"
    reason += f"; left out, since they refuse this pool: {', '.join(refusals)}." if refusals else "."
    return Pick(best, *scored[best], reason)


def _power(scored: Scored) -> dict[bytes, float]:
    """The mean TPR at several low rates of each simulated target, which is known by its members."""
    members = np.array([one for _, one in scored])
    found = power_at_low_rates((scores for scores, _ in scored), members)
    return dict(zip((one.tobytes() for one in np.packbits(members, axis=1)), found.tolist(), strict=True))


def _gain(one: Mapping[bytes, float], other: Mapping[bytes, float]) -> float:
    """By how many standard errors the first figures are larger, on the targets that both have; 0 if fewer than two."""
    both = [(mine, other[target]) for target, mine in one.items() if target in other]
    return standard_gain(*np.transpose(both)) if len(both) > 1 else 0.0
