"""The keys of ``data: {name: file}``."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from glasshouse.config.strict import Strict
from glasshouse.config.tables.cells import Decimal

__all__ = ["TableSection"]


def _listed(names: Any) -> Any:
    """One name means a list of one."""
    return (names,) if isinstance(names, str) else names


Names = Annotated[tuple[str, ...], BeforeValidator(_listed), Field(strict=False)]


class TableSection(Strict):
    """Your own records: a csv or parquet table with a label column, or an npz archive with x and y.

    Args:
        name: ``file``.
        path: of the one file; or ``train`` and ``holdout``, where the first has the members.
        train: file of the members.
        holdout: file of the others.
        label: column of the labels.
        id: column of the records' names; positions by default.
        members: column that says whether a record trained the target, or a file with the ids of those that did.
        groups: columns by which the report divides the records. They stay features unless they are left out.
        leave_out: columns that are not features.
        categories: columns of numbers that are names, such as codes; one-hot like text.
        max_categories: most features of a text column.
        standardise: whether numbers and dates get mean 0 and standard deviation 1, as networks want them.
        columns: names of the columns, if the first line of the file is already a record.
        separator: between cells; found by itself.
        decimal: sign of the numbers; found by itself.
        regression: whether the labels are real numbers that a model predicts; what looks like it is refused by default.
    """

    name: Literal["file"]
    path: str | None = None
    train: str | None = None
    holdout: str | None = None
    label: str = "label"
    id: str | None = None
    members: str | None = Field(default=None, validation_alias=AliasChoices("members", "member"))
    groups: Names = ()
    leave_out: Names = ()
    categories: Names = ()
    max_categories: Annotated[int, Field(ge=2)] = 50
    standardise: bool = False
    columns: Names | None = None
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    decimal: Decimal | None = None
    regression: bool | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        parts = [name for name in ("train", "holdout") if getattr(self, name) is not None]
        if self.path is not None and parts:
            raise ValueError(f"path: cannot be used together with {parts[0]}. Leave one of them out.")
        if self.path is None and len(parts) < 2:
            missing = "path" if not parts else "holdout" if parts == ["train"] else "train"
            raise ValueError(f"{missing}: is missing. Give path, or both train and holdout.")
        if parts and self.members is not None:
            raise ValueError("members: cannot be used together with train and holdout, which already say who they are.")
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """The one file, or those of the members and of the others."""
        return tuple(name for name in (self.path, self.train, self.holdout) if name is not None)
