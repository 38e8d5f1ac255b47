"""Text from outside, made safe to show: ids, names of files and cells of tables may hold anything."""

from __future__ import annotations

import re

# Control characters, which a terminal obeys; marks that turn the direction of text, or end a line; and halves of
# characters, which stand for bytes of a file name that are no UTF-8 and cannot be written out.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Also behind spaces and marks that are not seen, and in the wide and small forms of these characters, which some
# programs accept. Where a comma is the decimal sign, programs split cells at semicolons: a formula may follow one too.
_START = "[\\s\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufe00-\ufe0f\ufeff]*"
_START += "[=+\\-@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
_FORMULA = re.compile(f"'*{_START}.", re.DOTALL)
_NEXT_CELL = re.compile(f";(?=['\"]*{_START})")
_ESCAPE = "\\"
_CODE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|[nrt\\])")
_MEANT = {"n": "\n", "r": "\r", "t": "\t", _ESCAPE: _ESCAPE}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def visible(text: object) -> str:
    """A text in one line that a terminal only shows: what it would obey is written as an escape."""
    return _UNSEEN.sub(_escaped, str(text))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode()


def cell_text(text: str) -> str:
    r"""A cell of a CSV file that programs only show; `plain_cell` gives the text back.

    What a spreadsheet would take for a formula gets a leading ``'``; numbers, such as an id ``-5``, are not changed. A
    text with control characters, or with a formula behind a semicolon, has escapes behind a leading backslash.
    """
    if _UNSEEN.search(text) or _NEXT_CELL.search(text) or text.startswith(_ESCAPE):
        escaped = _UNSEEN.sub(_escaped, text.replace(_ESCAPE, 2 * _ESCAPE))
        return _ESCAPE + _NEXT_CELL.sub(lambda _: r"\x3b", escaped)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain_cell(cell: str) -> str:
    """The text that `cell_text` was given."""
    if cell.startswith(_ESCAPE):
        return _CODE.sub(lambda found: _MEANT.get(found[1]) or chr(int(found[1][1:], 16)), cell[1:])
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
