"""What was audited, and how: everything in a report that is not a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Context:
    """What was audited, and how.

    Args:
        title: of the audit.
        about: a sentence about the data; it says if something in the data is made up.
        shadows: how many shadow models.
        mode: online or offline.
        seed: of every random choice.
        train_accuracy: of the target on its members; None if not known.
        test_accuracy: of the target on the non-members.
        train_rmse: root mean squared error of the target on its members, if it is a regressor; else None.
        test_rmse: the same on the non-members.
        train_r2: R² of the target on its members, if it is a regressor.
        test_r2: the same on the non-members.
        fingerprint: of the data.
        shadow_seconds: spent on training and querying the shadow models; None if they existed before.
        settings: what else is needed to repeat the run.
        versions: of the libraries.
        warnings: what is wrong with the input, such as swapped members; shown before everything else.
        notes: what was noticed about the model or the data, and how it was handled.
        author: who is responsible for the audit; empty if nobody was named.
        redacted: whether the records' ids are keyed hashes (`glasshouse.report.redaction`).

    Example:
        >>> Context(shadows=8, mode="online").title
        'Membership audit'
    """

    title: str = "Membership audit"
    about: str = ""
    shadows: int
    mode: str
    seed: int | None = None
    train_accuracy: float | None = None
    test_accuracy: float | None = None
    train_rmse: float | None = None
    test_rmse: float | None = None
    train_r2: float | None = None
    test_r2: float | None = None
    fingerprint: str | None = None
    shadow_seconds: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    author: str = ""
    redacted: bool = False
