#!/usr/bin/env bash
# Builds gpulse, and runs it on this machine's GPUs or, if there are none, on simulated ones. On a terminal
# that is gpulse or gpulse demo, otherwise gpulse status.
set -euo pipefail
cd "$(dirname "$0")/.."

gpulse=build/gpulse
machine=h100x8

driver_is_here()
{
    [[ -e /proc/driver/nvidia/version || -e /dev/nvidiactl || -e /dev/dxg ]] ||
        ldconfig -p 2>/dev/null | grep -q 'libnvidia-ml\.so\.1'
}

# Sets `obstacle`: why the GPUs of this machine cannot be shown; empty: they can.
find_obstacle()
{
    local reason
    obstacle=
    if ! driver_is_here; then
        obstacle="no NVIDIA driver found"
    elif ! reason=$("$gpulse" query index 2>&1 >/dev/null </dev/null); then
        obstacle="the NVIDIA driver does not respond (${reason%%$'\n'*})"
    fi
}

# Ten lines at most, with those of the two scripts.
takes=
[[ -x $gpulse ]] || takes="; about a minute"
echo "1/3 installing what the build needs, if it is missing$takes"
scripts/setup.sh build
echo "2/3 building into build/$takes"
scripts/build.sh default
find_obstacle
if [[ -t 0 && -t 1 ]]; then
    if [[ -n $obstacle ]]; then
        echo "3/3 ready after $SECONDS s; $obstacle, so this is gpulse demo, on a simulated machine: press q to quit"
        exec "$gpulse" demo
    fi
    echo "3/3 ready after $SECONDS s; this is gpulse: press q to quit"
    exec "$gpulse"
fi
if [[ -n $obstacle ]]; then
    echo "3/3 ready after $SECONDS s; $obstacle, so this is a simulated machine (gpulse --sim $machine status)"
    exec "$gpulse" --sim "$machine" status
fi
echo "3/3 ready after $SECONDS s"
exec "$gpulse" status
