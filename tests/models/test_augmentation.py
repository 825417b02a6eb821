"""Random shifts against a loop that moves one image at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_training.models.augmentation import random_shift, random_shift_bilinear, shifted_windows


def reference(images: torch.Tensor, top: torch.Tensor, left: torch.Tensor, height: int, width: int, pad: int):
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (pad, pad + 1), (pad, pad + 1)), mode="edge")
    windows = [image[:, y : y + height, x : x + width] for image, y, x in zip(padded, top.tolist(), left.tolist())]
    return torch.from_numpy(np.stack(windows))


@pytest.mark.parametrize("shape", [(6, 3, 10, 14), (81, 1, 5, 5)])
@pytest.mark.parametrize("extra", [0, 1])
def test_windows_match_padding_and_slicing(shape: tuple[int, ...], extra: int) -> None:
    pad = 4
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    every = torch.cartesian_prod(torch.arange(2 * pad + 1), torch.arange(2 * pad + 1))
    top, left = every[torch.randperm(len(every))[: shape[0]]].T
    height, width = shape[2] + extra, shape[3] + extra
    got = shifted_windows(images, top, left, height, width, pad)
    assert got.dtype == torch.uint8
    assert torch.equal(got, reference(images, top, left, height, width, pad))


def test_no_shift_is_the_image_itself() -> None:
    images = torch.randint(0, 256, (3, 2, 8, 9), dtype=torch.uint8)
    centre = torch.full((3,), 4)
    assert torch.equal(shifted_windows(images, centre, centre, 8, 9, 4), images)


def test_shifts_differ_between_images_and_reach_both_ends() -> None:
    ramp = torch.arange(40, dtype=torch.uint8).view(1, 1, 1, 40).expand(2000, 1, 40, 40).contiguous()
    column = random_shift(ramp, pad=4)[:, 0, 20, 20].int() - 20
    assert sorted(column.unique().tolist()) == list(range(-4, 5))
    assert abs(column.float().mean()) < 0.3  # centred: a deviation of 2.6 / √2000 = 0.06


def test_bilinear_shift_of_a_ramp_is_the_ramp_moved_by_a_fraction() -> None:
    ramp = torch.arange(40, dtype=torch.uint8).view(1, 1, 1, 40).expand(500, 2, 40, 40).contiguous()
    shifted = random_shift_bilinear(ramp, pad=4)
    assert shifted.shape == ramp.shape
    inner = shifted[:, :, :, 4:-4]
    torch.testing.assert_close(inner.diff(dim=-1), torch.ones_like(inner.diff(dim=-1)), atol=1e-4, rtol=0)
    moved = shifted[:, 0, 20, 20] - 20
    assert moved.min() < -3.5
    assert moved.max() > 3.5
    assert (moved - moved.round()).abs().max() > 0.2  # by fractions
    assert shifted.min() >= 0
    assert shifted.max() <= 39


def test_bilinear_shift_moves_rows_and_columns_by_their_own_fraction() -> None:
    along = torch.arange(30, dtype=torch.uint8)
    columns = along.view(1, 1, 1, 30).expand(50, 1, 30, 30).contiguous()
    rows = along.view(1, 1, 30, 1).expand(50, 1, 30, 30).contiguous()
    moved = []
    for ramp in (rows, columns):
        torch.manual_seed(4)
        moved.append(random_shift_bilinear(ramp, pad=2)[:, 0, 15, 15] - 15)
    torch.manual_seed(4)
    drawn = torch.rand(2, 50) * 4 - 2
    torch.testing.assert_close(torch.stack(moved), drawn, atol=1e-4, rtol=0)


def test_seed_decides_the_shift() -> None:
    images = torch.randint(0, 256, (4, 1, 12, 12), dtype=torch.uint8)
    torch.manual_seed(3)
    first = random_shift(images)
    torch.manual_seed(3)
    assert torch.equal(random_shift(images), first)
