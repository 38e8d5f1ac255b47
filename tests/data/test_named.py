from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from glasshouse import InputError
from glasshouse.data.named import adult, digits, load_dataset


def test_a_tenth_of_the_digits_is_wrong_and_it_is_said() -> None:
    data = digits()
    truth = load_digits().target
    assert data.wrong_labels is not None
    assert ((data.population.y != truth) == data.wrong_labels).all()
    assert data.wrong_labels.sum() == 180
    assert "180 of 1797 labels were made wrong on purpose" in data.about


def test_clean_digits_are_clean_and_say_nothing_of_wrong_labels() -> None:
    data = digits(mislabelled=0.0)
    assert (data.population.y == load_digits().target).all()
    assert "wrong" not in data.about
    with pytest.raises(InputError, match="mislabelled"):
        digits(mislabelled=1.0)


def test_an_unknown_name_says_what_is_known() -> None:
    known = "Known: digits, adult, cifar10, cifar100."
    with pytest.raises(InputError, match=rf'"digit" is not a data set. Did you mean "digits"\? {known}$'):
        load_dataset("digit")


def test_missing_files_say_where_to_place_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="Place UCI's adult.data there, or set GLASSHOUSE_DATA"):
        adult()


def test_adult_is_read_from_files_of_its_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up rows of UCI's form: a comment line and full stops in the test file."""
    folder = tmp_path / "adult"
    folder.mkdir()
    row = "{}, Private, 77516, Bachelors, 13, Never-married, Sales, Husband, White, Male, 0, 0, 40, Cuba, {}"
    (folder / "adult.data").write_text("\n".join([row.format(30, "<=50K"), row.format(50, ">50K"), ""]))
    (folder / "adult.test").write_text("|1x3 Cross validator\n" + row.format(40, "<=50K.") + "\n\n")
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    population = adult().population
    assert population.classes.tolist() == ["<=50K", ">50K"]
    assert population.y.tolist() == [0, 1, 0]
    assert population.x[:, 0] == pytest.approx(np.array([-1, 1, 0]) * np.sqrt(1.5))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "adult.data: is damaged, or is not UCI's adult.data .UnicodeDecodeError"),
        (b"," * 14 + b"x" * 200_000 + b"\n", "adult.data: is damaged, or is not UCI's adult.data .Error: field larger"),
        (
            b"nan" + b",1" * 13 + b",a\n1" + b",1" * 13 + b",b\n",
            "NaN or infinite for 2 of 2 records: '0', '1'. Place UCI",
        ),
        (b"", "adult: holds no records"),
        (b"".join(b"%da" % i + b",1" * 13 + b",a\n" for i in range(20_000)), "a feature for each text takes 3.* GiB"),
    ],
)
def test_adult_files_of_another_form_are_refused_in_one_line(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_bytes(content)
    (tmp_path / "adult" / "adult.test").write_text("")
    monkeypatch.setenv("GLASSHOUSE_DATA", str(tmp_path))
    with pytest.raises(InputError, match=message):
        adult()


def test_the_real_adult_has_the_known_counts(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    population = adult().population
    assert len(population) == 48_842
    assert np.bincount(population.y).tolist() == [24_720 + 12_435, 7_841 + 3_846]
    assert len(adult(records=500).population) == 500
