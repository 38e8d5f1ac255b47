"""A picture of the embedded default's report, for the README and the manual: ``make screenshots``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.report.browser import browser, missing

IMAGES = Path(__file__).parents[1] / "images"
LARGEST = 300_000  # bytes


def main(report: Path) -> None:
    """Photograph the top of a report."""
    if (reason := missing()) is not None:
        sys.exit(f"No screenshots: {reason}")
    place = IMAGES / "report.png"
    IMAGES.mkdir(exist_ok=True)
    with browser() as opened:
        page = opened.new_context(viewport={"width": 1060, "height": 948}, color_scheme="light").new_page()
        page.goto(report.resolve().as_uri())
        page.screenshot(path=place)
    if (size := place.stat().st_size) > LARGEST:
        sys.exit(f"{place}: {size} bytes are too many for a README.")
    print(f"{place}: {size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
