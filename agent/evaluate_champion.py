"""Drive the champion of this folder, or another model, on any track: `donkey-rl evaluate`.

python agent/evaluate_champion.py --track mini_monaco --episodes 5
"""

from __future__ import annotations

import sys
from pathlib import Path

from rl_training.cli.main import main

CHAMPION = str(Path(__file__).resolve().parent / "models" / "champion")

if __name__ == "__main__":
    # A --model on the command line comes later, and so counts.
    raise SystemExit(main(["evaluate", "--model", CHAMPION, *sys.argv[1:]]))
