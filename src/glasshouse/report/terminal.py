"""A summary in the terminal, and the attacks as a LaTeX table for a paper (booktabs)."""

from __future__ import annotations

import io
import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from glasshouse.core.escape import visible
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.decision.verdict import (
    groups_sentence,
    list_sentence,
    power_sentences,
    precision_sentence,
    target_sentence,
    whole_sentence,
)
from glasshouse.report.figures import columns_at
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_WIDTH = 120  # of a summary as text


def print_summary(summary: Summary, console: Console, *, policy: Policy | None = None) -> None:
    """Print the rating by a policy, the verdict, the attacks, the records most at risk and what was noticed."""
    context = summary.context
    console.print(f"[bold]{_safe(context.title)}[/bold]")
    for warning in context.warnings:
        console.print(f"[bold red]WARNING: {_safe(warning)}[/bold red]", highlight=False)
    random = "" if summary.random_members is None else summary.random_members.sentence()
    for note in filter(None, (*summary.notes, target_sentence(context), random)):
        console.print(f"• {_safe(note)}", highlight=False)
    console.print()
    console.print(_attacks(summary))
    for name, reason in summary.left_out.items():  # below the table: a sentence in a cell would push out the others
        console.print(f"{_safe(name)} was left out: {_safe(reason)}", highlight=False)
    if summary.top_records.height:
        console.print()
        console.print(_records(summary))
    console.print()
    rating = rating_of(summary, policy)
    console.print(f"[bold]{_safe(rating.word)}.[/bold] {_safe(' '.join(rating.sentences))}", highlight=False)
    for finding in (one for one in rating.findings if rating.own or one.status == "failed"):
        console.print(f"  {_safe(finding.line)}", highlight=False)
    console.print(_safe(summary.verdict), highlight=False)
    privacy, best = summary.privacy, summary.attack(summary.strongest)
    answers = [
        *([privacy.sentence(), privacy.gaussian_sentence()] if privacy is not None else []),
        whole_sentence(best),
        precision_sentence(best),
        list_sentence(best, leak=summary.conclusion.lists_records),
        groups_sentence(summary.groups, summary.worst_cell),
        *(power_sentences(summary.power)[:1] if summary.power is not None else []),
    ]
    for answer in filter(None, answers):
        console.print(_safe(answer), highlight=False)


def summary_text(summary: Summary) -> str:
    """What `print_summary` prints, as plain text for any file or notebook."""
    file = io.StringIO()
    print_summary(summary, Console(file=file, width=_WIDTH, color_system=None, legacy_windows=False))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _safe(text: str) -> str:
    """A text that is shown as it is: not as Rich's markup, and not as commands to the terminal."""
    return escape(visible(text))


def _attacks(summary: Summary) -> RichTable:
    table = RichTable(title="Attacks (95 % intervals in brackets)", title_justify="left", box=None, pad_edge=False)
    columns = columns_at("terminal", summary.attacks, summary.fprs)
    table.add_column("attack")
    for column in columns:
        count = column.figure.high == math.inf
        table.add_column(column.title, no_wrap=not count, justify="right" if count else "left")
    for attack in summary.attacks:
        cells = [column.text(attack, "{value}{unit} [{low}, {high}]") for column in columns]
        table.add_row(_safe(attack.name), *map(_safe, cells))
    return table


def _records(summary: Summary) -> RichTable:
    """The first few by the strongest attack; the columns of all attacks would not fit a terminal."""
    top = summary.top_records.head(5)
    shown = [name for name in top if name in ("id", "label", "member") or name.startswith(f"{summary.strongest}_")]
    table = RichTable(title="Records most at risk", title_justify="left", box=None, pad_edge=False)
    for name in shown:
        table.add_column(_safe(name.replace("_", " ")), no_wrap=True)
    for row in top.rows():
        table.add_row(*[_safe(f"{row[n]:.3g}" if isinstance(row[n], float) else str(row[n])) for n in shown])
    return table


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def latex_table(summary: Summary) -> str:
    """One row per attack: AUC and TPR at each FPR, in percent, with intervals."""
    columns = columns_at("latex", summary.attacks, summary.fprs)
    heads = ["attack", *(f"{one.title} (%)" if one.figure.unit else one.title for one in columns)]
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}",
        r"\toprule",
        " & ".join(_escaped(head).replace(r" \%", r"\,\%") for head in heads) + r" \\",
        r"\midrule",
    ]
    for attack in summary.attacks:
        cells = [column.text(attack, r"{value} {{\scriptsize [{low}, {high}]}}", missing="") for column in columns]
        lines.append(" & ".join([_escaped(attack.name), *(cell.replace(" %", r"\,\%") for cell in cells)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in visible(text))
