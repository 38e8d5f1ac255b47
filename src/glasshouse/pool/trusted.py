"""What a stored estimator may name: an exact list for each kind of entry, so that reading a file cannot run code."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import scipy.special

from glasshouse.reading.arrays import judge_arrays
from glasshouse.reading.zips import open_zip

__all__ = ["strange_names"]


_PACKED = 20  # times that an estimator may shrink in its file; zeros alone shrink a thousand times


def _each(names: str, *, form: str) -> frozenset[str]:
    """Full names from short ones."""
    return frozenset(form.format(name) for name in names.split())


_SCALARS = _each(
    "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 longlong ulonglong intc uintc float16 float32 "
    "float64 longdouble complex64 complex128 str_ bytes_ datetime64 timedelta64",
    form="numpy.{}",
)
_PRIMITIVES = _each("str int float bool", form="builtins.{}")
_FORMS = "bsr coo csc csr dia dok lil"
_SPARSE = _each(_FORMS, form="scipy.sparse._{0}.{0}_matrix") | _each(_FORMS, form="scipy.sparse._{0}.{0}_array")
_LOSSES = _each(
    "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss "
    "HalfSquaredError HalfTweedieLoss HalfTweedieLossIdentity HuberLoss PinballLoss",
    form="sklearn._loss._loss.Cy{}",
) | _each(
    "EpsilonInsensitive Hinge Huber Log ModifiedHuber SquaredEpsilonInsensitive SquaredHinge SquaredLoss",
    form="sklearn.linear_model._sgd_fast.{}",
)
_DISTANCES = (  # PyFunc is left out: it calls any function that the file names
    "BrayCurtis Canberra Chebyshev Dice Euclidean Hamming Haversine Jaccard Mahalanobis Manhattan Minkowski "
    "RogersTanimoto RussellRao SEuclidean SokalMichener SokalSneath"
)
# parts of estimators that are not estimators themselves; each only holds numbers and other parts
_PARTS = frozenset().union(
    _each("HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit", form="sklearn._loss.link.{}"),
    _each(
        "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss "
        "HalfSquaredError HuberLoss PinballLoss",
        form="sklearn._loss.loss.{}",
    ),
    _each("_CalibratedClassifier _SigmoidCalibration _TemperatureScaling", form="sklearn.calibration.{}"),
    _each("binning._BinMapper predictor.TreePredictor", form="sklearn.ensemble._hist_gradient_boosting.{}"),
    _each("_BinaryGaussianProcessClassifierLaplace", form="sklearn.gaussian_process._gpc.{}"),
    _each(
        "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel Product RBF "
        "RationalQuadratic Sum WhiteKernel",
        form="sklearn.gaussian_process.kernels.{}",
    ),
    _each(_DISTANCES, form="sklearn.metrics._dist_metrics.{}Distance32"),
    _each(_DISTANCES, form="sklearn.metrics._dist_metrics.{}Distance64"),
    _each("_PassthroughScorer", form="sklearn.metrics._scorer.{}"),
    _each(
        "KFold LeaveOneOut RepeatedKFold RepeatedStratifiedKFold ShuffleSplit StratifiedKFold StratifiedShuffleSplit",
        form="sklearn.model_selection._split.{}",
    ),
    _each("_ConstantPredictor", form="sklearn.multiclass.{}"),
    _each("BallTree BallTree32 BallTree64", form="sklearn.neighbors._ball_tree.{}"),
    _each("KDTree KDTree32 KDTree64", form="sklearn.neighbors._kd_tree.{}"),
    _each("AdamOptimizer SGDOptimizer", form="sklearn.neural_network._stochastic_optimizers.{}"),
)
_TESTS = _each("chi2 f_classif f_regression", form="sklearn.feature_selection._univariate_selection.{}")


def strange_names(content: bytes) -> list[str]:
    """Names in a skops file that no estimator of scikit-learn needs, as ``loader name``; nothing is loaded for this.

    skops has its own list of trusted names. Our list is checked first and does not depend on it: each entry of the file
    must have a known loader, and a name that this loader may make. Loaders that call what they find (bound methods,
    partials, operators, constructors from ``__reduce__``) are not on our list.

    Example:
        >>> import skops.io
        >>> from sklearn.linear_model import LogisticRegression
        >>> strange_names(skops.io.dumps(LogisticRegression()))
        []
        >>> strange_names(skops.io.dumps(len))
        ['TypeNode builtins.len']
    """
    # an estimator may be as large as the trainer makes it, and then its file is large too
    with open_zip(io.BytesIO(content), place="the estimator", allowed=_PACKED * len(content)) as archive:
        judge_arrays(archive, place="the estimator")
        schema = json.loads(archive.read("schema.json"))
    known = _known()
    found = dict.fromkeys(
        f"{loader} {name}" for loader, name in _entries(schema) if name not in known.get(loader, frozenset())
    )
    return list(found)


def _entries(schema: Any) -> Iterator[tuple[str, str]]:
    """Loader and name of everything in the file that looks like an entry, however deep."""
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if {"__loader__", "__class__", "__module__"} & one.keys():
                yield str(one.get("__loader__")), f"{one.get('__module__')}.{one.get('__class__')}"
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)


@functools.cache
def _known() -> dict[str, frozenset[str]]:
    """Names by the loader that may make them."""
    from sklearn.utils import all_estimators  # skops calls it too when it is imported, so this costs nothing

    estimators = {f"{kind.__module__}.{kind.__name__}" for _, kind in all_estimators()}
    names: dict[str, AbstractSet[str]] = {
        "JsonNode": {"builtins.str"},
        "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
        "ListNode": {"builtins.list"},
        "SetNode": {"builtins.set"},
        "TupleNode": {"builtins.tuple"},
        "SliceNode": {"builtins.slice"},
        "BytesNode": {"builtins.bytes"},
        "TypeNode": _PRIMITIVES | _SCALARS,
        "NdArrayNode": {"numpy.ndarray"} | _SCALARS,
        "MaskedArrayNode": {"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"},
        "DTypeNode": {"numpy.dtype"},
        "RandomStateNode": {"numpy.random.mtrand.RandomState"},
        "RandomGeneratorNode": {"numpy.random._generator.Generator"},
        "SparseMatrixNode": _SPARSE,
        "TreeNode": {"sklearn.tree._tree.Tree"},
        "LossNode": _LOSSES,
        "FunctionNode": _elementwise() | _TESTS,
        "ObjectNode": {name for name in estimators if name.startswith("sklearn.")} | _PARTS,
    }
    return {loader: frozenset(some) for loader, some in names.items()}


def _elementwise() -> set[str]:
    """The functions of numpy and scipy that work on each number separately, such as ``numpy.log1p``."""
    modules = {"numpy": vars(np), "scipy.special": vars(scipy.special), "scipy.special._ufuncs": vars(scipy.special)}
    return {
        f"{module}.{name}"
        for module, inside in modules.items()
        for name, value in inside.items()
        if isinstance(value, np.ufunc)
    }
