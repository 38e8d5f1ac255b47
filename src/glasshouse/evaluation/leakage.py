"""Whether there is any leak at all, by one exact p-value over all attacks and figures; which leak could be shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, binom, nhypergeom, norm, rankdata

from glasshouse.attacks.by_unit import ByUnit
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.core.threads import cached_blocks, side_by_side
from glasshouse.data.design import Draw
from glasshouse.evaluation.metrics import ENOUGH_WRONG, Metrics, evaluate, verdict_rate
from glasshouse.evaluation.roc import allowed_wrong, auc, checked
from glasshouse.evaluation.run import AttackOutcome
from glasshouse.evaluation.thresholds import rate_with_ties

Figure = tuple[str, str]  # an attack, and "auc" or "tpr@0.01"

LEVEL = 0.05  # of false alarms among audits of models that leak nothing
FIRST_SHARE = 0.9  # of LEVEL, for the figure that simulated targets rank first (benchmarks/statistics/leak_power.md)
_WORK = 40_000_000  # records times permutations
_FEWEST, _MOST = 199, 1999  # permutations
_BLOCK = 4_000_000  # labels held at once
_SHUFFLED = 1 << 16  # records


@dataclass(frozen=True)
class LeakTest:
    """How surprising the best figure of all attacks is if scores say nothing about membership."""

    p_value: float  # the chance of a best figure at least as surprising as the one that was found
    permutations: int  # how often the members were permuted; the smallest possible p-value is 1 / (permutations + 1)
    attack: str  # whose figure is the most surprising
    figure: str  # which one: ``"auc"`` or ``"tpr@0.01"``
    tested: int  # how many figures the p-value is corrected for
    adjusted: Mapping[str, float]  # by attack, the smallest p-value of its own figures, corrected for all figures
    first: Figure | None = None  # which got most of the error, since simulated targets rank it first; None: all alike

    @property
    def leak(self) -> bool:
        """Whether a leak is shown; without one, 5 % of all audits say so."""
        return self.p_value <= LEVEL


def leak_test(
    scores: Mapping[str, FloatArray],
    members: BoolArray,
    *,
    fprs: Sequence[float] = (),
    first: Figure | None = None,
    permutations: int | None = None,
    seed: int = 0,
    draw: Draw | None = None,
) -> LeakTest:
    """Permute the members, with the scores fixed, and compare the best figure over attacks and rates.

    Each figure of each attack becomes a p-value of its own: the AUC by the normal distribution of a rank sum, members
    above the (k + 1)-th non-member by their negative hypergeometric distribution. The test statistic is the smallest of
    them, and permutations say how small it is without a leak (Westfall and Young, 1993). So the test is exact, however
    the attacks depend on each other, with ties, and with any number of permutations. With ``first``, each p-value is
    divided by its figure's share of the error, which does not depend on who is a member.

    Args:
        scores: [N] of each attack, by name.
        members: [N] which records trained the target.
        fprs: false-positive rates to look at, besides the AUC.
        first: the attack and figure that most of the error is spent on, chosen without the target's members
            (`expected_log_p`). By default all figures share it equally.
        permutations: how many; by default 1 999, and fewer where there are very many records.
        seed: of the permutations.
        draw: how members were drawn, where not every arrangement of as many is equally likely. Members are then
            arranged as this draw arranges them, and each figure is compared with its own mean and spread over them.

    Example:
        >>> members = np.arange(200) < 100
        >>> leak_test({"perfect": members * 1.0}, members).p_value
        0.0005
        >>> leak_test({"noise": np.random.default_rng(0).normal(size=200)}, members).leak
        False
    """
    if not scores:
        raise InputError("scores: no attack was given.")
    given = {name: checked(values, members)[0] for name, values in scores.items()}
    mask = np.asarray(members, dtype=np.bool_)
    count = permutations or int(np.clip(_WORK // len(mask), _FEWEST, _MOST))
    count = count if draw is None else draw.worth(count)
    names = [(name, figure) for name in given for figure in ("auc", *(f"tpr@{fpr:g}" for fpr in fprs))]
    attacks = [_Attack.of(values) for values in given.values()]
    allowed = [allowed_wrong(fpr, int((~mask).sum())) for fpr in fprs]
    size = max(1, min(count, _BLOCK // len(mask)))
    sizes = [min(size, count - start) for start in range(0, count, size)]
    plain = draw is None or draw.plain
    blocks = _arrangements(mask, sizes, seed, None if plain else draw)
    found = [_figures(attacks, mask[None, :], allowed)]
    found += side_by_side(lambda draw: _figures(attacks, draw(), allowed), blocks, records=len(mask))
    figures = np.concatenate(found)  # [1 + permutations, figures], the true members first
    if first is not None and first not in names:
        raise InputError(f"first: {first} is not one of the figures that are tested: {', '.join(map(str, names))}.")
    shares = [error_share(len(names), first=None if first is None else name == first) for name in names]
    chances = _log_chances(figures, mask, [None, *allowed] * len(attacks)) if plain else _standard_chances(figures)
    surprise = chances - np.log(shares)
    best = np.sort(surprise.min(axis=1))
    own = {one: surprise[0, [name == one for name, _ in names]].min() for one in given}  # most surprising of an attack
    p_values = {one: float(np.searchsorted(best, value, side="right")) / len(best) for one, value in own.items()}
    attack, figure = names[int(np.argmin(surprise[0]))]
    return LeakTest(p_values[attack], count, attack, figure, len(names), p_values, first)


def error_share(figures: int, *, first: bool | None = None) -> float:
    """The share of the error that one of so many figures gets: the first one, another one, or each if none is first."""
    if first is None or figures == 1:
        return 1 / figures
    return FIRST_SHARE if first else (1 - FIRST_SHARE) / (figures - 1)


def expected_log_p(
    expected: Mapping[str, Sequence[float]], members: int, non_members: int, fprs: Sequence[float] = ()
) -> dict[Figure, float]:
    """How surprising each figure would be on a target of this size if it were as simulated targets have it on average.

    The log of its own p-value in `leak_test`, from the mean AUC and the mean TPR at each rate on simulated targets, by
    attack. Means are taken before the p-value, so that a weak leak is ranked by its signal and not by noise.
    """
    allowed = [allowed_wrong(fpr, non_members) for fpr in fprs]
    tables = [_log_found(wrong, members, non_members) for wrong in allowed]
    spread = _auc_spread(members, non_members)
    found: dict[Figure, float] = {}
    for name, (area, *rates) in expected.items():
        found[name, "auc"] = float(norm.logsf((area - 0.5) / spread))
        for fpr, rate, table in zip(fprs, rates, tables, strict=True):
            found[name, f"tpr@{fpr:g}"] = float(np.interp(rate * members, np.arange(members + 1), table))
    return found


def _standard_chances(figures: FloatArray) -> FloatArray:
    """Log of the normal chance of at least each figure [B, figures], by its mean and spread over all arrangements.

    The truth is among them, so that under the draw all rows are alike: only their order counts, which stays exact.
    """
    spread = figures.std(axis=0)
    return np.asarray(norm.logsf((figures - figures.mean(axis=0)) / np.where(spread > 0, spread, 1.0)))


def _arrangements(
    members: BoolArray, sizes: Sequence[int], seed: int, draw: Draw | None
) -> Iterator[Callable[[], BoolArray]]:
    """Random arrangements of as many members, in blocks [B, N] of the wanted sizes, by a declared draw or any.

    Shuffling a million flags takes long: with very many records each is drawn by itself, when its block is called, and
    the surplus is turned.
    """
    random, records = generator(seed, "leak test"), len(members)
    for number, size in enumerate(sizes):
        if draw is not None:
            yield partial(np.asarray, draw.arrangements(members, size, random))
        elif records < _SHUFFLED:
            yield partial(np.asarray, random.permuted(np.broadcast_to(members, (size, records)), axis=1))
        else:
            yield partial(_drawn_flags, members, size, generator(seed, "leak test", number))


def _drawn_flags(members: BoolArray, size: int, random: np.random.Generator) -> BoolArray:
    """[B, N] random flags, of which each row has as many set as there are members [N]."""
    records, inside = len(members), int(members.sum())
    drawn = np.frombuffer(random.bytes(size * records), dtype=np.uint8).reshape(size, records)
    flags: BoolArray = np.asarray(drawn < np.clip(round(256 * inside / records), 1, 255))
    for row in flags:
        surplus = int(np.count_nonzero(row)) - inside
        while surplus:
            # those of the larger kind that are met first: each of them is as likely as any other to be among these
            met = random.integers(records, size=4 * abs(surplus) + 16)
            met = met[row[met] == (surplus > 0)]
            _, first = np.unique(met, return_index=True)
            turned = met[np.sort(first)][: abs(surplus)]
            row[turned] = surplus < 0
            surplus -= len(turned) * (1 if surplus > 0 else -1)
    return flags


@dataclass(frozen=True, eq=False)
class _Attack:
    """Scores in the form that permutations need: [N] ranks, [N] order from the highest, [N] last of each tie."""

    ranks: FloatArray
    order: Positions
    last_of_tie: BoolArray

    @classmethod
    def of(cls, scores: FloatArray) -> _Attack:
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        return cls(rankdata(scores), order, np.append(np.diff(ranked) != 0, True))


def _figures(attacks: Sequence[_Attack], members: BoolArray, allowed: Sequence[int]) -> FloatArray:
    """Figures of every attack for arrangements of members [B, N]: the rank sum, and members found; [B, figures]."""
    sums = np.zeros((len(members), len(attacks)))
    for some in cached_blocks(members.shape[1], models=len(members)):  # whole and half numbers add up in any order
        sums += members[:, some].astype(np.float64) @ np.stack([attack.ranks[some] for attack in attacks], axis=1)
    columns = []
    for place, attack in enumerate(attacks):
        columns += [sums[:, place], *(_found(attack, members, wrong) for wrong in allowed)]
    return np.stack(columns, axis=1).astype(np.float64)


def _log_chances(figures: FloatArray, members: BoolArray, kinds: Sequence[int | None]) -> FloatArray:
    """Log of the chance of at least each figure [B, figures]; each is a rank sum (None) or found at so many wrong."""
    inside, records = int(members.sum()), len(members)
    tables = {wrong: _log_found(wrong, inside, records - inside) for wrong in kinds if wrong is not None}
    columns = []
    for values, wrong in zip(figures.T, kinds, strict=True):
        if wrong is None:
            centre = inside * (records + 1) / 2
            spread = np.sqrt(inside * (records - inside) * (records + 1) / 12)
            columns.append(norm.logsf((values - centre) / spread))
        else:
            columns.append(tables[wrong][values.astype(np.intp)])
    return np.stack(columns, axis=1)


def _log_found(wrong: int, inside: int, outside: int) -> FloatArray:
    """Log of the chance of at least m members before the (wrong + 1)-th non-member, for m = 0 … inside."""
    chances = nhypergeom.logpmf(np.arange(inside + 1), inside + outside, inside, wrong + 1)
    return np.logaddexp.accumulate(chances[::-1])[::-1]


def _found(attack: _Attack, members: BoolArray, wrong: int) -> FloatArray:
    """Members above the lowest threshold that flags at most so many non-members, for each arrangement [B]."""
    records = members.shape[1]
    share = float((~members[0]).mean())
    # the top of the list that holds more non-members than allowed in nearly every arrangement
    top = min(records, int((wrong + 1 + 6 * np.sqrt(wrong + 1)) / share) + 10)
    while True:
        inside = members[:, attack.order[:top]]
        wrong_so_far = np.cumsum(~inside, axis=1, dtype=np.int32)
        if top == records or (wrong_so_far[:, -1] > wrong).all():
            break
        top = min(records, 2 * top)
    usable = attack.last_of_tie[:top] & (wrong_so_far <= wrong)  # a threshold lies between two scores, not inside a tie
    right = np.cumsum(inside, axis=1, dtype=np.int32)
    return np.asarray(np.where(usable, right, 0).max(axis=1), dtype=np.float64)


Way = Literal["simulated", "half", "only", "shown"]
_CONFIDENCE = 0.95  # of the intervals
_FEWEST_IN_HALF = 10  # members and non-members in each half; with fewer a choice by halves is a guess


@dataclass(frozen=True, kw_only=True, eq=False)
class VerdictAttack:
    """The attack that a verdict is about, its figures, and whether there is any leak.

    It was chosen on ``"simulated"`` targets, on one ``"half"`` of the records, because it is the ``"only"`` one (or the
    first, if there are too few records to choose by), or because the leak is ``"shown"`` by it alone. Its figures are
    of records that the choice did not look at; if the leak is ``"shown"`` by it, all records chose it: its estimates
    tend to be too high, and its intervals hold for all attacks at once.
    """

    attack: str  # its name
    way: Way
    tried: int  # among how many
    metrics: Metrics
    fpr: float | None  # the rate to report first; None if no wanted rate can be measured
    test: LeakTest  # whether any attack shows a leak at all


def verdict_attack(
    outcomes: Mapping[str, AttackOutcome],
    members: BoolArray,
    *,
    fprs: Sequence[float] = (),
    seed: int = 0,
    draw: Draw | None = None,
) -> VerdictAttack:
    """Choose the attack that carries the verdict, without a gain by chance, and measure it.

    If all attacks were tried on simulated targets, the one with the largest TPR there at the rate to report first is
    taken; where that is no more than chance, the one whose AUC or TPR would be the most surprising on a target of this
    size (`expected_log_p`). Otherwise the strongest on a random half of the records, measured on the other half. If a
    leak is shown, but not by its own figures, the attack that shows it best takes its place.

    Args:
        outcomes: of the attacks, by name; those that are given the members of the target do not take part.
        members: [N] which records trained the target.
        fprs: wanted false-positive rates.
        seed: of the halves and of the leak test.
        draw: how members were drawn (`leak_test`); by default every arrangement is equally likely.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evaluation import evaluate
        >>> members = np.arange(40) < 20
        >>> scores = np.where(members, 1.0, 0.0) + np.arange(40) % 2
        >>> outcome = AttackOutcome(LossThreshold(), scores, (), evaluate(scores, members, fprs=[0.5]), 0.0)
        >>> found = verdict_attack({"loss": outcome}, members, fprs=[0.5])
        >>> found.attack, found.way, found.test.leak
        ('loss', 'only', True)
    """
    attackers = {name: one for name, one in outcomes.items() if not one.attack.knows_truth} or dict(outcomes)
    inside, outside = int(members.sum()), int((~members).sum())
    rate = verdict_rate(fprs, outside)
    known = {name: (one.simulated.auc, *one.simulated.strengths) for name, one in attackers.items() if one.simulated}
    surprise = expected_log_p(known, inside, outside, fprs) if len(known) == len(attackers) else {}
    first = min(surprise, key=lambda figure: surprise[figure]) if surprise else None
    every = {name: one.scores for name, one in attackers.items()}
    test = leak_test(every, members, fprs=fprs, first=first, seed=seed, draw=draw)
    name, way, measured = _chosen(attackers, members, surprise=surprise, rate=rate, seed=seed)
    confidence = None
    if test.leak and test.adjusted[name] > LEVEL:
        name, way, measured = test.attack, "shown", np.ones(len(members), dtype=np.bool_)
        confidence = 1 - (1 - _CONFIDENCE) / len(attackers)  # of each interval, so that all attacks' hold together
    scores, metrics = attackers[name].scores, attackers[name].metrics
    left = int((~members[measured]).sum())
    kept = [fpr for fpr in fprs if allowed_wrong(fpr, left) >= 1]
    if metrics is None or confidence is not None or not measured.all() or kept != list(fprs):
        options: dict[str, Any] = {
            "fprs": kept,
            "confidence": confidence or _CONFIDENCE,
            "draw": draw and draw.at(measured),
            "units": isinstance(attackers[name].attack, ByUnit),
        }
        metrics = evaluate(scores[measured], members[measured], **options)
    return VerdictAttack(
        attack=name, way=way, tried=len(attackers), metrics=metrics, fpr=verdict_rate(kept, left), test=test
    )


def _chosen(
    attackers: Mapping[str, AttackOutcome],
    members: BoolArray,
    *,
    surprise: Mapping[Figure, float],
    rate: float | None,
    seed: int,
) -> tuple[str, Way, BoolArray]:
    """The attack, how it was chosen, and the records [N] that the choice did not look at."""
    everyone = np.ones_like(members)
    if len(attackers) == 1:
        return next(iter(attackers)), "only", everyone
    if surprise:
        at_rate = {one: surprise[one, f"tpr@{rate:g}"] for one in attackers} if rate is not None else {}
        if at_rate and min(at_rate.values()) <= np.log(LEVEL):  # more than chance: the rate can be ranked by
            areas = {one: surprise[one, "auc"] for one in attackers}
            return min(attackers, key=lambda one: (at_rate[one], areas[one])), "simulated", everyone
        return min(surprise, key=lambda figure: surprise[figure])[0], "simulated", everyone
    random, half = generator(seed, "halves"), np.zeros_like(members)
    for side in (members, ~members):
        places = random.permutation(np.flatnonzero(side))
        half[places[: len(places) // 2]] = True
    if min(int(half[members].sum()), int(half[~members].sum())) < _FEWEST_IN_HALF:
        return next(iter(attackers)), "only", everyone

    def strength(name: str) -> tuple[float, float]:
        scores = attackers[name].scores[half]
        return 0.0 if rate is None else rate_with_ties(scores, members[half], rate)[0], auc(scores, members[half])

    return max(attackers, key=strength), "half", ~half


_CERTAINTY = 0.8  # found in four of five such audits
_AUCS = (0.6, 0.55, 0.52, 0.51, 0.505, 0.502, 0.501)  # what a finer audit may aim at
_RATES = (0.01, 0.001, 1e-4, 1e-5)


@dataclass(frozen=True)
class RatePower:
    """What can be shown at one false-positive rate."""

    wanted: float  # the wanted rate
    chance: float  # (k + 1) / (n0 + 1), what guessing finds if k of n0 non-members may be flagged
    tpr: float  # the smallest true-positive rate that is found in four of five audits


@dataclass(frozen=True)
class Power:
    """Which leak an audit could have shown."""

    figures: int  # how many figures (AUC and each rate, of each attack) share the error of 5 %
    auc: float  # the smallest AUC that is found in four of five audits
    rates: tuple[RatePower, ...]  # the smallest true-positive rate at each wanted rate
    finer_auc: float  # the next smaller AUC that one may want to find
    records_for_auc: int  # records that are needed for it, with this share of members
    finer_rate: float  # the next smaller rate for which fewer than ten false positives are allowed here
    non_members_for_rate: int  # non-members that are needed for it: ten allowed false positives


def audit_power(
    members: int, non_members: int, fprs: Sequence[float], *, attacks: int, first: str | None = None
) -> Power:
    """Which leak an audit could have shown, from its counts alone: the audited records, the rates and the attacks.

    ``first`` is the figure of one attack that gets most of the error, ``"auc"`` or ``"tpr@0.01"``.
    """
    figures = attacks * (1 + len(fprs))

    def among(figure: str) -> float:
        """Among how many figures the error would be shared equally for the best attack to get what it gets here."""
        return 1 / error_share(figures, first=None if first is None else figure == first)

    area = smallest_auc(members, non_members, figures=among("auc"))
    clearly = 0.5 + 0.8 * (area - 0.5)  # what this audit almost shows is not worth another one
    finer = next((goal for goal in _AUCS if goal <= clearly), 0.5 + (area - 0.5) / 2)
    share = members / (members + non_members)
    rate = next((goal for goal in _RATES if allowed_wrong(goal, non_members) < ENOUGH_WRONG), _RATES[-1] / 10)
    rates = tuple(
        RatePower(fpr, (allowed_wrong(fpr, non_members) + 1) / (non_members + 1), smallest)
        for fpr in fprs
        if (smallest := smallest_tpr(members, non_members, fpr, figures=among(f"tpr@{fpr:g}"))) is not None
    )
    needed = (_reach(among("auc")) / (finer - 0.5)) ** 2 / (12 * share * (1 - share))  # as `smallest_auc`
    step = 10.0 ** (math.floor(math.log10(needed)) - 1)  # two digits are enough
    records = round(math.ceil(needed / step) * step)
    return Power(figures, area, rates, finer, records, rate, math.ceil(ENOUGH_WRONG / rate * (1 - 1e-12)))


def smallest_auc(members: int, non_members: int, *, figures: float = 1) -> float:
    """The smallest AUC that a one-sided test at 5 % finds in four of five audits."""
    return min(1.0, 0.5 + _reach(figures) * _auc_spread(members, non_members))


def _auc_spread(members: int, non_members: int) -> float:
    """The standard deviation of an AUC without a leak, from that of the rank sum (Mann and Whitney 1947)."""
    return math.sqrt((members + non_members + 1) / (12 * members * non_members))


def smallest_tpr(members: int, non_members: int, fpr: float, *, figures: float = 1) -> float | None:
    """The smallest TPR at a rate that a test at 5 % finds in four of five audits; None if not even 100 % is enough.

    Without a leak the share U of members above the threshold, the (k + 1)-th highest score of a non-member, is
    Beta(k + 1, n0 - k). With a leak it is taken as Φ(Φ⁻¹(U) + μ), a binormal ROC curve.
    """
    allowed = allowed_wrong(fpr, non_members)
    least = _members_needed(members, non_members, allowed, error=LEVEL / figures)
    if least > members:
        return None
    shares = norm.ppf(beta.ppf((np.arange(400) + 0.5) / 400, allowed + 1, non_members - allowed))  # quantiles of U

    def missing(shift: float) -> float:
        return float(binom.sf(least - 1, members, norm.cdf(shares + shift)).mean()) - _CERTAINTY

    if missing(40.0) < 0:
        return None
    shift = float(brentq(missing, 0.0, 40.0, xtol=1e-6))
    return float(norm.cdf(norm.ppf((allowed + 1) / (non_members + 1)) + shift))


def _members_needed(members: int, non_members: int, allowed: int, *, error: float) -> int:
    """The smallest number of members above the threshold that chance reaches with at most this probability."""
    return int(np.searchsorted(-_log_found(allowed, members, non_members), -math.log(error)))


def _reach(figures: float) -> float:
    return float(norm.isf(LEVEL / figures) + norm.ppf(_CERTAINTY))
