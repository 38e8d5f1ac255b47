"""Text from outside, made safe to show: ids, names of files and cells of tables may hold anything."""

from __future__ import annotations

import re

__all__ = ["cell_text", "plain_cell", "visible"]

# Control characters, which a terminal obeys; marks that turn the direction of text, or end a line; and halves of
# characters, which stand for bytes of a file name that are no UTF-8 and cannot be written out.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def visible(text: object) -> str:
    r"""A text in one line that a terminal only shows: what it would obey is written as an escape.

    Example:
        >>> visible("anna\x1b[2Jberta")
        'anna\\x1b[2Jberta'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), str(text))


def cell_text(text: str) -> str:
    """A cell of a CSV file that a spreadsheet shows as text: what it would take for a formula gets a leading ``'``.

    Numbers, such as an id ``-5``, are not changed. `plain_cell` gives the text back.

    Example:
        >>> cell_text("=HYPERLINK(A1)"), cell_text("-5"), cell_text("anna")
        ("'=HYPERLINK(A1)", '-5', 'anna')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain_cell(cell: str) -> str:
    """The text that `cell_text` was given.

    Example:
        >>> plain_cell("'=HYPERLINK(A1)"), plain_cell("'quoted'")
        ('=HYPERLINK(A1)', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
