"""Whether members were drawn at random: if not, an attack's figures say little about the model.

What is known about records without the target is brought to a few columns: features, labels, edges and shadow answers.
Can members be predicted without the target (the blind baseline), and do edges join members to members? The learners'
scores are linear in the labels, so that a permutation test refits hundreds of labellings in a few products.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve
from scipy.sparse import csr_array
from scipy.sparse import hstack as sparse_columns
from scipy.stats import norm, rankdata
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.extmath import randomized_svd

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, as_array
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.randomness import generator
from glasshouse.core.threads import ONE_CORE
from glasshouse.data import count_records, select
from glasshouse.data.design import Draw
from glasshouse.evaluation.intervals import Interval, delong
from glasshouse.evidence import Evidence

_KEPT = 128  # as many columns are kept as they are
_REDUCED = 64  # more become as many principal components
_BUCKETS = 1024  # of a random sketch that comes before them
_BUCKETS_OF_WORDS = 1 << 14
_NUMERIC = "fiubmM"
_HUGE = 1e15  # larger numbers have no square in single precision
_WIDE = 4096  # columns at a time: images are wide, and a second copy of them is not needed


def few_columns(x: Any, random: np.random.Generator) -> FloatArray:
    """[N, F] numbers from features of any kind [N, ...]: at most 128 columns of them, at most 64 of text.

    Text and other objects are hashed, with their words, and token numbers of a dict are counted.
    """
    if hasattr(x, "tocsr"):
        return _reduced(x, random)
    if isinstance(x, Mapping) and (tokens := [values for values in x.values() if _tokens_of(values)]):
        rest = {name: values for name, values in x.items() if not _tokens_of(values)}
        words = _reduced(sparse_columns([_bag(as_array(values)) for values in tokens], format="csr"), random)
        return np.hstack([words, few_columns(rest, random)]) if rest else words
    frame = [x[name].to_numpy() for name in x.columns] if hasattr(x, "columns") else [x]
    parts = [as_array(part) for part in (x.values() if isinstance(x, Mapping) else frame)]
    numbers = [as_numbers(part) for part in parts if part.dtype.kind in _NUMERIC]
    texts = [part.reshape(len(part), -1) for part in parts if part.dtype.kind not in _NUMERIC]
    found = [np.empty((count_records(x), 0))]
    if numbers:
        found.append(_narrow(numbers[0] if len(numbers) == 1 else np.hstack(numbers), random))
    if texts:
        hasher = FeatureHasher(_BUCKETS_OF_WORDS, input_type="string")
        found.append(_reduced(hasher.transform(_tokens(row) for row in np.hstack(texts)), random))
    return np.hstack(found)


def as_numbers(x: Any) -> np.ndarray:
    """[N, F] of a numeric array or tensor of any shape; dates and durations are counted."""
    array = as_array(x)
    array = array.astype(np.int64) if array.dtype.kind in "mM" else array
    return array.reshape(len(array), -1)


def ranked(columns: FloatArray) -> FloatArray:
    """[N, F] ranks with mean 0 and variance 1, without constant columns: no outlier or unit has a weight of its own."""
    if not columns.shape[1]:
        return columns
    ranks = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = ranks.std(axis=0)
    return np.asarray(ranks[:, spread > 0] / spread[spread > 0])


def _tokens_of(values: Any) -> bool:
    """Whether an array of a dict holds sequences of whole numbers [N, L], as of a tokenizer: names, not amounts."""
    return len(values.shape) == 2 and values.shape[1] > 1 and as_array(values[:1]).dtype.kind in "iu"


def _bag(tokens: np.ndarray) -> csr_array:
    """[N, buckets] how often each record has each token, whatever its place."""
    places = tokens.ravel().astype(np.int64) % _BUCKETS_OF_WORDS
    starts = np.arange(len(tokens) + 1) * tokens.shape[1]
    return csr_array((np.ones(len(places)), places, starts), shape=(len(tokens), _BUCKETS_OF_WORDS))


def _tokens(row: Any) -> Iterator[str]:
    """The values of a row with the numbers of their columns, and the words of those that have several."""
    for column, value in enumerate(row.tolist()):
        text = str(value)
        yield f"{column}={text}"
        words = text.split()
        if len(words) > 1:
            yield from (f"{column}:{word}" for word in words)


def _narrow(x: np.ndarray, random: np.random.Generator) -> FloatArray:
    """[N, ≤ 128] of numbers [N, F]: as they are, or a random sketch and its principal components."""
    if x.shape[1] <= _KEPT:
        values = x.astype(np.float64)
        missing = np.isnan(values)
        gaps = missing[:, missing.any(axis=0)]  # who lacks a value may differ in kind
        return np.hstack([_filled(values, missing), gaps.astype(np.float64)])[:, : 2 * _KEPT]
    width = min(_BUCKETS, x.shape[1])
    sketch = np.zeros((len(x), width), dtype=np.float32)
    for start in range(0, x.shape[1], _WIDE):
        values = x[:, start : start + _WIDE].astype(np.float32)
        values = np.clip(_filled(values, np.isnan(values)), -_HUGE, _HUGE)
        values -= values.mean(axis=0)
        spread = values.std(axis=0)
        values /= np.where(spread > 0, spread, 1.0)
        if width == x.shape[1]:
            sketch[:, start : start + _WIDE] = values
        else:
            sketch += (_signs(values.shape[1], width, random).T @ values.T).T
    return _components(sketch, random)


def _filled(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Medians instead of missing values, and the largest number instead of infinity."""
    if missing.any():
        known = np.where(missing.all(axis=0), 0.0, values)
        values = np.where(missing, np.nanmedian(known, axis=0), values)
    return np.asarray(np.nan_to_num(values))


def _reduced(x: Any, random: np.random.Generator) -> FloatArray:
    """[N, ≤ 64] of a sparse matrix, which is never made dense as a whole."""
    if x.shape[1] > _BUCKETS_OF_WORDS:
        x = x @ _signs(x.shape[1], _BUCKETS_OF_WORDS, random)
    return _components(csr_array(x).astype(np.float64), random)


def _components(x: Any, random: np.random.Generator) -> FloatArray:
    count = min(_REDUCED, *x.shape)
    with ONE_CORE:  # products of so few columns: a second core would mostly wait
        left, sizes, _ = randomized_svd(x, count, n_iter=2, random_state=int(random.integers(1 << 31)))
    return np.asarray(left * sizes)


def _signs(width: int, buckets: int, random: np.random.Generator) -> csr_array:
    """[width, buckets] a random sign in one random place per row (count sketch; Charikar et al., 2002)."""
    places = random.integers(buckets, size=width)
    signs = random.choice([-1.0, 1.0], size=width)
    return csr_array((signs, places, np.arange(width + 1)), shape=(width, buckets))


_LABELS = 32  # the most frequent ones get a column each
_VALUES = 20_000_000  # of features that are read at most; fewer records of wide features


@dataclass(frozen=True, eq=False, kw_only=True)
class Known:
    """What is known about records without the target; whatever is None is not known."""

    x: Any = None  # [n, ...] features of all records, as a `Population` holds them
    labels: np.ndarray | None = None  # [n] their labels; real numbers are the targets of a regression
    pairs: IntArray | None = None  # [2, E] which of them are joined by an edge, if they are nodes of a graph
    audited: IntArray | None = None  # [N] positions of the audited ones among all; all by default

    def readable(self, most: int) -> int:
        """How many records can be read at a limited cost: ``most``, or fewer of wide features."""
        if self.x is None or hasattr(self.x, "tocsr"):
            return most
        arrays = self.x.values() if isinstance(self.x, Mapping) else [self.x]
        width = sum(int(np.prod(one.shape[1:])) for one in arrays)
        width *= 1 if self.pairs is None else 2  # neighbours have features too
        return min(most, max(500, _VALUES // max(1, width)))

    def pairs_of_audited(self) -> IntArray:
        """[2, E'] the edges between audited nodes, as positions among them."""
        if self.pairs is None:
            return np.empty((2, 0), dtype=np.int64)
        if self.audited is None:
            return self.pairs
        place = np.full(max(int(self.pairs.max(initial=0)), int(self.audited.max(initial=0))) + 1, -1)
        place[self.audited] = np.arange(len(self.audited))
        found = place[self.pairs]
        return found[:, (found >= 0).all(axis=0)]


def columns_of(
    known: Known, evidence: Evidence, rows: IntArray, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Columns about audited ``rows`` [R]: [R, F] features, and [R, A] answers of the shadow models and labels.

    Shadow models are trained on random halves that do not depend on the target's members.
    """
    at = rows if known.audited is None else known.audited[rows]
    features, answers = [np.empty((len(rows), 0))], [np.empty((len(rows), 0))]
    if evidence.models:
        margins = loss_to_margin(np.asfortranarray(evidence.of_records(rows).shadow_loss))
        answers += [np.column_stack([margins.mean(axis=0), margins.std(axis=0)])]
    if evidence.shadow_logits is not None and evidence.models:
        features += [few_columns(evidence.shadow_logits[:, rows].mean(axis=0), random)]
    if known.x is not None:
        features += [few_columns(select(known.x, at), random)]
    if known.labels is not None:
        answers += [label_columns(known.labels)[at]]
    if known.pairs is not None:
        sizes = [part.shape[0] for part in (known.labels, known.x) if part is not None]
        around, degrees = _around(known.pairs, at, max([*sizes, int(at.max()) + 1]))
        answers += [np.log1p(degrees)[:, None]]
        if known.x is not None and not hasattr(known.x, "columns"):
            x = known.x if hasattr(known.x, "tocsr") else as_numbers(known.x)
            features += [few_columns(around @ x, random)]
        if known.labels is not None:
            features += [around @ label_columns(known.labels)]
    return ranked(np.hstack(features)), ranked(np.hstack(answers))


def label_columns(labels: np.ndarray) -> FloatArray:
    """[n, C] of the most frequent labels; the last of few classes follows from the others, and is kept anyway."""
    if labels.dtype.kind == "f":  # the targets of a regression
        return np.asarray(labels[:, None])
    values, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_LABELS]
    return np.asarray(codes[:, None] == common, dtype=np.float64) if len(values) > 1 else np.empty((len(labels), 0))


def _around(pairs: IntArray, at: IntArray, count: int) -> tuple[csr_array, FloatArray]:
    """[R, n] equal weights of each record's neighbours, whatever the direction, and [R] how many it has."""
    ends = np.hstack([pairs, pairs[::-1]])
    ends = ends[:, ends[0] != ends[1]]
    joined = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(count, count))[at]
    joined.data[:] = 1.0  # repeated edges were added up
    degrees = np.asarray(joined.sum(axis=1)).ravel()
    joined.data /= np.repeat(degrees, np.diff(joined.indptr))
    return joined, degrees


_WAVES = 256  # or a quarter of the records
_FERNS = 64
_SPLITS = 4  # of one fern: sixteen cells
_WEIGHT = 5.0  # records of average membership that each cell starts with


def ridge(columns: FloatArray, labels: FloatArray, folds: IntArray, random: np.random.Generator) -> FloatArray:
    """[N, P] out-of-fold scores of ridge regression, from columns [N, F] and labels [N, P] with mean 0.

    The penalty is near the best one for columns that together explain a twentieth of the variance.
    """
    return _penalised(columns, labels, folds, penalty=20.0 * columns.shape[1])


def waves(columns: FloatArray, labels: FloatArray, folds: IntArray, random: np.random.Generator) -> FloatArray:
    """The same with random Fourier features: smooth functions of all columns together (Rahimi and Recht, 2007)."""
    width = np.sqrt(columns.shape[1])  # so that two random records are about one length scale apart
    count = min(_WAVES, 1 + len(columns) // 4)
    directions = random.normal(size=(columns.shape[1], count)) / width
    basis = np.cos(columns @ directions + random.uniform(0, 2 * np.pi, size=count)) * np.sqrt(2)
    return _penalised(basis - basis.mean(axis=0), labels, folds, penalty=0.2 * len(columns))


def cells(columns: FloatArray, labels: FloatArray, folds: IntArray, random: np.random.Generator) -> FloatArray:
    """Mean label of the other folds' records in the same cell, over random ferns (Özuysal et al., 2010).

    A fern is a tree with the same random split in a whole level; copies of one record always share their cells.
    """
    count, width = columns.shape
    chosen = random.integers(width, size=(_FERNS, _SPLITS))
    at = random.integers(count, size=(_FERNS, _SPLITS))
    code = np.arange(_FERNS) * 2**_SPLITS + np.zeros((count, 1), dtype=np.int64)  # [N, ferns] number of the cell
    for split in range(_SPLITS):
        side = columns[:, chosen[:, split]] >= columns[at[:, split], chosen[:, split]]  # some record's value
        code += side * 2**split
    shape = (count, _FERNS * 2**_SPLITS)
    inside = csr_array((np.ones(code.size), code.ravel(), np.arange(count + 1) * _FERNS), shape=shape)
    parts = [inside[folds == fold] for fold in range(folds.max() + 1)]
    sums = [part.T @ labels[folds == fold] for fold, part in enumerate(parts)]
    counts = [part.sum(axis=0) for part in parts]
    whole, records = sum(sums), sum(counts)
    scores = np.empty_like(labels)
    for fold, part in enumerate(parts):
        means = (whole - sums[fold]) / (records - counts[fold] + _WEIGHT)[:, None]
        scores[folds == fold] = part @ means
    return scores


def _penalised(basis: FloatArray, labels: FloatArray, folds: IntArray, *, penalty: float) -> FloatArray:
    """[N, P] out-of-fold scores of ridge regression on a basis [N, D] with column means near 0."""
    moments, sides = basis.T @ basis, basis.T @ labels
    moments[np.diag_indices_from(moments)] += penalty
    scores = np.empty_like(labels)
    for fold in range(folds.max() + 1):
        own = folds == fold
        mine, theirs = basis[own], labels[own]
        weights = solve(moments - mine.T @ mine, sides - mine.T @ theirs, assume_a="pos")
        scores[own] = mine @ weights
    return scores


_FOLDS = 5
_PERMUTATIONS = 199
# Folds learn from each other: the product of two records' labels counts twice, once with either as the one to predict,
# which doubles the variance where there is little to find. 95 % therefore takes an interval √2 times as wide as
# DeLong's, which belongs to scores that were fixed before; benchmarks/statistics/blind.md shows how often it covers.
_WIDER = float(2 * norm.cdf(np.sqrt(2) * norm.ppf(0.975)) - 1)


@dataclass(frozen=True, kw_only=True)
class BlindBaseline:
    """How well members are told from non-members without the target."""

    auc: float  # of the learners' mean score, over pairs of one fold; 0.5 on average if members were drawn at random
    interval: Interval  # 95 %, of the AUC
    p_value: float  # how often random members are predicted so well, by permutation; exact
    records: int  # how many records were used

    def figures(self) -> str:
        """The AUC with its interval and p-value, as a part of a sentence."""
        low, high = self.interval
        return f"{self.auc:.2f} ({low:.2f} to {high:.2f}; p = {self.p_value:.2g} if they were drawn at random)"


def blind_baseline(
    features: FloatArray,
    answers: FloatArray,
    members: BoolArray,
    *,
    seed: int,
    arrangements: BoolArray | None = None,
) -> BlindBaseline:
    """Predict members [N] from the columns of other records, and test whether the prediction is better than chance.

    Columns have mean 0 and variance 1: [N, F] features, and [N, A] answers and labels. The test statistic is the
    largest of four learners' out-of-fold statistics, each standardised over the permutations. The ``arrangements``
    [P, N] of a declared draw take the place of permutations; the p-value is then exact under that draw.
    """
    random = generator(seed, "blind baseline")
    folds = random.permutation(np.arange(len(members)) % _FOLDS)
    permuted = arrangements
    if permuted is None:
        permuted = random.permuted(np.tile(members, (_PERMUTATIONS, 1)), axis=1)
    labels = np.vstack([members[None], permuted]).T - members.mean()  # [N, 1 + permutations]
    together = np.hstack([features, answers])
    plan = [(ridge, answers)] if answers.shape[1] and features.shape[1] else []
    plan += [(learner, together) for learner in (ridge, waves, cells)] if together.shape[1] else []
    mean, largest = np.zeros(len(members)), np.full(1 + len(permuted), -np.inf)
    for learner, columns in plan:
        with ONE_CORE:  # matrices so small wait longer for a second thread than they take
            scores = _standard(learner(columns, labels, folds, random), folds)
        if columns is together:
            mean += scores[:, 0]
        statistic = np.einsum("np,np->p", scores, labels)
        # standardised with the truth among the permutations, so that under random members all columns are alike
        spread = statistic.std() or 1.0
        largest = np.maximum(largest, (statistic - statistic.mean()) / spread)
    ranks, area = _within(mean, members, folds)
    return BlindBaseline(
        auc=area,
        interval=delong(ranks, members, confidence=_WIDER),
        p_value=float(np.mean(largest >= largest[0] - 1e-9)),
        records=len(members),
    )


def _standard(scores: FloatArray, folds: IntArray) -> FloatArray:
    """[N, P] with mean 0 and variance 1 within each fold; constant scores become 0."""
    for fold in range(_FOLDS):
        own = scores[folds == fold]
        own -= own.mean(axis=0)
        spread = own.std(axis=0)
        scores[folds == fold] = own / np.where(spread > 1e-12, spread, np.inf)
    return scores


def _within(scores: FloatArray, members: BoolArray, folds: IntArray) -> tuple[FloatArray, float]:
    """[N] the share of its fold that a record is above, so that folds can be pooled; AUC over pairs of one fold."""
    ranks, won, pairs = np.empty_like(scores), 0.0, 0.0
    for fold in range(_FOLDS):
        own = folds == fold
        inside, placed = members[own], rankdata(scores[own])
        ranks[own] = (placed - 0.5) / own.sum()
        count, others = int(inside.sum()), int((~inside).sum())
        won += float(placed[inside].sum()) - count * (count + 1) / 2
        pairs += count * others
    return ranks, won / pairs if pairs else 0.5


_EDGE_PERMUTATIONS = 999
_MOST_EDGES = 50_000  # edges; a random choice of them is as exact, and so many show a difference of one point
_BLOCK = 1 << 23  # ends of edges that are looked up at once


@dataclass(frozen=True, kw_only=True)
class MemberEdges:
    """How many edges join two members, and how many two non-members."""

    members: float  # share of the edges between audited nodes that join two members
    expected_members: Interval  # 95 % of random draws of as many members have a share in this interval
    others: float  # share of the edges that join two non-members
    expected_others: Interval  # the same for them
    p_value: float  # how often a random draw is at least as far from the average draw; exact, by permutation
    edges: int  # how many edges were used

    def sentence(self) -> str:
        """The shares in words, with those of a random draw."""
        usual, other = (
            f"{100 * low:.1f} to {100 * high:.1f} %" for low, high in (self.expected_members, self.expected_others)
        )
        return (
            f"{100 * self.members:.1f} % of the edges join two members (a random draw: {usual}) "
            f"and {100 * self.others:.1f} % two non-members ({other})"
        )


def member_edges(pairs: IntArray, members: BoolArray, *, seed: int, draw: Draw | None = None) -> MemberEdges | None:
    """Test by permutation whether edges [2, E] between audited records depend on who is a member; None without an edge.

    The statistic is that of Chen and Friedman (2017): how far the counts of edges of two members, and of two
    non-members, are from their means under permutation, in units of their covariance. Hubs are so taken into account.
    A declared ``draw`` arranges the members.
    """
    random = generator(seed, "joined members")
    low, high = pairs.min(axis=0), pairs.max(axis=0)
    keys = np.unique((low * len(members) + high)[low != high])
    if len(keys) > _MOST_EDGES:
        keys = random.choice(keys, size=_MOST_EDGES, replace=False)
    if not len(keys):
        return None
    nodes, ends = np.unique(np.stack([keys // len(members), keys % len(members)]), return_inverse=True)
    own = members[nodes]
    total = _EDGE_PERMUTATIONS if draw is None else draw.worth(_EDGE_PERMUTATIONS)
    arranged = None if draw is None else draw.arrangements(members, total, random)[:, nodes]
    parts, step = [_edges_within(own[None], ends.reshape(2, -1))], max(1, _BLOCK // len(keys))
    for start in range(0, total, step):
        size = min(step, total - start)
        some = random.permuted(np.tile(own, (size, 1)), axis=1) if arranged is None else arranged[start : start + size]
        parts.append(_edges_within(some, ends.reshape(2, -1)))
    counts = np.concatenate(parts)  # [1 + permutations, 2]
    # squared Mahalanobis distances from the mean; if all degrees are equal, the two counts are one
    centred = counts - counts.mean(axis=0)
    precision = np.linalg.pinv(centred.T @ centred / len(counts), rcond=1e-9, hermitian=True)
    far = np.einsum("pi,ij,pj->p", centred, precision, centred)
    expected = np.quantile(counts[1:] / len(keys), [0.025, 0.975], axis=0).T.tolist()
    return MemberEdges(
        members=float(counts[0, 0] / len(keys)),
        expected_members=Interval(*expected[0]),
        others=float(counts[0, 1] / len(keys)),
        expected_others=Interval(*expected[1]),
        p_value=float(np.mean(far >= far[0] * (1 - 1e-9) - 1e-9)),
        edges=len(keys),
    )


def _edges_within(drawn: BoolArray, ends: IntArray) -> FloatArray:
    """[P, 2] edges of two members and edges of two non-members, for members [P, N] and edges [2, E]."""
    a, b = drawn[:, ends[0]], drawn[:, ends[1]]
    both, any_of = (a & b).sum(axis=1), (a | b).sum(axis=1)
    return np.stack([both, ends.shape[1] - any_of], axis=1).astype(np.float64)


_LEVEL = 0.01  # of false alarms, all tests together
_MOST_RECORDS = 10_000  # records of the blind baseline
_FEWEST = 10  # members, and non-members
_WORK, _ARRANGEMENTS = 4_000_000, (199, 1999)  # of a declared draw: records times arrangements, and how many


@dataclass(frozen=True, kw_only=True)
class RandomMembers:
    """How well members can be told from non-members without the target."""

    blind: BlindBaseline  # from features, labels and the shadow models' answers
    joined: MemberEdges | None = None  # from the edges between them; None for records, or without edges

    @property
    def p_value(self) -> float:
        """How often random members would be told from non-members so well, by either test."""
        return self.blind.p_value if self.joined is None else min(1.0, 2 * min(self.blind.p_value, self.joined.p_value))

    @property
    def found(self) -> bool:
        """Whether members were not drawn at random; at most 1 % of random draws are reported so."""
        return self._told or self._clustered

    @property
    def withheld(self) -> str:
        """Why no ε can be given; empty if nothing was found."""
        if self._told:
            return "members differ from non-members in kind"
        return "members were not drawn at random from the graph" if self._clustered else ""

    def warning(self) -> str:
        """What comes first in a report; empty if nothing was found."""
        found = []
        if self._told:
            found.append(
                f"Members can be told from non-members without the model: features, labels and shadow models alone "
                f"give AUC {self.blind.figures()}."
            )
        if self._clustered and self.joined is not None:
            found.append(f"Members were not drawn at random from the graph: {self.joined.sentence()}.")
        advice = (
            "So the figures below say little about the model, and ε is withheld. Draw the members at random, or audit "
            "records of the same kind."
        )
        return " ".join([*found, advice]) if found else ""

    def sentence(self) -> str:
        """What was measured, in one line; shown whether or not something was found."""
        line = f"Without the model, members are told from non-members with AUC {self.blind.figures()}."
        if self.joined is not None:
            line += f" {self.joined.sentence()}; p = {self.joined.p_value:.2g}."
        return line

    @property
    def _told(self) -> bool:
        return self.blind.p_value <= (_LEVEL if self.joined is None else _LEVEL / 2) + 1e-9

    @property
    def _clustered(self) -> bool:
        return self.joined is not None and self.joined.p_value <= _LEVEL / 2 + 1e-9


def check_random_members(
    known: Known, evidence: Evidence, members: BoolArray, *, seed: int, draw: Draw | None = None
) -> RandomMembers | None:
    """Test whether members were drawn at random; None if there are too few members or non-members to say.

    Args:
        known: about the records, without the target.
        evidence: of it the shadow models' answers are used, never the target's.
        members: [N] members of the target.
        seed: of every random choice.
        draw: how they were drawn, as declared; the tests then compare with members that were drawn so.

    Example:
        >>> random = np.random.default_rng(0)
        >>> losses = {"target_loss": np.ones(200), "shadow_loss": np.ones((2, 200))}
        >>> evidence = Evidence(**losses, shadow_members=np.zeros((2, 200)))
        >>> bright = random.normal(size=(200, 4))
        >>> check_random_members(Known(x=bright), evidence, bright[:, 0] > 0, seed=0).found
        True
    """
    if min(int(members.sum()), int((~members).sum())) < _FEWEST:
        return None
    random = generator(seed, "how drawn")
    most, arranged = known.readable(_MOST_RECORDS), None
    if draw is None:
        rows = _some(members, most, random)
    else:  # chosen without a look at who is a member: of clusters and strata no choice may depend on it
        rows = np.sort(random.permutation(len(members))[:most])
        count = draw.worth(int(np.clip(_WORK // len(rows), *_ARRANGEMENTS)))
        arranged = draw.at(rows).arrangements(members[rows], count, random)
    features, answers = columns_of(known, evidence, rows, random)
    blind = blind_baseline(features, answers, members[rows], seed=seed, arrangements=arranged)
    pairs = known.pairs_of_audited()
    joined = member_edges(pairs, members, seed=seed, draw=draw) if pairs.shape[1] else None
    return RandomMembers(blind=blind, joined=joined)


def _some(members: BoolArray, most: int, random: np.random.Generator) -> IntArray:
    """Records to use, in their order: all, or a random choice with as many members as non-members where possible."""
    sides = [random.permutation(np.flatnonzero(members == kind)) for kind in (True, False)]
    few = min(sides, key=len)
    kept = min(len(few), most // 2)
    rest = most - kept
    return np.sort(np.concatenate([side[:kept] if side is few else side[:rest] for side in sides]))
