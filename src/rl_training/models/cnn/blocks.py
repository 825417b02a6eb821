"""A first convolution of stride 4, computed on blocks of 4×4 pixels instead of on pixels.

Images are ``(B, C, H, W)`` in uint8. The same numbers as blocks are ``(B, 16·C, H/4, W/4)``: a channel for each pixel
of a block, in the order channel, row, column, last in memory. A kernel of 8 with stride 4 sees two by two whole
blocks, so on blocks it is a kernel of 2 with stride 1 whose weights are the same ones in another order. Two things
are gained: the four bytes of a block's row move as one word, which halves the cost of laying channels last, and
matrix units that idle on three channels are busy with 48. Blocks keep the values 0..255, which bfloat16 holds exactly;
the division by 255 goes into the few weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

BLOCK = 4
WORD = torch.int32  # as wide as a block's row of bytes


def reads_blocks(first: nn.Module, images: Tensor) -> bool:
    """Whether ``first`` on these images is a convolution on whole blocks."""
    if not isinstance(first, nn.Conv2d) or first.stride != (BLOCK, BLOCK) or first.padding != (0, 0):
        return False
    plain = first.dilation == (1, 1) and first.groups == 1
    return plain and all(size % BLOCK == 0 for size in (*first.kernel_size, *images.shape[-2:]))


def in_blocks(images: Tensor, dtype: torch.dtype) -> Tensor:
    """Images of uint8 as blocks in ``dtype``."""
    batch, channels, height, width = images.shape
    rows, columns = height // BLOCK, width // BLOCK
    words = images.contiguous().view(WORD).view(batch, channels, rows, BLOCK, columns)
    blocks = words.permute(0, 2, 4, 1, 3).contiguous().view(torch.uint8)
    return blocks.view(batch, rows, columns, channels * BLOCK**2).permute(0, 3, 1, 2).to(dtype)


def block_weight(weight: Tensor) -> Tensor:
    """The weights ``(O, C, 4·m, 4·n)`` for pixels in [0, 1] as ``(O, 16·C, m, n)`` for blocks of 0..255."""
    outputs, channels, height, width = weight.shape
    high, wide = height // BLOCK, width // BLOCK
    split = (weight / 255.0).reshape(outputs, channels, high, BLOCK, wide, BLOCK)
    return (
        split.permute(0, 1, 3, 5, 2, 4)
        .reshape(outputs, channels * BLOCK**2, high, wide)
        .contiguous(memory_format=torch.channels_last)
    )


def first_layer(first: nn.Module, inputs: Tensor) -> Tensor:
    """``first`` on pixels in [0, 1] or on blocks, whichever ``inputs`` are."""
    if isinstance(first, nn.Conv2d) and inputs.shape[1] != first.in_channels:
        return nn.functional.conv2d(inputs, block_weight(first.weight), first.bias)
    outputs: Tensor = first(inputs)
    return outputs
