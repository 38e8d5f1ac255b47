"""The steps that audits of records and of graphs share: checks before the training, attacks one by one, the result."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import logging
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError, raise_faults
from glasshouse.evaluation import AttackOutcome, PrivacyClaim, judge_claim
from glasshouse.evaluation.metrics import resolvable
from glasshouse.evaluation.mixed_up import swapped_members, unlike_fit
from glasshouse.evidence import Evidence
from glasshouse.report import Context
from glasshouse.result import AuditResult

__all__ = ["check_attacks", "checked_rates", "conclude", "library_versions", "run_each"]

_LOG = logging.getLogger("glasshouse")


class Checkable(Protocol):
    """What can tell, before anything is trained, whether it can judge by a pool."""

    def check(self, members: BoolArray) -> None:
        """Refuse a pool [K, N] that it cannot judge by."""


Kind = TypeVar("Kind", bound=Checkable)


def check_attacks(attacks: Mapping[str, Checkable], members: BoolArray) -> None:
    """Refuse attacks that cannot judge by a pool before its models are trained, all of them at once.

    Args:
        attacks: by name.
        members: [K, N] who will train which shadow model.

    Example:
        >>> from glasshouse.attacks.choices import chosen_attacks
        >>> check_attacks(chosen_attacks(["base", "lira"]), np.array([[True, True], [True, False]]))
        Traceback (most recent call last):
        glasshouse.errors.InputError: attacks: lira: shadow_members: record '0' has 0 out-models and this attack ...
    """
    faults = []
    for name, attack in attacks.items():
        try:
            attack.check(members)
        except InputError as error:
            faults += [f"attacks: {name}: {fault}" for fault in error.faults]
    raise_faults(faults)


def run_each(
    attacks: Mapping[str, Kind], run: Callable[[Kind], AttackOutcome]
) -> tuple[dict[str, AttackOutcome], dict[str, str]]:
    """Run every attack; one that fails fails alone, since the training of the shadow models is behind it.

    Args:
        attacks: by name.
        run: from an attack to its outcome.

    Returns:
        Outcomes by name, and the reasons of those that failed.
    """
    outcomes: dict[str, AttackOutcome] = {}
    failed: dict[str, str] = {}
    for name, attack in attacks.items():
        try:
            outcomes[name] = run(attack)
        except InputError as error:
            failed[name] = " ".join(error.faults)
        except Exception as error:  # whatever it is, the other attacks' figures must not be lost to it
            _LOG.exception("The attack %s failed.", name)
            failed[name] = f"it failed: {type(error).__name__}: {error}"
    if not outcomes:
        raise InputError(*[f"attacks: {name}: {reason}" for name, reason in failed.items()])
    return outcomes, failed


def conclude(
    evidence: Evidence,
    outcomes: Mapping[str, AttackOutcome],
    *,
    members: BoolArray | None,
    labels: np.ndarray | None,
    fprs: tuple[float, ...],
    context: Context,
    claim: PrivacyClaim | None,
    left_out: Mapping[str, str] | None = None,
) -> AuditResult:
    """A result from outcomes, with what all attacks say about ε, and a warning where members look swapped."""
    privacy = None
    if members is not None:
        swapped = swapped_members(evidence.target_loss, members, context.train_accuracy, context.test_accuracy)
        doubts = swapped or unlike_fit(evidence, members)  # who is swapped is unlike the shadow models too
        context = dataclasses.replace(context, warnings=(*doubts, *context.warnings))
        guesses = [some for outcome in outcomes.values() for some in outcome.guesses(members)]
        privacy = judge_claim(claim, guesses, records=evidence.records, prior=float(members.mean()))
    return AuditResult(
        evidence=evidence,
        outcomes=outcomes,
        members=members,
        labels=labels,
        fprs=fprs,
        privacy=privacy,
        context=context,
        left_out=left_out or {},
    )


def checked_rates(fprs: Sequence[float] | None, members: BoolArray) -> tuple[float, ...]:
    """The false-positive rates to evaluate at, refused before the long work where they cannot be measured."""
    if members.all() or not members.any():
        raise InputError("members: rates need both members and non-members among the records.")
    return resolvable(fprs, int((~members).sum()))


def library_versions(*more: str) -> dict[str, str]:
    """Versions of Python, of the libraries behind every figure, and of some more."""
    packages = ("glasshouse", "numpy", "scipy", "scikit-learn", "torch", *more)
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
            found[package] = "not installed"
    return found
