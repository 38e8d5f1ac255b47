from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from glasshouse.config import AuditFile, run_audit_file
from glasshouse.report import render_html


def test_an_audit_file_can_ask_for_labels_alone_and_name_its_author(tmp_path: Path) -> None:
    trainer = {"kind": "mlp", "epochs": 1, "hidden": [8]}
    told = {"data": {"name": "digits"}, "trainer": trainer, "attacks": ["base"], "shadows": 2}
    config = AuditFile.model_validate({**told, "answers": "labels", "author": "A. Ndiaye"})
    result = run_audit_file(config, folder=tmp_path, progress=False)
    assert result.context.author == "A. Ndiaye"
    assert result.context.settings["answers"] == "labels alone"
    tried, not_tried = render_html(result.summary()).split("<h3>Tested</h3>")[1].split("<h3>Not tested</h3>")
    assert "sees only the predicted class" in tried
    assert "the model&#39;s confidence" in not_tried.split("</li>")[0]


def test_labels_alone_are_refused_for_a_graph() -> None:
    with pytest.raises(ValidationError, match="labels alone are for records"):
        AuditFile.model_validate({"graph": {}, "answers": "labels"})
