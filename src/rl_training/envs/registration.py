"""The env ids of gym-donkeycar, served by the embedded world or, with a host in `conf`, by a simulator over TCP."""

from __future__ import annotations

ENV_SCENES: dict[str, str] = {
    "donkey-generated-roads-v0": "generated_road",
    "donkey-warehouse-v0": "warehouse",
    "donkey-avc-sparkfun-v0": "sparkfun_avc",
    "donkey-generated-track-v0": "generated_track",
    "donkey-mountain-track-v0": "mountain_track",
    "donkey-roboracingleague-track-v0": "roboracingleague_1",
    "donkey-waveshare-v0": "waveshare",
    "donkey-minimonaco-track-v0": "mini_monaco",
    "donkey-warren-track-v0": "warren",
    "donkey-thunderhill-track-v0": "thunderhill",
    "donkey-circuit-launch-track-v0": "circuit_launch",
    "donkey-random-road-v0": "random",
}


def register_envs() -> None:
    """Register every id; called by `import rl_training`, and harmless when repeated."""
    from gymnasium.envs.registration import register, registry

    for env_id, scene in ENV_SCENES.items():
        if env_id in registry and "rl_training" in str(registry[env_id].entry_point):
            continue
        register(
            id=env_id,
            entry_point="rl_training.envs.donkey_env:DonkeyEnv",
            vector_entry_point="rl_training.envs.vector_env:DonkeyVectorEnv",
            kwargs={"track": scene},
        )
