"""DrQ on a pendulum that it sees through its own pictures, from the preset: train, then evaluate the saved model.

python examples/drq_pendulum_reference.py [--timesteps 15000] [--folder runs/drq_pendulum_reference]
"""

from __future__ import annotations

import argparse

from rl_training import api


def main(argv: list[str] | None = None) -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timesteps", type=int, default=15_000, help="env steps (15000)")
    parser.add_argument("--episodes", type=int, default=20, help="episodes of each evaluation (20)")
    parser.add_argument("--learning-starts", type=int, default=500, help="random steps before the first update (500)")
    parser.add_argument("--seed", type=int, default=0, help="of the run (0)")
    parser.add_argument("--folder", default="runs/drq_pendulum_reference", help="where the run is kept")
    args = parser.parse_args(argv)

    over = {
        "total_timesteps": args.timesteps,
        "seed": args.seed,
        "eval_episodes": args.episodes,
        "baseline_episodes": min(5, args.episodes),
        "algo_kwargs": {"learning_starts": args.learning_starts},
    }
    result = api.train("drq/pendulum_pixels", args.folder, quiet=False, **over)
    print(f"random policy {result['baseline']['random']:.0f}, status {result['run_status']}")
    score = api.evaluate(args.folder, episodes=args.episodes)
    print(f"after {args.timesteps} steps: {score.mean_reward:.1f} +- {score.std_reward:.1f}")


if __name__ == "__main__":
    main()
