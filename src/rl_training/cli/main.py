"""`donkey-rl`: one subcommand a file. A command's module is imported only when that command runs, so that `--help`
answers at once; it offers `add_arguments(parser)` and `run(args) -> int`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from rl_training import __version__
from rl_training.errors import DonkeyRLError, did_you_mean

# name -> (module below rl_training.cli, one line for --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "the main job in minutes, with pictures to look at"),
    "train": ("train", "train a policy, on a track from the camera or on any Gymnasium env"),
    "resume": ("resume", "continue a training run as if it had never stopped"),
    "evaluate": ("evaluate", "drive a trained policy over tracks: laps, crashes, generalisation gap"),
    "predict": ("predict", "ask a model for its action on one observation"),
    "config": ("config", "list the training configs, or show one in full"),
    "autoresearch": ("autoresearch", "search settings trial after trial, and keep a champion"),
    "status": ("status", "how a study stands, while it runs or later"),
    "results": ("results", "the trials of a study, as a table or CSV"),
    "champion": ("champion", "what the champion is, and how it drives"),
    "compare": ("compare", "the champion against a config tuned by hand, with the same seeds"),
    "sweep": ("sweep", "train every point of a grid: the baseline of a study"),
    "tracks": ("tracks", "list the tracks, or draw one: plan and camera"),
    "drive": ("drive", "let a scripted driver lap a track, with lap times and a GIF"),
    "sim": ("sim", "be the simulator: serve the embedded world to any DonkeyCar client"),
    "doctor": ("doctor", "examine a simulator over its wire, with advice for each fault"),
    "bench": ("bench", "measure this machine, with the peers in the same run"),
}

EPILOG = """examples:
  donkey-rl tracks list
  donkey-rl tracks show mini_monaco --out mini_monaco.png
  donkey-rl drive --track mini_monaco --driver pursuit --laps 3 --film lap.gif

`donkey-rl COMMAND --help` explains one command, with examples."""


class _CommandList(argparse.RawDescriptionHelpFormatter):
    """Puts every summary beside its command; argparse forgets the commands' own indent and breaks after long names."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        self._action_max_length = 4 + max(map(len, COMMANDS))


class _Parser(argparse.ArgumentParser):
    """Usage errors in one sentence, with the nearest command where one was mistyped."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message}\nTry '{self.prog} --help'.", file=sys.stderr)
        raise SystemExit(2)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """The parser for `donkey-rl`, with the arguments of `command` only: the other modules stay unloaded."""
    parser = _Parser(
        prog="donkey-rl",
        description="Cars that learn to drive from their camera, and the loop that makes a champion of one.",
        epilog=EPILOG,
        formatter_class=_CommandList,
    )
    parser.add_argument("--version", action="version", version=f"donkey-rl {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, (module_name, summary) in COMMANDS.items():
        if name != command:
            subparsers.add_parser(name, help=summary, add_help=False)
            continue
        module = importlib.import_module(f"rl_training.cli.{module_name}")
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=(module.__doc__ or summary).strip(),
            epilog=getattr(module, "EXAMPLES", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code is 0, 2 for a usage error and 1 for a failure."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        print(f"donkey-rl: error: there is no command '{command}'.{did_you_mean(command, COMMANDS)}", file=sys.stderr)
        return 2
    try:
        parser = build_parser(command)
        args = parser.parse_args(arguments)
        if command is None:
            parser.print_help()
            return 2
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except DonkeyRLError as error:
        print(f"donkey-rl: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("donkey-rl: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        print(f"donkey-rl: error: the system said '{error.strerror or error}'{where}.", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"donkey-rl: error: not enough memory ({error}); ask for less of it.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
