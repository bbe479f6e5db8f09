#!/usr/bin/env bash
# Makes .venv-peers with the engines Fogline is measured against (`make bench-peers`). It is apart
# from .venv because their dependencies contradict Spark's. Does nothing when it is in place.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly VENV=.venv-peers
readonly STAMP=$VENV/.fogline-setup
readonly PEERS=(apache-flink==2.3.0 bytewax==0.21.1 orjson==3.13.0)

say() { printf 'setup-peers: %s\n' "$*"; }

fingerprint() {
    { pwd && cat scripts/setup-peers.sh; } | sha256sum
}

if [[ -f $STAMP && $(<"$STAMP") == "$(fingerprint)" ]]; then
    exit 0
fi
say "making the virtual environment $VENV"
.venv/bin/python -m venv --clear "$VENV"
say "installing ${PEERS[*]} (several hundred MB: some minutes)"
PIP_DISABLE_PIP_VERSION_CHECK=1 "$VENV/bin/python" -m pip install -qq "${PEERS[@]}"
fingerprint >"$STAMP"
say "done"
