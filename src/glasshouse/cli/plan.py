"""``glasshouse plan``: before the training, draw members or canaries, and commit to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.auditing.plan import Plan, plan_canaries, plan_members
from glasshouse.cli.app import app, say
from glasshouse.cli.steps import Memory, Overwrite, Shared, checked
from glasshouse.config.audit_file import read_audit_file
from glasshouse.config.data import FileData
from glasshouse.core.errors import InputError
from glasshouse.data.design import as_design
from glasshouse.data.named import Dataset
from glasshouse.evaluation.privacy.coins import canaries_for
from glasshouse.io.folders import check_free

_SHOWN = 0.6  # of the expected ε, that canaries are planned to show


@app.command()
def plan(
    data: Annotated[Path, typer.Argument(help="Table (.csv, .parquet, .npz), or an audit file with a section data.")],
    out: Annotated[Path, typer.Option(help="Folder for the plan; keep its secret.json to yourself.")] = Path("plan"),
    label: Annotated[str, typer.Option(help="Column of the labels.")] = "label",
    ids: Annotated[str | None, typer.Option("--id", help="Column of the records' names.")] = None,
    unit: Annotated[str | None, typer.Option(help="Column that says whose record each one is.")] = None,
    canaries: Annotated[int | None, typer.Option(min=2, help="Plan so many mislabelled canaries.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Plan as many canaries as show 60 % of this ε in four of five audits.")
    ] = None,
    design: Annotated[str | None, typer.Option(help="Plan members: units, records, strata or site.")] = None,
    by: Annotated[str | None, typer.Option(help="With strata and site: the column; label is one too.")] = None,
    share: Annotated[float, typer.Option(min=0.01, max=0.99, help="Chance of a unit, or of a canary, to train.")] = 0.5,
    salt: Annotated[
        str | None, typer.Option(help="Hexadecimal; by default fresh, so that nobody can guess it.")
    ] = None,
    overwrite: Overwrite = False,
    shared: Shared = False,
    memory: Memory = None,
) -> None:
    """Before the training: draw members or canaries by coins, and commit to them. The audit then assumes no draw."""
    found, _ = checked(
        lambda: _read(data, label=label, ids=ids, unit=unit, by=by), lambda: check_free(out, overwrite=overwrite)
    )
    if epsilon is not None:
        if canaries is not None:
            raise InputError("--canaries: is what --epsilon plans; leave one of them out.")
        canaries = canaries_for(epsilon, shown=_SHOWN * epsilon, share=share)
    if canaries is not None:
        if design is not None:
            raise InputError("--design: is for members; canaries are drawn one by one. Leave one of them out.")
        made: Plan = plan_canaries(found.population, canaries=canaries, share=share, salt=salt)
        what = f"{canaries} canaries with a wrong label, {int(made.members[made.canaries].sum())} of them inside"
    else:
        kind = as_design(None if design is None else {"name": design, **({} if by is None else {"by": by})})
        columns = dict(found.groups)
        made = plan_members(found.population, design=kind, share=share, columns=columns, salt=salt)
        what = f"{int(made.members.sum())} of {len(found.population)} records inside; {made.design}"
    made.save(out, found.population, overwrite=overwrite)
    say(f"Planned: {what}.")
    say(f"Train on the ids and labels in {out / 'train.csv'}, all of them and no others.")
    say(f"Publish this before the training: {made.commitment}")
    say(f"Keep {out / 'secret.json'} secret until the audit, whose file then says: plan: {out}")


def _read(path: Path, *, label: str, ids: str | None, unit: str | None, by: str | None) -> Dataset:
    """The records of a table, or of the section ``data`` of an audit file."""
    if path.suffix in (".yaml", ".yml"):
        config = read_audit_file(path)
        if config.data is None:
            raise InputError(f"{path}: has no section data; a plan needs records.")
        return config.data.load(path.parent, config.seed)
    groups = () if by in (None, "label", label) else (by,)
    section = FileData.model_validate(
        {"name": "file", "path": path.name, "label": label, "id": ids, "unit": unit, "groups": groups}
    )
    return section.load(path.parent, 0)
