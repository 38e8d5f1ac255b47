"""Names for the types of arrays that modules pass to each other; and tensors as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
TextArray = NDArray[np.str_]
Positions = NDArray[np.intp]  # of records, of models of a pool
F32 = NDArray[np.float32]  # what compiled kernels keep a lot of
I32 = NDArray[np.int32]
Floats = NDArray[np.floating]  # of either precision


def as_array(values: Any) -> NDArray[Any]:
    """An array, or a tensor as one on the CPU, in its own precision; bfloat16, which numpy lacks, as float32."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    return np.asarray(values)
