"""List the tracks, draw one, or draw them all on one sheet."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rl_training.cli.console import console, table
from rl_training.cli.values import seed

EXAMPLES = """examples:
  donkey-rl tracks list
  donkey-rl tracks show mountain_track
  donkey-rl tracks show random:train:17@0.8 --out road.png
  donkey-rl tracks show my_track.yaml
  donkey-rl tracks sheet --out tracks.png"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl tracks`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|sheet")
    listing = actions.add_parser("list", help="a table of the scenes")
    listing.add_argument("--json", action="store_true", help="print JSON for programs")
    show = actions.add_parser("show", help="figures of one track, and a picture: plan and camera")
    show.add_argument("track", help="scene name, random:SPLIT:INDEX[@DIFFICULTY], or a track file")
    show.add_argument("--seed", type=seed, default=0, help="of what the scene draws when it is loaded (default 0)")
    show.add_argument("--out", help="where to save the picture (default NAME.png)")
    show.add_argument("--json", action="store_true", help="print JSON; draw nothing unless --out is given")
    sheet = actions.add_parser("sheet", help="one picture of many tracks")
    sheet.add_argument("tracks", nargs="*", help="which (default: all scenes)")
    sheet.add_argument("--out", default="tracks.png", help="where to save it (default tracks.png)")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    return {"list": _list, "show": _show, "sheet": _sheet}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from rl_training.simulator.track_file import load_track, track_names

    rows = [_figures(load_track(name)) for name in track_names()]
    if args.json:
        print(json.dumps(rows, indent=2))
        return 0
    grid = table("Tracks", "name", "length m", "width u", "nodes", "closed", "climb u", "solids", "what it is")
    for row in rows:
        width = f"{row['width_u']:.1f}" if row["width_u"] else "open"
        closed = "yes" if row["closed"] else "no"
        grid.add_row(
            row["name"], f"{row['length_m']:.1f}", width, str(row["nodes"]), closed, f"{row['climb_u']:.1f}",
            str(row["solids"]), row["description"],
        )  # fmt: skip
    console.print(grid)
    console.print("Also: random:SPLIT:INDEX[@DIFFICULTY], such as random:train:17@0.7, or the path of a track file.")
    return 0


def _figures(track: Any) -> dict[str, Any]:
    left, right = track.half_widths
    height = track.line[:, 1]
    return {
        "name": track.name,
        "length_m": round(track.length / 8.0, 2),
        "length_u": round(track.length, 1),
        "width_u": round(right - left, 2) if track.strips else 0.0,
        "nodes": len(track.nodes),
        "closed": track.closed,
        "climb_u": round(float(height.max() - height.min()), 2),
        "solids": len(track.walls) + len(track.solids),
        "description": track.description,
    }


def _show(args: argparse.Namespace) -> int:
    from rl_training.simulator.track_file import load_track

    track = load_track(args.track, args.seed)
    figures = _figures(track)
    if args.json:
        print(json.dumps(figures, indent=2))
    else:
        grid = table(track.name, "what", "figure")
        for key, value in figures.items():
            grid.add_row(key, str(value))
        console.print(grid)
    if args.out or not args.json:
        from rl_training.report.track_sheet import save_track_picture

        safe_name = track.name.replace(":", "-").replace("/", "-")
        path = save_track_picture(track, args.out or f"{safe_name}.png")
        if not args.json:
            console.print(f"Picture: {path}")
    return 0


def _sheet(args: argparse.Namespace) -> int:
    from rl_training.report.track_sheet import save_contact_sheet
    from rl_training.simulator.track_file import load_track, track_names

    names = args.tracks or track_names()
    console.print(f"Picture: {save_contact_sheet([load_track(name) for name in names], args.out)}")
    return 0
