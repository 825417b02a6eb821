"""Convolutional encoders: images ``(B, C, H, W)``, uint8, to features ``(B, F)``, float32.

`encode` is how every algorithm runs one: channels-last memory (the first layer's weight gradient is six times faster
there), pixels scaled to [0, 1] and read in blocks where that is the same, convolutions in bfloat16 where the processor
has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rl_training.errors import ConfigError, SpaceError, did_you_mean
from rl_training.models.cnn.blocks import first_layer, in_blocks, reads_blocks

#: Pixels of one chunk: 32 images of 120×160.
CHUNK_PIXELS = 32 * 120 * 160


class Layer(NamedTuple):
    """One convolution, without padding."""

    channels: int
    kernel: int
    stride: int


class Architecture(NamedTuple):
    """The convolutions of an encoder and the width of the fully connected layer after them."""

    layers: tuple[Layer, ...]
    features_dim: int


ARCHITECTURES = {
    # Mnih et al. 2015, for whole camera images.
    "nature": Architecture((Layer(32, 8, 4), Layer(64, 4, 2), Layer(64, 3, 1)), 512),
    # For small grey stacks: 109 thousand weights on 2×40×80.
    "compact": Architecture((Layer(16, 8, 4), Layer(32, 4, 2)), 128),
    # Yarats et al. 2021: fine strides, four times the work of "nature".
    "drqv2": Architecture((Layer(32, 3, 2), Layer(32, 3, 1), Layer(32, 3, 1), Layer(32, 3, 1)), 50),
}


def architecture(name: str) -> Architecture:
    """The architecture of that name, or an error that lists them."""
    if name not in ARCHITECTURES:
        raise ConfigError(f"There is no encoder '{name}'.{did_you_mean(name, ARCHITECTURES)}")
    return ARCHITECTURES[name]


class ConvEncoder(nn.Module):
    """Convolutions with ReLU, flattened in channel order, then one fully connected layer.

    The names of the weights are those of stable-baselines3's ``NatureCNN``, so that weights move between the two.
    With ``normalize_features`` the last activation is LayerNorm and tanh, as in DrQ, else ReLU.
    """

    def __init__(
        self,
        image_shape: Sequence[int],
        layers: Sequence[Layer],
        features_dim: int,
        *,
        normalize_features: bool = False,
    ) -> None:
        super().__init__()
        channels, height, width = image_shape
        modules: list[nn.Module] = []
        for layer in layers:
            modules += [nn.Conv2d(channels, layer.channels, layer.kernel, layer.stride), nn.ReLU()]
            channels = layer.channels
            height = (height - layer.kernel) // layer.stride + 1
            width = (width - layer.kernel) // layer.stride + 1
            if min(height, width) < 1:
                raise SpaceError(
                    f"Images of {image_shape[1]}×{image_shape[2]} pixels are too small for this encoder; "
                    "use larger images or an encoder with smaller kernels."
                )
        self.cnn = nn.Sequential(*modules, nn.Flatten())
        last = [nn.LayerNorm(features_dim), nn.Tanh()] if normalize_features else [nn.ReLU()]
        self.linear = nn.Sequential(nn.Linear(channels * height * width, features_dim), *last)
        self.features_dim = features_dim

    def forward(self, images: Tensor) -> Tensor:
        """Features of images already scaled to [0, 1]."""
        features: Tensor = self.linear(self.cnn(images))
        return features


class NatureCNN(ConvEncoder):
    """The network of Mnih et al. 2015, for whole camera images."""

    def __init__(self, image_shape: Sequence[int], features_dim: int = 512) -> None:
        super().__init__(image_shape, ARCHITECTURES["nature"].layers, features_dim)


class CompactCNN(ConvEncoder):
    """A network for small grey stacks, ten times lighter than `NatureCNN`."""

    def __init__(self, image_shape: Sequence[int], features_dim: int = 128) -> None:
        super().__init__(image_shape, ARCHITECTURES["compact"].layers, features_dim)


def channels_last(network: nn.Module) -> None:
    """Store the convolutions' weights as `encode` wants them; call after initialising, which needs them in order."""
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def scaled(images: Tensor, dtype: torch.dtype) -> Tensor:
    """Pixels 0..255 in uint8 as numbers in [0, 1], channels last in memory."""
    # Reordering bytes before widening them moves a quarter of the memory.
    return images.contiguous(memory_format=torch.channels_last).to(dtype).div_(255.0)


def prepared(images: Tensor, encoder: nn.Module, dtype: torch.dtype) -> Tensor:
    """Pixels in uint8 as ``encoder`` reads them fastest; floating numbers are left as they are.

    `encode` does this by itself; doing it before serves several encoders of one kind with one copy.
    """
    if images.is_floating_point():
        return images
    cnn = getattr(encoder, "cnn", None)
    if isinstance(cnn, nn.Sequential) and reads_blocks(cnn[0], images):
        return in_blocks(images, dtype)
    return scaled(images, dtype)


def in_chunks(images: Tensor, channels: int) -> tuple[Tensor, ...]:
    """The batch in equal parts whose first activations fit a processor's cache, which a whole large batch does not.

    ``channels`` are those of an image; one that comes in blocks has more, each of fewer pixels.
    """
    if images.device.type != "cpu":
        return (images,)
    parts = math.ceil(images.numel() / channels / CHUNK_PIXELS)
    return torch.chunk(images, max(parts, 1))


def encode(encoder: nn.Module, images: Tensor, dtype: torch.dtype) -> Tensor:
    """Features in float32 of images, uint8 or already `prepared`, with the encoder computed in ``dtype``.

    An encoder with the parts ``cnn`` and ``linear`` has its convolutions run in chunks of the batch, which changes
    nothing but the speed.
    """
    with torch.autocast(images.device.type, dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        cnn, linear = getattr(encoder, "cnn", None), getattr(encoder, "linear", None)
        if isinstance(cnn, nn.Sequential) and isinstance(cnn[0], nn.Conv2d) and linear is not None:
            chunks = in_chunks(images, cnn[0].in_channels)
            flat = [_convolutions(cnn, prepared(chunk, encoder, dtype)) for chunk in chunks]
            features: Tensor = linear(torch.cat(flat) if len(flat) > 1 else flat[0])
        else:
            features = encoder(prepared(images, encoder, dtype))
    return features.float()


def _convolutions(cnn: nn.Sequential, inputs: Tensor) -> Tensor:
    """``cnn`` on prepared images."""
    outputs = first_layer(cnn[0], inputs)
    for before, layer in pairwise(cnn):
        # A convolution does not need its outputs to go backwards, so a rectifier may write over them.
        rectifies = isinstance(layer, nn.ReLU) and isinstance(before, nn.Conv2d)
        outputs = outputs.relu_() if rectifies else layer(outputs)
    return outputs
