"""Names for the types of arrays that modules pass to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
TextArray = NDArray[np.str_]
F32 = NDArray[np.float32]  # what compiled kernels keep a lot of
I32 = NDArray[np.int32]
Floats = NDArray[np.floating]  # of either precision
