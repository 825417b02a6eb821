"""`WorldHost`: the embedded world as a `SceneHost`, so that clients of the Unity simulator can drive in it.

One arena holds the cars of all clients: they see and hit each other. With `apart` each car has an arena of its own.
The world is made anew, in milliseconds, when a car comes or goes, for its numbers of arenas and cars are fixed. Row i
of the world belongs to the i-th of `_cars`.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rl_training.envs.embedded import frame_of
from rl_training.envs.lidar import scan_points
from rl_training.envs.wire import telemetry_of
from rl_training.errors import SimulatorError
from rl_training.protocol.camera import CameraSettings
from rl_training.protocol.messages import CarConfig, LidarConfig, NodePosition, RegenRoad, SetPosition
from rl_training.protocol.scene_host import Crossing
from rl_training.protocol.telemetry import Telemetry
from rl_training.simulator import state as s
from rl_training.simulator.generated_road import generated_road
from rl_training.simulator.lidar import LidarConfig as ScannerConfig
from rl_training.simulator.motion import RESET_BRAKE
from rl_training.simulator.optics import Lens
from rl_training.simulator.packing import PreparedTrack, prepare
from rl_training.simulator.randomize import faithful
from rl_training.simulator.rig import CameraRig
from rl_training.simulator.track import LINE_INDEX
from rl_training.simulator.view import View
from rl_training.simulator.world import MAX_CARS, World, named_track

logger = logging.getLogger(__name__)

# In the Unity simulator's order; thunderhill, which its last releases do not offer, comes last.
SCENE_NAMES = (
    *("generated_road", "warehouse", "sparkfun_avc", "generated_track", "roboracingleague_1", "waveshare"),
    *("mini_monaco", "warren", "circuit_launch", "mountain_track", "thunderhill"),
)
MOST_APART = 64  # cars that never meet
Pose = tuple[float, float, float]  # x, z [u], yaw [rad]


class NamedWorld(World):
    """A world whose cars have names, which others report when they touch them."""

    def __init__(self, names: Sequence[str], apart: bool) -> None:
        super().__init__(*(len(names), 1) if apart else (1, len(names)))
        self._names = list(names)

    def car_name(self, car: int) -> str:
        return self._names[car] or super().car_name(car)

    def rename(self, car: int, name: str) -> None:
        """Unity renames the car's object when the name is longer than one character."""
        if len(name) > 1:
            self._names[car] = name


@dataclass
class _Car:
    """What a client has set up for its car, and where it was put."""

    place: int  # on the starting grid
    spawn: Pose
    name: str = ""
    color: int | None = None  # 0xRRGGBB
    camera: CameraSettings = field(default_factory=CameraSettings)
    second: CameraSettings | None = None
    lidar: LidarConfig | None = None
    control: tuple[float, float, float] = (0.0, 0.0, 0.0)


class WorldHost:
    """Implements `SceneHost` on a `World`."""

    def __init__(self, more_scenes: Sequence[str] = (), apart: bool = False) -> None:
        """`more_scenes` are track files and random roads to be offered beside the eleven; `apart`: cars never meet."""
        self._apart = apart
        self._most_cars = MOST_APART if apart else MAX_CARS
        self.scene_names: Sequence[str] = (*SCENE_NAMES, *(name for name in more_scenes if name not in SCENE_NAMES))
        self._prepared: PreparedTrack | None = None
        self._world: NamedWorld | None = None  # None: no cars
        self._cars: dict[int, _Car] = {}
        self._rigs: dict[CameraSettings, CameraRig] = {}
        self._next_id = 0
        self._turn_increment = 1.0

    def warm_up(self) -> None:
        """Compile what driving needs, or load it from the cache, before the first client waits for it."""
        self.load("waveshare", seed=None)
        car = self.add_car()
        self.advance([car])
        self.telemetry(car)
        self.exit()

    # --- Scenes -------------------------------------------------------------------------------------------------------

    def load(self, scene: str, seed: int | None) -> None:
        """Without a seed generated_road is another at each load; the other scenes have scenery that stays."""
        self.exit()
        if scene == "generated_road" and seed is None:
            seed = secrets.randbelow(2**31)
        self._prepared = named_track(scene, seed or 0)

    def exit(self) -> None:
        self._cars.clear()
        self._prepared = None
        self._rebuild({})

    def regen_road(self, config: RegenRoad) -> bool:
        """A turn increment other than 0 also holds for later roads, as in Unity."""
        if self._track().track.name != "generated_road":
            return False
        self._turn_increment = config.turn_increment or self._turn_increment
        road = generated_road(abs(config.rand_seed), abs(config.road_style), min(abs(self._turn_increment), 10.0))
        self._prepared = prepare(road)
        self._rebuild(self._rows())
        for car in self._cars:
            self.reset_car(car)
        return True

    def node_position(self, index: int) -> NodePosition | None:
        """The node looks along the line from the node before it to the one after it."""
        track = self._track().track
        if not 0 <= index < len(track.nodes):
            return None
        x, y, z = (float(value) for value in track.nodes[index])
        last = len(track.nodes) - 1
        before = index - 1 if index or track.closed else index
        after = index + 1 if index < last else 0 if track.closed else last
        ahead = track.nodes[after] - track.nodes[before]
        yaw = math.atan2(ahead[0], ahead[2]) / 2.0
        pitch = -math.atan2(ahead[1], math.hypot(ahead[0], ahead[2])) / 2.0
        return NodePosition(
            index, x, y, z,
            qx=math.cos(yaw) * math.sin(pitch),
            qy=math.sin(yaw) * math.cos(pitch),
            qz=-math.sin(yaw) * math.sin(pitch),
            qw=math.cos(yaw) * math.cos(pitch),
        )  # fmt: skip

    # --- Cars ---------------------------------------------------------------------------------------------------------

    def add_car(self) -> int:
        if len(self._cars) == self._most_cars:
            raise SimulatorError(f"All {self._most_cars} places of the scene are taken; start another simulator.")
        taken = set() if self._apart else {car.place for car in self._cars.values()}
        place = next(k for k in range(MAX_CARS) if k not in taken)
        kept = self._rows()
        self._next_id += 1
        car = self._next_id
        setup = self._cars[car] = _Car(place, _grid_pose(self._track(), place))
        self._rebuild(kept)
        world, row = self._live(), self._row(car)
        world.place(row, *setup.spawn)
        world.state[row, s.TIME] = max((state[s.TIME] for state, _ in kept.values()), default=0.0)
        return car

    def remove_car(self, car: int) -> None:
        kept = self._rows()
        del self._cars[car], kept[car]
        self._rebuild(kept)

    def set_body(self, car: int, config: CarConfig) -> None:
        """Colour and name; all body styles have the one collision box, and are drawn as one shape."""
        red, green, blue = (min(max(part, 0), 255) for part in (config.body_r, config.body_g, config.body_b))
        setup = self._cars[car]
        setup.color, setup.name = red << 16 | green << 8 | blue, config.car_name
        self._live().rename(self._row(car), setup.name)
        self._rigs.clear()

    def set_camera(self, car: int, settings: CameraSettings) -> None:
        self._cars[car].camera = settings

    def set_second_camera(self, car: int, settings: CameraSettings) -> None:
        self._cars[car].second = settings

    def set_lidar(self, car: int, config: LidarConfig) -> None:
        self._cars[car].lidar = config

    def control(self, car: int, steering: float, throttle: float, brake: float) -> None:
        self._cars[car].control = (steering, throttle, brake)

    def reset_car(self, car: int) -> None:
        setup = self._cars[car]
        setup.control = (0.0, 0.0, RESET_BRAKE)
        self._live().place(self._row(car), *setup.spawn, node=0)

    def set_position(self, car: int, position: SetPosition) -> None:
        """The car comes to stand on the ground below; its speed in its own axes and its active node stay."""
        world, row = self._live(), self._row(car)
        before, commands = world.state[row].copy(), world.commands[row].copy()
        p = position
        yaw = math.atan2(2.0 * (p.qx * p.qz + p.qw * p.qy), p.qw**2 + p.qz**2 - p.qx**2 - p.qy**2)
        world.place(row, p.pos_x, p.pos_z, yaw, node=int(before[s.NODE]))
        world.state[row, list(_KEPT_ON_MOVING)] = before[list(_KEPT_ON_MOVING)]
        world.commands[row] = commands

    # --- Time ---------------------------------------------------------------------------------------------------------

    def advance(self, cars: Sequence[int]) -> list[Crossing]:
        """Cars that are not to move are put back as they were: the others meet them, and they do not notice."""
        if not cars:
            return []
        world = self._live()
        resting = [self._row(car) for car in self._cars if car not in cars]
        saved = [(array, array[resting].copy()) for array in (world.state, world.commands) if resting]
        world.step(np.array([setup.control for setup in self._cars.values()]))
        for array, rows in saved:
            array[resting] = rows
        lines = self._track().track.start_lines
        crossings = []
        for car in cars:
            row = world.state[self._row(car)]
            if row[s.LINE_EVENT] >= 0.0:
                crossings.append(Crossing(car, int(lines[int(row[s.LINE_EVENT]), LINE_INDEX]), float(row[s.LINE_TIME])))
        return crossings

    def telemetry(self, car: int) -> Telemetry:
        setup, world, row = self._cars[car], self._live(), self._row(car)
        frame = frame_of(world, row, self._draw(row, setup.camera))
        if setup.second is not None:
            frame.image_b = self._draw(row, setup.second)
        if setup.lidar is not None:
            frame.lidar = _scan(world, row, setup.lidar)
        world.state[row, s.HIT] = -1.0  # reported once
        return telemetry_of(frame)

    # --- The world behind it ------------------------------------------------------------------------------------------

    def _track(self) -> PreparedTrack:
        assert self._prepared is not None, "load a scene first"
        return self._prepared

    def _live(self) -> NamedWorld:
        assert self._world is not None, "add a car first"
        return self._world

    def _row(self, car: int) -> int:
        return list(self._cars).index(car)

    def _rows(self) -> dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """State and commands by car, to be carried into the next world."""
        if self._world is None:
            return {}
        return {car: (self._world.state[i].copy(), self._world.commands[i].copy()) for i, car in enumerate(self._cars)}

    def _rebuild(self, kept: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]]) -> None:
        """A world for the cars there are now."""
        if self._world is not None:
            self._world.close()
        self._world = None
        self._rigs.clear()
        if not self._cars:
            return
        self._world = NamedWorld([car.name for car in self._cars.values()], self._apart)
        for arena in range(self._world.arenas):
            self._world.load(arena, self._track())
            self._world.dress(arena)
        for i, car in enumerate(self._cars):
            if car in kept:
                self._world.state[i], self._world.commands[i] = kept[car]

    def _draw(self, row: int, settings: CameraSettings) -> NDArray[np.uint8]:
        rig = self._rigs.get(settings)
        if rig is None:
            rig = self._rigs[settings] = self._new_rig(settings)
        out: NDArray[np.uint8] = np.empty((1, rig.frame_bytes), np.uint8)
        rig.draw(np.array([row]), out)
        return out.reshape(rig.view.shape)

    def _new_rig(self, settings: CameraSettings) -> CameraRig:
        aspect = settings.width / settings.height
        fish = settings.fish_eye
        rig = CameraRig(
            self._live(),
            View.full(settings.width, settings.height, settings.fov),
            offset=(settings.x, settings.y, settings.z),
            degrees=(settings.pitch, settings.yaw, settings.roll),
            fov=settings.fov,
            lens=None if fish is None else Lens.fisheye(*fish, fov=settings.fov, aspect=aspect),
        )
        look = faithful(self._track().track)
        for row, car in enumerate(self._cars.values()):
            rig.dress(row, look)
            if car.color is not None:
                rig.cameras.colors[row] = car.color
        return rig


# Of a car that is moved by hand; everything else follows from where it now stands.
_KEPT_ON_MOVING = (
    *(s.FORWARD, s.LATERAL, s.VERTICAL, s.YAW_RATE, s.PITCH_RATE, s.ROLL_RATE, s.STEER, s.THROTTLE, s.BRAKE),
    *(s.ODOM_FL, s.ODOM_FR, s.ODOM_RL, s.ODOM_RR, s.HIT),
)


def _grid_pose(prepared: PreparedTrack, place: int) -> Pose:
    """Where the world puts the car that takes this place of the starting grid."""
    world = World(1, place + 1)
    world.load(0, prepared)
    world.place_at_start(0)
    row = world.state[place]
    world.close()
    return float(row[s.X]), float(row[s.Z]), float(row[s.YAW])


def _scan(world: World, row: int, config: LidarConfig) -> list[Mapping[str, float]]:
    """Points of one scan; rays that meet nothing are left out. Heights count from the first level, as Unity has it."""
    scanner = ScannerConfig(
        offset_x=config.offset_x,
        offset_y=config.offset_y,
        offset_z=config.offset_z,
        rot_x=config.rot_x,
        deg_per_sweep_inc=config.deg_per_sweep,
        deg_ang_down=config.deg_down,
        deg_ang_delta=config.deg_delta,
        max_range=config.max_range,
        num_sweeps_levels=config.levels,
    )
    return scan_points(world, row, scanner)
