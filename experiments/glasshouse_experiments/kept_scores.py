"""What came of an attack on a target, kept in a file with the checksum of the models that were attacked."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation import AttackOutcome
from glasshouse.store import write_file

__all__ = ["Judged", "keep_scores", "kept_scores"]


class Judged(NamedTuple):
    """What came of an attack on a target.

    Args:
        scores: [nodes] of the audited nodes.
        truth: [nodes] who of them trained the target.
        seconds: spent on scoring.
        thresholds: [rates, 4] wanted rate, threshold and the ends of its FPR's interval, where rates were asked for.
    """

    scores: FloatArray
    truth: BoolArray
    seconds: float
    thresholds: FloatArray = np.empty((0, 4))


def keep_scores(path: Path, outcome: AttackOutcome, *, models: str) -> None:
    """Write an outcome, and of which models it is: a checksum of target and shadow models."""
    cuts = [(cut.wanted, cut.value, cut.interval.low, cut.interval.high) for cut in outcome.thresholds]
    file = io.BytesIO()
    np.savez(
        file,
        scores=outcome.scores,
        seconds=outcome.seconds,
        thresholds=np.reshape(cuts, (-1, 4)),
        models=np.array(models),
    )
    write_file(path, file.getvalue())


def kept_scores(path: Path, truth: BoolArray, *, models: str) -> Judged | None:
    """What was kept; None where it is not there, damaged, of other models or other nodes, so that it is run again."""
    try:
        # opened here: numpy leaves a file that is no archive open
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            scores, cuts = (np.asarray(found[name], dtype=np.float64) for name in ("scores", "thresholds"))
            seconds, owner = float(found["seconds"]), str(found["models"])
    except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    whole = scores.shape == truth.shape and cuts.ndim == 2 and cuts.shape[1] == 4 and bool(np.isfinite(scores).all())
    return Judged(scores, truth, seconds, cuts) if whole and owner == models else None
