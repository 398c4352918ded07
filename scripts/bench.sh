#!/usr/bin/env bash
# Builds the release variant and runs the benchmarks in tests/bench on it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh release
dir=$PWD/build-release
exec "$dir/tests/bench/bench" "$dir" "$@"
