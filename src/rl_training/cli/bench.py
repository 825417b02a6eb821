"""Measure this machine: each benchmark prints our figures beside its peers', from the same run."""

from __future__ import annotations

import argparse
import ast
import importlib
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
    benches = {name: line for name, path in scripts.items() if (line := _what_it_measures(path)) is not None}
    if not benches:
        raise UsageError("The benchmarks do not come with the package; run this in a checkout of the repository.")
    if args.name == "list":
        width = max(map(len, benches))
        print("\n".join(f"{name:{width}}  {line}" for name, line in sorted(benches.items())))
        return 0
    if args.name not in benches:
        raise UsageError(f"There is no benchmark '{args.name}'.{did_you_mean(args.name, benches)}")
    sys.path.insert(0, str(folder.parent))  # benchmarks may share helpers: `from benchmarks.… import …`
    module = importlib.import_module(".".join(scripts[args.name].relative_to(folder.parent).with_suffix("").parts))
    code: int = module.main(args.arguments)
    return code


def _what_it_measures(script: Path) -> str | None:
    """The first line of a script's docstring; None for one without a `main(argv)`, such as a helper of others."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "main" and node.args.args:
            return (ast.get_docstring(tree) or "").partition("\n")[0]
    return None
