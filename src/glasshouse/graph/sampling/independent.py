"""The samplers that draw every node independently."""

from __future__ import annotations

from glasshouse.attacks import BASE
from glasshouse.graph.sampling.sampler import Samples, SamplingRequest, bernoulli, one_query_each, register_sampler
from glasshouse.graph.scene import Scene

__all__ = ["base_samples", "prior_samples"]


@register_sampler("independent")
def prior_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """Draw every indicator from the prior: P(M | θ, G) is taken as P(M | G)."""
    return Samples(bernoulli(request.prior, request, purpose="independent"))


@register_sampler("mia")
def base_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """Draw every indicator from BASE's posterior, by zero-hop queries."""
    posterior = BASE(mode=request.mode, prior=request.prior).score(scene.zero_hop)
    return Samples(bernoulli(posterior, request, purpose="mia"), queries=one_query_each(scene))
