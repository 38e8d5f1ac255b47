"""The policy of a run, kept in its ``run.json``: the page that is rendered again has the same rating."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError
from glasshouse.report.folder import read_manifest
from glasshouse.report.policy.limits import Policy

__all__ = ["policy_of", "stored_policy"]


def stored_policy(policy: Policy | None) -> dict[str, Any]:
    """What ``run.json`` keeps of a policy; nothing if there is none.

    Example:
        >>> from glasshouse.report.policy import Limit
        >>> stored_policy(Policy(limits=(Limit(figure="auc", most=0.6),)))["policy"]["limits"][0]["most"]
        0.6
    """
    if policy is None:
        return {}
    plain = dataclasses.asdict(policy)
    return {"policy": {**plain, "limits": list(plain["limits"]), "attacks": list(policy.attacks)}}


def policy_of(folder: Path | str) -> Policy | None:
    """The policy that a run was saved with; None if there was none.

    Example:
        >>> policy_of("no/such/run")
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such/run/run.json: is missing, so this is not a complete run of Glasshouse. ...
    """
    told = read_manifest(folder).get("policy")
    if told is None:
        return None
    try:
        from pydantic import TypeAdapter  # checks every type; only needed to read a run

        found: Policy = TypeAdapter(Policy).validate_python(told)
        return dataclasses.replace(found, limits=tuple(found.limits), attacks=tuple(found.attacks))
    except (InputError, ValueError) as error:
        path = Path(folder) / "run.json"
        raise InputError(f"{path}: is damaged: its policy is not one. Run the audit again.") from error
