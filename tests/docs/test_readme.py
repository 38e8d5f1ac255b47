"""The README: short, its lines run as they stand with the output that it shows, and no link leads nowhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.manual import PAGES, ROOT

README = (ROOT / "README.md").read_text()


def test_it_has_at_most_600_words() -> None:
    assert len(README.split()) <= 600


def test_its_lines_run_alone_in_an_empty_folder_and_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})  # noqa: S102 (our own README)
    assert said.getvalue().replace("\N{NO-BREAK SPACE}", " ") == shown
    assert (tmp_path / "runs" / "digits" / "report.html").is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_of_a_page_leads_nowhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if not re.match(r"https?://|#", link):
            assert (page.parent / link.split("#")[0]).exists(), f"{page.name}: {link}"
