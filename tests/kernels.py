"""Compiles kernels and keeps the code on disk: ``python -m tests.kernels gat``, which `make test` runs beside mypy.

Without it the first test that needs a kernel compiles it, in each of pytest's workers, and under coverage, which makes
compiling a third slower. A kernel that is left out here is only compiled later, by such a test.
"""

from __future__ import annotations

import fcntl
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from numba.core import caching
from torch import nn

from glasshouse.graph.rule.two_layers.engine import compiled_toggles
from glasshouse.graph.sampling.gibbs import gibbs_masks
from glasshouse.graph.sampling.metropolis import metropolis_masks
from tests.graph.random_graphs import random_models
from tests.graph.simple_graphs import simple_graph, unmeasured


def one_writer_at_a_time() -> None:
    """Numba's lists of what is on disk have no lock: of two processes that add to one list, one is forgotten."""
    kept: Any = caching.IndexDataCacheFile  # numba has no types
    save = kept.save

    def locked(*arguments: Any) -> None:
        with (Path(tempfile.gettempdir()) / "glasshouse-kernels.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            save(*arguments)

    kept.save = locked


def compile_all(architecture: str) -> None:
    """Toggle, and walk both kinds of chains, over models of one shape and of several; numba compiles what is called."""
    data = simple_graph(size=12, edges=20, seed=0)
    masks = torch.arange(24).reshape(2, 12) % 2 == 0
    models: list[nn.Module] = [*random_models(architecture, layers=2, dtype=torch.float32)]
    compiled_toggles(unmeasured(models), data, masks, torch.arange(12), threads=1)
    for pool in (models, models + random_models("gin", layers=2, dtype=torch.float32)):
        gibbs_masks(pool, data, chains=1, passes=1, threads=1)
        metropolis_masks(pool, data, samples=1, burn_in=1, thinning=1, threads=1)
    if architecture == "gat":  # scores beyond float32 have kernels of their own
        for name, parameter in (found for model in models for found in model.named_parameters()):
            parameter.data *= 60 if "att_" in name else 1
        compiled_toggles(unmeasured(models), data, masks, torch.arange(12), threads=1)


if __name__ == "__main__":
    one_writer_at_a_time()
    for name in sys.argv[1:]:
        compile_all(name)
