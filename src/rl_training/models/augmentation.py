"""Random shifts of images: each image of a batch moves by its own few pixels, its border repeated.

Images are ``(B, C, H, W)``, uint8, values 0..255. `random_shift` moves by whole pixels (DrQ, arXiv:2004.13649),
`random_shift_bilinear` by fractions of a pixel (DrQ-v2, arXiv:2107.09645). Both handle the batch in one gather: the
columns are padded, and each output row is then one run of bytes somewhere in the padded batch.
"""

from __future__ import annotations

import torch
from torch import Tensor


def shifted_windows(images: Tensor, top: Tensor, left: Tensor, height: int, width: int, pad: int) -> Tensor:
    """The window ``height × width`` of each image whose corner lies at ``(top − pad, left − pad)``.

    ``top`` and ``left`` are integers ``(B,)``; rows and columns outside the image repeat its border.
    """
    batch, channels, rows, columns = images.shape
    reach = max(0, pad + width - columns)  # how far a window may hang out on the right
    padded = images.new_empty(batch, channels, rows, columns + pad + reach)
    padded[..., pad : pad + columns] = images
    padded[..., :pad] = images[..., :1]
    padded[..., pad + columns :] = images[..., -1:]

    plane = torch.arange(batch * channels, device=images.device).view(batch, channels, 1) * rows
    row = (top[:, None] - pad + torch.arange(height, device=images.device)).clamp_(0, rows - 1)
    starts = (plane + row[:, None, :]) * padded.shape[-1] + left[:, None, None]
    # Row i of this view is the run of bytes that begins at byte i, so one index_select copies every row at once.
    runs = padded.view(-1).as_strided((padded.numel() - width + 1, width), (1, 1))
    return runs.index_select(0, starts.view(-1)).view(batch, channels, height, width)


def random_shift(images: Tensor, pad: int = 4) -> Tensor:
    """Each image moved by up to ``pad`` whole pixels in both directions; same shape, same type."""
    batch, _, height, width = images.shape
    top, left = torch.randint(0, 2 * pad + 1, (2, batch), device=images.device)
    return shifted_windows(images, top, left, height, width, pad)


def random_shift_bilinear(images: Tensor, pad: int = 4, dtype: torch.dtype = torch.float32) -> Tensor:
    """Each image moved by up to ``pad`` pixels in both directions, interpolated; values 0..255 in ``dtype``."""
    batch, _, height, width = images.shape
    offsets = torch.rand(2, batch, device=images.device) * (2 * pad)
    whole = offsets.floor()
    top, left = whole.long()
    down, right = (offsets - whole).to(dtype).view(2, batch, 1, 1, 1)
    windows = shifted_windows(images, top, left, height + 1, width + 1, pad)
    windows = windows.contiguous(memory_format=torch.channels_last).to(dtype)
    windows = torch.lerp(windows[:, :, :-1], windows[:, :, 1:], down)
    return torch.lerp(windows[..., :-1], windows[..., 1:], right)
