"""What to do about features that an estimator could not be fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["fitting_advice"]

_FUNCTION = "If it needs more than fit(x, y), pass a function (population, members, seed) -> model as trainer."


def fitting_advice(x: Any, error: Exception) -> str:
    """A sentence for the refusal of an estimator: the first thing among its features that it may not take.

    Args:
        x: features of the members.
        error: what the estimator raised.

    Example:
        >>> import pandas
        >>> fitting_advice(pandas.DataFrame({"when": pandas.to_datetime(["2020-01-01"])}), ValueError("no"))
        "Column 'when' holds dates: make numbers of them, such as (frame['when'] - frame['when'].min()).dt.days."
    """
    if isinstance(x, np.ndarray) and x.dtype == object and x.ndim == 1:
        return "Records are texts: put a vectorizer before it, as in make_pipeline(TfidfVectorizer(), estimator)."
    if not hasattr(x, "iloc") or not hasattr(x, "dtypes"):
        if "NaN" in str(error):
            return "Fill empty cells in a pipeline: make_pipeline(SimpleImputer(), estimator)."
        return _FUNCTION
    kinds = [(name, str(kind)) for name, kind in x.dtypes.items()]
    texts = [name for name, kind in kinds if kind in ("object", "str", "string")]
    if texts and "vocabulary" in str(error) and len(kinds) == 1:
        return f"A vectorizer takes texts, not a table: give the column, Population(frame[{texts[0]!r}], labels)."
    for name, kind in kinds:
        if kind in ("object", "str", "string"):
            return (
                f"Column {str(name)!r} holds text: encode it in a pipeline (sklearn.preprocessing.OneHotEncoder), or "
                f"make it of type category if the estimator takes that."
            )
        if kind.startswith(("datetime", "timedelta", "period")):
            column = f"frame[{name!r}]"
            return (
                f"Column {str(name)!r} holds dates: make numbers of them, such as ({column} - {column}.min()).dt.days."
            )
        if kind == "category" and "NaN" not in str(error):
            return (
                f"Column {str(name)!r} is of type category: encode it in a pipeline "
                f"(sklearn.preprocessing.OneHotEncoder); for XGBoost say enable_categorical=True."
            )
    empty = [name for name in x.columns if bool(x[name].isna().any())]
    if empty and ("NaN" in str(error) or "missing" in str(error)):
        return f"Column {str(empty[0])!r} has empty cells: fill them in a pipeline (sklearn.impute.SimpleImputer)."
    return _FUNCTION
