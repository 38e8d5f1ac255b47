"""A fitted estimator whose columns have other names: the population's labels instead of the numbers that it learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["Relabelled", "single_precision"]


@dataclass(frozen=True, eq=False)
class Relabelled:
    """A fitted estimator that was given numbers in place of labels.

    Args:
        model: fitted, with ``predict_proba``.
        classes_: [C] the label of each of its columns.
        single: whether it takes float32 features.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
        >>> Relabelled(model, np.array(["no", "yes"])).predict([[5.0]])
        array(['yes'], dtype='<U3')
    """

    model: Any
    classes_: NDArray[Any]
    single: bool = False

    def predict_proba(self, x: Any) -> NDArray[Any]:
        """Probabilities [N, C], columns in the order of ``classes_``."""
        return np.asarray(self.model.predict_proba(single_precision(x) if self.single else x))

    def predict(self, x: Any) -> NDArray[Any]:
        """[N] the most likely labels."""
        found: NDArray[Any] = self.classes_[self.predict_proba(x).argmax(axis=1)]
        return found


def single_precision(x: Any) -> Any:
    """Features as networks take them: float64 arrays and tensors as float32, tables of numbers as arrays.

    Example:
        >>> single_precision(np.zeros((2, 3))).dtype, single_precision(np.zeros((2, 3), dtype=int)).dtype
        (dtype('float32'), dtype('int64'))
    """
    if hasattr(x, "iloc") and all(kind.kind in "fiub" for kind in x.dtypes):
        x = x.to_numpy()
    if isinstance(x, torch.Tensor):
        return x.float() if x.dtype == torch.float64 else x
    return x.astype(np.float32) if getattr(x, "dtype", None) == np.float64 else x
