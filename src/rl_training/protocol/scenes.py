"""The scenes of the Unity simulator, told apart by their paths: it does not say which one is loaded."""

from __future__ import annotations

# No two have the same number of path nodes.
NODES_OF_SCENE = {
    "generated_road": 1000,
    "generated_track": 108,
    "warehouse": 173,
    "sparkfun_avc": 502,
    "mountain_track": 250,
    "roboracingleague_1": 147,
    "waveshare": 24,
    "mini_monaco": 304,
    "warren": 297,
    "circuit_launch": 139,
    "thunderhill": 2447,
}


def scene_of(nodes: int) -> str | None:
    """The scene whose path has so many nodes; None when none of them has."""
    return next((scene for scene, count in NODES_OF_SCENE.items() if count == nodes), None)
