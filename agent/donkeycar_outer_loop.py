"""Train a grid of settings, the baseline of the search: `donkey-rl sweep` with this folder as the study folder.

python agent/donkeycar_outer_loop.py --agent dqn
"""

from __future__ import annotations

import sys
from pathlib import Path

from rl_training.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["sweep", "--study", str(Path(__file__).resolve().parent), *sys.argv[1:]]))
