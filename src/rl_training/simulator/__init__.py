"""The embedded world: a batch of cars on tracks, stepped and drawn by compiled kernels.

World axes are Unity's: x right, y up, z forward, left-handed; yaw is clockwise from +z seen from above, in radians.
Lengths are in Unity units ``u`` (8 u are one metre of telemetry), times in seconds, speeds in u/s.
"""
