"""The family of attacks on graphs: they ask models about parts of a graph; and what rules for nodes and edges share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from glasshouse.attacks.attack import Attack, Judgement, QueryCount, V
from glasshouse.attacks.prior import as_prior, check_prior
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError, number_faults, raise_faults
from glasshouse.evidence import Kind, Mode
from glasshouse.graph.sampling.posterior import log_odds
from glasshouse.graph.sampling.samplers import SAMPLERS, GroundTruth, Sampler, Samples, SamplingRequest
from glasshouse.graph.scene import Scene

PriorRule = Callable[[Any], ArrayLike]  # from what an attack looks at to one λ per node or pair


class GraphAttack(Attack[Scene]):
    """An attack that looks at a scene: a frozen dataclass whose fields are its parameters.

    Example:
        >>> from glasshouse.attacks import create
        >>> create("g-base").toggles, create("g-base", engine="reference").toggles
        (True, False)
    """

    kind: ClassVar[Kind] = "graph"

    @property
    def toggles(self) -> bool:
        """Whether it computes the rule by a fast engine, which an audit then compares with the rule as written."""
        return getattr(self, "engine", "reference") != "reference"


class Drawn(NamedTuple):
    """Sampled truths by the prior [n], S under them [1 + K, M, N], and offline which models are used [K, N]."""

    samples: Samples
    prior: FloatArray
    signals: FloatArray
    usable: BoolArray | None


@dataclass(frozen=True, kw_only=True)
class ToggleRule(Attack[V]):
    """The options of the Bayes-optimal rules for a node and for an edge, and the posterior from toggled signals.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those trained without the node or edge.
        sampler: where the other members come from: a registered name, `GroundTruth`, or your own
            ``(scene, request) -> bool [M, n]``.
        samples: M, how many are drawn.
        prior: λ, the share of members expected before looking at the target: one number, one per node or pair, or a
            function of the scene that gives them.
        engine: how S is computed: ``"auto"``, ``"reference"`` for the rule as written, or an engine by name.
        seed: seed of the sampler.
    """

    posterior: ClassVar[bool] = True
    judged: ClassVar[str] = "nodes"  # what it is about, for errors
    prior_rules: ClassVar[Mapping[str, PriorRule]] = {}  # priors that can be asked for by name

    mode: Mode = "online"
    sampler: str | Sampler = "mia"
    samples: int = 8
    prior: float | ArrayLike | str | PriorRule = 0.5
    engine: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str):
            SAMPLERS.find(self.sampler)
        raise_faults(number_faults(self, at_least={"samples": 1, "passes": 1}))
        if isinstance(self.prior, str) and self.prior not in self.prior_rules:
            known = "".join(f' or "{name}"' for name in self.prior_rules)
            raise InputError(f"prior: {self.prior!r} is not known. Use a number{known}.")
        if not callable(self.prior) and not isinstance(self.prior, str):
            check_prior(self.prior)

    @property
    def knows_truth(self) -> bool:
        """Whether its sampler is given the truth about the target."""
        return isinstance(self.sampler, GroundTruth)

    def check(self, members: BoolArray) -> None:
        """Refuse, offline, a pool in which something is in every model: only models without it are used."""
        lost = f"{int(members.all(axis=0).sum())} {self.judged}"
        if self.mode == "offline" and members.all(axis=0).any():
            raise InputError(f"shadow_members: {lost} have no out-model. Train more shadow models, in pairs.")

    def score(self, view: V) -> FloatArray:
        """Posteriors of what is audited, [N]."""
        return self.judge(view).scores

    def judge(self, view: V) -> Judgement:
        """Posteriors of what is audited, and figures of its sampler."""
        samples, prior, signals, usable = self._drawn(view)
        odds = logit(view.audited(prior))
        posteriors = [expit(one + odds) for one in self._log_odds(view, signals, usable)]
        answering = len(signals) - 1 if usable is None else float(usable.sum(axis=0).mean())
        return Judgement(
            np.asarray(np.mean(posteriors, axis=0)),
            # one query with the node or edge, and one without it
            queries=QueryCount(2 * self.samples * (1 + answering), shared=samples.queries),
            details={} if samples.acceptance is None else {"sampler_acceptance": samples.acceptance},
            sampled=np.stack([view.audited(mask) for mask in samples.masks]),
        )

    @abc.abstractmethod
    def _drawn(self, view: V) -> Drawn:
        """Draw the other members, and toggle."""

    def _priors(self, view: V) -> FloatArray:
        """[n] λ of every node or pair."""
        count = view.shadow_members.shape[1]
        rule = self.prior_rules[self.prior] if isinstance(self.prior, str) else self.prior
        given = rule(view) if callable(rule) else rule
        check_prior(given)
        return np.broadcast_to(as_prior(given, count, of=self.judged), (count,))

    def _log_odds(self, view: V, signals: FloatArray, usable: BoolArray | None) -> FloatArray:
        """Log-odds without the prior under each sampled truth, [M, N], from signals [1 + K, M, N]."""
        return np.stack([log_odds(signals[0, i], signals[1:, i], usable) for i in range(signals.shape[1])])

    @property
    def _sampler(self) -> Sampler:
        return SAMPLERS.find(self.sampler) if isinstance(self.sampler, str) else self.sampler

    def _request(self, view: V, *, passes: int = 1) -> SamplingRequest:
        return SamplingRequest(
            samples=self.samples, prior=self._priors(view), mode=self.mode, passes=passes, seed=self.seed
        )
