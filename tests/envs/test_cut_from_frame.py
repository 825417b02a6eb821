"""A policy's picture drawn directly is the one cut from a whole frame, within what docs/training.md says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rl_training.envs.cameras import cut_from_frame
from rl_training.envs.spec import POLICY_VIEW, EnvSpec, ObservationSpec
from rl_training.envs.vec_env import DonkeyVecEnv

CROPPED = ObservationSpec(crop_top=30, crop_bottom=10, crop_left=20, crop_right=8, width=132, height=80)


@pytest.mark.parametrize(
    ("view", "most"),
    [
        (CROPPED, 0.5),
        (replace(CROPPED, channels_first=True), 0.5),
        (replace(CROPPED, grey=True), 1.0),
        (replace(POLICY_VIEW, stack=1), 5.0),
        (replace(POLICY_VIEW, stack=1, grey=False), 5.0),
    ],
)
@pytest.mark.parametrize("track", ["generated_track", "mountain_track"])
def test_drawn_and_cut_agree(view: ObservationSpec, most: float, track: str) -> None:
    whole = DonkeyVecEnv(EnvSpec(tracks=(track,)), 2, seed=3)
    direct = DonkeyVecEnv(EnvSpec(tracks=(track,), observation=view), 2, seed=3)
    frames, pictures = whole.reset(), direct.reset()
    differences = []
    for _ in range(15):
        for frame, picture in zip(frames, pictures):
            cut = cut_from_frame(frame, view)
            differences.append(np.abs((np.moveaxis(cut, -1, 0) if view.channels_first else cut).astype(int) - picture))
        actions = np.array([[0.2, 0.4], [-0.1, 0.5]], np.float32)
        frames, pictures = whole.step(actions)[0], direct.step(actions)[0]
    assert np.mean(differences) < most
    whole.close()
    direct.close()
