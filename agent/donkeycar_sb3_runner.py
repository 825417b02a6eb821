"""Train one agent and keep it: `donkey-rl train` with this folder as the study folder, and the simulator's own reward
unless `--reward-shaping` or a config asks for another.

python agent/donkeycar_sb3_runner.py --agent ppo --timesteps 10000 --save-dir agent/models/trial-0001
"""

from __future__ import annotations

import sys
from pathlib import Path

from rl_training.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main(["train", "--env-reward", "--study", str(Path(__file__).resolve().parent), *sys.argv[1:]]))
