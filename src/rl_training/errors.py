"""Every error this package raises on purpose, in one tree.

    DonkeyRLError                    exit code 1
    ├── UsageError                   exit code 2: the user asked for something that cannot be
    │   ├── ConfigError              an unknown key, a value out of range
    │   ├── TrackError               a track file that cannot be read, a track that does not exist
    │   └── SpaceError               an algorithm on spaces it cannot learn from
    ├── ModelError                   a model file that is missing, corrupt or not trusted
    ├── TrainingError                a training whose policy diverged
    ├── ProtocolError                bytes that are not the simulator's protocol
    ├── SimulatorError
    │   ├── SimulatorTimeout         a wait that reached its deadline
    │   └── SimulatorLost            the simulator is gone and reconnecting did not help
    ├── TrialError                   a research trial that failed as a process
    └── StudyError                   a study folder that is locked, torn or not ours

A message says what was wrong, what was expected and what to do next, in one sentence or two. The command line prints
it without a traceback. ``assert`` is kept for our own mistakes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DonkeyRLError(Exception):
    """Root of the tree; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(DonkeyRLError):
    """The user asked for something that cannot be."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration with an unknown key or an impossible value."""


class TrackError(UsageError):
    """A track that does not exist, or a track file that cannot be read."""


class SpaceError(UsageError):
    """An algorithm was given observation or action spaces it cannot learn from."""


class ModelError(DonkeyRLError):
    """A model file that is missing, corrupt or not trusted."""


class TrainingError(DonkeyRLError):
    """A training that cannot come to anything any more."""


class ProtocolError(DonkeyRLError):
    """Bytes or messages that do not follow the simulator's protocol."""


class SimulatorError(DonkeyRLError):
    """The simulator could not do what was asked."""


class SimulatorTimeout(SimulatorError):
    """A wait on the simulator reached its deadline."""


class SimulatorLost(SimulatorError):
    """The simulator is gone and reconnecting did not bring it back."""


class TrialError(DonkeyRLError):
    """A research trial failed as a process."""


class StudyError(DonkeyRLError):
    """A study folder that is locked by another controller, torn, or not a study."""


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """``" Did you mean 'x'?"``, or the whole list of valid names when nothing is near."""
    choices = sorted(str(choice) for choice in valid)
    nearest = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.6)
    if nearest:
        return f" Did you mean '{nearest[0]}'?"
    return f" Valid names: {', '.join(choices)}."
