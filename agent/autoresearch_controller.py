"""Search settings and keep a champion: `donkey-rl autoresearch` with this folder as the study folder.

python agent/autoresearch_controller.py --agent ppo --trials 50 --explore 2
"""

from __future__ import annotations

import sys
from pathlib import Path

from rl_training.cli.main import main

STUDY = str(Path(__file__).resolve().parent)

if __name__ == "__main__":
    raise SystemExit(main(["autoresearch", "--study", STUDY, "--push-every", "10", *sys.argv[1:]]))
