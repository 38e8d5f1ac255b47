from __future__ import annotations

import torch

from glasshouse.training import CropAndFlip


def test_every_image_is_a_shift_or_a_mirrored_shift_of_itself() -> None:
    """Against every crop of the padded image, written out."""
    batch = torch.rand(16, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    changed = CropAndFlip(padding=2)(batch, torch.Generator().manual_seed(1))
    padded = torch.nn.functional.pad(batch, (2, 2, 2, 2), mode="reflect")
    kinds = set()
    for original, image in zip(padded, changed, strict=True):
        crops = {
            (row, column, mirrored): crop.flip(-1) if mirrored else crop
            for row in range(5)
            for column in range(5)
            for crop in [original[:, row : row + 6, column : column + 6]]
            for mirrored in (False, True)
        }
        found = [kind for kind, crop in crops.items() if torch.equal(crop, image)]
        assert found
        kinds.add(found[0])
    assert len(kinds) > 8
