"""Measure this machine: each benchmark prints our figures beside its peers', from the same run."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import rl_training
from rl_training.errors import UsageError, did_you_mean

EXAMPLES = """examples:
  donkey-rl bench sim
  donkey-rl bench sim --json --quick
  donkey-rl bench list"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `donkey-rl bench`."""
    parser.add_argument("name", help="which benchmark; 'list' names them")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to the benchmark, such as --json")


def run(args: argparse.Namespace) -> int:
    """Run the script `benchmarks/NAME.py` of the checkout."""
    folder = Path(rl_training.__file__).parents[2] / "benchmarks"
    scripts = {path.stem: path for path in sorted(folder.glob("*.py"))}
    scripts.update({path.parent.name: path for path in sorted(folder.glob("*/run.py"))})
    if not scripts:
        raise UsageError("The benchmarks do not come with the package; run this in a checkout of the repository.")
    if args.name == "list":
        print("\n".join(scripts))
        return 0
    if args.name not in scripts:
        raise UsageError(f"There is no benchmark '{args.name}'.{did_you_mean(args.name, scripts)}")
    script = scripts[args.name]
    sys.path.insert(0, str(folder.parent))  # benchmarks may share helpers: `from benchmarks.… import …`
    spec = importlib.util.spec_from_file_location(f"benchmarks.{args.name}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    code: int = module.main(args.arguments)
    return code
