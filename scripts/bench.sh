#!/usr/bin/env bash
# Builds the release variant and runs the benchmarks in tests/bench on it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh release
dir=$PWD/build-release
status=0
"$dir/tests/bench/bench" "$dir" "$@" || status=$?
[ $# -eq 0 ] || exit $status # only some of the benchmarks

roots=${GPULSE_ROOTS:-${XDG_CACHE_HOME:-$HOME/.cache}/gpulse/roots}
if [ -x "$roots/peers/usr/bin/nvtop" ]; then
    scripts/peers.py "$dir" --rounds 1 'gpulse top' floor nvtop || status=$?
else
    echo "other monitors: skipped, not installed; install them with: scripts/peers.py build-release"
fi
exit $status
