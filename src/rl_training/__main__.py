"""`python -m rl_training` is `donkey-rl`."""

from rl_training.cli.main import main

raise SystemExit(main())
