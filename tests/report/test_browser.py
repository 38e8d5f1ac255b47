"""The report in real headless Chromium."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import Evaluation, Evidence, audit_evidence
from glasshouse.report import Surroundings, compare, render_comparison
from tests.report.browser import browser, missing
from tests.strategies import PAPER, gaussian_evidence

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
PAGES = ("report.html", "compare.html")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a graph with hostile ids, and a comparison, on disk."""
    folder = tmp_path_factory.mktemp("pages")
    evidence, members = gaussian_evidence(records=1000, models=8, shift=2.0, seed=0)
    named = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=[f"{HOSTILE}{number}" for number in range(1000)],
    )
    result = audit_evidence(named, members=members, attacks=PAPER, evaluation=Evaluation(fprs=[0.01]))
    labels = np.array([("cat", "dog", f"bird {HOSTILE}")[number % 3] for number in range(1000)])
    edges = np.random.default_rng(0).integers(1000, size=(2, 3000))
    around = Surroundings(edges, members=members, labels=labels, nodes=np.arange(1000))
    context = dataclasses.replace(result.context, test_accuracy=0.8, train_accuracy=0.95)
    result = dataclasses.replace(result, labels=labels, surroundings=around, context=context)
    result.report(folder / "report.html")
    comparison = compare({"plain": result, HOSTILE: result})
    (folder / "compare.html").write_text(render_comparison(comparison))
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


class Visit:
    """A page with everything that it said and asked for."""

    def __init__(self, chromium: Any, path: Path, **options: Any) -> None:
        self.context = chromium.new_context(**({"viewport": {"width": 1100, "height": 900}} | options))
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.locator(selector).all_inner_texts()
        return found


@pytest.mark.parametrize("name", PAGES)
def test_the_page_opens_from_disk_without_an_error_and_asks_for_nothing(chromium: Any, pages: Path, name: str) -> None:
    visit = Visit(chromium, pages / name)
    visit.page.wait_for_timeout(200)
    assert visit.said == []
    assert visit.asked == [(pages / name).as_uri()]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_roc_is_visible(chromium: Any, pages: Path, name: str, scheme: str) -> None:
    visit = Visit(chromium, pages / name, color_scheme=scheme)
    picture = visit.page.locator("svg.roc")
    assert picture.is_visible()
    box = picture.bounding_box()
    assert box["width"] > 400
    assert box["height"] > 300
    strokes = [path.evaluate("path => getComputedStyle(path).stroke") for path in picture.locator("path.curve").all()]
    paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert strokes
    assert paper not in strokes
    assert "none" not in strokes


def test_a_click_on_a_head_sorts_and_a_second_one_turns_the_order(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html")
    head = visit.page.locator("#top thead th", has_text="degree")
    column = 1 + visit.texts("#top thead th").index(head.inner_text())
    cells = f"#top tbody td:nth-child({column})"
    before = [int(text) for text in visit.texts(cells)]
    head.get_by_role("button").click()
    assert [int(text) for text in visit.texts(cells)] == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert [int(text) for text in visit.texts(cells)] == sorted(before, reverse=True)
    assert visit.said == []


def test_a_class_and_a_text_filter_the_records(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html")
    visible = "#top tbody tr:visible"
    assert visit.page.locator(visible).count() == 10
    visit.page.locator(".tools select").select_option("dog")
    dogs = visit.page.locator(visible).count()
    assert 10 < dogs < 100  # what is looked for may be below the first ten
    assert set(visit.texts(f"{visible} td:nth-child(2)")) == {"dog"}
    assert visit.texts(".tools output") == [f"{dogs} of 100 shown"]
    visit.page.locator(".tools input").fill("no record reads like this")
    assert visit.page.locator(visible).count() == 0
    visit.page.locator(".tools input").fill("")
    visit.page.locator(".tools select").select_option(f"bird {HOSTILE}")
    assert 0 < visit.page.locator(visible).count() < 100
    visit.page.locator(".tools select").select_option("all")
    assert visit.page.locator(visible).count() == 100


def test_any_record_is_found_by_its_id_with_the_keyboard_alone(chromium: Any, pages: Path) -> None:
    """Also those that the list of the first 100 does not show."""
    visit = Visit(chromium, pages / "report.html")
    found, said = visit.page.locator("#found"), visit.page.locator("#find output")
    assert not found.is_visible()
    visit.page.locator(".tools select").focus()
    visit.page.keyboard.press("Tab")
    for _ in range(40):  # the heads that sort lie between
        if visit.page.evaluate("document.activeElement.closest('#find') !== null"):
            break
        visit.page.keyboard.press("Tab")
    visit.page.keyboard.type(">99")
    ids = visit.texts("#found tbody td:first-child")
    assert {f"{HOSTILE}99", *(f"{HOSTILE}{number}" for number in range(990, 1000))} == set(ids)
    assert said.inner_text() == "11 of 1000 fit"
    assert visit.texts("#found th")[:3] == ["id", "class", "member"]
    visit.page.locator("#find input").fill(f"{HOSTILE}99")
    assert visit.texts("#found tbody td:first-child")[0] == f"{HOSTILE}99", "the exact one goes first"
    visit.page.locator("#find input").fill("img")
    assert visit.page.locator("#found tbody tr").count() == 50
    assert said.inner_text() == "1000 of 1000 fit; the first 50 are shown"
    visit.page.locator("#find input").fill("nobody")
    assert not found.is_visible()
    assert said.inner_text() == "0 of 1000 fit"
    assert visit.said == []


@pytest.mark.parametrize("name", PAGES)
def test_with_scripts_off_the_tables_still_read(chromium: Any, pages: Path, name: str) -> None:
    visit = Visit(chromium, pages / name, java_script_enabled=False)
    assert visit.page.locator("svg.roc").is_visible()
    assert visit.page.locator("th button").count() == 0
    text = visit.page.locator("main").inner_text()
    assert "TPR at 1 % FPR" in text
    assert "lira" in text
    if name == "report.html":
        assert visit.page.locator("#top tbody tr:visible").count() == 10
        visit.page.locator("#all-records").check()
        assert visit.page.locator("#top tbody tr:visible").count() == 100
        assert not visit.page.locator(".tools").is_visible()
        assert not visit.page.locator("#find").is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_hostile_strings_show_as_text(chromium: Any, pages: Path, name: str) -> None:
    visit = Visit(chromium, pages / name)
    visit.page.wait_for_timeout(200)
    assert "owned" not in visit.page.title()
    assert visit.page.locator("img").count() == 0
    assert visit.page.locator("script").count() == 1
    assert HOSTILE in visit.page.locator("main").inner_text()
    assert visit.said == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [375, 768, 1440])
def test_no_width_scrolls_sideways(chromium: Any, pages: Path, name: str, width: int) -> None:
    visit = Visit(chromium, pages / name, viewport={"width": width, "height": 800})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.page.evaluate("document.body.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_no_table_is_cut_at_1280_and_a_hint_says_where_one_is_at_390(chromium: Any, pages: Path, name: str) -> None:
    cut = """[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1
        && !one.querySelector('#top')).map(one => one.getAttribute('aria-label'))"""  # the hostile ids are long
    unfolded = "document.querySelectorAll('details').forEach(one => { one.open = true })"
    wide = Visit(chromium, pages / name, viewport={"width": 1280, "height": 900})
    wide.page.evaluate(unfolded)
    assert wide.page.evaluate(cut) == []
    narrow = Visit(chromium, pages / name, viewport={"width": 390, "height": 900})
    narrow.page.evaluate(unfolded)
    narrow.page.wait_for_timeout(200)
    assert narrow.page.evaluate(cut)
    hints = narrow.page.locator(".scroll + .hint:visible").count()
    assert hints == narrow.page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth > s.clientWidth + 1).length"
    )


def test_labels_of_pictures_can_be_read_at_390(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html", viewport={"width": 390, "height": 900})
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    sizes = visit.page.evaluate("""[...document.querySelectorAll('svg.plot text')].map(text =>
        parseFloat(getComputedStyle(text).fontSize) * text.closest('svg').getScreenCTM().a)""")
    assert sizes
    assert min(sizes) >= 10


def test_one_picture_alone_is_not_a_giant(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html", viewport={"width": 1280, "height": 900})
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    widths = visit.page.evaluate("""[...document.querySelectorAll('.many')].map(many => {
        [...many.children].slice(1).forEach(one => one.remove());
        return many.children[0].getBoundingClientRect().width})""")
    assert widths
    assert max(widths) < 500


def test_the_crowds_are_drawn_in_every_colour_scheme(chromium: Any, pages: Path) -> None:
    for scheme in ("light", "dark"):
        visit = Visit(chromium, pages / "report.html", color_scheme=scheme)
        paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        fills = {
            kind: visit.page.locator(f"svg.people .one.{kind}").first.evaluate("one => getComputedStyle(one).fill")
            for kind in ("found", "rest")
        }
        assert len({paper, *fills.values()}) == 3


def test_it_prints(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html")
    visit.page.emulate_media(media="print")
    assert not visit.page.locator("nav").is_visible()
    assert visit.page.locator("svg.roc").is_visible()
    wide = visit.page.evaluate(
        "[...document.querySelectorAll('table')].filter(t => t.scrollWidth > t.parentElement.clientWidth + 1).length"
    )
    assert wide == 0
    assert visit.page.pdf(format="A4").startswith(b"%PDF")


def test_the_sheet_is_one_page_of_paper(chromium: Any, tmp_path: Path) -> None:
    evidence, members = gaussian_evidence(records=1500, models=8, shift=2.0, seed=1)
    columns = {"sex": np.where(np.arange(1500) % 3 == 0, "a", "b"), "age": np.arange(1500) % 70}
    result = audit_evidence(evidence, members=members, attacks=PAPER, evaluation=Evaluation(groups=columns))
    result.report(tmp_path / "report.html")
    millimetre = 96 / 25.4
    size = {"width": round(186 * millimetre), "height": round(269 * millimetre)}  # A4 without our margins
    visit = Visit(chromium, tmp_path / "report.html", viewport=size)
    visit.page.emulate_media(media="print")
    box = visit.page.locator(".sheet").bounding_box()
    assert box["y"] + box["height"] <= size["height"]


def test_sections_are_folded_and_open_when_they_are_linked_to_or_printed(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html")
    folded = visit.page.locator("details.section:not([open])")
    before = folded.count()
    assert before >= 4
    assert not visit.page.locator("dl.glossary").is_visible()
    visit.page.locator("nav a", has_text="Glossary").click()
    visit.page.wait_for_timeout(100)
    assert visit.page.locator("dl.glossary").is_visible()
    assert folded.count() == before - 1
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    quiet = Visit(chromium, pages / "report.html", java_script_enabled=False)
    quiet.page.emulate_media(media="print")
    assert quiet.page.locator("dl.glossary dt").first.bounding_box()["height"] > 5


def test_the_curves_tell_their_figures_where_a_reader_points(chromium: Any, pages: Path) -> None:
    visit = Visit(chromium, pages / "report.html")
    told = visit.page.locator("svg.roc .told title").all_text_contents()
    assert len(told) > 10
    assert all(re.match(r"at a false-positive rate of [\d.]+ %\n.*: [\d.]+ %", one) for one in told)
    rates = [float(one.split(":")[1].split("%")[0]) for one in told]
    assert rates == sorted(rates)


@pytest.mark.skipif(not importlib.util.find_spec("axe_playwright_python"), reason="axe-playwright-python is missing")
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(chromium: Any, pages: Path, name: str, scheme: str) -> None:
    import axe_playwright_python

    visit = Visit(chromium, pages / name, color_scheme=scheme, bypass_csp=True)  # axe is a script of its own
    visit.page.add_script_tag(path=str(Path(axe_playwright_python.__file__).parent / "axe.min.js"))
    found = visit.page.evaluate("axe.run()")
    faults = [
        f"{fault['id']} ({fault['impact']}): {fault['help']}: {fault['nodes'][0]['html'][:200]}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert faults == []
    assert len(found["passes"]) > 10
