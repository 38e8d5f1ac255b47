from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from glasshouse import InputError, Population, SklearnTrainer

HOLES = pandas.DataFrame({"age": [1.0, np.nan, 3.0, 4.0]})


@pytest.mark.parametrize(
    ("features", "estimator", "said"),
    [
        (HOLES, LogisticRegression(), "Column 'age' has empty cells: fill them in a pipeline"),
        (HOLES.to_numpy(), LogisticRegression(), "Fill empty cells in a pipeline"),
        (pandas.DataFrame({"town": list("abab")}), RandomForestClassifier(2), "Column 'town' holds text"),
        (
            pandas.DataFrame({"town": pandas.Categorical(list("abab"))}),
            RandomForestClassifier(2),
            "Column 'town' is of type category: encode it in a pipeline",
        ),
        (
            pandas.DataFrame({"age": [1.0] * 4, "when": pandas.date_range("2020-01-01", periods=4)}),
            RandomForestClassifier(2),
            "Column 'when' holds dates: make numbers of them",
        ),
        (["a b", "c d"] * 2, RandomForestClassifier(2), "Records are texts: put a vectorizer before it"),
        (
            pandas.DataFrame({"t": ["ab cd", "ef gh"] * 2}),
            make_pipeline(CountVectorizer(), LogisticRegression()),
            "A vectorizer takes texts, not a table: give the column",
        ),
        (np.zeros(4), RandomForestClassifier(2), "If it needs more than fit"),
    ],
)
def test_what_an_estimator_does_not_take_is_named_with_the_fix(features: Any, estimator: Any, said: str) -> None:
    population = Population(features, [0, 1, 0, 1])
    with pytest.raises(InputError, match=said):
        SklearnTrainer(estimator=estimator)(population, np.ones(4, dtype=np.bool_), 0)
