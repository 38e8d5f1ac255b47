"""How the members of a target were chosen: designs, and which arrangements of members each makes equally likely."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, chi2_contingency

from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.core.errors import InputError, shortened
from glasshouse.core.randomness import generator
from glasshouse.core.registry import Registry
from glasshouse.data.members import both_ways, snowball
from glasshouse.data.units import Units

_UNEQUAL = 0.01  # a p-value: strata whose shares of members differ by more than chance are evened out
_FEW = 20  # units of a stratum; in a smaller one the guesses about two units are nearly one guess
_GROWN = 199  # arrangements at most of a draw that is slow to repeat


@dataclass(frozen=True, eq=False, kw_only=True)
class Draw:
    """A design on the audited units: what was drawn together, and within what.

    ``sentence`` says it in words; ``random`` whether it was a draw at all. Every arrangement in which as many clusters
    of each stratum are inside is equally likely.
    """

    sentence: str
    strata: IntArray  # [U] within which members were drawn
    clusters: IntArray  # [U] which units were drawn together
    cluster: str = ""  # what a cluster of several units is called, such as ``"site"``; empty without any
    random: bool = True
    shares: Mapping[int, float] | None = None  # by stratum, the stated chance of a cluster to be inside
    coins: str = ""  # what we drew by coins of our own, such as ``"canary"``; empty if somebody else drew
    again: Callable[[np.random.Generator], BoolArray] | None = None  # draws members [U] anew where no shuffling does
    counted: float | None = None  # `count_chance` of the true members; None if no shares were stated

    @property
    def plain(self) -> bool:
        """Whether every arrangement of as many members is equally likely."""
        return self.random and not self.cluster and self.again is None and not self.strata.any()

    @property
    def small_strata(self) -> bool:
        """Whether most units are in strata so small that their coins depend on each other."""
        return bool(np.median(np.bincount(self.strata)[self.strata]) < _FEW)

    def arrangements(self, members: BoolArray, count: int, random: np.random.Generator) -> BoolArray:
        """[count, U] random arrangements of these members [U], each as likely as the one that was drawn."""
        if self.again is not None:
            return np.stack([self.again(random) for _ in range(count)])
        flags, strata = self.of_clusters(members)
        drawn = np.empty((count, len(flags)), dtype=np.bool_)
        for stratum in np.unique(strata):
            own = np.flatnonzero(strata == stratum)
            drawn[:, own] = random.permuted(np.tile(flags[own], (count, 1)), axis=1)
        return drawn[:, self.clusters]

    def worth(self, count: int) -> int:
        """How many arrangements to draw where so many are wanted: fewer of a draw that is slow to repeat."""
        return count if self.again is None else min(count, _GROWN)

    def even(self, members: BoolArray, *, seed: int) -> BoolArray | None:
        """[U] units to judge so that all strata have the same share of members; None where all may be judged.

        Where shares differ by more than chance, a score could tell members by their stratum alone. Units of the larger
        side are then left out at random, which does not look at any score: for who stays, the draw is what it was.
        """
        inside = np.bincount(self.strata, members)
        sizes = np.bincount(self.strata)
        some = sizes > 0
        table = np.stack([inside[some], (sizes - inside)[some]])
        if not self.random or table.shape[1] < 2:
            return None
        if chi2_contingency(table).pvalue > _UNEQUAL:
            return None
        keep = np.zeros(len(members), dtype=np.bool_)
        order = generator(seed, "even strata").permutation(len(members))
        for stratum in np.flatnonzero(some):
            sides = [order[(self.strata[order] == stratum) & (members[order] == side)] for side in (True, False)]
            fewer = min(len(side) for side in sides)
            for side in sides:
                keep[side[:fewer]] = True
        if not keep.any():
            raise InputError("design: no stratum has members and non-members; nobody can be compared with anybody.")
        return keep

    def at(self, rows: BoolArray | IntArray) -> Draw:
        """The same draw of some of the units [U], by mask or by position."""
        strata, clusters = (np.unique(part[rows], return_inverse=True)[1] for part in (self.strata, self.clusters))
        whole = self.again
        again = None if whole is None else lambda random: whole(random)[rows]
        return replace(self, strata=strata, clusters=clusters, shares=None, again=again)

    def count_chance(self, members: BoolArray) -> float | None:
        """How often as many members or a less likely number would be inside by the stated shares; None if none is."""
        if not self.shares:
            return None
        flags, strata = self.of_clusters(members)
        found = []
        for stratum, share in self.shares.items():
            own = flags[strata == stratum]
            if len(own):
                found.append(float(binomtest(int(own.sum()), len(own), share).pvalue))
        return min(1.0, len(found) * min(found)) if found else None

    def of_clusters(self, members: BoolArray) -> tuple[BoolArray, IntArray]:
        """[C] which clusters are inside, and the stratum of each; one that is partly inside is refused."""
        count = int(self.clusters.max()) + 1
        inside, sizes = np.bincount(self.clusters, members, count), np.bincount(self.clusters, minlength=count)
        split = (inside > 0) & (inside < sizes)
        if split.any():
            raise InputError(
                f"design: {int(split.sum())} of {count} {self.cluster}s are partly inside; under this design a "
                f"{self.cluster} is inside as a whole or not at all. Declare another design."
            )
        strata = np.zeros(count, dtype=np.int64)
        strata[self.clusters] = self.strata
        return inside > 0, strata


DESIGNS: Registry[type[Design]] = Registry("a design")
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Design:
    """How members were chosen, as their owner declares it: tests and ε follow it.

    What contradicts it is reported with its chance under the design, and never as a fact. A design may have ``by``: a
    column [N], one value per record, or the name of a column of ``groups``, or ``"label"``.
    """

    name: ClassVar[str]
    told: ClassVar[str]  # the draw in words; {rows}, {units}, {found} values of ``by`` and {share} are put in
    together: ClassVar[bool] = False  # whether all units of one value of ``by`` were drawn together, or within it
    random: ClassVar[bool] = True

    def __init_subclass__(cls, *, name: str, told: str = "", in_files: bool = True, **options: bool) -> None:
        super().__init_subclass__()
        cls.name, cls.told = name, told
        for option, value in options.items():
            setattr(cls, option, value)
        if in_files:
            DESIGNS.add(name, cls)

    def drawn(self, count: int, units: Units | None, columns: Columns) -> Draw:
        """The draw over units [U], or over so many records; ``columns`` [N] may be named by the design.

        A graph has the column ``component``, and for a snowball ``members`` and ``edges`` [2, E].
        """
        at = np.arange(count if units is None else len(units))
        found, codes = np.unique(self._values(count, units, columns), return_inverse=True)
        rows = "nodes" if "edges" in columns else "records"
        word = rows if units is None else f"{units.word}s"
        return Draw(
            sentence=self.told.format(rows=rows, units=word, found=len(found), share=getattr(self, "share", 0.0)),
            strata=np.zeros_like(at) if self.together else codes,
            clusters=codes if self.together else at,
            cluster=self.name if self.together else "",
            random=self.random,
            shares=self._shares(found),
        )

    def members(self, count: int, units: Units | None, columns: Columns, *, share: float, seed: int) -> BoolArray:
        """[N] members drawn by this design, for a plan: each cluster by a coin of its own with this chance."""
        draw = self.drawn(count, units, columns)
        if not draw.random:
            raise InputError(f"design: {self.name} is no draw; plan with units, records, strata or site.")
        _, strata = draw.of_clusters(np.zeros(len(draw.strata), dtype=np.bool_))
        chances = np.array([(draw.shares or {}).get(int(stratum), share) for stratum in strata])
        chosen = (generator(seed, "planned members").random(len(strata)) < chances)[draw.clusters]
        return chosen if units is None else chosen[units.rows]

    def _values(self, count: int, units: Units | None, columns: Columns) -> NDArray[Any]:
        """[U] the column ``by`` of the units, which must be the same in all of a unit; zeros without one."""
        by, rows = getattr(self, "by", None), count if units is None else len(units.rows)
        if by is None:
            return np.zeros(count if units is None else len(units), dtype=np.int64)
        if isinstance(by, str) and by not in columns:
            known = ", ".join(columns) or "none"
            raise InputError(f"design: there is no column {shortened(by)}; name one of groups or label (now: {known}).")
        values = np.asarray(columns[by] if isinstance(by, str) else by)
        if values.shape != (rows,):
            raise InputError(f"design: by has shape {values.shape}; give one value per record, [{rows}].")
        if units is None:
            return values
        if not units.constant(values):
            raise InputError(f"design: by differs within a {units.word}; a {units.word} is in one of them.")
        return units.column(values)

    def _shares(self, found: NDArray[Any]) -> Mapping[int, float] | None:
        """The stated chance to be inside, by the place of a value of ``by``; None if none is stated."""
        return None


@dataclass(frozen=True, kw_only=True)
class RecordsAtRandom(Design, name="records", told="{rows} were drawn at random"):
    """Each record was drawn by itself.

    Units are then partly inside, which their owner declares too (`Units`); those of one size are exchangeable.

    Example:
        >>> RecordsAtRandom().drawn(3, None, {}).plain
        True
    """

    def _values(self, count: int, units: Units | None, columns: Columns) -> NDArray[Any]:
        partly = units is not None and units.partly == "member"
        return units.sizes if partly and units is not None else super()._values(count, units, columns)


@dataclass(frozen=True, kw_only=True)
class UnitsAtRandom(Design, name="units", told="{units} were drawn at random"):
    """Units were drawn at random, each with all of its records.

    Example:
        >>> UnitsAtRandom().drawn(3, Units(["a", "b", "a"]), {}).sentence
        'persons were drawn at random'
    """


@dataclass(frozen=True, kw_only=True)
class FixedShare(Design, name="share", told="a share of {share:g} of the {units} was drawn at random"):
    """Units were drawn at random, each with this chance.

    Example:
        >>> FixedShare(share=0.3).drawn(10, None, {}).sentence
        'a share of 0.3 of the records was drawn at random'
    """

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError(f"design: share {self.share} is not between 0 and 1.")

    def _shares(self, found: NDArray[Any]) -> Mapping[int, float]:
        return {0: self.share}


@dataclass(frozen=True, kw_only=True)
class WithinStrata(Design, name="strata", told="{units} were drawn at random within {found} strata"):
    """Units were drawn at random within strata, such as towns or age groups.

    Example:
        >>> draw = WithinStrata(by=["a", "a", "b", "b"]).drawn(4, None, {})
        >>> draw.arrangements(np.array([True, False, True, False]), 5, np.random.default_rng(0)).sum(axis=1)
        array([2, 2, 2, 2, 2])
    """

    by: ArrayLike | str


@dataclass(frozen=True, kw_only=True)
class Undersampled(
    WithinStrata,
    name="undersampled",
    told="{units} were drawn at random within {found} classes, of some fewer than of others",
):
    """Units were drawn at random within classes, of some fewer than of others; ``shares``: by class, where known.

    Example:
        >>> Undersampled(by=["rare", "usual"] * 10, shares={"usual": 0.5}).drawn(20, None, {}).shares
        {1: 0.5}
    """

    shares: Mapping[Any, float] | None = None

    def _shares(self, found: NDArray[Any]) -> Mapping[int, float] | None:
        places = {str(name): place for place, name in enumerate(found.tolist())}
        stated = {str(name): share for name, share in (self.shares or {}).items()}
        if unknown := [name for name in stated if name not in places]:
            raise InputError(f"design: shares: there is no class {unknown[0]!r}; classes: {', '.join(places)}.")
        return {places[name]: share for name, share in stated.items()} or None


@dataclass(frozen=True, kw_only=True)
class BySite(Design, name="site", told="{found} whole sites were drawn at random or left out", together=True):
    """Whole sites were drawn, such as hospitals, each with all of its units.

    Example:
        >>> BySite(by=["a", "a", "b", "c"]).drawn(4, None, {}).sentence
        '3 whole sites were drawn at random or left out'
    """

    by: ArrayLike | str


@dataclass(frozen=True, kw_only=True)
class ByComponent(BySite, name="component", told="{found} whole components were drawn at random or left out"):
    """Whole connected components of a graph were drawn, which share no edge.

    Example:
        >>> ByComponent().drawn(3, None, {"component": np.array([0, 0, 1])}).sentence
        '2 whole components were drawn at random or left out'
    """

    by: ArrayLike | str = "component"


@dataclass(frozen=True, kw_only=True)
class Snowball(
    Design,
    name="snowball",
    told="{units} were drawn by snowball; intervals, which take them as independent, are too narrow",
):
    """Nodes of a graph were drawn by snowball, along edges from a random node.

    Such nodes depend on each other: the test of a leak repeats the snowball, and no ε follows.

    Args:
        branching: how many neighbours a node adds at most; all of them by default.

    Example:
        >>> graph = {"edges": np.array([[0, 1, 2], [1, 2, 3]]), "members": np.arange(4) < 2}
        >>> draw = Snowball().drawn(4, None, graph)
        >>> draw.arrangements(graph["members"], 3, np.random.default_rng(0)).sum(axis=1)
        array([2, 2, 2])
    """

    branching: int | None = None

    def drawn(self, count: int, units: Units | None, columns: Columns) -> Draw:
        """A snowball of as many nodes along the edges of the graph."""
        if "edges" not in columns or units is not None:
            raise InputError("design: a snowball draws the nodes of a graph, each by itself; declare another draw.")
        ends, wanted = both_ways(columns["edges"], count), int(columns["members"].sum())
        found = super().drawn(count, units, columns)
        return replace(
            found, again=lambda random: snowball(ends, count, wanted, random=random, branching=self.branching)
        )


@dataclass(frozen=True, kw_only=True)
class TimeSplit(Design, name="time", told="members and non-members are split by time", random=False):
    """Members are the units before a date, and non-members those after it: no draw.

    Example:
        >>> TimeSplit().drawn(3, None, {}).random
        False
    """


@dataclass(frozen=True, kw_only=True)
class UnknownDraw(Design, name="unknown", told="how members were chosen is not known", random=False):
    """It is not known how members were chosen.

    Example:
        >>> UnknownDraw().drawn(3, None, {}).sentence
        'how members were chosen is not known'
    """


@dataclass(frozen=True, kw_only=True)
class OwnCoins(Design, name="own coins", in_files=False):
    """Members were drawn by Glasshouse before the training: ``plan`` in words, ``within`` a design, by fair coins.

    Example:
        >>> OwnCoins(plan="drawn here", within=UnitsAtRandom(), what="canary").drawn(3, None, {}).coins
        'canary'
    """

    plan: str
    within: Design
    what: str  # what was drawn, such as ``"canary"``

    def drawn(self, count: int, units: Units | None, columns: Columns) -> Draw:
        """As the plan drew them."""
        return replace(self.within.drawn(count, units, columns), sentence=self.plan, coins=self.what)


def as_design(given: Design | str | Mapping[str, Any] | None) -> Design | None:
    """A design, its name, or a mapping with ``name`` and what belongs to it, as audit files have it.

    Example:
        >>> as_design({"name": "strata", "by": "town"})
        WithinStrata(by='town')
        >>> as_design("sites")
        Traceback (most recent call last):
        glasshouse.InputError: "sites" is not a design. ...
    """
    if given is None or isinstance(given, Design):
        return given
    parts = {"name": given} if isinstance(given, str) else dict(given)
    kind = DESIGNS.find(str(parts.pop("name", "")))
    wanted = [one.name for one in fields(kind)]
    if strange := [name for name in parts if name not in wanted]:
        raise InputError(
            f"design: {kind.name} has no {shortened(strange[0])}; it takes {', '.join(wanted) or 'nothing'}."
        )
    try:
        return kind(**parts)
    except TypeError as error:
        raise InputError(f"design: {kind.name} needs {', '.join(wanted)}.") from error
