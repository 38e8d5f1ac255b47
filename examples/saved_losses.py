"""Audit from losses alone: what was saved elsewhere is read back by id, scored and reported."""

import tempfile
from pathlib import Path

import numpy as np

from glasshouse import Evidence, audit_evidence, complementary_halves, read_evidence, write_evidence

random = np.random.default_rng(0)
members = complementary_halves(2000, models=10, seed=0)  # of eight shadow models, the target, and a spare one
margin = random.normal(size=2000) + 1.5 * members + random.normal(size=members.shape)
loss = np.logaddexp(0.0, -margin)

with tempfile.TemporaryDirectory() as folder:
    made = Evidence(target_loss=loss[8], shadow_loss=loss[:8], shadow_members=members[:8])
    path = write_evidence(Path(folder) / "losses.npz", made, members=members[8])
    found = read_evidence(path)
    result = audit_evidence(found.evidence, members=found.members)
    print(result.table())
    print("\nReport:", result.report(Path(folder) / "report.html").stat().st_size, "bytes")
