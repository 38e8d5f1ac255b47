"""A made-up file of census incomes in UCI's form: no header, spaces after commas, ``?`` for what is not known."""

from __future__ import annotations

import numpy as np

__all__ = ["COLUMNS", "adult_rows"]

COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]


def adult_rows(records: int = 240) -> str:
    """The text of such a file."""
    source = np.random.default_rng(0)
    work, race = ["Private", "State-gov", "Self-emp-inc", "?"], ["White", "Black", "Asian-Pac-Islander", "Other"]
    home, schools = ["United-States", "Mexico", "Cuba", "?"], ["HS-grad", "Bachelors", "11th", "Masters"]
    rows = []
    for _ in range(records):
        age, hours, school = source.integers(17, 90), source.integers(10, 70), source.integers(4)
        rich = age + hours + 20 * school + 30 * source.normal() > 120
        cells = [age, source.choice(work), source.integers(20_000, 400_000), schools[school], 9 + school]
        cells += ["Divorced", source.choice(["Sales", "?", "Craft-repair"]), "Husband", source.choice(race)]
        cells += [source.choice(["Male", "Female"]), 0, 0, hours, source.choice(home), ">50K" if rich else "<=50K"]
        rows.append(", ".join(map(str, cells)))
    return "\n".join(rows) + "\n\n"  # UCI's file ends with an empty line
