"""Observations that show the last commands: a stack of frames is then a history of commands too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rl_training.envs.cameras import paint_commands
from rl_training.envs.spec import ActionSpec, EnvSpec, Limits, ObservationSpec
from rl_training.envs.vec_env import DonkeyVecEnv
from rl_training.errors import ConfigError

SIZE = {"width": 32, "height": 24, "camera_width": 32, "camera_height": 24}


def bands(frame: np.ndarray, shown: ObservationSpec) -> list[list[int]]:
    """(steering, throttle) of each frame of one observation, oldest first, read from its lowest rows."""
    image = np.moveaxis(frame, 0, -1) if shown.channels_first else frame
    found = []
    for k in range(shown.stack):
        lowest = image[-shown.command_rows :, :, k * shown.channels : (k + 1) * shown.channels]
        left, right = np.unique(lowest[:, :16]), np.unique(lowest[:, 16:])
        assert (len(left), len(right)) == (1, 1)
        found.append([int(left[0]), int(right[0])])
    return found


def test_levels_run_from_black_to_white() -> None:
    pictures = np.full((2, 4, 6, 3), 77, np.uint8)
    paint_commands(pictures, np.array([[-1.0, 1.0, 0.0], [0.0, 0.2, 0.0]]), 1)
    assert (pictures[:, :-1] == 77).all()
    assert pictures[0, -1, :, 0].tolist() == [0, 0, 0, 255, 255, 255]
    assert pictures[1, -1, :, 2].tolist() == [128, 128, 128, 153, 153, 153]


@pytest.mark.parametrize(("grey", "first"), list(itertools.product((True, False), repeat=2)))
def test_a_stack_tells_the_last_commands_as_they_were_carried_out(grey: bool, first: bool) -> None:
    shown = ObservationSpec(**SIZE, grey=grey, channels_first=first, stack=2, command_rows=4)
    spec = EnvSpec(observation=shown, action=ActionSpec(throttle_max=0.5, steer_rate=0.2), limits=Limits(max_steps=3))
    env = DonkeyVecEnv(spec, 2, seed=0)
    frames = env.reset()
    rest = [128, 128]
    assert [bands(frame, shown) for frame in frames] == [[rest, rest]] * 2
    actions = np.array([[1.0, 0.5], [-1.0, 0.0]], np.float32)
    frames, *_ = env.step(actions)
    # The steering moves by its rate, 0.2 of a step.
    assert bands(frames[0], shown) == [rest, [153, 191]]
    assert bands(frames[1], shown) == [rest, [102, 128]]
    frames, *_ = env.step(actions)
    assert bands(frames[0], shown) == [[153, 191], [178, 191]]
    frames, _, done, infos = env.step(actions)
    assert done.all()
    assert bands(infos[0]["terminal_observation"], shown) == [[178, 191], [204, 191]]
    assert bands(frames[0], shown) == [rest, rest]
    env.close()


def test_the_rest_of_the_picture_is_the_same() -> None:
    plain, shown = ObservationSpec(**SIZE), ObservationSpec(**SIZE, command_rows=4)
    frames = [DonkeyVecEnv(EnvSpec(observation=view), 1, seed=0).reset()[0] for view in (plain, shown)]
    np.testing.assert_array_equal(frames[0][:-4], frames[1][:-4])
    assert (frames[0][-4:] != frames[1][-4:]).any()


@pytest.mark.parametrize("rows", [-1, 24])
def test_impossible_rows_are_refused(rows: int) -> None:
    with pytest.raises(ConfigError, match=f"command_rows is {rows}; expected 0 for none, or less than 24"):
        ObservationSpec(**SIZE, command_rows=rows)
