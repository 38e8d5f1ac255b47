"""Samplers of plausible training sets, over which G-BASE averages."""

from glasshouse.graph.sampling.samplers import GroundTruth, Sampler, Samples, SamplingRequest, register_sampler

__all__ = ["GroundTruth", "Sampler", "Samples", "SamplingRequest", "register_sampler"]
