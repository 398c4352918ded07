#!/usr/bin/env bash
# On a machine with a real NVIDIA GPU: our values against the real nvidia-smi in the same second, a real
# CUDA process seen with its memory, and one driver call where one is promised. Installs nothing and
# changes no setting. Prints TAP.
#
#   tests/gpu/check.sh [PATH OF gpulse]        default build/gpulse
set -uo pipefail
cd "$(dirname "$0")/../.."
gpulse=${1:-build/gpulse}
number=0
failed=0

report() # ok? what
{
    number=$((number + 1))
    if [[ $1 = 0 ]]; then
        echo "ok $number $2"
    else
        echo "not ok $number $2"
        failed=$((failed + 1))
    fi
}

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
    echo "1..0 # SKIP no NVIDIA GPU answers here"
    exit 0
fi
"$gpulse" status -a
report $? "gpulse status runs"

# Fields of both programs. Those that stand still must be equal to the letter, the others near: the two
# programs ask one after the other.
still=index,name,uuid,pci.bus_id,serial,compute_cap,vbios_version,driver_version,memory.total,\
persistence_mode,compute_mode,mig.mode.current,ecc.mode.current,pcie.link.gen.max,pcie.link.width.max,\
power.limit,power.max_limit,power.min_limit,power.default_limit,enforced.power.limit,clocks.max.sm,\
clocks.max.memory,ecc.errors.uncorrected.aggregate.total,gpu_recovery_action
moving=temperature.gpu,temperature.memory,power.draw,clocks.current.sm,clocks.current.memory,memory.used,\
memory.free,memory.reserved,utilization.gpu,utilization.memory,pstate,fan.speed

compare() # fields mode
{
    local ours theirs
    theirs=$(nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits)
    ours=$("$gpulse" query "$1" -f csv --no-header)
    FIELDS=$1 MODE=$2 OURS=$ours THEIRS=$theirs python3 - <<'PYTHON'
import csv, math, os, sys
fields = os.environ["FIELDS"].split(",")
ours = list(csv.reader(os.environ["OURS"].splitlines()))
theirs = list(csv.reader(os.environ["THEIRS"].splitlines(), skipinitialspace=True))
absent = {"[N/A]", "N/A", "[Not Supported]"}
bad = 0
for gpu, (a, b) in enumerate(zip(ours, theirs)):
    for field, x, y in zip(fields, a, b):
        x, y = x.strip(), y.strip()
        same = x == y or (x in absent and y in absent)
        if not same and field.startswith("memory."):
            mib = math.ceil(int(x) / 2**20)
            same = abs(mib - int(y)) <= (1 if os.environ["MODE"] == "still" else 64)
        elif not same and os.environ["MODE"] == "moving":
            try:
                same = abs(float(x) - float(y)) <= max(15.0, 0.25 * abs(float(y)))
            except ValueError:
                same = field == "pstate"
        print(f"# GPU {gpu} {field}: gpulse {x} · nvidia-smi {y}{'' if same else '   DIFFERENT'}")
        bad += not same
sys.exit(bad > 0 or len(ours) != len(theirs))
PYTHON
    report $? "$2 values equal nvidia-smi's"
}
compare "$still" still
compare "$moving" moving

# A process with a CUDA context and 256 MiB, without any framework.
python3 - <<'PYTHON' &
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256 << 20)) == 0
time.sleep(600)
PYTHON
job=$!
trap 'kill "$job" 2>/dev/null' EXIT
for _ in $(seq 250); do
    sleep 0.2
    [[ -n $(nvidia-smi --query-compute-apps=pid --format=csv,noheader) ]] && break
done
"$gpulse" query pid,process_name,user,used_gpu_memory,index --processes -f csv | sed 's/^/# /'
mine=$("$gpulse" query pid,used_gpu_memory --processes -f csv --no-header | awk -F, -v p="$job" '$1 == p {print $2}')
theirs=$(nvidia-smi --query-compute-apps=pid,used_gpu_memory --format=csv,noheader,nounits |
    awk -F', ' -v p="$job" '$1 == p {print $2}')
[[ -n $mine && $(((mine + 1048575) / 1048576)) = "${theirs:-x}" ]]
report $? "a CUDA process: gpulse ${mine:-nothing} bytes, nvidia-smi ${theirs:-nothing} MiB (pid $job)"

echo "1..$number"
exit $((failed > 0))
