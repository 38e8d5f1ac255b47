"""The options of an audit, each declared once: its meaning, its default, and its key in an audit file.

The calls read their documentation from here (`documented`), and audit files their keys (`option`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from numpy.typing import ArrayLike

from glasshouse.core.errors import InputError, raise_faults, shortened
from glasshouse.data.design import Design, as_design
from glasshouse.evaluation import PrivacyClaim
from glasshouse.evaluation.privacy.claim import as_claim
from glasshouse.evaluation.thresholds import ThresholdRule
from glasshouse.evidence import LossTrace, QueryOptions
from glasshouse.report.format import texts_beside
from glasshouse.training.trainer import Trainer

# what the options mean that calls take directly, as a docstring writes it
OPTIONS: dict[str, str] = texts_beside(__file__)


def option(
    default: Any, *, file: str = "", of: Sequence[str] = ("records", "a graph", "edges", "evidence"), was: str = ""
) -> Any:
    """An option in a group, which the audits in ``of`` use.

    ``file`` is the type of its key in an audit file, or empty if a file says it elsewhere or not at all; ``was`` is the
    name that it had while the calls took it themselves, if that was another one.
    """
    return dataclasses.field(default=default, metadata={"file": file, "of": of, "was": was})


@dataclass(frozen=True, kw_only=True)
class Attacker:
    """What the attacker knows, and how it trains and asks models.

    Args:
        trainer: how the attacker trains, if it does not know how the owner did: another architecture or optimizer (the
            paper's mismatched adversary). None: as the target was trained.
        prior: λ, the share of members that it expects: one number, or one per record.
        fraction: share of the records that trains a shadow model.
        query: batch size, device and temperature of queries; `LabelOnly` for models that give labels alone.
        public: [N] records that it knows not to have trained the target, such as a published test set; or a share of
            the non-members to set aside as such. Attacks without shadow models learn from them; they are not judged.
        trace: losses from the training of the target, a `LossTrace` or [T, N], for the attack ``"trace"``.
        graph: the graph as it knows it, such as `noisy_edges` of the owner's. None: the owner's.

    Example:
        >>> Attacker(prior=0.1).prior
        0.1
    """

    trainer: Trainer | Any = option(None, of=("records", "a graph"), was="shadow_trainer")
    prior: float | ArrayLike = option(0.5, file="Share")
    fraction: float = option(0.5, file="Share", of=("records", "a graph"))
    query: QueryOptions | None = option(None, of=("records",))
    public: ArrayLike | None = option(None, file="Share | None", of=("records",))
    trace: LossTrace | ArrayLike | None = option(None, of=("records",))
    graph: Any = option(None, of=("a graph",), was="known_graph")

    def check(self, audit: str) -> None:
        """Refuse what an audit of this kind does not use.

        Example:
            >>> Attacker(public=0.3).check("a graph")
            Traceback (most recent call last):
            glasshouse.InputError: attacker: an audit of a graph does not use public; leave it out.
        """
        given = [one for one in dataclasses.fields(self) if getattr(self, one.name) is not one.default]
        unused = [one.name for one in given if audit not in one.metadata["of"]]
        raise_faults([f"attacker: an audit of {audit} does not use {name}; leave it out." for name in unused])

    @property
    def labels_only(self) -> bool:
        """Whether it sees labels alone, no probabilities."""
        return self.query is not None and self.query.labels_only


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How the attacks are judged.

    Args:
        fprs: wanted false-positive rates; by default those of 1 % and 0.1 % that the sample can resolve.
        threshold: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        groups: columns that divide the records, by name, such as ``{"sex": […], "age": […]}``, one value per record.
            The report shows the leak of each group. Numbers with many different values are cut into quartiles.
        words: [N] the tokens of every text, as `text_tokens` gives them: the report then shows the most exposed texts.
            By default it shows which of their tokens surprise, but no words.
        claim: a stated (ε, δ) to judge: a `PrivacyClaim`, or a mapping with ``epsilon`` and perhaps ``delta``.
        design: how the members were chosen, a `glasshouse.data.design.Design`, its name, or a mapping with its name:
            tests, intervals and ε follow it. By default records, or units, are taken as drawn at random, and it is
            tested whether they look so.

    Example:
        >>> Evaluation(fprs=[0.1], claim={"epsilon": 8.0}).claim
        PrivacyClaim(epsilon=8.0, delta=0.0)
    """

    fprs: Sequence[float] | None = option(None, file="list[Share] | None")
    threshold: ThresholdRule = option("mean", file='Literal["mean", "max"]', was="policy")
    groups: Mapping[str, ArrayLike] | None = option(None, of=("records", "a graph", "evidence"))
    words: Sequence[Sequence[str]] | None = option(None, of=("records", "evidence"))
    claim: PrivacyClaim | Mapping[str, float] | None = option(None, file="ClaimSection | None")
    design: Design | str | Mapping[str, Any] | None = option(None, file="str | dict[str, Any] | None")

    def __post_init__(self) -> None:
        if self.threshold not in ("mean", "max"):
            raise InputError(f'threshold: {shortened(self.threshold)} is not known; use "mean" or "max".')
        object.__setattr__(self, "claim", as_claim(self.claim))
        object.__setattr__(self, "design", as_design(self.design))


GROUPS: Mapping[str, type[Any]] = {"attacker": Attacker, "evaluation": Evaluation}

Call = TypeVar("Call", bound=Callable[..., Any])


def check_options(attacker: object, evaluation: object, audit: str) -> None:
    """Refuse options of another type, and those that an audit of this kind does not use."""
    for name, value, kind in (("attacker", attacker, Attacker), ("evaluation", evaluation, Evaluation)):
        if not isinstance(value, kind):
            raise InputError(f"{name}: pass {name}={kind.__name__}(…), not a value of type {type(value).__name__}.")
    if isinstance(attacker, Attacker):
        attacker.check(audit)


_ARGS = re.compile(r"(Args:\n(?: {4}.*\n?)+)")


def meanings(described: object) -> dict[str, str]:
    """What the ``Args`` of a docstring say about each name, each in one line."""
    found = _ARGS.search(inspect.getdoc(described) or "")
    args = re.findall(r"^    (\w+): ((?:.|\n {8})+)", found[1] if found else "", flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text) for name, text in args}


def documented(call: Call) -> Call:
    """Complete the ``Args`` of a call by what `OPTIONS` says about its other parameters.

    An option that moved into a group is still an error of the call, and names its new place.
    """
    head, _, rest = _ARGS.split(inspect.getdoc(call) or "", maxsplit=1)
    known, parameters = OPTIONS | meanings(call), inspect.signature(call).parameters
    lines = [
        textwrap.fill(f"{name}: {known[name]}", 116, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for name in parameters
        if name in known
    ]

    @functools.wraps(call)
    def checked(*arguments: Any, **options: Any) -> Any:
        unknown = {name: value for name, value in options.items() if name not in parameters}
        raise_faults([place for name, value in unknown.items() for place in _places(call, name, value)])
        return call(*arguments, **options)

    checked.__doc__ = head + "\n".join(["Args:", *lines, ""]) + rest
    return cast("Call", checked)


def _places(call: Callable[..., Any], name: str, value: Any) -> Iterator[str]:
    """Where an option is that a call does not take itself."""
    shown = repr(value) if isinstance(value, str | float | int) else "…"
    for group, kind in GROUPS.items():
        for one in dataclasses.fields(kind):
            if name in (one.name, one.metadata["was"]):
                made = f"{group}={kind.__name__}({one.name}={shown})"
                yield f"{name}: is now an option of {kind.__name__}: {call.__name__}(…, {made})."
