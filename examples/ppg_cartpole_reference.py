"""PPG on CartPole, from the preset: train, evaluate the saved model, resume it a little further.

python examples/ppg_cartpole_reference.py [--timesteps 100000] [--folder runs/ppg_cartpole_reference]
"""

from __future__ import annotations

import argparse

from rl_training import api


def main(argv: list[str] | None = None) -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timesteps", type=int, default=100_000, help="env steps (100000)")
    parser.add_argument("--episodes", type=int, default=20, help="episodes of the evaluation (20)")
    parser.add_argument("--seed", type=int, default=0, help="of the run (0)")
    parser.add_argument("--folder", default="runs/ppg_cartpole_reference", help="where the run is kept")
    args = parser.parse_args(argv)

    api.train("ppg/cartpole", args.folder, total_timesteps=args.timesteps, seed=args.seed, quiet=False)
    score = api.evaluate(args.folder, episodes=args.episodes)
    print(f"after {args.timesteps} steps: {score.mean_reward:.1f} +- {score.std_reward:.1f}")
    longer = api.resume(args.folder, total_timesteps=args.timesteps + args.timesteps // 10)
    print(f"after {longer['timesteps']} steps: {longer['mean_reward']:.1f}")


if __name__ == "__main__":
    main()
