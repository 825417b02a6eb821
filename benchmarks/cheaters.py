"""What each reward pays to drivers that do not race, as shares of an honest slow driver's return; docs/rewards.md.

Each share is the worst of several tracks under two rules: `strict` (leaving the road by 8 u or a hit ends the episode)
and `lenient` (nothing but time does, as with a client that overlooks cars far out and a simulator that reports no hit).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from rl_training.cli.console import console, table
from rl_training.evaluation.cheaters import CHEATERS
from rl_training.evaluation.earnings import MARGIN, RULES, Earnings, measure_earnings
from rl_training.wrappers.rewards import REWARDS

TRACKS = ("generated_track", "mountain_track", "mini_monaco", "warren")


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="donkey-rl bench cheaters", description=__doc__)
    parser.add_argument("--track", action="append", help=f"repeat for several (default: {', '.join(TRACKS)})")
    parser.add_argument("--rules", choices=tuple(RULES), action="append", help="repeat for both (default: both)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/rewards.md")
    args = parser.parse_args(arguments)
    measured = [measure_earnings(track, rules) for track in args.track or TRACKS for rules in args.rules or RULES]
    shares = worst_shares(measured)
    if args.json:
        print(json.dumps(shares, indent=2))
    elif args.markdown:
        print(markdown(shares))
    else:
        grid = table("Worst share of the honest return (* beats the reward)", "cheater", *REWARDS)
        for name in CHEATERS:
            grid.add_row(name, *(_cell(shares[reward][name]) for reward in REWARDS))
        console.print(grid)
    return 0 if all(share <= 1.0 / MARGIN for share in shares["race"].values()) else 1


def worst_shares(measured: Sequence[Earnings]) -> dict[str, dict[str, float]]:
    """By reward and cheater: the largest share of the honest return over all measurements."""
    return {reward: {name: max(m.share(reward)[name] for m in measured) for name in CHEATERS} for reward in REWARDS}


def _cell(share: float) -> str:
    return f"{share:.2f}{'*' if share > 1.0 / MARGIN else ' '}"


def markdown(shares: dict[str, dict[str, float]]) -> str:
    """The same for a document, what beats a reward in bold."""
    lines = ["| cheater | " + " | ".join(REWARDS) + " |", "|---" * (len(REWARDS) + 1) + "|"]
    for name in CHEATERS:
        cells = [f"{shares[reward][name]:.2f}" for reward in REWARDS]
        marked = [f"**{cell}**" if shares[r][name] > 1.0 / MARGIN else cell for r, cell in zip(REWARDS, cells)]
        lines.append(f"| {name} | " + " | ".join(marked) + " |")
    return "\n".join(lines)
