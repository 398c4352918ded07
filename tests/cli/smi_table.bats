# gpulse smi: the summary, lists, and what is said when something is wrong, with its exit status.
# variants: asan

load helpers

# answers STATUS: with this exit status, and everything on standard output
answers() {
    status_is "$1"
    is_quiet
}

# output_is TEXT: exactly, but for the end of the last line
output_is() {
    [ "$output" = "$1" ] || explain "the output is not: $1"
}

# table_is_whole WIDTH: the lines of the boxes have this width.
table_is_whole() {
    [ "$(grep -E '^[|+]' <<<"$output" | awk '{ print length }' | sort -u)" = "$1" ] ||
        explain "a line is not $1 wide"
}

# bound ADDRESS…: in ./root, these GPUs are bound to the driver
bound() {
    local address
    for address in "$@"; do
        mkdir -p "root/sys/bus/pci/drivers/nvidia/$address/power"
    done
}

# ---- the driver as a whole ----

@test "no library" {
    GPULSE_NVML=/nonexistent gpulse smi
    answers 12
    output_is "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is properly installed and present in your system.
Please also try adding directory that contains libnvidia-ml.so to your system PATH."
}

@test "a library that is not the driver's" {
    libc=$(ldd /bin/sh | awk '/libc\.so/ { print $3; exit }')
    [ -e "$libc" ] || skip "no libc to load"
    GPULSE_NVML=$libc gpulse smi
    answers 13
    output_is $'Mismatch in versions between nvidia-smi and NVML. \nAre you sure you are using nvidia-smi provided with the driver?'
}

@test "driver not loaded: an empty line follows" {
    fault t4 unloaded
    for words in '' -L -q '-q -x' --version --dtd; do
        # shellcheck disable=SC2086 # several words
        gpulse smi $words --sim t4
        answers 9
        output_is "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."
    done
    [ "$("$GPULSE" smi --sim t4 | wc -l)" -eq 2 ]
}

@test "driver and library of different versions: that of the library is named" {
    machine t4 'm["driver"].update(version="535.161.07", nvml="12.535.161.07")'
    fault ./m.json mismatch
    gpulse smi --sim ./m.json
    answers 18
    output_is "Failed to initialize NVML: Driver/library version mismatch
NVML library version: 535.161"
}

@test "other codes of the driver are the exit status, with their words" {
    for row in 'deny|4|Insufficient Permissions' 'error=UNKNOWN:nvmlInit|255|Unknown Error' \
        'error=NO_DATA:nvmlInit|21|No data' 'error=4711:nvmlInit|255|Unknown Error' \
        'error=INSUFFICIENT_POWER:nvmlInit|8|Insufficient External Power'; do
        IFS='|' read -r name code words <<<"$row"
        fault h100x2 "$name"
        gpulse smi --sim h100x2
        answers "$code"
        output_is "Failed to initialize NVML: $words"
        fault h100x2 clear
    done
}

@test "no supported GPU" {
    fault t4 error=GPU_NOT_FOUND:nvmlInit
    gpulse smi --sim t4
    answers 255
    output_is "Failed to initialize NVML: No supported GPUs were found
Unable to determine the number of GPUs"
}

@test "no GPU, or none that is asked for" {
    gpulse smi -i 1 --sim t4
    answers 6
    output_is 'No devices were found'
    gpulse smi -L --id=GPU-11111111-1111-1111-1111-111111111111 --sim t4
    answers 6
    fault t4 nogpu
    gpulse smi --sim t4
    answers 6
    output_is 'No devices were found'
}

@test "a driver that hangs while it starts" {
    fault t4 hang=1h:nvmlInit
    gpulse smi --sim t4 --timeout 0.5
    answers 10
    output_is 'Failed to initialize NVML: Timeout'
}

@test "a simulated machine that is not there is no problem of the driver" {
    gpulse smi --sim nosuch
    answers 2
    output_is "unknown simulated machine 'nosuch'; for a list: gpulse sim list"
}

@test "output that cannot be written" {
    [ -e /dev/full ] || skip "no /dev/full"
    run --separate-stderr bash -c "'$GPULSE' smi --sim t4 >/dev/full"
    status_is 255
    complains 'cannot write the output: No space left on device'
}

# ---- one GPU ----

@test "a GPU that the driver does not hand out: a line before the table of the others" {
    fault h100x3 --gpu 1 lost
    bound 0000:53:00.0 0000:64:00.0 0000:75:00.0
    gpulse smi --sim h100x3 --root root
    answers 15
    [ "${lines[0]}" = 'Unable to determine the device handle for GPU1: 0000:64:00.0: GPU is lost' ]
    [[ ${lines[1]} =~ ^[A-Z][a-z]{2}\ [A-Z][a-z]{2}\  ]]
    says '^\|   0  NVIDIA H100 80GB HBM3 '
    says_not '^\|   1  '
    says '^\|   2  NVIDIA H100 80GB HBM3 '
    table_is_whole 91
    gpulse smi -L --sim h100x3 --root root
    answers 15
    line_count 3
    [ "${lines[1]}" = 'Unable to determine the device handle for GPU1: 0000:64:00.0: GPU is lost' ]
    gpulse smi -q --sim h100x3 --root root
    answers 15
    [ "$(grep -c '^GPU 0000' <<<"$output")" -eq 2 ]
    says '^Unable to determine the device handle for GPU1: '
}

@test "the words for such a GPU follow the driver; without its address it is its index" {
    bound 0000:53:00.0 0000:64:00.0
    for driver in 470 535 610; do
        fault "h100x2,driver=$driver" --gpu 1 error=UNKNOWN:nvmlDeviceGetHandleByIndex
    done
    gpulse smi -L --root root --sim h100x2,driver=470
    [ "${lines[1]}" = 'Unable to determine the device handle for GPU 0000:64:00.0: Unknown Error' ]
    gpulse smi -L --root root --sim h100x2,driver=535
    [ "${lines[1]}" = 'Unable to determine the device handle for GPU0000:64:00.0: Unknown Error' ]
    gpulse smi -L --root root --sim h100x2,driver=610
    [ "${lines[1]}" = 'Unable to determine the device handle for GPU1: 0000:64:00.0: Unknown Error' ]
    fault t4,driver=535 --gpu 0 error=UNKNOWN:nvmlDeviceGetHandleByIndex # has no host
    gpulse smi -L --sim t4,driver=535
    [ "${lines[0]}" = 'Unable to determine the device handle for GPU0: Unknown Error' ]
}

@test "when no GPU answers, the exit status says why" {
    fault h100x2 lost
    for words in '' -L; do
        # shellcheck disable=SC2086 # none, or one
        gpulse smi $words --sim h100x2
        answers 15
        line_count 3
        [ "${lines[2]}" = 'No devices were found' ]
    done
    fault h100x2 clear
    fault h100x2 deny:nvmlDeviceGetHandleByIndex
    gpulse smi --sim h100x2
    answers 4
    gpulse smi -i 1 --sim h100x2
    answers 4
    line_count 2
}

@test "a GPU that hangs has cells that cannot be read; the others are shown" {
    fault h100x2 --gpu 1 hang=1h:nvmlDeviceGetTemperature
    gpulse smi --sim h100x2 --timeout 2
    answers 0
    table_is_whole 91
    says '^\|   0  NVIDIA H100 80GB HBM3          On  \|   00000000:53:00\.0 Off \|                    0 \|$'
    says '^\|   1  NVIDIA H100 80GB HBM3        ERR!  \|   00000000:64:00\.0 N/A \|                 ERR! \|$'
    says '^\|ERR!  ERR!    ERR!         ERR!  / ERR!  \|       ERR! /      ERR! \|    ERR!         ERR! \|$'
    says '^\|                                         \|                        \|                 ERR! \|$'
    gpulse smi --sim h100x2 --timeout 2 -i 1
    answers 10
    table_is_whole 91
    # not even its name
    fault h100x2 clear
    fault h100x2,driver=515 --gpu 0 hang=1h:nvmlDeviceGetHandleByIndex
    gpulse smi --sim h100x2,driver=515 --timeout 2
    answers 0
    table_is_whole 79
    says '^\|   0  ERR! '
}

@test "a value that cannot be read" {
    fault h100x2 --gpu 0 error=UNKNOWN:nvmlDeviceGetPowerUsage
    fault h100x2 --gpu 0 error=UNKNOWN:nvmlDeviceGetTotalEccErrors
    fault h100x2 --gpu 0 deny:nvmlDeviceGetFanSpeed
    fault h100x2 --gpu 0 error=UNKNOWN:nvmlDeviceGetDisplayActive
    gpulse smi --sim h100x2 -i 0
    answers 0
    table_is_whole 91
    says '^\|   0  NVIDIA H100 80GB HBM3          On  \|   00000000:53:00\.0 N/A \|                 ERR! \|$'
    says '^\|ERR!   [0-9]+C    P0           ERR!  /  700W \|'
}

@test "a damaged infoROM is reported after the table" {
    fault h100x2 --gpu 1 error=CORRUPTED_INFOROM:nvmlDeviceValidateInforom
    gpulse smi --sim h100x2
    answers 14
    [ "${lines[-1]}" = 'WARNING: infoROM is corrupted at gpu 0000:64:00.0' ]
    [[ ${lines[-2]} == +---*--+ ]]
    gpulse smi --sim h100x2 -i 0
    answers 0
}

# ---- what the table shows ----

@test "the forms of the branches" {
    for row in 515:79 530:89 545:89 550:91 570:91 610:91; do
        gpulse smi --sim "a100-mig,driver=${row%:*}"
        answers 0
        table_is_whole "${row#*:}"
        gpulse smi --sim "a100,driver=${row%:*}"
        answers 0
        table_is_whole "${row#*:}"
    done
}

@test "--native: labels the versions as driver 610 does" {
    gpulse smi --sim t4,driver=610
    says '\| NVIDIA-SMI 610\.[0-9.]+ +Driver Version: 610\.[0-9.]+ +CUDA Version: [0-9.]+ +\|$'
    gpulse smi --native --sim t4,driver=610
    says '\| NVIDIA-SMI 610\.[0-9.]+ +KMD Version: 610\.[0-9.]+ +CUDA UMD Version: [0-9.]+ +\|$'
    table_is_whole 91
    gpulse smi --native --sim t4,driver=595
    says ' Driver Version: '
}

@test "a driver whose library has a version of its own, as on WSL" {
    machine rtx4090 'm["driver"].update(version="565.90", nvml="12.565.51.01", cuda=12070)'
    gpulse smi --sim ./m.json
    [ "${lines[2]}" = '| NVIDIA-SMI 565.51.01              Driver Version: 565.90         CUDA Version: 12.7     |' ]
    gpulse smi --version --sim ./m.json
    answers 0
    [ "${lines[0]}" = 'NVIDIA-SMI version  : 565.51.01' ]
    [ "${lines[1]}" = 'NVML version        : 565.51' ]
    [ "${lines[2]}" = 'DRIVER version      : 565.90' ]
    machine t4 'm["driver"].pop("cuda")'
    gpulse smi --sim ./m.json
    says ' CUDA Version: N/A      \|$'
}

@test "kinds of processes, one without memory, names too long, none cut within a character" {
    machine t4 'm["workload"] = []
d["processes"] = [dict(pid=9, type=t, name=n, memory_bytes=b) for t, n, b in (
    ("M", "/opt/mps/client", 1 << 20),
    ("C+G", "/usr/bin/" + "x" * 40, None),
    ("C", "/home/" + "ü" * 40, 3 << 30),
    ("C", "/" + "y" * 31, 5 << 30))]
for i, p in enumerate(d["processes"]): p["pid"] = 4000009 - i'
    mkdir root
    gpulse smi --sim ./m.json --root root
    answers 0
    says '^\|    0   N/A  N/A         4000006      C   /y{31}       5120MiB \|$'
    says '^\|    0   N/A  N/A         4000007      C   \.\.\.ü{14}        3072MiB \|$'
    says '^\|    0   N/A  N/A         4000008    C\+G   \.\.\.x{29}      N/A      \|$'
    says '^\|    0   N/A  N/A         4000009      M   /opt/mps/client                           1MiB \|$'
}

@test "processes of another container are not listed, but not denied either" {
    machine t4 'm["workload"] = []
d["processes"] = [{"pid": 7, "type": "C", "memory_bytes": 1 << 20, "name": "x"}]
m["faults"] = ["error=NOT_FOUND:nvmlSystemGetProcessName"]'
    mkdir root
    gpulse smi --sim ./m.json --root root
    answers 0
    says_not 'No running processes found|MiB \|$'
    machine t4 'm["workload"] = []; d["processes"] = []'
    gpulse smi --sim ./m.json --root root
    says '^\|  No running processes found {61}\|$'
}

@test "memory that is not the GPU's, or is kept to itself" {
    gpulse smi --sim gb10
    answers 0
    table_is_whole 91
    says '\| Not Supported          \|'
    fault h100-mig parent
    gpulse smi --sim h100-mig
    answers 0
    table_is_whole 91
    says '\|                  N/A   \|     N/A      Default \|$'
}

@test "MIG mode without MIG devices, and one that waits for a reset" {
    machine h100-mig 'd["mig"] = []; m["workload"] = []; d["processes"] = []'
    gpulse smi --sim ./m.json
    answers 0
    says '^\| MIG devices: {76}\|$'
    says '^\|  No MIG devices found {67}\|$'
    machine h100 'd["answers"]["MigMode"]["pending"] = "Enabled"'
    gpulse smi --sim ./m.json
    says '\|             Enabled\* \|$'
    says_not 'MIG devices'
}

@test "the chosen GPUs" {
    gpulse smi -i 2,0 --sim h100x4
    answers 0
    [ "$(grep -cE '^\|   [0-9]  NVIDIA' <<<"$output")" -eq 2 ]
    gpulse smi -L -i 00000000:64:00.0 --sim h100x4
    answers 0
    [ "${lines[*]}" = 'GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-00000001-0000-0000-0000-000000000001)' ]
    gpulse smi --list-gpus --id=GPU-00000003-0000-0000-0000-000000000003 --sim h100x4
    answers 0
    [[ ${lines[*]} == 'GPU 3: '* ]]
}

@test "list the GPUs that the kernel module excludes" {
    gpulse smi -B --sim h100x3
    answers 0
    output_is 'No excluded devices found.'
    fault h100x3 --gpu 1 excluded
    fault h100x3 --gpu 2 excluded
    gpulse smi --list-excluded-gpus --sim h100x3
    answers 0
    output_is 'Excluded GPU 0: 00000000:64:00.0 (UUID: GPU-00000001-0000-0000-0000-000000000001)
Excluded GPU 1: 00000000:75:00.0 (UUID: GPU-00000002-0000-0000-0000-000000000002)'
    gpulse smi -L --sim h100x3
    line_count 1
    gpulse query excluded_gpus --host --sim h100x3 -f csv --no-header
    answers 0
    # a driver that does not know the question
    gpulse smi -B --sim t4,driver=450
    answers 0
    output_is 'No excluded devices found.'
}

@test "a sleeping GPU is not woken: its identity and the driver come from the kernel" {
    cp -r "$HERE/data/machines/laptop-asleep.root" root
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.07  Sat Feb 17 22:55:48 UTC 2024' \
        >root/proc/driver/nvidia/version
    GPULSE_SIM_COUNT=$PWD/count gpulse smi --sim laptop-asleep --root root
    answers 0
    table_is_whole 89
    says '\| NVIDIA-SMI 535\.161\.07             Driver Version: 535\.161\.07   CUDA Version: N/A      \|$'
    says '^\|   0  NVIDIA GeForce RTX 3060 \.\.\.   N/A  \| 00000000:01:00\.0 N/A \|                  N/A \|$'
    [ ! -e count ]
}

# ---- the command line ----

@test "called nvidia-smi, gpulse is nvidia-smi" {
    ln -s "$GPULSE" nvidia-smi
    mkdir bin
    ln -s ../nvidia-smi bin/nvidia-smi
    for name in ./nvidia-smi "$PWD/bin/nvidia-smi"; do
        GPULSE_SIM=t4 run --separate-stderr "$name" -L
        answers 0
        [[ $output == 'GPU 0: Tesla T4 (UUID: '* ]]
        run --separate-stderr "$name" --sim h100x2 -L
        answers 0
        line_count 2
    done
    PATH=$PWD/bin:$PATH run --separate-stderr nvidia-smi --sim t4 -i 1
    answers 6
    PATH=$PWD/bin:$PATH run --separate-stderr nvidia-smi --sim t4 --nosuch
    answers 255
}

@test "gpulse's own options before the command, after it, and in the environment" {
    gpulse --sim h100x2 smi -L
    answers 0
    line_count 2
    GPULSE_SIM=h100x2 gpulse smi -L
    line_count 2
    gpulse --sim h100x2 smi -L --sim t4
    line_count 1
    gpulse --sim h100x2 -i 1 smi -L
    line_count 1
}

@test "gpulse's own options between smi and its command" {
    gpulse smi --sim h100x2 --timeout=2m --sim-still topo -p2p r
    answers 0
    [[ "$output" = *" GPU1"* ]]
    gpulse smi --sim nope topo -m
    answers 2
    gpulse smi --sim
    answers 255
}

@test "again and again, each with its date, until it is interrupted" {
    start smi -lms 50 --sim t4
    until_true eval '[ "$(grep -c "NVIDIA-SMI" out)" -ge 3 ]'
    kill -INT "$pid"
    finish
    status_is 130
    [ "$(grep -cE '^[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} [0-9]{4} {7}$' out)" -eq \
        "$(grep -c '^| NVIDIA-SMI' out)" ]
    tail -n 1 out | grep -q '^+-*+$'
    [ ! -s err ]
}

@test "-f: overwrites a file" {
    seq 1000 >file
    gpulse smi -f file --sim t4
    answers 0
    [ -z "$output" ]
    [ "$(sed -n 3p file | cut -c 1-13)" = '| NVIDIA-SMI ' ]
    [ "$(wc -l <file)" -lt 40 ]
    gpulse smi -L --filename=file --sim t4
    [ "$(cat file)" = 'GPU 0: Tesla T4 (UUID: GPU-00000000-0000-0000-0000-000000000000)' ]
    gpulse smi -f /nosuch/file --sim t4
    status_is 255
    [ "$output" = "Failed to create the log file /nosuch/file" ]
    [ "$stderr" = "gpulse: No such file or directory" ]
}

@test "only printed values are read" {
    GPULSE_SIM_COUNT=$PWD/count gpulse smi --sim h100x2
    answers 0
    run ! grep -E 'BAR1|MemoryErrorCounter|Clock|Serial|Pcie' count
    GPULSE_SIM_COUNT=$PWD/count gpulse smi -L --sim h100x2
    run ! grep -E 'Memory|Utilization|Temperature|Processes' count
    GPULSE_SIM_COUNT=$PWD/count gpulse smi --version --sim h100x2
    run ! grep -E 'nvmlDeviceGet[^C]' count
}

@test "memory of a process that is too wide for its cell is cut; all lines are equally wide" {
    gpulse smi --sim b200 --sim-still
    answers 0
    [ "$(tail -n +2 <<<"$output" | awk 'length' | awk '{print length}' | sort -u)" = 91 ]
    [[ "$output" = *"      1"????"... |"* ]]
}

@test "a GPU that does not list its processes is not said to have none" {
    gpulse smi --sim t4
    answers 0
    [[ "$output" = *"No running processes found"* ]] || [[ "$output" = *MiB\ \|* ]]
    fault t4 deny:nvmlDeviceGetComputeRunningProcesses deny:nvmlDeviceGetGraphicsRunningProcesses deny:nvmlDeviceGetMPSComputeRunningProcesses
    gpulse smi --sim t4
    answers 0
    [[ "$output" != *"No running processes found"* ]]
    gpulse smi --sim t4 -q -d PIDS
    [[ "$output" = *"Processes                                          : Insufficient Permissions"* ]]
}

@test "a MIG device is no GPU for -i" {
    local words uuid
    gpulse smi --sim h100-mig -L
    uuid=$(grep -o 'MIG-[0-9a-f-]*' <<<"$output" | head -1)
    for words in "" -q "-q -x" "dmon -c 1" "nvlink -s" "mig -lgi" "--query-gpu=name --format=csv"; do
        # shellcheck disable=SC2086
        gpulse --sim h100-mig smi $words -i "$uuid"
        answers 6
        [ "$output" = "No devices were found" ]
    done
}

@test "commands that are not there say so" {
    gpulse smi --sim t4 drain -h
    answers 3
    [ "$output" = "gpulse: nvidia-smi drain is not supported: gpulse does not call nvmlDeviceQueryDrainState, nvmlDeviceModifyDrainState, nvmlDeviceRemoveGpu_v2 and nvmlDeviceDiscoverGpus" ]
    for name in base-clocks boost-slider compute-policy daemon gpm pci power-hint power-profiles power-smoothing prm replay rusd soc; do
        gpulse smi $name --sim t4
        answers 3
        [[ "$output" = "gpulse: nvidia-smi $name is not supported: "* ]]
    done
    # what is said of the driver's library is what its symbols show
    gpulse smi power-smoothing --sim t4
    for call in $(grep -o 'nvml[A-Za-z_0-9]*' <<<"$output"); do
        grep -q "$call" "$HERE"/data/captures/nvml-symbols__*.txt || explain "no driver has $call"
    done
    [[ "$output" = *"; instead: gpulse query 'power_smoothing.*'" ]]
    gpulse smi --sim t4 power-profiles -l
    answers 3
}

@test "GPUs that are left alone are listed where no other one is" {
    fault t4 --gpu 0 excluded
    gpulse smi --sim t4 -B
    answers 0
    [[ "$output" = "Excluded GPU 0: "* ]]
    gpulse smi --sim t4
    answers 6
}

@test "a loop terminates with the signal that stops it" {
    start smi -lms 50 -L --sim t4
    until_true grep -qs Tesla out
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 143 ]
}
