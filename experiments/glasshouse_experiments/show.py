"""An experiment's cells in a terminal, with coloured verdicts."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as Grid

from glasshouse.core.table import Table
from glasshouse_experiments.cells import COLUMNS, readable, tally
from glasshouse_experiments.rivals import rivals_tally

__all__ = ["show"]

_GOOD = ("within 2 sd", "above by more than 1 sd", "at least as good")
_COLOURS = dict.fromkeys(_GOOD, "green") | {"above": "yellow", "below": "yellow"}


def show(table: Table, *, title: str, console: Console) -> None:
    """Print the comparison, and how many cells agree with the paper or, for our attacks, are above its best.

    Example:
        >>> from glasshouse_experiments.cells import Cell, compared
        >>> cell = Cell("MIAGNN", "Cora", "online", "8", "", "BASE", "auc_pct", (82.0, 83.0))
        >>> show(compared([cell]), title="table-1", console=Console(width=130, quiet=True))
    """
    grid = Grid(*COLUMNS, title=title, title_justify="left", box=None)
    for row in readable(table):
        colour = _COLOURS.get(row[-1], "dim")
        grid.add_row(*row[:-1], f"[{colour}]{row[-1]}[/{colour}]")
    console.print(grid, highlight=False)
    for said in rivals_tally(table) or [tally(table)]:
        console.print(said, highlight=False)
