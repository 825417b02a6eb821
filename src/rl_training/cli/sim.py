"""Be the DonkeyCar simulator: answer its wire protocol with the embedded world.

Any client of the Unity simulator may connect. In real time (the default) telemetry comes 20 times a simulated second;
in lockstep each control is answered by exactly one packet and time stands in between.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys

from rl_training.errors import SimulatorError, UsageError
from rl_training.protocol.transport import DEFAULT_PORT, parse_address

EXAMPLES = """examples:
  donkey-rl sim
  donkey-rl sim --track mini_monaco --lockstep --seed 1
  donkey-rl sim --speed 10 --port 9092
  donkey-rl sim --host 0.0.0.0        (for other machines; there is no password)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl sim`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"port, 0 for a free one ({DEFAULT_PORT})")
    parser.add_argument(
        "--track", help="load this scene, random:SPLIT:INDEX or track file at once, instead of the menu"
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--realtime", action="store_true", help="20 packets a second (the default)")
    pace.add_argument("--lockstep", action="store_true", help="answer each control with exactly one packet")
    pace.add_argument("--speed", type=float, default=1.0, help="so many times real time")
    parser.add_argument("--seed", type=int, help="of generated_road and of what scenes draw when they are loaded")
    parser.add_argument("--apart", action="store_true", help="clients' cars neither see nor hit each other (up to 64)")
    parser.add_argument("--allow-quit", action="store_true", help="obey quit_app from other machines too")
    parser.add_argument(
        "--connect", metavar="HOST:PORT", help="also call a client that listens, as releases before 2020 expected it"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT, SIGTERM or quit_app."""
    if not 0.0 < args.speed < math.inf:
        raise UsageError(f"--speed is {args.speed}; expected a number above 0, such as 10.")
    if not 0 <= args.port < 65536:
        raise UsageError(f"--port is {args.port}; expected 0 to 65535.")
    if args.seed is not None and args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; expected 0 or more.")
    client = parse_address(args.connect) if args.connect else None
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    from rl_training.envs.scene_host import WorldHost
    from rl_training.protocol.server import SimServer
    from rl_training.protocol.sessions import ServerOptions

    host = WorldHost([args.track] if args.track else [], args.apart)
    host.warm_up()
    if args.track:
        host.load(args.track, args.seed)  # a track that does not exist is said before the port is taken
    options = ServerOptions(args.speed, args.lockstep, args.seed, allow_quit=args.allow_quit)
    server = SimServer(host, args.host, args.port, options)
    if args.track:
        server.engine.load(args.track)
    if client is not None:
        try:
            server.connect_out(*client)
        except OSError as error:
            server.close()
            raise SimulatorError(f"No client listens at {args.connect} ({error.strerror or error}).") from error
    pace = "lockstep" if args.lockstep else f"{args.speed:g} x real time"
    where = ":".join(map(str, server.address))
    print(f"Simulator at {where}, {pace}, {args.track or 'in the menu'}. Ctrl-C ends it.", flush=True)
    server.serve_forever()
    print("Simulator stopped.", flush=True)
    return 0
