from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.report.pictures.axes import Axis, Frame, element

SPANS = st.tuples(st.floats(1e-4, 1e3), st.floats(1.5, 1e4)).map(lambda pair: (pair[0], pair[0] * pair[1]))


@given(span=SPANS, log=st.booleans())
def test_ticks_lie_inside_the_range_rise_and_are_few(span: tuple[float, float], log: bool) -> None:
    axis = Axis(*span, log=log)
    values = [value for value, _ in axis.ticks()]
    assert values == sorted(set(values))
    assert all(0.99 * axis.low <= value <= 1.01 * axis.high for value in values)
    assert len(values) <= 12


@given(span=SPANS, log=st.booleans(), share=st.floats(0, 1))
def test_places_run_from_one_end_to_the_other_and_values_outside_lie_at_the_ends(
    span: tuple[float, float], log: bool, share: float
) -> None:
    axis = Axis(*span, log=log)
    value = axis.low * (axis.high / axis.low) ** share if log else axis.low + share * (axis.high - axis.low)
    assert axis.share(value) == pytest.approx(share, abs=1e-6)
    assert (axis.share(axis.low / 2), axis.share(2 * axis.high)) == (0.0, 1.0)


def test_percentages_are_written_as_people_read_them() -> None:
    assert [text for _, text in Axis(0.001, 1.0, log=True, percent=True).ticks()] == ["0.1 %", "1 %", "10 %", "100 %"]


def test_up_is_up_and_a_step_keeps_its_value_until_the_next() -> None:
    frame = Frame(Axis(0.0, 1.0), Axis(0.0, 1.0), 120.0, 100.0, left=10, right=10, top=10, bottom=10)
    assert (frame.px(0.0), frame.px(1.0), frame.py(0.0), frame.py(1.0)) == (10.0, 110.0, 90.0, 10.0)
    assert frame.steps([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]) == "M10.0 90.0H60.0V50.0H110.0V10.0"


def test_a_grid_has_names_only_where_they_are_given() -> None:
    frame = Frame(Axis(0.0, 1.0), Axis(0.0, 1.0), 120.0, 100.0)
    assert "rotate" not in "".join(frame.grid("x"))
    assert "rotate" in "".join(frame.grid("x", "y"))
    assert len(frame.grid("x", y_ticks=False)) < len(frame.grid("x"))


def test_what_comes_from_outside_is_escaped() -> None:
    assert element("text", "<script>", css='"><b') == '<text class="&#34;&gt;&lt;b">&lt;script&gt;</text>'
