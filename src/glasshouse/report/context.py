"""What was audited, and how: all of a report that is not a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Context"]


@dataclass(frozen=True, kw_only=True)
class Context:
    """What was audited, and how.

    Args:
        title: of the audit.
        about: of the data, in a sentence; says so where something in it is made up.
        shadows: how many shadow models.
        mode: online or offline.
        seed: that drove every random choice.
        train_accuracy: of the target on its members; None where not known.
        test_accuracy: of the target on the others.
        fingerprint: of the data.
        shadow_seconds: spent on training the shadow models and asking them; None where they were there before.
        settings: whatever else is needed to repeat the run.
        versions: of the libraries.
        warnings: what is wrong with what was brought, such as swapped members; said before everything else.
        notes: what was noticed about the model or the data, and how it was handled.

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
    fingerprint: str | None = None
    shadow_seconds: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
