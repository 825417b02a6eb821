"""Camera images on the wire: RGB arrays ⇄ JPG, PNG or TGA bytes.

On our side an image is always (height, width, 3) uint8 RGB; whatever arrives (grey, alpha channel, 16 bit) becomes
that.
"""

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from rl_training.errors import ProtocolError

Image = NDArray[np.uint8]

JPEG_QUALITY = 75  # Unity's default
GREY_WEIGHTS = (0.2126, 0.7152, 0.0722)  # Rec. 709
MOST_PIXELS = 2048 * 2048
_JPEG_MAGIC = b"\xff\xd8"
_PNG_MAGIC = b"\x89PNG"


def to_grey(image: Image) -> Image:
    """Rec. 709 luminance in all three channels: what `img_d` = 1 asks for."""
    grey = cv2.transform(image, np.array([GREY_WEIGHTS], dtype=np.float32))
    return np.repeat(grey.reshape(*image.shape[:2], 1), 3, axis=2)


def encode(image: Image, encoding: str = "JPG") -> bytes:
    """Bytes of an image file. Any encoding but PNG and TGA means JPG, as in the Unity simulator."""
    assert image.ndim == 3, "an image is (height, width, 3)"
    assert image.shape[2] == 3, "an image is (height, width, 3)"
    if encoding == "TGA":
        file = io.BytesIO()
        PillowImage.fromarray(image).save(file, format="TGA")
        return file.getvalue()
    bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    if encoding == "PNG":
        ok, data = cv2.imencode(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    else:
        ok, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    assert ok, "OpenCV encodes every uint8 image"
    return bytes(data)


def decode(data: bytes) -> Image:
    """The RGB image in a JPG, PNG or TGA file; ProtocolError when it is none of them, damaged or huge."""
    image = _decode_with_opencv(data) if data.startswith((_JPEG_MAGIC, _PNG_MAGIC)) else _decode_tga(data)
    if image is None:
        raise ProtocolError(f"An image of {len(data)} bytes is neither JPG, PNG nor TGA, or it is damaged or huge.")
    return image


def _decode_with_opencv(data: bytes) -> Image | None:
    is_jpeg = data.startswith(_JPEG_MAGIC)
    width, height = _jpeg_size(data) if is_jpeg else _png_size(data)
    # A damaged header may ask for gigabytes of pixels, a damaged chunk of a PNG for gigabytes of itself.
    if not 0 < width * height <= MOST_PIXELS or not (is_jpeg or _png_is_whole(data)):
        return None
    try:
        bgr = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        return None
    return None if bgr is None else np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB, dst=bgr), dtype=np.uint8)


def _decode_tga(data: bytes) -> Image | None:
    """TGA has no magic number: it is what is left when the others did not match."""
    try:
        with PillowImage.open(io.BytesIO(data), formats=["TGA"]) as file:
            if file.width * file.height <= MOST_PIXELS:
                return np.asarray(file.convert("RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, IndexError, OverflowError, struct.error):
        pass
    return None


def _png_size(data: bytes) -> tuple[int, int]:
    return struct.unpack_from(">II", data, 16) if len(data) >= 24 else (0, 0)  # type: ignore[return-value]


def _png_is_whole(data: bytes) -> bool:
    """Whether chunk follows chunk to the last one, each as long as it says."""
    place = 8
    while place + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        place += 12 + length
        if kind == b"IEND":
            return bool(place <= len(data))
    return False


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height from the frame header, found by stepping from segment to segment; (0, 0) without one."""
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        place += 2 + struct.unpack_from(">H", data, place + 2)[0]
    return 0, 0
