"""What was audited, and how: everything in a report that is not a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Context:
    """What was audited, and how."""

    title: str = "Membership audit"
    about: str = ""  # a sentence about the data; it says if something in the data is made up
    shadows: int  # how many shadow models
    mode: str  # online or offline
    seed: int | None = None  # of every random choice
    train_accuracy: float | None = None  # of the target on its members; None if not known
    test_accuracy: float | None = None  # of the target on the non-members
    train_rmse: float | None = None  # root mean squared error of the target on its members, if it is a regressor
    test_rmse: float | None = None  # the same on the non-members
    train_r2: float | None = None  # R² of the target on its members, if it is a regressor
    test_r2: float | None = None  # the same on the non-members
    fingerprint: str | None = None  # of the data
    shadow_seconds: float | None = None  # spent on training and querying shadow models; None if they existed before
    settings: Mapping[str, Any] = field(default_factory=dict)  # what else is needed to repeat the run
    versions: Mapping[str, str] = field(default_factory=dict)  # of the libraries
    warnings: tuple[str, ...] = ()  # what is wrong with the input, such as swapped members; shown first
    notes: tuple[str, ...] = ()  # what was noticed about the model or the data, and how it was handled
    stored_records: str = ""  # which training records the model file itself holds; empty if none is known to be in it
    author: str = ""  # who is responsible for the audit; empty if nobody was named
    redacted: bool = False  # whether the records' ids are keyed hashes (`glasshouse.report.redaction`)
