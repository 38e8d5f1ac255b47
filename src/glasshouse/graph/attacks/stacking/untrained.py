"""An attack that learned nothing; it has a part in the order if a target is unlike the simulated ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks import BASE
from glasshouse.evidence import Evidence
from glasshouse.graph.attacks.stacking.features import TargetSignals, gbase_odds
from glasshouse.graph.attacks.stacking.pool_signals import PoolSignals
from glasshouse.numerics import area_under_roc

__all__ = ["Untrained", "best_untrained"]


@dataclass(frozen=True, kw_only=True)
class Untrained:
    """BASE of the node alone, or G-BASE under the masks that are used for all targets.

    Args:
        base: BASE, its scale tuned to the pool.
        neighbours: whether it is G-BASE.
    """

    base: BASE
    neighbours: bool = False

    def log_odds(self, signals: TargetSignals) -> FloatArray:
        """Log-odds [n] of a target's nodes."""
        if self.neighbours:
            return np.asarray(gbase_odds(signals, self.base.mode).mean(axis=0))
        return self.base.log_odds(signals.alone)


def best_untrained(pool: PoolSignals) -> Untrained:
    """The better one of the two on simulated targets, by mean AUC."""
    losses = pool.plain.alone[:, pool.at]  # tuning looks only at the pool, so any target can be given
    evidence = Evidence(target_loss=losses[0], shadow_loss=losses, shadow_members=pool.members[:, pool.at])
    base = BASE(mode=pool.mode).tuned(evidence)
    found = [Untrained(base=base), Untrained(base=base, neighbours=True)]
    quality = np.zeros(len(found))
    for k, references in zip(pool.plan.targets.tolist(), pool.plan.references, strict=True):
        signals = pool.target_signals(*pool.of_shadow(k), references[:, 0])
        quality += [area_under_roc(one.log_odds(signals), pool.members[k][pool.at]) for one in found]
    return found[int(quality.argmax())]
