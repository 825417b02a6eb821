#!/bin/sh
# Makes .venv-peers, where the optimisers live that `donkey-rl bench search` compares ours with. HEBO pins an old numpy
# that it does not need, so it comes without its own wishes.
set -e
cd "$(dirname "$0")/../.."
test -x .venv-peers/bin/python || "${PYTHON:-python3}" -m venv .venv-peers
pip=".venv-peers/bin/python -m pip install --quiet --disable-pip-version-check"
$pip torch==2.13.0
$pip optuna cmaes botorch PyYAML gymnasium
$pip pandas scikit-learn pymoo catboost disjoint-set GPy
$pip --no-deps HEBO
