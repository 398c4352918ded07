# Drivers and GPUs that do not work: what is said, the exit status, and that the rest goes on.
# variants: asan tsan

load helpers

# lines_ok GPU…: the complete lines of these GPUs of h100x8 stand in the output.
lines_ok() {
    local i
    for i in "$@"; do
        says "^\[$i\] NVIDIA H100 80GB HBM3 \| *[0-9]+°C, +[0-9]+ % \| *[0-9]+ / 81559 MiB \|"
    done
}

# ---- the driver as a whole ----

@test "no library" {
    GPULSE_NVML=/nonexistent gpulse status
    fails 4 'cannot load /nonexistent: not found'
    GPULSE_NVML=/nonexistent gpulse query index
    fails 4 'cannot load /nonexistent: not found'
}

# without_library ARG…: gpulse on a machine that has no libnvidia-ml, whatever this one has: an auditor
# of the dynamic loader has every place look empty. ThreadSanitizer has no room for an auditor.
without_library() {
    if [ "${GPULSE_VARIANT-}" = tsan ] || ! command -v cc >/dev/null; then
        ! has_library || skip "this machine has libnvidia-ml, and it cannot be hidden"
        gpulse "$@"
        return
    fi
    cc -shared -fPIC -o hide.so -x c - <<'C'
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
unsigned la_version(unsigned version)
{
    return version;
}
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    static char none[4096];
    (void)cookie;
    if (!strstr(name, "libnvidia-ml.so"))
        return (char *)name;
    if (flag != LA_SER_ORIG)
        return NULL;
    /* What is asked for by its path: the loader complains of this name. */
    snprintf(none, sizeof(none), name[0] == '/' ? "%s: hidden" : "%s", name);
    return none;
}
C
    LD_AUDIT=$PWD/hide.so gpulse "$@"
}

has_library() {
    /sbin/ldconfig -p 2>/dev/null | grep -q libnvidia-ml && return
    local place
    for place in $(grep -o '"/[^"]*"' "$HERE/abi/nvml_library.h" | tr -d '"'); do
        [ ! -e "$place" ] || return 0
    done
    return 1
}

@test "no library anywhere: the message has a remedy" {
    without_library status
    status_is 4
    [ -z "$output" ] || explain "there is output"
    [ "$stderr" = 'gpulse: found no NVIDIA driver: cannot load libnvidia-ml.so.1: not found
gpulse: to find out what is missing: gpulse doctor
gpulse: to try gpulse without a GPU: gpulse demo' ] || explain "another message"
}

@test "a library that is not the driver's" {
    libc=$(ldd /bin/sh | awk '/libc\.so/ { print $3; exit }')
    [ -e "$libc" ] || skip "no libc to load"
    GPULSE_NVML=$libc gpulse status
    fails 4 'the library has no nvmlInit_v2: it is not libnvidia-ml, or from a driver before R450'
    echo 'not a library' >text
    GPULSE_NVML=$PWD/text gpulse status
    fails 4 "cannot load $PWD/text: file too short"
}

@test "a library that is there, but not another one that it needs" {
    command -v cc >/dev/null || skip "no compiler"
    cc -shared -o libneeded.so -x c /dev/null
    cc -shared -o libdriver.so -x c /dev/null -x none -Wl,--no-as-needed -L. -lneeded
    rm libneeded.so
    GPULSE_NVML=$PWD/libdriver.so gpulse status
    fails 4 "cannot load $PWD/libdriver.so: libneeded\.so: cannot open .*: No such file or directory"
}

@test "driver and library of different versions" {
    fault h100x8 mismatch
    gpulse --sim h100x8 status
    fails 4 'driver and library have different versions \(kernel module: 580\.105\.08\): the driver was updated while it was loaded; reboot, or reload the nvidia modules'
    mkdir -p root/proc/driver/nvidia
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.07  Sat Feb 17 22:55:48 UTC 2024' \
        >root/proc/driver/nvidia/version
    gpulse --sim h100x8 --root root status
    fails 4 '.*\(kernel module: 535\.161\.07\).*'
    echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.80  Release Build' \
        >root/proc/driver/nvidia/version
    gpulse --sim h100x8 --root root status
    fails 4 '.*\(kernel module: 595\.80\).*'
}

@test "driver not loaded" {
    fault h100x8 unloaded
    gpulse --sim h100x8 status
    fails 4 'the NVIDIA kernel module is not loaded; load it with: sudo modprobe nvidia'
}

@test "no permission" {
    fault h100x8 deny
    gpulse --sim h100x8 status
    fails 5 'no permission to open the NVIDIA device files; check: ls -l /dev/nvidia\*'
}

@test "zero GPUs" {
    fault h100x8 nogpu
    gpulse --sim h100x8 status
    fails 3 'the driver is running, but found no GPU; .*'
    gpulse --sim h100x8 query '*' -f json
    fails 3 'the driver is running, but found no GPU; .*'
}

@test "another error of the driver is named with its number" {
    fault h100x8 error=NO_DATA:nvmlInit
    gpulse --sim h100x8 status
    fails 4 'cannot start NVML: .* \(21\)'
    fault h100x8 clear
    fault h100x8 error=UNKNOWN:nvmlInit
    gpulse --sim h100x8 status
    fails 4 'the driver failed to start \(Unknown Error\); in a container .*'
    fault h100x8 clear
    # a code of a driver that is newer than our list
    fault h100x8 error=4711:nvmlInit
    gpulse --sim h100x8 status
    fails 4 'cannot start NVML: .* \(4711\)'
}

@test "a driver that hangs while it starts" {
    fault h100x8 hang=1h:nvmlInit
    gpulse --sim h100x8 status --timeout 0.5
    fails 4 'the driver did not start within 0\.5 s \(nvmlInit\); .*'
}

@test "how long a simulated driver is waited for, if --timeout does not say" {
    fault h100x8 hang=1h:nvmlInit
    GPULSE_SIM_TIMEOUT=1500ms gpulse --sim h100x8 status
    fails 4 'the driver did not start within 1\.5 s \(nvmlInit\); .*'
    GPULSE_SIM_TIMEOUT=1h gpulse --sim h100x8 status --timeout 0.5
    fails 4 'the driver did not start within 0\.5 s \(nvmlInit\); .*'
}

# ---- one GPU is refused, or talks nonsense ----

@test "no permission on one GPU" {
    fault h100x8 --gpu 2 deny
    gpulse --sim h100x8 status
    status_is 6
    line_count 9
    lines_ok 0 1 3 4 5 6 7
    says '^\[2\] .*Insufficient Permissions'
}

@test "no permission for one reading" {
    fault h100x2 --gpu 1 deny:nvmlDeviceGetPowerUsage
    gpulse --sim h100x2 query index,power.draw,temperature.gpu -f json
    status_is 0
    json_is 'd["gpus"][1]["power.draw"], d["gpus"][1]["reasons"]' "(None, {'power.draw': 'no permission'})"
    json_is 'type(d["gpus"][1]["temperature.gpu"]).__name__' int
    gpulse --sim h100x2 query power.draw -i 1 -f csv --no-header
    [ "$output" = "[Insufficient Permissions]" ]
    gpulse --sim h100x2 query power.draw -i 1 --no-header
    says '^ *denied$'
}

# without_list WORDS MESSAGE: what is said where GPU 0 of two has no list of processes
without_list() {
    gpulse --sim h100x2 status --no-header
    status_is 6
    [[ ${lines[0]} == *"| (processes: $1) reserved by mia (llama-8b)" ]]
    [[ ${lines[1]} == *"MiB)" ]]
    gpulse --sim h100x2 query index,pid --processes -f csv --no-header
    status_is 6
    line_count 1
    says '^1,'
    complains "^gpulse: GPU 0: $2$"
    # who does not ask for it is not concerned
    gpulse --sim h100x2 status --no-header --no-processes
    status_is 0
    gpulse --sim h100x2 query index -f csv
    status_is 0
    is_quiet
    gpulse --sim h100x2 status -i 1
    status_is 0
}

@test "no permission for the list of processes" {
    for list in Compute Graphics MPSCompute; do
        fault h100x2 --gpu 0 "deny:nvmlDeviceGet${list}RunningProcesses"
    done
    without_list 'no permission' 'no permission to list its processes'
}

@test "the list of processes fails" {
    fault h100x2 --gpu 0 error=UNKNOWN:nvmlDeviceGetComputeRunningProcesses
    without_list 'driver error' 'the driver cannot list its processes'
}

@test "a GPU without a list of graphics processes has one all the same" {
    fault h100x2 --gpu 0 error=NOT_SUPPORTED:nvmlDeviceGetGraphicsRunningProcesses error=NOT_SUPPORTED:nvmlDeviceGetMPS
    gpulse --sim h100x2 status --no-header
    status_is 0
    [[ ${lines[0]} == *"MiB)" ]]
}

@test "a list of graphics processes that fails makes the whole list incomplete" {
    fault h100x2 --gpu 0 deny:nvmlDeviceGetGraphicsRunningProcesses
    gpulse --sim h100x2 status --no-header
    status_is 6
    says '^\[0\] .*\(processes: no permission\)'
}

@test "a function that the driver lacks" {
    machine h100 'm["missing"] = ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3"]'
    gpulse --sim ./m.json --sim-still query memory.total:MiB,memory.reserved,memory.used:MiB -i 0 -f csv --no-header
    status_is 0
    # the older call counts the reservation as used
    [ "$output" = "81559,[N/A],73594" ]
    gpulse --sim ./m.json --sim-still status --no-header -i 0
    says 'MiB\)$'
}

@test "absurd values never become numbers" {
    fault h100x2 --gpu 1 absurd
    gpulse --sim h100x2 query 'memory.*,utilization.*,temperature.gpu,power.draw,clocks.current.*,fan.speed' -f json
    json_is '[k for k, v in d["gpus"][0].items() if k != "reasons" and v is None]' "['fan.speed']"
    json_is '[k for k, v in d["gpus"][1].items() if k != "reasons" and v is not None]' '[]'
    json_is 'd["gpus"][1]["reasons"]["power.draw"]' 'driver error: impossible value'
    json_is 'd["gpus"][1]["reasons"]["memory.used"]' 'driver error: impossible value'
    gpulse --sim h100x2 status --no-header -a
    [[ ${lines[1]} =~ \|\ \?\?°C,.*\ \?\?\ %.*\ \?\?\ /\ .*\ \?\?\ / ]]
    says_not '593000|255|1844674407|4294967'
    # the processes stay, of unknown size
    [[ ${lines[1]} == *"(?MiB)" ]]
}

@test "a process list that grows between size and fetch" {
    gpulse --sim h100x2 --sim-still query index,pid,used_gpu_memory --processes -f csv
    calm=$output
    fault h100x2 grow
    gpulse --sim h100x2 --sim-still query index,pid,used_gpu_memory --processes -f csv
    status_is 0
    is_quiet
    [ "$output" = "$calm" ]
}

@test "more processes than were asked for at first" {
    machine h100 'd["processes"] = [{"pid": 4000000 + i, "memory_bytes": i << 20, "name": "x"} for i in range(700)]'
    gpulse --sim ./m.json --sim-still query pid --processes -i 0 -f csv --no-header
    status_is 0
    line_count 701
    fault ./m.json grow
    gpulse --sim ./m.json --sim-still query pid --processes -i 0 -f csv --no-header
    line_count 701
}

# ---- a GPU that is lost ----

@test "a GPU lost before the start" {
    fault h100x8 --gpu 3 lost
    gpulse --sim h100x8 status
    status_is 6
    is_quiet
    line_count 9
    lines_ok 0 1 2 4 5 6 7
    says '^\[3\] .*lost: reset or reboot needed; see gpulse doctor'
    gpulse --sim h100x8 query index,temperature.gpu,status,status.text -f csv --no-header
    status_is 6
    says '^3,\[GPU is lost\],lost,GPU is lost \(nvml'
    says '^4,[0-9]+,ok,ok$'
    complains '^gpulse: GPU 3: GPU is lost \(nvml[A-Za-z0-9_]+\)$'
    gpulse --sim h100x8 query index,temperature.gpu -f json
    json_is 'd["gpus"][3]["temperature.gpu"], d["gpus"][3]["reasons"]' "(None, {'temperature.gpu': 'GPU is lost'})"
    # whoever does not ask for that GPU is not concerned
    gpulse --sim h100x8 status -i 0-2
    status_is 0
}

# last_says GPU REGEX: the last sample of this GPU in the file out
last_says() {
    grep "^$1," out | tail -n 1 | grep -Eq -e "$2"
}

@test "a GPU lost during a loop, and back again" {
    start --sim h100x4 query index,name,temperature.gpu,status.text -f csv --no-header -n 0.1
    until_true last_says 2 '^2,NVIDIA H100 80GB HBM3,[0-9]+,ok$'
    fault h100x4 --gpu 2 lost
    # identity stays, numbers go
    until_true last_says 2 '^2,NVIDIA H100 80GB HBM3,\[GPU is lost\],GPU is lost'
    until_true last_says 1 ',ok$'
    fault h100x4 --gpu 2 clear
    until_true last_says 2 '^2,NVIDIA H100 80GB HBM3,[0-9]+,ok$'
    kill -INT "$pid"
    finish
    status_is 130
    [ ! -s err ]
    # the others answered in every sample
    for i in 0 1 3; do
        [ "$(grep -c "^$i,NVIDIA H100 80GB HBM3,[0-9]*,ok$" out)" -eq "$(grep -c "^$i," out)" ]
    done
}

@test "while a lost GPU is looked for, rates and energy of the others go on" {
    start --sim h100x4 query --processes index,pid,process.energy -f csv --no-header -n 0.3
    energy=$pid
    until_true last_says 1 '^1,[0-9]+,[0-9.]+$'
    mv out energies # the program has it open
    start --sim h100x4 query index,pcie.throughput.tx,nvlink.throughput.tx,status -f csv --no-header -n 0.3
    until_true last_says 1 '^1,[0-9.]+,[0-9.]+,ok$'
    fault h100x4 --gpu 2 lost
    until_true last_says 2 ',lost$'
    fault h100x4 --gpu 2 clear
    until_true last_says 2 '^2,.*,ok$' # the driver was opened again
    for p in "$pid" "$energy"; do
        kill -INT "$p"
        pid=$p
        finish
    done
    for i in 0 1 3; do
        grep "^$i," out | grep -vEq "^$i,[0-9.]+,[0-9.]+,ok$" && explain "GPU $i has no rates: $(cat out)"
        grep "^$i," energies | cut -d, -f3 >of_one
        [ "$(wc -l <of_one)" -ge 4 ]
        sort -g -c of_one # it never falls
    done
}

@test "while one GPU is lost or hangs, the values of the others move" {
    for what in lost hang=1h; do
        fault h100x4 --gpu 1 "$what"
        gpulse --sim h100x4 --timeout 2 query index,power.draw,status.text -f csv --no-header -n 0.3 -c 6
        fault h100x4 clear
        status_is 6
        line_count 24
        for i in 0 2 3; do
            [ "$(grep -Ec "^$i,[0-9.]+,ok$" <<<"$output")" -eq 6 ]
            [ "$(grep "^$i," <<<"$output" | sort -u | wc -l)" -gt 1 ]
        done
        [ "$(grep -Ec '^1,\[(GPU is lost|Timeout)\],(GPU is lost|no answer) ' <<<"$output")" -eq 6 ]
    done
}

@test "the last number of a silent GPU is never printed as if it were new" {
    start --sim h100x2 --timeout 2 query index,temperature.gpu,status.text -f csv --no-header -n 0.1
    until_true last_says 1 '^1,[0-9]+,ok$'
    fault h100x2 --gpu 1 hang=1h
    until_true last_says 1 '^1,\[Timeout\],no answer for [1-9]'
    kill -INT "$pid"
    finish
    [ "$(grep -E '^1,[0-9]+,' out | grep -vc ',ok$')" -eq 0 ]
    fault h100x2 clear
    start --sim h100x2 --timeout 2 query index,temperature.gpu -n 0.1
    until_true grep -Eq '^ +1 +[0-9]+ °C$' out
    fault h100x2 --gpu 1 hang=1h
    until_true grep -Eq '^ +1 +[0-9]+ °C \(stale\)$' out
    kill -INT "$pid"
    finish
}

@test "a driver that does not come back: every GPU says so, and no old number is shown" {
    start --sim h100x2 query index,temperature.gpu,status.text -f csv --no-header -n 0.1
    until_true last_says 1 ',ok$'
    fault h100x2 unloaded error=UNINITIALIZED:nvmlDeviceGetTemperature
    until_true last_says 0 '^0,\[GPU is lost\],the NVIDIA kernel module is not loaded'
    until_true last_says 1 '^1,\[GPU is lost\],the NVIDIA kernel module is not loaded'
    fault h100x2 clear
    until_true last_says 1 ',ok$'
    until_true last_says 0 ',ok$'
    kill -INT "$pid"
    finish
    status_is 130
}

@test "a loop whose last sample is partial ends with 6" {
    fault h100x2 --gpu 1 lost
    gpulse --sim h100x2 query index -n 0.1 -c 2
    status_is 6
}

@test "a driver that is reloaded during a loop" {
    start --sim h100x2 query index,temperature.gpu,status.text -f csv --no-header -n 0.1
    until_true last_says 1 ',ok$'
    fault h100x2 error=UNINITIALIZED:nvmlDeviceGetTemperature
    until_true last_says 1 '^1,\[GPU is lost\],'
    until_true last_says 0 '^0,\[GPU is lost\],'
    fault h100x2 clear
    until_true last_says 1 '^1,[0-9]+,ok$'
    until_true last_says 0 '^0,[0-9]+,ok$'
    kill -TERM "$pid"
    finish
    status_is 130
}

# ---- a GPU that does not respond ----

@test "a hang during a loop: the last values with their age, then fresh ones again" {
    start --sim h100x8 --timeout 2 query index,name,temperature.gpu,power.draw,status,status.text -f ndjson -n 0.1
    last() {
        grep "\"index\":$1," out | tail -n 1 >last.json
        [ -s last.json ] && [ "$(json "$2" last.json)" = True ]
    }
    until_true last 3 'd["status"] == "ok"'
    fault h100x8 --gpu 3 hang=1h:nvmlDeviceGetTemperature
    until_true last 3 'd["status"] == "timeout" and d["status.text"].startswith("no answer for ") and d["status.text"].endswith("(nvmlDeviceGetTemperature)")'
    last 3 'type(d["temperature.gpu"]) is int and d["name"] == "NVIDIA H100 80GB HBM3"'
    last 3 'd["reasons"]["temperature.gpu"].startswith("stale: ") and "name" not in d["reasons"]'
    last 4 'd["status"] == "ok"'
    fault h100x8 clear
    until_true last 3 'd["status"] == "ok" and "reasons" not in d'
    kill -INT "$pid"
    finish
    status_is 130
    python3 - <<'PYTHON'
import json
rows = [json.loads(line) for line in open("out")]
assert all(r["status"] == "ok" for r in rows if r["index"] != 3)
ages = [float(r["reasons"]["temperature.gpu"].split()[1]) for r in rows if "reasons" in r]
# the reading that hung ends last, with the time at which it began
assert ages and ages[:-1] == sorted(ages[:-1]), ages
# while it was silent, the others moved
silent = {r["time"] for r in rows if "reasons" in r}
for i in set(range(8)) - {3}:
    assert len({r["power.draw"] for r in rows if r["index"] == i and r["time"] in silent}) > 1, i
PYTHON
}

@test "the end does not wait for a call that hangs" {
    start --sim h100x2 --timeout 2 query index,temperature.gpu,status.text -f csv --no-header -n 0.1
    until_true last_says 1 ',ok$'
    fault h100x2 --gpu 1 hang=1h
    until_true last_says 1 'no answer'
    kill -INT "$pid"
    finish
    status_is 130
}

@test "status in a loop shows a silent GPU with its last values" {
    start --sim h100x2 --timeout 2 status --no-header --watch 0.1
    until_true grep -q '^\[1\]' out
    fault h100x2 --gpu 1 hang=1h
    until_true grep -Eq '^\[1\] NVIDIA H100 80GB HBM3 \| no answer for [0-9]+ s \(.*\); last seen: *[0-9]+°C, +[0-9]+ % \| *[0-9]+ / 81559 MiB \|' out
    kill -TERM "$pid"
    finish
    status_is 130
}

# ---- a choice of GPUs, and others that fail ----

# calls NAME FILE: how often the driver function was called
calls() {
    awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$2"
}

@test "chosen by UUID: another GPU that is lost or hangs is no concern" {
    for what in lost hang=1h; do
        fault h100x4 --gpu 3 "$what"
        gpulse --sim h100x4 --timeout 2 query index,name -i GPU-00000002 -f csv --no-header
        status_is 0
        is_quiet
        [ "$output" = "2,NVIDIA H100 80GB HBM3" ]
        fault h100x4 clear
    done
}

@test "chosen by UUID: once it is found, the others are not read any more" {
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim h100x4 query index,temperature.gpu -i GPU-00000002 -f csv --no-header -n 0.1 -c 5
    status_is 0
    line_count 5
    [ "$(calls nvmlDeviceGetTemperature count)" -eq 8 ]
}

@test "selected by UUID, and hung from the start: the message says that its UUID is unknown" {
    fault h100x4 --gpu 2 hang=1h
    gpulse --sim h100x4 --timeout 0.5 query index,temperature.gpu -i GPU-00000002
    fails 6 'cannot resolve --id: GPU 2 has not been identified: no answer for [0-9]+ s \(nvml[A-Za-z0-9_]+\)'
    gpulse --sim h100x4 --timeout 0.5 status -i GPU-00000002
    fails 6 'cannot resolve --id: GPU 2 .*'
}

@test "slow calls are waited for" {
    fault h100x8 slow=20ms
    gpulse --sim h100x8 status
    status_is 0
    lines_ok 0 1 2 3 4 5 6 7
}

# bind ADDRESS STATUS MODEL UUID: a GPU as the kernel shows it below root
bind() {
    bound=root/sys/bus/pci/drivers/nvidia/$1
    mkdir -p "$bound/power" "root/proc/driver/nvidia/gpus/$1"
    echo "$2" >"$bound/power/runtime_status"
    echo auto >"$bound/power/control"
    printf 'Model: \t\t %s\nIRQ: 1\nGPU UUID: \t %s\n' "$3" "$4" \
        >"root/proc/driver/nvidia/gpus/$1/information"
}

@test "a sleeping GPU is chosen by address, UUID or name, and not woken" {
    bind 0000:53:00.0 active 'NVIDIA H100 80GB HBM3' GPU-00000000-0000-0000-0000-000000000000
    bind 0000:64:00.0 suspended 'NVIDIA Sleepy' GPU-00000001-0000-0000-0000-000000000001
    for term in 64:00.0 0000:64:00.0 00000000:64:00.0 GPU-00000001 sleepy 1; do
        GPULSE_SIM_COUNT=$PWD/count gpulse --sim h100x2 --root root query index,temperature.gpu,status.text -i "$term" -f csv --no-header
        status_is 0
        is_quiet
        [ "$output" = "1,[Asleep],asleep to save power; gpulse does not wake it up" ]
        [ "$(calls nvmlDeviceGetHandleByIndex_v2 count)" -le 1 ]
    done
    # all asleep: the driver is not even loaded
    echo suspended >root/sys/bus/pci/drivers/nvidia/0000:53:00.0/power/runtime_status
    rm count
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim h100x2 --root root status --no-header -i 0000:53:00.0
    status_is 0
    line_count 1
    says '^\[0\] NVIDIA H100 80GB HBM3 \| asleep to save power'
    [ ! -e count ]
}

@test "a GPU that sleeps is shown as asleep and not woken" {
    bind 0000:01:00.0 suspended 'NVIDIA GeForce RTX 3060 Laptop GPU' 'GPU-????????-????-????-????-????????????'
    GPULSE_SIM_COUNT=$PWD/calls gpulse --sim rtx3060-laptop --root root status --no-header
    status_is 0
    says '^\[0\] NVIDIA GeForce RTX 3060 Laptop GPU \| asleep to save power; gpulse does not wake it up$'
    # not even the library was opened
    [ ! -e calls ]
    echo active >$bound/power/runtime_status
    gpulse --sim rtx3060-laptop --root root status --no-header
    status_is 0
    says 'MiB'
}

@test "SIGUSR1 lets go of the driver, and takes hold again" {
    GPULSE_SIM_COUNT=$PWD/count start --sim h100x2 query index,status.text,temperature.gpu -f csv --no-header -n 0.2
    until_true grep -q '^1,ok,[0-9]' out
    [ ! -e count ]
    kill -USR1 "$pid"
    until_true grep -q '^1,released: gpulse closed the driver; SIGUSR1 reopens it,\[Released\]$' out
    # the session is over: the simulated driver writes this at nvmlShutdown
    [ "$(calls nvmlShutdown count)" -eq 1 ]
    : >out
    kill -USR1 "$pid"
    until_true grep -q '^1,ok,[0-9]' out
    kill -INT "$pid"
    finish
    [ "$status" -eq 130 ]
}

# Both wait for ten seconds without work, one beside the other.
@test "--release-when-idle: idle GPUs are let go, sleep, and are seen when they wake up; so is the built-in laptop, although its display server runs" {
    mkdir laptop
    cd laptop
    start --sim rtx3060-laptop --release-when-idle query status -f csv --no-header -n 0.5
    cd ..
    bind 0000:01:00.0 active 'NVIDIA GeForce RTX 3060 Laptop GPU' GPU-1
    machine rtx3060-laptop 'm["workload"], d["processes"] = [], []; d["answers"]["UtilizationRates"] = {"gpu": 0, "memory": 0}'
    start --sim ./m.json --root root --release-when-idle query status.text,temperature.gpu -f csv --no-header -n 0.5
    until_true grep -q '^ok,[0-9]' out
    until_true grep -q '^released: gpulse closed the driver so that the GPU can sleep,' out
    echo suspended >"$bound/power/runtime_status"
    until_true grep -q '^asleep to save power; gpulse does not wake it up,\[Asleep\]$' out
    : >out
    echo active >"$bound/power/runtime_status"
    until_true grep -q '^ok,[0-9]' out
    until_true grep -qx ok laptop/out
    until_true grep -qx released laptop/out
}

@test "chosen by name: a GPU that cannot say its name is not left out" {
    fault h100x2 --gpu 1 lost
    gpulse --sim h100x2 query index,temperature.gpu -i H100 -f csv --no-header
    status_is 6
    [[ ${lines[0]} =~ ^0,[0-9]+$ ]]
    [ "${lines[1]}" = "1,[GPU is lost]" ]
    [[ $stderr == *"GPU 1: GPU is lost"* ]]
}

@test "a loop that asks only for status notices a lost GPU" {
    start --sim h100x2 query index,status -f csv --no-header -n 0.2
    until_true grep -q '^1,ok' out
    fault h100x2 --gpu 1 lost
    until_true grep -q '^1,lost$' out
    fault h100x2 clear
    until_true eval '[ "$(tail -n 1 out)" = 1,ok ]'
    kill -INT "$pid"
    finish
}

@test "chosen by the UUID of a MIG instance: its GPU stays in sight when it is lost or hangs" {
    fault a100-mig --gpu 0 hang=1h:nvmlDeviceGetMemoryInfo
    gpulse --sim a100-mig --timeout 1 query index,memory.used -i MIG-00000500 -f csv --no-header
    fails 6 "cannot resolve --id: GPU 0 .*: no answer for [0-9]+ s .*"
    fault a100-mig clear
    start --sim a100-mig query index,memory.used -i MIG-00000500 -f csv --no-header -n 0.2
    until_true grep -Eq '^0,[0-9]+$' out
    fault a100-mig --gpu 0 lost
    until_true grep -Fqx '0,[GPU is lost]' out
    kill -INT "$pid"
    finish
}

@test "an end of the session that hangs does not hold up the end of gpulse" {
    fault t4 hang=1h:nvmlShutdown
    gpulse --sim t4 --timeout 2 query index,temperature.gpu -f csv --no-header
    status_is 0
    [[ ${lines[0]} =~ ^0,[0-9]+$ ]]
}

@test "a GPU that was lost before the start says where it is" {
    bind 0000:53:00.0 active 'NVIDIA H100 80GB HBM3' GPU-00000000-0000-0000-0000-000000000000
    bind 0000:64:00.0 active 'NVIDIA H100 80GB HBM3' GPU-00000001-0000-0000-0000-000000000001
    fault h100x2 --gpu 1 lost
    gpulse --sim h100x2 --root root query index,status,pci.bus_id,uuid,name,temperature.gpu -i 1 -f csv --no-header
    status_is 6
    [ "$output" = "1,lost,00000000:64:00.0,GPU-00000001-0000-0000-0000-000000000001,NVIDIA H100 80GB HBM3,[GPU is lost]" ]
}

@test "more than one GPU that cannot be read is said" {
    fault h100x8 --gpu 2 lost
    fault h100x8 --gpu 5 lost
    fault h100x8 --gpu 6 lost
    gpulse --sim h100x8 query index,temperature.gpu
    status_is 6
    [[ $stderr == *"GPU 2: GPU is lost"*"; 2 more GPUs cannot be read" ]]
}

@test "memory without a number and without processes is not 0" {
    fault gb10 hidden
    gpulse --sim gb10 status --no-header
    says '\|    \?\? /    \?\? MiB \|$'
}

@test "processes in JSON: a GPU that does not list its processes does not look free" {
    fault h100x4 --gpu 3 lost
    fault h100x4 --gpu 1 deny:nvmlDeviceGetComputeRunningProcesses
    gpulse --sim h100x4 query pid --processes -f json
    status_is 6
    python3 -c 'import json, sys
wanted = [{"index": 1, "status": "no_permission"}, {"index": 3, "status": "lost"}]
assert json.loads(sys.argv[1])["incomplete"] == wanted' "$output"
    fault h100x4 clear
    gpulse --sim h100x4 query pid --processes -f json
    [[ $output != *incomplete* ]]
}
