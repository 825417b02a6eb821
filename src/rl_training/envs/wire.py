"""Between the envs' `Frame` and the wire's `Telemetry`: the same values in the same units, grouped or flat."""

from __future__ import annotations

from collections.abc import Sequence

from rl_training.envs.frame import Frame, Progress
from rl_training.protocol.messages import StartLineCrossed
from rl_training.protocol.telemetry import LidarPoint, Telemetry


def telemetry_of(frame: Frame) -> Telemetry:
    """What a server sends of a frame."""
    progress = frame.progress
    lidar = frame.lidar
    return Telemetry(
        image=frame.image,
        image_b=frame.image_b,
        lidar=None if lidar is None else tuple(LidarPoint(point["d"], point["rx"], point["ry"]) for point in lidar),
        steering_angle=frame.steering_angle,
        throttle=frame.throttle,
        front_left_odom=frame.odometry[0],
        front_right_odom=frame.odometry[1],
        rear_left_odom=frame.odometry[2],
        rear_right_odom=frame.odometry[3],
        hit=frame.hit,
        time=frame.time,
        speed=frame.speed,
        accel_x=frame.accel[0],
        accel_y=frame.accel[1],
        accel_z=frame.accel[2],
        gyro_x=frame.gyro[0],
        gyro_y=frame.gyro[1],
        gyro_z=frame.gyro[2],
        pitch=frame.orientation[0],
        yaw=frame.orientation[1],
        roll=frame.orientation[2],
        cte=frame.cte,
        active_node=frame.active_node,
        total_nodes=frame.total_nodes,
        pos_x=frame.position[0],
        pos_y=frame.position[1],
        pos_z=frame.position[2],
        vel_x=frame.velocity[0],
        vel_y=frame.velocity[1],
        vel_z=frame.velocity[2],
        progress=progress.distance,
        furthest=progress.furthest,
        road_length=progress.length,
        road_ends=int(not progress.closed),
        laps=progress.laps,
        last_lap_time=progress.last_lap_time,
        road_offset=progress.offset,
    )


def frame_of_telemetry(telemetry: Telemetry, crossings: Sequence[StartLineCrossed], progress: Progress) -> Frame:
    """What an env makes of a packet and of the start lines crossed before it. What was not sent is zero."""
    t = telemetry
    points = t.lidar
    return Frame(
        image=t.image,
        position=(t.pos_x or 0.0, t.pos_y or 0.0, t.pos_z or 0.0),
        velocity=(t.vel_x or 0.0, t.vel_y or 0.0, t.speed if t.vel_z is None else t.vel_z),
        accel=(t.accel_x, t.accel_y, t.accel_z),
        gyro=(t.gyro_x, t.gyro_y, t.gyro_z),
        orientation=(t.pitch, t.yaw, t.roll),
        odometry=(t.front_left_odom, t.front_right_odom, t.rear_left_odom, t.rear_right_odom),
        speed=t.speed,
        cte=t.cte or 0.0,
        active_node=t.active_node,
        total_nodes=t.total_nodes,
        hit=t.hit,
        time=t.time,
        steering_angle=t.steering_angle,
        throttle=t.throttle,
        image_b=t.image_b,
        lidar=None if points is None else [{"d": point.d, "rx": point.rx, "ry": point.ry} for point in points],
        start_line=(crossings[-1].starting_line_index, crossings[-1].time_stamp) if crossings else None,
        progress=progress,
    )


class LapCounter:
    """Progress of an episode: our servers follow the path themselves, the Unity one reports start lines alone."""

    def __init__(self) -> None:
        self._line = -1
        self._since = 0.0
        self._laps = 0
        self._last_lap = 0.0

    def progress(self, telemetry: Telemetry, crossings: Sequence[StartLineCrossed]) -> Progress:
        """How far the car came."""
        t = telemetry
        if t.progress is not None:
            return Progress(
                distance=t.progress,
                furthest=t.furthest or 0.0,
                length=t.road_length or 0.0,
                closed=not t.road_ends,
                laps=t.laps or 0,
                last_lap_time=t.last_lap_time or 0.0,
                offset=t.road_offset or 0.0,
            )
        for crossing in crossings:
            if self._line < 0:  # the first crossing starts the clock
                self._line, self._since = crossing.starting_line_index, crossing.time_stamp
            elif self._line == crossing.starting_line_index:
                self._laps += 1
                self._last_lap = crossing.time_stamp - self._since
                self._since = crossing.time_stamp
        return Progress(laps=self._laps, last_lap_time=self._last_lap, offset=t.cte or 0.0)
