from __future__ import annotations

import pytest
import torch
from torch import Tensor

from glasshouse.training import CropAndFlip


def image_by_image(batch: Tensor, padding: int, random: torch.Generator) -> Tensor:
    """The same draws; then pad, cut out and mirror one image after another."""
    down, right = torch.randint(-padding, padding + 1, (2, len(batch), 1), generator=random)
    mirrored = torch.rand((len(batch), 1), generator=random) < 0.5
    height, width = batch.shape[2:]
    changed = []
    for index, image in enumerate(batch):
        padded = torch.nn.functional.pad(image, (padding,) * 4, mode="reflect")
        top, left = padding + int(down[index]), padding + int(right[index])
        crop = padded[:, top : top + height, left : left + width]
        changed.append(crop.flip(-1) if mirrored[index] else crop)
    return torch.stack(changed)


@pytest.mark.parametrize(("padding", "shape"), [(4, (3, 32, 32)), (2, (1, 6, 9)), (0, (2, 5, 5)), (1, (1, 2, 2))])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_batch_is_cropped_as_image_by_image(
    padding: int, shape: tuple[int, int, int], layout: torch.memory_format
) -> None:
    batch = torch.rand(64, *shape, generator=torch.Generator().manual_seed(0)).contiguous(memory_format=layout)
    changed = CropAndFlip(padding=padding)(batch, torch.Generator().manual_seed(1))
    assert torch.equal(changed, image_by_image(batch, padding, torch.Generator().manual_seed(1)))
    assert not torch.equal(changed, batch)


def test_every_shift_comes_up_and_half_of_the_images_are_mirrored() -> None:
    """Pixels that know their place; the middle of an image is never filled by reflection."""
    places = torch.arange(81.0).reshape(1, 1, 9, 9).expand(2000, 1, 9, 9)
    changed = CropAndFlip(padding=1)(places, torch.Generator().manual_seed(0))[:, 0]
    mirrored = changed[:, 4, 4] > changed[:, 4, 5]
    assert mirrored.double().mean() == pytest.approx(0.5, abs=0.05)
    assert set(changed[:, 4, 4].tolist()) == {float(9 * row + column) for row in (3, 4, 5) for column in (3, 4, 5)}
