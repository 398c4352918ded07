#!/usr/bin/env bash
# The tests for a machine with a real NVIDIA GPU (check.py). Prints TAP.
#
#   tests/gpu/check.sh [PATH OF gpulse]        default build/gpulse
#
# GPULSE_LIBRARY=PATH: libgpulse.so.0, to compare the Python package with pynvml.
set -euo pipefail
cd "$(dirname "$0")/../.."
GPULSE=$(realpath "${1:-build/gpulse}") exec python3 tests/gpu/check.py
