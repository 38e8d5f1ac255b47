"""Whatever form the same records come in, the population, the scores and the figures are the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas
import polars
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from glasshouse import Evaluation, InputError, Population, SklearnTrainer, TorchTrainer, audit, mlp
from glasshouse.config import AuditFile, run_audit_file
from glasshouse.config.columns import TableSection
from glasshouse.config.encoding import read_records

RANDOM = np.random.default_rng(0)
COUNT = 120
FRAME = pandas.DataFrame(
    {
        "person": [f"p{number}" for number in range(COUNT)],
        "age": RANDOM.integers(18, 90, COUNT),
        "hours": RANDOM.normal(38, 9, COUNT),
        "married": RANDOM.random(COUNT) < 0.5,
        "income": RANDOM.choice(["high", "low"], COUNT),
    }
)
FEATURES = ["age", "hours", "married"]
X = FRAME[FEATURES].to_numpy(dtype=np.float64)
Y = FRAME["income"].to_numpy()
IDS = FRAME["person"].tolist()
MEMBERS = np.arange(COUNT) % 2 == 0
TEXTS = [f"{'old' if age > 50 else 'young'} person number {number}" for number, age in enumerate(FRAME["age"])]
TOKENS = RANDOM.integers(0, 30, (COUNT, 6))


class Pairs(Dataset[Any]):
    """A dataset as users write it: item by item."""

    def __init__(self, item: Callable[[int], Any]) -> None:
        self.item = item

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, number: int) -> Any:
        return self.item(number)


def csv_file(folder: Path) -> Path:
    path = folder / "people.csv"
    FRAME.assign(trained_on=MEMBERS).to_csv(path, index=False)
    return path


DOORS: dict[str, Callable[[Path], Population]] = {
    "arrays": lambda folder: Population(X, Y, ids=IDS),
    "lists": lambda folder: Population(X.tolist(), Y.tolist(), ids=IDS),
    "tensor": lambda folder: Population(torch.from_numpy(X), Y, ids=IDS),
    "pandas": lambda folder: Population(FRAME, "income", ids="person"),
    "pandas, types with empty cells": lambda folder: Population(FRAME.convert_dtypes(), "income", ids="person"),
    "polars": lambda folder: Population(polars.from_pandas(FRAME), "income", ids="person"),
    "Hugging Face": lambda folder: Population(datasets.Dataset.from_pandas(FRAME), "income", ids="person"),
    "torch dataset": lambda folder: Population(Pairs(lambda number: (X[number], Y[number])), ids=IDS),
    "tensors": lambda folder: Population(
        TensorDataset(torch.from_numpy(X), torch.from_numpy((Y == "low").astype(np.int64))), ids=IDS
    ),
    "csv file": lambda folder: (
        read_records(
            TableSection(name="file", path=str(csv_file(folder)), label="income", id="person", members="trained_on"),
            folder,
        ).population
    ),
    "two parts": lambda folder: (
        Population.from_parts(
            Population(FRAME[:50], "income", ids="person"), Population(FRAME[50:], "income", ids="person")
        ).population
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_same_records_are_the_same_population_whichever_door_they_came_through(door: str, tmp_path: Path) -> None:
    known, found = DOORS["arrays"](tmp_path), DOORS[door](tmp_path)
    assert found.fingerprint() == known.fingerprint()
    assert (found.digests() == known.digests()).all()
    assert (found.y == known.y).all()
    assert found.ids.tolist() == IDS


@pytest.mark.parametrize("trainer", ["forest", "network"])
def test_scores_and_figures_are_the_same_whichever_door_the_data_came_through(trainer: str, tmp_path: Path) -> None:
    """Issue 20: DataFrame, arrays, Dataset and files."""
    how: Any = {
        "forest": SklearnTrainer(estimator=RandomForestClassifier(n_estimators=8)),
        "network": TorchTrainer(module=mlp(3, 2, hidden=(8,)), epochs=4, device="cpu"),
    }[trainer]
    doors = ["arrays", "pandas", "torch dataset", "csv file"]
    doors += ["polars", "Hugging Face", "two parts"] if trainer == "forest" else []
    seen = {}
    for door in doors:
        options: dict[str, Any] = {"attacks": ["base"], "shadows": 4, "progress": False}
        options["evaluation"] = Evaluation(fprs=[0.05])
        result = audit(DOORS[door](tmp_path), members=MEMBERS, trainer=how, **options)
        scores = np.concatenate([one.scores for one in result.outcomes.values()])
        figures = [(one.metrics, one.thresholds) for one in result.outcomes.values()]
        seen[door] = (
            scores.tobytes(),
            repr((figures, result.verdict_attack, result.privacy, result.random_members, result.context.notes)),
        )
    assert {door for door in seen if seen[door] != seen["arrays"]} == set()


def test_an_audit_file_gives_the_figures_of_the_same_table_from_python(tmp_path: Path) -> None:
    csv_file(tmp_path)
    text = {
        "data": {"name": "file", "path": "people.csv", "label": "income", "id": "person", "member": "trained_on"},
        "trainer": {"kind": "sklearn", "estimator": "DecisionTreeClassifier"},
        "attacks": ["base"],
        "shadows": 4,
    }
    from_file = run_audit_file(AuditFile.model_validate(text), folder=tmp_path, progress=False)
    population = Population(FRAME, "income", ids="person")
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
    here = audit(population, members=MEMBERS, trainer=trainer, attacks=["base"], shadows=4, progress=False)
    assert from_file.context.fingerprint == here.context.fingerprint
    assert from_file.outcomes["base"].scores.tobytes() == here.outcomes["base"].scores.tobytes()
    assert repr(from_file.outcomes["base"].metrics) == repr(here.outcomes["base"].metrics)


def words() -> SklearnTrainer:
    return SklearnTrainer(estimator=make_pipeline(CountVectorizer(), LogisticRegression()))


def test_texts_are_the_same_from_a_list_a_column_and_a_dataset() -> None:
    found = [
        Population(TEXTS, Y),
        Population(np.array(TEXTS), Y),
        Population(pandas.Series(TEXTS), Y),
        Population(polars.Series(TEXTS), Y),
        Population(datasets.Dataset.from_dict({"text": TEXTS, "label": Y}), "label"),
        Population(Pairs(lambda number: (TEXTS[number], Y[number]))),
    ]
    assert len({one.fingerprint() for one in found}) == 1
    assert len({one.digests().tobytes() for one in found}) == 1
    scores = [
        audit(one, members=MEMBERS, trainer=words(), attacks=["base"], shadows=2, progress=False)
        .outcomes["base"]
        .scores.tobytes()
        for one in (found[0], found[4])
    ]
    assert scores[0] == scores[1]


def test_token_numbers_are_the_same_from_a_dict_a_dataset_and_items() -> None:
    mask = np.ones_like(TOKENS)
    arrays = {"input_ids": TOKENS, "attention_mask": mask}
    table = datasets.Dataset.from_dict({**{name: value.tolist() for name, value in arrays.items()}, "labels": Y})

    def item(number: int) -> dict[str, Any]:
        return {name: torch.from_numpy(value[number]) for name, value in arrays.items()}

    found = [
        Population(arrays, Y),
        Population({name: value.tolist() for name, value in arrays.items()}, Y),
        Population({**arrays, "labels": Y, "text": TEXTS}, "labels", leave_out=["text"]),
        Population(table, "labels"),
        Population(Pairs(lambda number: (item(number), Y[number]))),
        Population(Pairs(lambda number: {**item(number), "labels": Y[number]}), "labels"),
    ]
    assert len({one.fingerprint() for one in found}) == 1
    for one in found:
        assert list(one.x) == ["input_ids", "attention_mask"]
        assert np.asarray(one.x["input_ids"]).dtype.kind == "i", "whole numbers stay whole numbers"


def test_features_keep_their_form() -> None:
    assert isinstance(Population(FRAME, "income").x, pandas.DataFrame)
    assert isinstance(Population(polars.from_pandas(FRAME), "income").x, polars.DataFrame)
    assert isinstance(Population(torch.from_numpy(X), Y).x, torch.Tensor)
    assert Population(FRAME, "income", ids="person", leave_out=["married"]).x.columns.tolist() == ["age", "hours"]
    assert isinstance(Population({"input_ids": TOKENS}, Y).x, Mapping)


def test_columns_named_by_numbers_are_named_by_numbers() -> None:
    frame = pandas.DataFrame(np.column_stack([X, Y == "low"]))
    population = Population(frame, 3)
    assert population.x.columns.tolist() == [0, 1, 2]
    assert population.y.tolist() == (Y == "low").astype(int).tolist()


def test_one_long_text_does_not_widen_the_others() -> None:
    """A fixed-width array of these would take 400 GB."""
    texts = ["short"] * 99_999 + ["long " * 200_000]
    population = Population(texts, np.arange(100_000) % 2)
    assert population.x.nbytes < 1e6
    assert len(population.fingerprint()) == 16
    assert len(set(population.digests().tolist())) == 3


def test_a_dataset_knows_classes_that_no_record_has() -> None:
    features = datasets.Features({"a": datasets.Value("float64"), "label": datasets.ClassLabel(names=["x", "y", "z"])})
    table = datasets.Dataset.from_dict({"a": [0.0, 1.0], "label": [0, 1]}, features=features)
    assert Population(table, "label").classes.tolist() == [0, 1, 2]
    hidden = datasets.Dataset.from_dict({"a": [0.0, 1.0], "label": [0, -1]}, features=features)
    with pytest.raises(InputError, match=r"record 1 has the label -1, which is not among the classes \[0, 1, 2\]"):
        Population(hidden, "label")


def test_images_of_a_dataset_are_arrays() -> None:
    images = RANDOM.integers(0, 255, (4, 5, 5, 3), dtype=np.uint8)
    table = datasets.Dataset.from_dict({"image": images.tolist(), "label": [0, 1, 0, 1]})
    assert (Population(table, "label").x["image"] == images).all()


PARTS = {"train": datasets.Dataset.from_dict({"a": [1]}), "test": datasets.Dataset.from_dict({"a": [1]})}
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no labels": (lambda: Population(FRAME), r"name the one that holds them, such as Population\(data, 'income'\)"),
    "no labels of an array": (lambda: Population(X), r"labels are missing; give them too: Population\(x, y\)"),
    "a wrong name": (lambda: Population(FRAME, "incom"), "no column 'incom'. Did you mean 'income'?"),
    "a wrong id": (lambda: Population(FRAME, "income", ids="name"), "ids: there is no column 'name'"),
    "a wrong column to leave out": (lambda: Population(FRAME, "income", leave_out=["sex"]), "leave_out: there is no"),
    "a text to leave out": (lambda: Population(FRAME, "income", leave_out="age"), r"leave_out=\['age'\]"),
    "a name for an array": (lambda: Population(X, "income"), "'income' is the name of a column, but ndarray has no"),
    "nothing left": (lambda: Population(FRAME[["income", "person"]], "income", ids="person"), "no column of features"),
    "labels among the features": (lambda: Population(FRAME, FRAME["income"]), "'income' is among the features too"),
    "labels in another order": (lambda: Population(FRAME[["age"]], FRAME["income"][::-1]), "in another order"),
    "two columns of one name": (
        lambda: Population(FRAME[["age", "age", "income"]], "income"),
        "two columns of the data frame are named 'age'",
    ),
    "unequal arrays": (lambda: Population({"a": TOKENS, "b": TOKENS[1:]}, Y), "b has 119 records, but a has 120"),
    "lists of several lengths": (lambda: Population({"a": [[1, 2], [3]]}, [0, 1]), "a: record 1 has length 1, but"),
    "ragged tokens": (
        lambda: Population(datasets.Dataset.from_dict({"a": [[1, 2], [3]], "label": [0, 1]}), "label"),
        "a: record 1 has length 1, but record 0 has 2; pad them",
    ),
    "two splits": (lambda: Population(datasets.DatasetDict(PARTS), "a"), r"such as data\['train'\], or two"),
    "a transform": (
        lambda: Population(datasets.Dataset.from_dict({"a": [1]}).with_transform(lambda rows: rows), "a"),
        r"Apply the transform first, with dataset.map\(…\)",
    ),
    "a loader": (lambda: Population(DataLoader(Pairs(lambda number: number), collate_fn=list)), "give its dataset"),
    "a lazy frame": (lambda: Population(polars.LazyFrame({"a": [1]}), "a"), r"give frame.collect\(\)"),
    "a random augmentation": (
        lambda: Population(Pairs(lambda number: (torch.rand(2), number % 2))),
        "item 0 of Pairs is another one each time it is read",
    ),
    "items of three": (lambda: Population(Pairs(lambda number: (1.0, 2.0, 0))), r"not a pair \(x, y\) but 3 parts"),
    "items without a label": (lambda: Population(Pairs(lambda number: X[number])), "not a pair"),
    "labels twice": (lambda: Population(Pairs(lambda number: (X[number], 0)), Y), "leave the labels out"),
    "items of several shapes": (
        lambda: Population(Pairs(lambda number: (torch.zeros(1 + number % 2), number % 2))),
        r"record 1 has shape \(2,\), but record 0 has \(1,\)",
    ),
    "a missing text": (lambda: Population([*TEXTS[1:], None], Y), "record 119 is None, but record 0 is a text"),
    "a list of dicts": (lambda: Population([{"age": 3}, {"age": 4}], [0, 1]), r"pandas.DataFrame\(records\)"),
    "a path": (lambda: Population("people.csv", [0, 1]), "a file is read first, as with pandas.read_csv"),
    "no records": (lambda: Population([], []), "there are no records"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_line_with_the_fix(what: str) -> None:
    make, message = REFUSED[what]
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_subset_is_a_part_of_a_dataset() -> None:
    whole = TensorDataset(torch.from_numpy(X), torch.from_numpy((Y == "low").astype(np.int64)))
    train, holdout = (Population(Subset(whole, rows.tolist())) for rows in (np.arange(70), np.arange(70, COUNT)))
    population, members = Population.from_parts(train, holdout)
    assert (population.digests() == Population(whole).digests()).all()
    assert (members == (np.arange(COUNT) < 70)).all()


def test_every_line_of_the_page_about_data_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "inputs.md").read_text()
    lines = re.findall(r"^\|[^|]*\| `(Population[^`]*)` \|", page, flags=re.MULTILINE)
    frame = FRAME.assign(trained_on=MEMBERS)
    known = {"Population": Population, "x": X, "y": Y, "frame": frame, "polars_frame": polars.from_pandas(frame)}
    known |= {"texts": TEXTS, "input_ids": TOKENS, "attention_mask": np.ones_like(TOKENS)}
    known |= {"torch_dataset": Pairs(lambda number: (X[number], Y[number])), "train": frame[:60], "holdout": frame[60:]}
    known |= {"hugging_face_dataset": datasets.Dataset.from_dict({"text": TEXTS, "label": Y})}
    assert len(lines) == 9
    for line in lines:
        made = eval(line, known)  # noqa: S307 (our own manual)
        assert len(made[0] if isinstance(made, tuple) else made) == COUNT
