from __future__ import annotations

import pytest

from glasshouse import InputError
from glasshouse.io.limits import as_bytes, check_memory, memory_limit, memory_of


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 2**33), ("500M", 500 * 2**20), ("2.5 gb", 5 * 2**29), (7, 7), ("1kib", 1024)],
)
def test_sizes_are_read_as_people_write_them(text: str | int, size: int) -> None:
    assert as_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1GiB", "GiB", "1e9", "8 apples", "9" * 100, None, 1.5])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a size; write it like 8GiB"):
        as_bytes(text)


def test_the_advice_is_enough_and_the_limit_ends_with_its_block() -> None:
    for needed in (2**30 + 1, 3 * 2**30, 2**33, 10**300):
        with pytest.raises(InputError, match="--memory") as caught:
            check_memory(needed, place="f", what="it takes")
        advice = str(caught.value).partition("--memory ")[2].partition(",")[0]
        if needed < 2**60:
            with memory_limit(advice):
                check_memory(needed, place="f", what="it takes")
    assert memory_of(10**300).startswith("more than a million")
