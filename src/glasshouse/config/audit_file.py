"""The audit file as a whole: what to audit, with what, and where the result goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from glasshouse.attacks import create
from glasshouse.audit import audit
from glasshouse.config.data import Data
from glasshouse.config.strict import Share, Strict, read_yaml
from glasshouse.config.targets import Target, TrainedTarget
from glasshouse.config.trainers import TrainerSection
from glasshouse.errors import InputError
from glasshouse.evaluation import PrivacyClaim
from glasshouse.result import AuditResult

__all__ = ["AuditFile", "ClaimSection", "read_audit_file", "run_audit_file"]


class ClaimSection(Strict):
    """A stated guarantee to judge."""

    epsilon: Annotated[float, Field(ge=0)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0


def _known(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    """An attack that can be made; pydantic adds its place in the list to what is wrong with it."""
    parameters = {"name": choice} if isinstance(choice, str) else dict(choice)
    try:
        create(str(parameters.pop("name", "")), **parameters)
    except (InputError, TypeError) as error:
        raise ValueError(str(error)) from error
    return choice


AttackEntry = Annotated[str | dict[str, Any], AfterValidator(_known)]


class AuditFile(Strict):
    """An audit file. Without one, the embedded default is audited: digits with wrong labels, an overfitted network.

    Example:
        >>> AuditFile().shadows
        8
    """

    title: str = "Membership audit"
    data: Data = Field(default={"name": "digits"}, validate_default=True)
    trainer: TrainerSection = Field(default={"kind": "mlp"}, validate_default=True)
    target: Target = TrainedTarget()
    attacks: Annotated[list[AttackEntry], Field(min_length=1)] = Field(
        default=["base", "lira", "rmia", "calibration", "attack-r", "loss", "classifier"]
    )
    shadows: int = 8
    shadow_fraction: Share = 0.5
    mode: Literal["online", "offline"] = "online"
    fprs: list[Share] | None = None
    prior: Share = 0.5
    policy: Literal["mean", "max"] = "mean"
    claim: ClaimSection | None = None
    seed: Annotated[int, Field(ge=0)] = 0

    @field_validator("shadows")
    @classmethod
    def _in_pairs(cls, shadows: int) -> int:
        if shadows < 2 or shadows % 2:
            near = max(2, shadows - shadows % 2)
            raise ValueError(
                f"{shadows} is {'odd' if shadows % 2 else 'too few'}; models are trained in complementary pairs. "
                f"Use {near} or {near + 2}."
            )
        return shadows


def read_audit_file(path: Path | str) -> AuditFile:
    """Read and check an audit file; every fault is said at once."""
    return read_yaml(Path(path), AuditFile)


def run_audit_file(config: AuditFile, *, folder: Path, progress: bool | None = None) -> AuditResult:
    """Run the audit that a file describes.

    Args:
        config: the checked file.
        folder: against which its paths and modules are found.
        progress: whether to show bars; by default on a terminal only.
    """
    data, told = config.data.load(folder, config.seed)
    trainer = config.trainer.build(data.population, folder)
    model, members = config.target.load(data.population, told, folder, config.seed)
    return audit(
        model,
        data.population,
        members,
        trainer,
        attacks=config.attacks,
        shadows=config.shadows,
        mode=config.mode,
        fprs=config.fprs,
        prior=config.prior,
        claim=PrivacyClaim(**config.claim.model_dump()) if config.claim else None,
        policy=config.policy,
        fraction=config.shadow_fraction,
        seed=config.seed,
        title=config.title,
        about=data.about,
        progress=progress,
    )
