"""Drive the champion of this folder, or another model, on any track: `donkey-rl evaluate`.

python agent/evaluate_champion.py --track mini_monaco --episodes 5
"""

from __future__ import annotations

import sys
from pathlib import Path

from rl_training.cli.main import main

STUDY = str(Path(__file__).resolve().parent)

if __name__ == "__main__":
    raise SystemExit(main(["evaluate", "--champion", "--study", STUDY, *sys.argv[1:]]))
