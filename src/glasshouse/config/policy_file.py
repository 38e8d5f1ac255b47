"""Files about a run that was saved: a policy, and the form of its evidence file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, create_model

from glasshouse.config.yaml_model import Share, Strict, read_yaml
from glasshouse.report.appendix import POINTS
from glasshouse.report.policy import End, Limit, Policy


class LimitSection(Strict):
    """One limit; see `glasshouse.report.policy.Limit`."""

    figure: str
    most: Annotated[float, Field(ge=0)]
    at_fpr: Share | None = None
    attack: str = "headline"
    group: str | None = None
    end: End | None = None


_Limit = Annotated[LimitSection, AfterValidator(lambda section: Limit(**dict(section)))]


class PolicyFile(Strict):
    """A policy file."""

    limits: Annotated[list[_Limit], Field(min_length=1)]
    end: End = "upper"
    attacks: list[str] = Field(default_factory=list)
    shadows: Annotated[int, Field(ge=0)] = 0
    age_days: Annotated[float, Field(gt=0)] | None = None


def read_policy(path: Path | str) -> Policy:
    """Read and check a policy file; all faults are reported at once."""
    found = dict(read_yaml(Path(path), PolicyFile))
    return Policy(**found | {name: tuple(found[name]) for name in ("limits", "attacks")})


if TYPE_CHECKING:
    _Supplied = Strict
else:
    _text = Annotated[str, Field(min_length=1, max_length=10_000)] | None
    _Supplied = create_model("_Supplied", __base__=Strict, __module__=__name__, **dict.fromkeys(POINTS, (_text, None)))


def read_supplied(path: Path | str) -> dict[str, str]:
    """The owner's answers in the form of an evidence file, by the key of `glasshouse.report.appendix.POINTS`."""
    return {
        key: text for key, text in read_yaml(Path(path), _Supplied, form=True).model_dump().items() if text is not None
    }
