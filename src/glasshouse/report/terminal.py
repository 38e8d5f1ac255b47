"""A summary in the terminal, and the attacks as a LaTeX table for a paper (booktabs)."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from glasshouse.core.escape import visible
from glasshouse.report.decision import verdict
from glasshouse.report.decision.conclusion import FACTOR
from glasshouse.report.decision.next_steps import next_steps
from glasshouse.report.decision.rating import Rating, rating_of
from glasshouse.report.figures import columns_at
from glasshouse.report.format import percent, rate
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_FEW_TEXTS = 5
_WIDTH = 80  # of a summary as text
_ATTACKS = "Attacks (95 % intervals in brackets)"


def print_summary(summary: Summary, console: Console, *, policy: Policy | None = None, verbose: bool = False) -> None:
    """Print the verdict in a few lines, the attacks and the records most at risk; ``verbose``: notes in full too."""
    console.print(f"[bold]{_safe(summary.context.title)}[/bold]")
    if summary.context.about:
        console.print(_safe(summary.context.about), highlight=False)
    for warning in summary.context.warnings:
        console.print(f"[bold red]WARNING: {_safe(warning)}[/bold red]", highlight=False)
    rating = rating_of(summary, policy)
    said = " ".join(rating.sentences if verbose or rating.level == "unknown" else rating.sentences[:1])
    console.print(f"[bold]{_safe(rating.word)}.[/bold] {_safe(said)}", highlight=False)
    findings = [one.line for one in rating.findings if rating.own or (verbose and one.status == "failed")]
    for line in [*_facts(summary, rating, policy), *findings]:
        if line not in said:
            console.print(_safe(line), highlight=False)
    console.print()
    console.print(_attacks(summary, verbose=verbose))
    for name, reason in summary.left_out.items():  # below the table: a sentence in a cell would push out the others
        console.print(f"{_safe(name)} was left out: {_safe(reason)}", highlight=False)
    if summary.conclusion.lists_records:
        console.print()
        console.print(_records(summary))
        if summary.texts is not None:
            console.print("\nTheir texts (■: a token that only models trained on the text know)", highlight=False)
            for text in summary.texts.texts[:_FEW_TEXTS]:
                told = "".join(f"[{word}]" if found and text.words else word for word, found in text.pieces())
                console.print(_safe(f"{text.id}: {told}"), highlight=False)
    if not verbose:
        console.print("\nNotes, ε and precision in full: --verbose, or the report.", highlight=False)
    else:
        console.print()
        for line in _more(summary):
            console.print(_safe(line), highlight=False)


def _facts(summary: Summary, rating: Rating, policy: Policy | None) -> Iterator[str]:
    """The figure of the verdict, the most exposed group, and the first thing to do: a line each."""
    shown, privacy = summary.conclusion.measured, summary.privacy
    figure = None if shown is None else shown.rate
    failed = [one.reason for one in rating.findings if one.status == "failed" and not rating.own]
    failed = [one for one in failed if one != summary.context.stored_records]  # which the rating says in words
    if failed and (figure is None or figure.tpr_interval.low <= FACTOR * figure.wanted):
        # what makes the rating high, where the wanted rate alone does not
        yield f"{failed[0][0].upper()}{failed[0][1:]}."
    elif shown is not None and figure is not None:
        low, high = figure.tpr_interval
        proven = f"; ε ≥ {privacy.shown:.2f}" if privacy is not None and privacy.shown > 0 else ""
        wrong = figure.wanted if figure.reached else figure.fpr
        yield (
            f"{shown.title} identifies {percent(figure.tpr)} of members ({100 * low:.1f}–{100 * high:.1f}) at "
            f"{rate(wrong)} FPR{proven}."
        )
    if (cell := summary.worst_cell) is not None:
        yield (
            f"Most exposed: {cell.name}, {cell.identified} of {cell.members} members flagged and {cell.flagged} of "
            f"{cell.non_members} non-members."
        )
    if summary.risk is not None and summary.risk.hidden:
        yield summary.risk.sentence(summary.unit.removesuffix("s"))
    if estimated := verdict.whole_sentence(summary.attack(summary.strongest)):
        yield estimated
    if summary.texts is not None:
        yield from summary.texts.sentences()
    if summary.quick_estimate is not None:
        yield summary.quick_estimate.sentence()
    for step in next_steps(summary, rating, policy)[:1]:
        yield f"Next: {step.title[0].lower()}{step.title[1:]}."


def _more(summary: Summary) -> Iterator[str]:
    """What the report says in its expert section, a line each."""
    random = "" if summary.random_members is None else summary.random_members.sentence()
    privacy, best = summary.privacy, summary.attack(summary.strongest)
    lines = [
        summary.verdict,
        *([privacy.sentence(), privacy.rated_sentence(), privacy.gaussian_sentence()] if privacy is not None else []),
        summary.worded(verdict.precision_sentence(best)),
        summary.worded(verdict.list_sentence(best, leak=summary.conclusion.lists_records)),
        verdict.groups_sentence(summary.groups, summary.worst_cell),
        *(verdict.power_sentences(summary.power)[:1] if summary.power is not None else []),
        *(f"• {note}" for note in (*summary.notes, verdict.target_sentence(summary.context), random) if note),
    ]
    return filter(None, lines)


def summary_text(summary: Summary, *, verbose: bool = False) -> str:
    """What `print_summary` prints, as plain text for any file or notebook."""
    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, color_system=None, legacy_windows=False)
    print_summary(summary, console, verbose=verbose)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _safe(text: str) -> str:
    """A text that is shown as it is: not as Rich's markup, and not as commands to the terminal."""
    return escape(visible(text))


def _attacks(summary: Summary, *, verbose: bool) -> RichTable:
    """One row per attack; counts of flags need more than 80 columns, and are shown if asked for."""
    table = RichTable(title=_ATTACKS, title_justify="left", box=None, pad_edge=False, min_width=len(_ATTACKS))
    columns = columns_at("terminal", summary.attacks, summary.fprs)
    measured = [column for column in columns if column.high != math.inf]
    shown = columns if verbose or not measured else measured
    table.add_column("attack", no_wrap=True)
    for column in shown:
        count = column.high == math.inf
        table.add_column(column.words, no_wrap=not count, justify="right" if count else "left")
    for attack in summary.attacks:
        cells = [one.text(one.of(attack), "{value}{unit} ({low}–{high})") for one in shown]
        table.add_row(*map(_safe, [attack.name, *cells]))
    return table


def _records(summary: Summary) -> RichTable:
    table = RichTable(title=summary.worded("Records most at risk"), title_justify="left", box=None, pad_edge=False)
    for name in summary.first_records:
        table.add_column(_safe(name.replace("_", " ")), overflow="fold")
    for row in summary.first_records.rows():
        table.add_row(*[_safe(f"{one:.3g}" if isinstance(one, float) else str(one)) for one in row.values()])
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
    heads = [latex_text(head).replace(r" \%", r"\,\%") for head in ("attack", *(one.heading for one in columns))]
    form = r"{value} {{\scriptsize [{low}, {high}]}}"
    rows = []
    for attack in summary.attacks:
        cells = [one.text(one.of(attack), form, missing="").replace(" %", r"\,\%") for one in columns]
        rows.append([latex_text(attack.name), *cells])
    return booktabs(heads, rows)


def booktabs(heads: Sequence[str], rows: Iterable[Sequence[str]], *, above: Sequence[str] = ()) -> str:
    """A table of LaTeX (booktabs) whose first column is text; ``above`` are lines before the heads."""
    head, *lines = [" & ".join(row) + r" \\" for row in (heads, *rows)]
    start = [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule", *above, head, r"\midrule"]
    return "\n".join([*start, *lines, r"\bottomrule", r"\end{tabular}", ""])


def latex_text(text: str) -> str:
    """A text that LaTeX shows as it is."""
    return "".join(_SPECIAL.get(character, character) for character in visible(text))
