"""Camera settings as the simulator keeps them, and the rules by which a `cam_config` message changes them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rl_training.errors import ProtocolError
from rl_training.protocol.messages import CamConfig
from rl_training.protocol.telemetry import ImageEncoding

LARGEST_IMAGE = 1920  # pixels on a side: a peer must not make the server draw without limit
WIDEST_FOV = 170.0
FARTHEST = 360.0  # of offsets [u], rotations [degrees] and fisheye strengths


@dataclass(frozen=True)
class CameraSettings:
    """Where a camera sits on the car [u], how it looks [degrees] and what it delivers; by default the car's own."""

    width: int = 160
    height: int = 120
    fov: float = 90.0  # vertical
    x: float = 0.0  # right
    y: float = 1.120395  # up
    z: float = 0.5528488  # forward
    pitch: float = 15.0  # + = down
    yaw: float = 0.0
    roll: float = 0.0
    fish_eye: tuple[float, float] | None = None  # strengths x, y
    encoding: ImageEncoding = ImageEncoding()  # noqa: RUF009 (frozen)

    def merged(self, config: CamConfig) -> CameraSettings:
        """These settings after a `cam_config`: a zero keeps the old value.

        Offsets and rotations are taken together as soon as one of the three is not zero. A fisheye stays on once it is
        on. An image depth of 1 means grey. An encoding other than PNG and TGA means JPG.
        """
        width, height = config.img_w or self.width, config.img_h or self.height
        if not (0 < width <= LARGEST_IMAGE and 0 < height <= LARGEST_IMAGE):
            raise ProtocolError(f"An image of {width} x {height} was asked for, expected 1 to {LARGEST_IMAGE} pixels.")
        fov = config.fov or self.fov
        if not 1.0 <= fov <= WIDEST_FOV:
            raise ProtocolError(f"A field of view of {fov} degrees was asked for, expected 1 to {WIDEST_FOV:g}.")
        if not all(abs(value) <= FARTHEST for value in _unbounded(config)):
            raise ProtocolError(f"A camera's offsets, rotations and fisheye lie within ±{FARTHEST:g}.")
        offsets = (config.offset_x, config.offset_y, config.offset_z)
        rotations = (config.rot_x, config.rot_y, config.rot_z)
        x, y, z = offsets if any(offsets) else (self.x, self.y, self.z)
        pitch, yaw, roll = rotations if any(rotations) else (self.pitch, self.yaw, self.roll)
        fish_eye = self.fish_eye
        if config.fish_eye_x or config.fish_eye_y:
            fish_eye = (config.fish_eye_x, config.fish_eye_y)
        encoding = replace(
            self.encoding,
            code=_encoding_code(config.img_enc) if config.img_enc else self.encoding.code,
            grey=config.img_d == 1 if config.img_d else self.encoding.grey,
        )
        return CameraSettings(width, height, fov, x, y, z, pitch, yaw, roll, fish_eye, encoding)


SECOND_CAMERA = CameraSettings(x=0.452, y=1.12, z=0.5528)


def _unbounded(config: CamConfig) -> tuple[float, ...]:
    offsets = (config.offset_x, config.offset_y, config.offset_z)
    return (*offsets, config.rot_x, config.rot_y, config.rot_z, config.fish_eye_x, config.fish_eye_y)


def _encoding_code(name: str) -> str:
    return name if name in ("PNG", "TGA") else "JPG"
