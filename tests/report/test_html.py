from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from glasshouse import Evaluation, Evidence, PrivacyClaim, audit_evidence
from glasshouse.report import render_html
from tests.strategies import PAPER, gaussian_evidence


def page(ids: list[str] | None = None, *, known: bool = True) -> str:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    evidence = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=ids,
    )
    result = audit_evidence(
        evidence,
        members=members if known else None,
        attacks=PAPER,
        title="A <b>bold</b> title",
        evaluation=Evaluation(claim=PrivacyClaim(epsilon=0.1)),
    )
    return render_html(result.summary(), searched=result.records())


def test_hostile_ids_and_titles_are_shown_as_text() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    text = page([f"{hostile}{i}" for i in range(400)])
    assert "<img" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<b>bold" not in text


def test_every_record_of_a_leak_can_be_searched_and_a_page_without_a_leak_lists_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=["base"])
    text = render_html(result.summary(), searched=result.records())
    content = re.findall(r'<template id="searched">(.*?)</template>', text, flags=re.DOTALL)
    found = json.loads(html.unescape(content[0]))
    assert found["heads"] == ["id", "member", "base score", "base rank"]
    records = result.records()
    by_id = {row["id"]: row for row in records.rows()}
    assert {row[0] for row in found["rows"]} == by_id.keys()
    for name, member, score, rank in found["rows"]:
        assert member == ("yes" if by_id[name]["member"] else "no")
        assert float(score) == pytest.approx(by_id[name]["base_score"], rel=1e-3)
        assert int(rank) == by_id[name]["base_rank"]
    assert [int(row[-1]) for row in found["rows"]] == sorted(records["base_rank"].tolist()), "most at risk first"
    assert 'id="searched"' not in render_html(result.summary())
    monkeypatch.setattr("glasshouse.report.html.MOST_SEARCHED", 399)
    text = render_html(result.summary(), searched=result.records())
    assert 'id="searched"' not in text
    assert "a page with more than 399 would be too large" in text
    null, members = gaussian_evidence(records=400, models=8, shift=0.0, seed=0)
    nothing = audit_evidence(null, members=members, attacks=["base"])
    assert 'id="searched"' not in render_html(nothing.summary(), searched=nothing.records())


def test_the_page_needs_no_network_and_only_its_own_script() -> None:
    text = page()
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == text.count("<script") == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    assert not re.search(r"\son\w+\s*=", text)
    assert len(text) < 1_000_000


def test_every_part_of_the_report_is_there() -> None:
    text = page()
    for part in ("roc", "attacks", "thresholds", "scores", "calibration", "privacy", "records", "cost", "repeat"):
        assert f'id="{part}"' in text
    assert "base: simulated targets do not find them calibrated" in text
    assert "queries in total" in text
    assert text.count('class="hist member"') == 3


def test_every_tag_is_closed() -> None:
    class Balance(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in {"meta", "br", "img", "input"}:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if self.open and self.open[-1] == tag:
                self.open.pop()

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            return

    parser = Balance()
    parser.open = []
    parser.feed(page())
    assert parser.open == []


@pytest.mark.parametrize("known", [True, False])
def test_the_verdict_and_the_claim_are_on_the_page(known: bool) -> None:
    text = page(known=known)
    assert ("is contradicted" in text) is known
    assert ("nothing is measured" in text) is not known
    assert ("TPR at" in text.split('id="glossary"')[0]) is known


def test_numbers_that_are_not_there_do_not_break_the_page() -> None:
    evidence = Evidence(
        target_loss=np.ones(6), shadow_loss=np.ones((2, 6)), shadow_members=[[1, 0] * 3, [0, 1] * 3], labels=[0, 1] * 3
    )
    text = render_html(audit_evidence(evidence, members=[1, 0] * 3, attacks=["base"]).summary())
    assert "0.500" in text
