"""Perplexities, surprising tokens and extraction, worked out by hand; and in a report, words only if wanted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import Evaluation, Evidence, audit_evidence
from glasshouse.data import complementary_halves
from glasshouse.evaluation.texts import TextLeak, text_leak
from glasshouse.evidence import PartLosses
from glasshouse.report.html import render_html
from glasshouse.report.json_io import metrics_json, run_json, summary_from
from glasshouse.report.redaction import Redactor, redacted_summary
from glasshouse.report.terminal import summary_text


def two_texts(**details: Any) -> Evidence:
    """Of eight and four tokens; the target and the first shadow model know the first, the other model the second."""
    loss = np.array([[1, 1, 3, 1, 1, 2, 1, 1, 0, 1, 1, 1], [1, 1, 3, 1, 1, 2, 1, 1, 2, 2, 2, 2]], np.float32)
    target = np.array([1, 1, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2], np.float32)
    right = np.array(
        [[0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1], [1] * 8 + [0, 1, 0, 1], [1, 1, 1, 0, 1, 1, 1, 1] + [1] * 4], np.float32
    )
    told = {"compressed": np.zeros((1, 12), np.float32), "right": right} | details
    parts = PartLosses(target=target, shadow=loss, offsets=np.array([0, 8, 12]), details=told)
    sums = parts.sums()
    return Evidence(
        target_loss=sums[0], shadow_loss=sums[1:], shadow_members=[[1, 0], [0, 1]], ids=["long", "short"], parts=parts
    )


def test_figures_worked_out_by_hand() -> None:
    found = text_leak(two_texts(), members=np.array([True, False]), listed=np.array([1, 0]), mode="online")
    assert found is not None
    assert found.perplexities == pytest.approx((np.exp(7 / 8), np.exp(2)))
    # of the long text two tokens are its beginning, then three are right; the second model, which never saw it, has one
    assert found.extraction is not None
    assert found.extraction.by_target == pytest.approx(3 / 6)
    assert found.extraction.by_others == pytest.approx(1 / 6)
    assert found.whole == (0, 0.0)
    short, long = found.texts
    assert (short.id, short.tokens, short.extraction) == ("short", 4, dataclasses.replace(
        found.extraction, by_target=1.0, by_others=pytest.approx(1 / 3)))  # fmt: skip
    # the target's third token: 3 instead of 0; its sixth: 2 instead of 1
    assert long.surprising == (2,)
    sentences = list(found.sentences())
    assert "as unsure as among 2.4 equally likely ones in texts of members, and among 7.4" in sentences[0]
    assert "continues 50.0 % of the rest word for word, and 0 of 1 texts" in sentences[1]
    assert "never saw a text 16.7 %, and 0.0 texts" in sentences[1]


def test_models_that_saw_a_text_do_not_count_and_half_of_the_evidence_is_marked() -> None:
    evidence = dataclasses.replace(two_texts(), shadow_members=np.array([[0, 1], [1, 0]]))
    found = text_leak(evidence, members=np.array([True, False]), listed=np.array([0]), mode="offline")
    assert found is not None
    assert found.extraction is not None
    assert found.extraction.by_others == 1.0
    assert found.whole == (0, 1.0)
    everyone = dataclasses.replace(evidence, shadow_members=np.ones((2, 2)))
    alone = text_leak(everyone, members=np.array([True, False]), listed=np.array([0]), mode="offline")
    assert alone is not None
    assert alone.extraction is not None
    assert (alone.extraction.by_others, alone.whole, alone.texts[0].surprising) == (None, (0, None), ())
    assert "shadow models" not in " ".join(alone.sentences())


def test_what_is_no_text_or_has_no_details_is_left_out() -> None:
    parts = two_texts().parts
    assert parts is not None
    plain = dataclasses.replace(two_texts(), parts=dataclasses.replace(parts, details={}))
    assert text_leak(plain, members=None, listed=np.array([0])) is None
    short = {"compressed": np.zeros((1, 12), np.float32)}
    bare = dataclasses.replace(two_texts(), parts=dataclasses.replace(parts, details=short))
    found = text_leak(bare, members=None, listed=np.array([0]))
    assert found is not None
    assert (found.perplexities, found.extraction, found.texts[0].extraction) == (None, None, None)
    assert list(found.sentences()) == []


def leaking(records: int = 60) -> tuple[Evidence, np.ndarray]:
    random = np.random.default_rng(0)
    shadow_members = complementary_halves(records, models=4, seed=0)
    members = np.vstack([random.random(records) < 0.5, shadow_members])
    loss = (random.gamma(4.0, 0.5, size=(5, 4 * records)) - np.repeat(members, 4, axis=1)).clip(0.01)
    told = {"compressed": np.ones((1, 4 * records)), "right": random.random((5, 4 * records)) < 0.5}
    parts = PartLosses(
        target=loss[0].astype(np.float32),
        shadow=loss[1:].astype(np.float32),
        offsets=4 * np.arange(records + 1),
        details={name: values.astype(np.float32) for name, values in told.items()},
    )
    sums, ids = parts.sums(), [f"letter{at}" for at in range(records)]
    held = {"target_loss": sums[0], "shadow_loss": sums[1:], "shadow_members": shadow_members}
    return Evidence(**held, ids=ids, parts=parts), members[0]


def test_a_report_shows_words_only_if_they_are_given_and_not_redacted(tmp_path: Path) -> None:
    evidence, members = leaking()
    words = [[f"w{at}", *(f"<{at}-{place}>" for place in range(4))] for at in range(60)]
    kept = {}
    for name, given in (("plain", None), ("shown", words)):
        kept[name] = result = audit_evidence(
            evidence, members=members, attacks=["base-parts"], evaluation=Evaluation(fprs=[0.1], words=given)
        )
        summary = result.summary()
        page, text = render_html(summary), summary_text(summary)
        assert isinstance(summary.texts, TextLeak)
        assert len(summary.texts.texts) == 20
        first = str(summary.top_records["id"][0])
        assert summary.texts.texts[0].id == first
        assert "What the model knows by heart" in page
        assert ("<mark>&lt;" in page, "■" in page) == (name == "shown", name == "plain")
        number = first.removeprefix("letter")
        assert (f"<{number}-" in text, "■□" in text or "□■" in text) == (name == "shown", name == "plain")
        assert "Perplexity: at each token" in text
        assert "perplexity" in page
        again = summary_from(json.loads(json.dumps(metrics_json(summary))), run_json(summary))
        assert again.texts == summary.texts
    redactor = Redactor(bytes(32))
    hidden = redacted_summary(kept["shown"].summary(), redactor, evidence.ids.tolist()).texts
    other = kept["shown"].redacted(redactor).summary().texts
    for found in (hidden, other):
        assert found is not None
        assert {one.words for one in found.texts} == {()}
        assert found.texts[0].id == redactor.hash(kept["shown"].summary().texts.texts[0].id)  # type: ignore[union-attr]
    saved = kept["plain"].save(tmp_path / "run")
    assert "<0-0>" not in (saved / "report.html").read_text()
