#!/usr/bin/env bash
# Builds the optimised variant and runs the measurements of tests/bench on it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh release
if [[ ! -x tests/bench/run ]]; then
    echo "bench: there are no measurements yet (tests/bench/run)"
    exit 0
fi
GPULSE=$PWD/build-release/gpulse GPULSE_BUILD=$PWD/build-release exec tests/bench/run
