from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from glasshouse import audit_evidence
from glasshouse.report import Summary
from glasshouse.report.appendix import Appendix, literal, render_appendix, render_appendix_markdown
from tests.strategies import gaussian_evidence

markdown: Any = pytest.importorskip("markdown", reason="the extra `docs` is not installed")
COMMONMARK = MarkdownIt("commonmark").enable(["table", "strikethrough"])
UGLY = [
    "| a | b |",
    "```\ncode\n```",
    "`x`",
    "<script>alert(1)</script>",
    "<!-- -->",
    "[x](javascript:alert(1))",
    "![x](http://a/b.png)",
    "http://a.b www.a.b a@b.c",
    "1. x",
    "12) x",
    "- x",
    "+ x",
    "---",
    "===",
    "# x",
    "**x** _x_ ~~x~~",
    "&lt;b&gt; &#60;",
    "\\| \\` \\",
    "    four",
    "a\n\n# b",
    "a\u2028b\x00c\x0bd",
    "[x]: http://a",
    "$x$ {: .y } ^a^",
    ": x",
    "a\\",
]


class Seen(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_comment(self, data: str) -> None:
        self.tags.append("comment")

    def handle_data(self, data: str) -> None:
        self.text += data


def examples(test: Callable[..., None]) -> Callable[..., None]:
    for text in UGLY:
        test = example(text=text)(test)
    return test


def words(text: str) -> list[str]:
    return "".join(one if one.isprintable() or one.isspace() else " " for one in text).split()


MADE_OF_MARKS = st.text(
    st.one_of(st.sampled_from("`*_[]()<>|&#~$^!@:.-+=1 \n\\{}\"'/wx"), st.characters()), max_size=30
)


@examples
@given(text=MADE_OF_MARKS)
def test_no_text_becomes_markup_in_a_list_or_a_heading(text: str) -> None:
    """Two readers of Markdown that disagree about much agree that there is an item with this text, and no more."""
    shown = literal(text)
    assert "\n" not in shown
    for render in (COMMONMARK.render, markdown.markdown):
        item = Seen(render(f"- {shown}\n- end\n"))
        assert item.tags == ["ul", "li", "li"]
        assert words(item.text) == [*words(_kept(text)), "end"]
    assert Seen(COMMONMARK.render(f"# A {shown}\n")).tags == ["h1"]


@examples
@given(text=MADE_OF_MARKS)
def test_no_text_breaks_a_table(text: str) -> None:
    table = f"| name | b |\n| --- | --- |\n| x{literal(text)} | end |\n"
    for page in (COMMONMARK.render(table), markdown.markdown(table, extensions=["tables"])):
        seen = Seen(page)
        assert seen.tags == ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"]
        assert words(seen.text) == ["name", "b", *words("x" + " ".join(_kept(text).split(" ")).lstrip()), "end"]


def _kept(text: str) -> str:
    """What should be seen of a text: control characters are white space."""
    return "".join(" " if unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") else one for one in text)


@pytest.fixture(scope="module")
def summary() -> Summary:
    evidence, members = gaussian_evidence(records=200, models=4, shift=2.0, seed=0)
    return audit_evidence(evidence, members=members, attacks=["base"]).summary()


@pytest.mark.parametrize("ugly", ["<img src=x onerror=alert(1)>", "a | b\n\n# c `d` <script>e</script>"])
def test_titles_settings_and_warnings_are_text_in_both_forms(summary: Summary, ugly: str) -> None:
    context = dataclasses.replace(
        summary.context, title=ugly, about=ugly, settings={ugly: ugly}, warnings=(ugly,), versions={"glasshouse": ugly}
    )
    plain = Appendix(summary)
    hostile = Appendix(dataclasses.replace(summary, context=context, left_out={ugly: ugly}))
    page = render_appendix(hostile)
    assert "<img" not in page
    assert "<script>e" not in page
    before, after = (Seen(COMMONMARK.render(render_appendix_markdown(one))) for one in (plain, hostile))
    assert set(after.tags) == set(before.tags)
    assert after.tags.count("h1") == 1
    assert after.tags.count("table") == 1
