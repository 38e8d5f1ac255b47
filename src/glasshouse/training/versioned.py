"""A trainer with a version that the user sets, for parts that a pool cannot describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glasshouse.errors import InputError

__all__ = ["Versioned"]


@dataclass(frozen=True)
class Versioned:
    """A trainer, or a part of one, that a pool identifies by a version instead of by its code and values.

    Two with the same version count as the same, so change it whenever you change what is inside. It is needed if
    something cannot be described, such as an open file; it also helps if a trainer changes its own attributes.

    Args:
        trainer: what to call.
        version: your own name for the current state of the trainer.

    Example:
        >>> trainer = Versioned(lambda population, members, seed: seed, version="1")
        >>> trainer(None, None, seed=3)
        3
    """

    trainer: Any
    version: str

    def __init__(self, trainer: Any, *, version: str) -> None:
        if not isinstance(version, str) or not version.strip():
            raise InputError(f"version: {version!r} is not a version; give your own text, such as '1'.")
        object.__setattr__(self, "trainer", trainer)
        object.__setattr__(self, "version", version)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """What the trainer gives."""
        return self.trainer(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        """What else the trainer can do, such as ``restore`` or ``train_many``."""
        if name.startswith("__") or name in ("trainer", "version"):  # looked up while a copy is made
            raise AttributeError(name)
        return getattr(self.trainer, name)
