"""What an audit found: tables, files and the report, all from one object."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np

from glasshouse.core.arrays import BoolArray
from glasshouse.core.table import Table
from glasshouse.evaluation import AttackOutcome, VerdictAttack
from glasshouse.evaluation.groups import GroupLeak, group_leaks, worst_cell
from glasshouse.evaluation.leakage import audit_power
from glasshouse.evaluation.risk import UnitRisk
from glasshouse.evaluation.texts import text_leak
from glasshouse.evidence import Evidence, Mode, write_evidence
from glasshouse.evidence.evidence import UnitView
from glasshouse.io.files import new_folder, write_file
from glasshouse.report import Advice, Summary, Surroundings, latex_table, render_html
from glasshouse.report.decision.conclusion import attackers, verdict_figures
from glasshouse.report.decision.verdict import notes, verdict
from glasshouse.report.figures import Estimate, attack_figures, columns_at
from glasshouse.report.format import table_of
from glasshouse.report.html import notebook_html, picture_style, roc_figure
from glasshouse.report.json_io import metrics_json, run_json
from glasshouse.report.pictures.scores import roc_picture
from glasshouse.report.policy import Policy
from glasshouse.report.redaction import Redactor, redacted_context
from glasshouse.report.run_folder import listed
from glasshouse.report.summary import AuditFindings
from glasshouse.report.terminal import summary_text

_TOP, _TEXTS, _DRAWN = 100, 20, 40  # records: listed, with their texts, with their neighbours


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AuditResult(AuditFindings):
    """The outcome of an audit; ``print`` shows what the command line shows. It also has what `AuditFindings` has.

    Args:
        evidence: what the attacks saw.
        outcomes: of each attack, by name.
        members: [N] which records trained the target; None if not known.
        labels: [N] the records' labels as their owner writes them; None if not known.
        verdict_attack: what the verdict is about, and whether there is a leak; None if the members are not known.
        surroundings: of the records, if they are nodes of a graph.
        mismatch: what a reader must know if the target is unlike the shadow models; empty if it is like them.
        groups: columns [N] that divide the records, by name, as the user gave them.
        words: [N] the tokens of every text, to be shown in the report; None shows none.
        risk: how often simulated targets let an attack identify each unit; None for records.
        by_unit: the rows behind the units, if units such as persons were audited; None for records.
    """

    evidence: Evidence
    outcomes: Mapping[str, AttackOutcome]
    members: BoolArray | None
    labels: np.ndarray | None
    verdict_attack: VerdictAttack | None
    surroundings: Surroundings | None = None
    mismatch: str = ""
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    words: Sequence[Sequence[str]] | None = None
    by_unit: UnitView | None = None
    risk: UnitRisk | None = None

    def __repr__(self) -> str:
        return f"AuditResult({len(self.evidence.ids)} records, attacks: {', '.join(self.outcomes) or 'none'})"

    def __str__(self) -> str:
        return summary_text(self.summary())

    def _repr_html_(self) -> str:
        return notebook_html(self.summary())

    def plot(self) -> Any:
        """The ROC curves with their bands, both axes logarithmic, as a matplotlib figure."""
        return roc_figure(self.summary())

    def table(self) -> Table:
        """One row per attack: every figure of `glasshouse.report.figures.FIGURES` that a table shows.

        These are AUC, balanced accuracy and TPR at each FPR with intervals, thresholds, and how many records they flag.

        A TPR is a median-unbiased estimate (`tpr_estimates`); that of the sample is in `AttackOutcome.metrics`.

        If the records are a random sample of more, columns with ``whole`` hold the intervals for all of them.

        If scores are tied so that no threshold keeps a wanted FPR, its TPR is NaN, and the columns ``first_fpr`` and
        ``tpr@first_fpr`` hold the first rate that can be reached.
        """
        attacks = self.summary().attacks
        wanted = dict.fromkeys([*self.fprs, *(one.wanted for attack in attacks for one in attack.thresholds)])
        columns: dict[str, list[object]] = {"attack": [attack.name for attack in attacks]}
        for column in columns_at("table", attacks, list(wanted)):
            found = [column.of(attack) or Estimate(np.nan) for attack in attacks]
            columns[column.name] = [np.nan if one.at is not None else one.value for one in found]
            if any(one.interval is not None for one in found):
                ends = [(np.nan, np.nan) if one.at is not None else one.interval or (np.nan, np.nan) for one in found]
                low, high = zip(*ends, strict=True)
                columns |= {f"{column.name}_low": list(low), f"{column.name}_high": list(high)}
        return Table({name: np.array(values) for name, values in columns.items()})

    def records(self) -> Table:
        """One row per record: id, label, membership if known, and each attack's score, decision and rank.

        A score gives an order of the records. Only where it may also be read as a probability of membership
        (`AttackOutcome.calibrated`), the column ``…_posterior`` repeats it. The decision is made at the first wanted
        false-positive rate: whether ``…_flag_score``, the score by as many shadow models as judge a simulated target,
        reaches a threshold from simulated targets. An attack that cannot reach any wanted rate because
        of ties, or a target that is unlike the shadow models, has no such column. ``…_fdr`` is the smallest
        false-discovery rate at which the record is flagged, without use of the true members; ``…_stability`` is the
        share of smaller pools with which the record is still flagged (for attacks that are cheap enough).

        Of a node that is flagged, ``exposed_by`` says what gives it away: ``"itself"`` if an attack that looks at it
        alone flags it, ``"neighbours"`` if only attacks that look at the graph do.

        Of units such as persons it also has ``records`` (how many each has), ``risk`` (the share of the simulated
        targets with this unit inside in which the verdict attack identifies it), ``risk_by`` (the attack that does so
        most often) and ``risk_chance`` (the chance that guessing would do so as often).
        """
        return Table(dict(self._by_record()))

    def _by_record(self) -> Iterator[tuple[str, np.ndarray]]:
        """The columns of `records` one by one: together they may be as large as the evidence."""
        yield "id", self.evidence.ids
        if self.labels is not None:
            yield "label", self.labels
        if self.members is not None:
            yield "member", self.members
        if self.surroundings is not None:
            yield "degree", self.surroundings.degrees
        if self.by_unit is not None:
            yield "records", self.by_unit.units.sizes
        if self.risk is not None:
            yield from {"risk": self.risk.identified, "risk_by": self.risk.by, "risk_chance": self.risk.chance}.items()
        if self.surroundings is not None and (exposed := self._exposed_by()) is not None:
            yield "exposed_by", exposed
        yield from self.groups.items()
        for name, outcome in self.outcomes.items():
            yield f"{name}_score", outcome.scores
            if outcome.calibrated:
                yield f"{name}_posterior", outcome.scores
            if (threshold := outcome.first_threshold) is not None:
                yield f"{name}_decision", outcome.flagged(threshold)
                if outcome.flag_scores is not None:
                    yield f"{name}_flag_score", outcome.flag_scores
            yield f"{name}_rank", outcome.ranks
            if (levels := outcome.discovery_levels) is not None:
                yield f"{name}_fdr", levels
            if threshold is not None and outcome.stability is not None:
                yield f"{name}_stability", outcome.stability

    def _exposed_by(self) -> np.ndarray | None:
        """[N] by which kind of attack each node is flagged; None unless attacks of both kinds have a threshold."""
        flagged: dict[str, np.ndarray] = {}
        for outcome in self.outcomes.values():
            if (threshold := outcome.first_threshold) is not None and not outcome.attack.knows_truth:
                kind = outcome.attack.kind
                flagged[kind] = outcome.flagged(threshold) | flagged.get(kind, np.zeros(1, dtype=np.bool_))
        if not {"records", "graph"} <= flagged.keys():
            return None
        return np.where(flagged["records"], "itself", np.where(flagged["graph"], "neighbours", ""))

    def rows(self) -> Table:
        """One row per record inside the audited units: id, unit, membership if known, and each attack's own score.

        Without units it is `records`.
        """
        if self.by_unit is None:
            return self.records()
        view, units = self.by_unit, self.by_unit.units
        columns: dict[str, np.ndarray] = {"id": view.rows.ids, units.word: units.names[units.rows]}
        if self.members is not None:
            columns["member"] = self.members[units.rows]
        for name, outcome in self.outcomes.items():
            columns[f"{name}_score"] = outcome.attack.row_scores(view)  # type: ignore[attr-defined]
        return Table(columns)

    def roc(self) -> Table:
        """Every point of every ROC curve: attack, threshold, FPR, TPR."""
        known = {name: outcome.metrics for name, outcome in self.outcomes.items() if outcome.metrics is not None}
        curves = [metrics.curve for metrics in known.values()]
        none = np.empty(0)  # so that there is something to join if the members are not known
        return Table(
            {
                "attack": np.repeat(np.array(list(known), dtype=np.str_), [len(curve.fpr) for curve in curves]),
                "threshold": np.concatenate([none, *(curve.thresholds for curve in curves)]),
                "fpr": np.concatenate([none, *(curve.fpr for curve in curves)]),
                "tpr": np.concatenate([none, *(curve.tpr for curve in curves)]),
            }
        )

    def precision_table(self) -> Table:
        """One row per attack, threshold and prior: TPR, FPR, advantage and precision with intervals."""
        return table_of(
            {
                "attack": attack.name,
                "wanted_fpr": one.wanted,
                "prior": precision.prior,
                "precision": precision.value,
                "precision_interval": precision.interval,
                **{name: value for name, value in vars(one).items() if name not in ("wanted", "precisions")},
            }
            for attack in self.summary().attacks
            for one in attack.accusations
            for precision in one.precisions
        )

    def group_table(self) -> Table:
        """One row per group of records: the leak of the strongest attack there, with corrected intervals."""
        return table_of(map(vars, self.summary().groups))

    def summary(self) -> Summary:
        """The numbers that the report and the terminal show."""
        return self._summary

    @functools.cached_property
    def _summary(self) -> Summary:
        members, inside = self.members, None
        attacks = tuple(attack_figures(name, outcome, members) for name, outcome in self.outcomes.items())
        able = attackers(attacks)
        found, first, strongest = None, None, able[0].name
        if (chosen := self.verdict_attack) is not None:
            strongest, first = chosen.attack, chosen.test.first
            random = (self.random_members is None or not self.random_members.found) and (
                self.declared is None or self.declared.random
            )
            found = verdict_figures(chosen, random=random, picked=self.outcomes[strongest].picked)
        outcome, called, power, cell, columns = self.outcomes[strongest], None, None, None, self._columns()
        if members is not None:
            inside = int(members.sum())
            figure = None if first is None else first[1]
            power = audit_power(inside, len(members) - inside, self.fprs, attacks=len(able), first=figure)
            if columns and outcome.first_threshold is not None:
                called = outcome.flagged(outcome.first_threshold)
                cell = worst_cell(called, members, columns)
        summary = Summary(
            verdict="",
            attacks=attacks,
            strongest=strongest,
            members=inside,
            records=len(self.evidence.ids),
            notes=notes(attacks, self.fprs, self.context, self.mismatch),
            top_records=Table({}),
            verdict_attack=found,
            worst_cell=cell,
            power=power,
            mismatch=bool(self.mismatch),
            risk=None if self.risk is None else self.risk.figures(),
            **{one.name: getattr(self, one.name) for one in dataclasses.fields(AuditFindings)},
        )
        conclusion = summary.conclusion
        top = np.argsort(outcome.ranks, kind="stable")[: _TOP if conclusion.lists_records else 0]
        groups: tuple[GroupLeak, ...] = ()
        if members is not None and columns:
            groups = group_leaks(outcome.scores, members, columns, called=called, leak=conclusion.lists_records)
        around, mode = self.surroundings, cast("Mode", self.context.mode)
        return dataclasses.replace(
            summary,
            verdict=verdict(found, self.context, self.privacy, partly=conclusion.partly, draw=self.declared),
            top_records=Table({name: column[top] for name, column in self._by_record()} if len(top) else {}),
            neighbourhoods=() if around is None else tuple(around.neighbourhood(int(at)) for at in top[:_DRAWN]),
            groups=groups,
            worst_cell=cell if conclusion.leak else None,
            texts=text_leak(self.evidence, members=members, listed=top[:_TEXTS], mode=mode, words=self.words),
        )

    def advised(self, advice: Advice) -> AuditResult:
        """The same result, whose report quotes the defences that `glasshouse.advise` measured for this model."""
        return dataclasses.replace(self, advice=advice)

    def redacted(self, redactor: Redactor) -> AuditResult:
        """The same result with ids replaced by keyed hashes, and with records in the order of these.

        All that is saved from it has no id: neither the page nor the tables nor the evidence. The order is that of the
        hashes, since the place of a row would give a record away as its id does. A column that repeats the ids is
        hashed too. Labels, groups, degrees and scores stay: who knows those of a record may still find it.
        """
        if self.context.redacted:
            return self
        names = redactor.ids(self.evidence.ids)
        order = np.argsort(names, kind="stable")
        ids = frozenset(str(name) for name in self.evidence.ids)
        groups = {name: redactor.column(values, self.evidence.ids)[order] for name, values in self.groups.items()}
        return dataclasses.replace(
            self,
            evidence=self.evidence.with_ids(names).of_records(order),
            outcomes={
                name: dataclasses.replace(outcome.of_records(order), note=redactor.text(outcome.note, ids))
                for name, outcome in self.outcomes.items()
            },
            members=None if self.members is None else self.members[order],
            labels=None if self.labels is None else self.labels[order],
            surroundings=None if self.surroundings is None else self.surroundings.of_records(order),
            groups=groups,
            words=None,
            left_out=redactor.texts(self.left_out, ids),
            context=redacted_context(self.context, redactor, ids),
            risk=None if self.risk is None else self.risk.of_units(order),
            by_unit=None,  # the rows have ids of their own
        )

    def save(self, folder: Path | str, *, overwrite: bool = False, policy: Policy | None = None) -> Path:
        """Write a run: all of its files or nothing.

        report.html for people; metrics.json, records.csv (and .parquet where pyarrow is), roc.csv, table.tex and
        roc.svg for programs and papers; evidence.npz to attack again; run.json to know how it was made.

        Args:
            folder: where to write it.
            overwrite: replace an earlier run there.
            policy: that rates the run in the report; Glasshouse's usual one by default. It is kept with the run.
        """
        with new_folder(folder, overwrite=overwrite) as place:
            summary = dataclasses.replace(self.summary(), written=datetime.now(UTC).replace(microsecond=0))
            figures = json.dumps(metrics_json(summary), indent=2, ensure_ascii=False, allow_nan=False)
            write_file(place / "metrics.json", figures + "\n")
            records = self.records()
            write_file(place / "records.csv", records.to_csv())
            if importlib.util.find_spec("pyarrow"):
                write_file(place / "records.parquet", records.to_parquet())
            write_file(place / "roc.csv", self.roc().to_csv())
            write_file(place / "table.tex", latex_table(summary))
            saved, members = self.evidence, self.members
            if self.by_unit is not None:
                saved = self.by_unit.rows.evidence.with_units(self.by_unit.units)
                members = None if members is None else members[self.by_unit.units.rows]
            write_evidence(place / "evidence.npz", saved, members=members)
            write_file(place / "report.html", render_html(summary, policy=policy, searched=records))
            if summary.curves:
                write_file(place / "roc.svg", roc_picture(summary.curves, style=picture_style()))
            kept = {} if policy is None else {"policy": dataclasses.asdict(policy)}
            write_file(place / "run.json", listed(run_json(summary) | kept, place))
        return Path(folder)

    def report(self, path: Path | str, *, policy: Policy | None = None) -> Path:
        """Write the HTML report, one file that needs no network; a policy of yours gives the rating."""
        return write_file(path, render_html(self.summary(), policy=policy, searched=self.records()))

    def _columns(self) -> dict[str, np.ndarray]:
        """What divides the records into groups, [N] each; a number is a name of a class, but for a regression."""
        columns: dict[str, np.ndarray] = {}
        if self.labels is not None and self.evidence.regression:
            columns["target value"] = self.labels
        elif self.labels is not None:
            columns["class"] = self.labels.astype(np.str_)
        if self.surroundings is not None:
            columns["degree"] = self.surroundings.degrees
        return columns | dict(self.groups)
