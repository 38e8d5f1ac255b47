"""Files about a run that was saved: a policy, and the form of its evidence file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, create_model, model_validator

from glasshouse.config.yaml_model import Share, Strict, read_yaml
from glasshouse.report.clauses import POINTS
from glasshouse.report.policy import End, Limit, Policy


class LimitSection(Strict):
    """One limit; see `glasshouse.report.policy.Limit`."""

    figure: str
    most: Annotated[float, Field(ge=0)]
    at_fpr: Share | None = None
    attack: str = "headline"
    group: str | None = None
    end: End | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        self.build()
        return self

    def build(self) -> Limit:
        """The limit itself."""
        return Limit(**self.model_dump())


class PolicyFile(Strict):
    """A policy file.

    Example:
        >>> PolicyFile.model_validate({"limits": [{"figure": "tpr", "at_fpr": 0.01, "most": 0.05}]}).build().end
        'upper'
    """

    limits: Annotated[list[LimitSection], Field(min_length=1)]
    end: End = "upper"
    attacks: list[str] = Field(default_factory=list)
    shadows: Annotated[int, Field(ge=0)] = 0
    age_days: Annotated[float, Field(gt=0)] | None = None

    def build(self) -> Policy:
        """The policy itself."""
        limits = tuple(limit.build() for limit in self.limits)
        return Policy(**dict(self) | {"limits": limits, "attacks": tuple(self.attacks)})


def read_policy(path: Path | str) -> Policy:
    """Read and check a policy file; all faults are reported at once.

    Example:
        >>> read_policy("no/such/risk.yaml")
        Traceback (most recent call last):
        glasshouse.InputError: no/such/risk.yaml: there is no such file.
    """
    return read_yaml(Path(path), PolicyFile).build()


if TYPE_CHECKING:
    _Supplied = Strict
else:
    _text = Annotated[str, Field(min_length=1, max_length=10_000)] | None
    _Supplied = create_model("_Supplied", __base__=Strict, __module__=__name__, **dict.fromkeys(POINTS, (_text, None)))


def read_supplied(path: Path | str) -> dict[str, str]:
    """The owner's answers in the form of an evidence file, by the key of `glasshouse.report.clauses.POINTS`.

    Example:
        >>> read_supplied("no/such/supply.yaml")
        Traceback (most recent call last):
        glasshouse.InputError: no/such/supply.yaml: there is no such file.
    """
    return {key: text for key, text in read_yaml(Path(path), _Supplied).model_dump().items() if text is not None}
