"""Samplers of plausible training sets, over which G-BASE averages; ``chains/`` holds the Markov chains."""

from glasshouse.graph.sampling import (
    chain_samplers,  # noqa: F401
    independent,  # noqa: F401 (each registers its samplers)
)
from glasshouse.graph.sampling.ground_truth import GroundTruth
from glasshouse.graph.sampling.sampler import Sampler, Samples, SamplingRequest, register_sampler

__all__ = ["GroundTruth", "Sampler", "Samples", "SamplingRequest", "register_sampler"]
