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
peers=('gpulse top' floor)
if [ -x "$roots/peers/usr/bin/nvtop" ]; then
    peers+=(nvtop)
else
    echo "other monitors: skipped, not installed; install them with: scripts/peers.py build-release"
fi
GPULSE_ROOTS=$roots scripts/peers.py "$dir" --rounds 1 "${peers[@]}" || status=$?
exit $status
