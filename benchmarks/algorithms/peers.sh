#!/bin/sh
# Makes .venv-peers-rl, in which `donkey-rl bench algorithms` runs axiomrl: torch of our version first, so that both
# sides compute with the same kernels and pip has no cause to choose another build.
#
#     sh benchmarks/algorithms/peers.sh [PYTHON]
set -eu
cd "$(dirname "$0")/../.."
venv=.venv-peers-rl
test -x "$venv/bin/python" || "${1:-python3}" -m venv "$venv"
install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
install torch==2.13.0
install axiomrl==1.0.3 'gymnasium[classic-control]' opencv-python-headless
"$venv/bin/python" -c 'import axiomrl, torch; print("axiomrl 1.0.3 with torch", torch.__version__)'
