#!/usr/bin/env bash
# Runs the built gpulse on this machine's GPUs, or on simulated ones if there are none.
set -euo pipefail
cd "$(dirname "$0")/.."

gpulse=build/gpulse
machine=h100x8
args=()

driver_is_here()
{
    [[ -e /proc/driver/nvidia/version || -e /dev/nvidiactl || -e /dev/dxg ]] ||
        ldconfig -p 2>/dev/null | grep -q 'libnvidia-ml\.so\.1'
}

if ! driver_is_here; then
    echo "no NVIDIA driver found; showing a simulated machine (gpulse --sim $machine)"
    args=(--sim "$machine")
elif ! reason=$("$gpulse" query index 2>&1 >/dev/null </dev/null); then
    echo "the NVIDIA driver does not respond; showing a simulated machine (gpulse --sim $machine)"
    [[ -z $reason ]] || printf '  %s\n' "${reason%%$'\n'*}"
    args=(--sim "$machine")
fi

if [[ -t 0 && -t 1 ]]; then
    exec "$gpulse" "${args[@]}"
fi
exec "$gpulse" "${args[@]}" status
