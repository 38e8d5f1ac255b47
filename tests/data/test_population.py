from __future__ import annotations

import numpy as np
import pytest
import torch.utils.data
from hypothesis import given
from hypothesis import strategies as st

from glasshouse import InputError, Population
from glasshouse.data import as_members, as_population, check_population, complementary_halves, random_subsets, select


@given(st.integers(2, 60), st.integers(1, 6), st.integers(0, 5))
def test_every_record_is_in_exactly_half_of_the_models(count: int, pairs: int, seed: int) -> None:
    """Algorithm 1."""
    members = complementary_halves(count, models=2 * pairs, seed=seed)
    assert (members.sum(axis=0) == pairs).all()
    assert (members[0::2] == ~members[1::2]).all()
    assert (np.abs(members.sum(axis=1) - count / 2) < 1).all()


def test_more_models_later_leave_the_first_ones_as_they_were() -> None:
    few, many = (complementary_halves(50, models=models, seed=3) for models in (8, 16))
    assert (few == many[:8]).all()


def test_halves_are_drawn_anew_for_each_pair_and_seed() -> None:
    members = complementary_halves(50, models=4, seed=0)
    assert (members[0] != members[2]).any()
    assert (members != complementary_halves(50, models=4, seed=1)).any()


@pytest.mark.parametrize("models", [7, 0, -2, 1])
def test_an_odd_number_of_shadows_is_refused_with_what_to_use(models: int) -> None:
    with pytest.raises(InputError, match=r"complementary pairs\. Use \d+ or \d+"):
        complementary_halves(10, models=models, seed=0)


@given(st.integers(10, 200), st.floats(0.1, 0.9))
def test_subsets_have_the_wanted_share(count: int, fraction: float) -> None:
    members = random_subsets(count, models=3, fraction=fraction, seed=0)
    assert (members.sum(axis=1) == round(fraction * count)).all()


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 0.001])
def test_a_share_that_leaves_nobody_is_refused(fraction: float) -> None:
    with pytest.raises(InputError, match="fraction"):
        random_subsets(10, models=1, fraction=fraction, seed=0)


def test_labels_become_columns_of_the_sorted_classes() -> None:
    population = Population(np.zeros((3, 1)), ["b", "a", "b"], classes=["a", "b", "c"])
    assert population.y.tolist() == [1, 0, 1]
    assert population.classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": ["a", "a", "a"]}, "needs two or more"),
        ({"y": ["a", "b"]}, "3 records but 2 labels"),
        ({"y": [[0], [1], [0]]}, "one label per record"),
        ({"y": [0.0, np.nan, 1.0]}, "label of record 1"),
        ({"y": ["a", "b", "c"], "classes": ["a", "b"]}, "'c', which is not among the classes"),
        ({"y": [0, 1, 0], "ids": ["x", "y", "x"]}, "id 'x' is repeated"),
        ({"y": [0, 1, 0], "ids": ["x", " ", "z"]}, "record 1 has no id"),
        ({"y": [0, 1, 0], "ids": ["x", None, "z"]}, "record 1 has no id"),
        ({"y": [0, 1, 0], "ids": ["x", "y"]}, "give one id per record"),
    ],
)
def test_records_that_do_not_fit_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Population(np.zeros((3, 2)), **given)  # type: ignore[arg-type]


def test_fingerprint_follows_features_labels_and_ids() -> None:
    x = np.arange(6.0).reshape(3, 2)
    prints = {
        Population(x, [0, 1, 0]).fingerprint(),
        Population(x + 1, [0, 1, 0]).fingerprint(),
        Population(x, [0, 1, 1]).fingerprint(),
        Population(x, [0, 1, 0], ids=["a", "b", "c"]).fingerprint(),
    }
    assert len(prints) == 4
    assert Population(x.copy(), [0, 1, 0]).fingerprint() in prints


def test_what_is_not_a_population_is_refused() -> None:
    population = Population([[0.0], [1.0]], [0, 1])
    assert as_population(population) is population
    assert (population.training_data is population, population.independent) == (True, True)
    with pytest.raises(InputError, match=r"population: list is not a population; .* import glasshouse.graph first"):
        as_population([[0.0], [1.0]])
    with pytest.raises(InputError, match=r"list is not a Population; .* For a graph call glasshouse.graph.audit"):
        check_population([[0.0], [1.0]])
    pandas = pytest.importorskip("pandas")
    cases = [
        (
            pandas.DataFrame({"age": [1], "income": [2]}),
            r"DataFrame is not a Population; make one: Population\(data, 'income'\)",
        ),
        (np.zeros((2, 2)), r"ndarray is not a Population; make one: Population\(x, y\)"),
        ({"input_ids": np.zeros(2)}, r"dict is not a Population; make one: Population\(arrays, y\)"),
        (torch.utils.data.TensorDataset(torch.zeros(2)), r"make one: Population\(dataset\)"),
        ("people.csv", r"read the file first: Population\(pandas.read_csv\('people.csv'\), 'label'\)"),
        (Population.from_parts(population, population), r"audit\(parts.population, members=parts.members, …\)"),
    ]
    for other, message in cases:
        with pytest.raises(InputError, match=message):
            check_population(other)


def test_fingerprint_and_selection_take_data_frames_and_sparse_matrices() -> None:
    pandas = pytest.importorskip("pandas")
    from scipy.sparse import csr_matrix

    frame = pandas.DataFrame({"age": [1, 2, 3], "job": ["x", "y", "x"]})
    mask = np.array([True, False, True])
    assert len(Population(frame, [0, 1, 0]).fingerprint()) == 16
    assert select(frame, mask)["age"].tolist() == [1, 3]
    sparse = csr_matrix(np.eye(3))
    assert len(Population(sparse, [0, 1, 0]).fingerprint()) == 16
    assert select(sparse, mask).shape == (2, 3)


@pytest.mark.parametrize(
    ("members", "message"), [([1, 0], "shape"), ([0, 1, 2], "true and false"), (["a"] * 3, "true")]
)
def test_a_mask_that_is_none_is_refused(members: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_members(members, (3,), place="members")  # type: ignore[arg-type]
