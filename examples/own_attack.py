"""Add your own attack: a frozen dataclass with a score, registered by a name that works everywhere."""

from dataclasses import dataclass

import numpy as np

from glasshouse import Attack, Evidence, FloatArray, TorchTrainer, audit, digits, mlp, random_subsets, register


@register("median-gap")
@dataclass(frozen=True, kw_only=True)
class MedianGap(Attack):
    """How far the target's loss is below the median loss of models that were not trained on the record."""

    def score(self, evidence: Evidence) -> FloatArray:
        """Gaps, [N]."""
        outside = np.where(evidence.references("offline"), evidence.shadow_loss, np.nan)
        return np.asarray(np.nanmedian(outside, axis=0) - evidence.target_loss)


population = digits().population
members = random_subsets(len(population), models=1, fraction=0.5, seed=0)[0]
trainer = TorchTrainer(module=mlp(64, 10, hidden=(128,)), epochs=30, batch_size=64)
print(audit(population, members=members, trainer=trainer, attacks=["median-gap", "base"], shadows=6).table())
