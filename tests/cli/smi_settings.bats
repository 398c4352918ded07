# gpulse smi: the options that change something: nvidia-smi's lines, its exit codes, and what is so
# afterwards.
# variants: asan

load helpers

T4=00000000:00:1E.0
A100=00000000:06:00.0
H100=00000000:53:00.0
OTHER=00000000:77:00.0

# answers STATUS ARG…: these lines (standard input), and nothing on standard error
answers() {
    local wanted=$1
    shift
    cat >expected
    status=0
    "$GPULSE" smi "$@" >out 2>err || status=$?
    output=$(cat out) stderr=$(cat err)
    status_is "$wanted"
    is_quiet
    diff -u expected out >&2 || explain "that is not what nvidia-smi says: $*"
}

# is MACHINE FIELD VALUE [ARG…]: what another process reads
is() {
    local machine=$1 field=$2 value=$3 got
    shift 3
    got=$("$GPULSE" --sim "$machine" query "$field" -f csv --no-header "$@")
    [ "$got" = "$value" ] || explain "$field is $got, expected $value"
}

# shows CONTROL VALUE MACHINE: a control, as gpulse set tells it
shows() {
    local got
    got=$("$GPULSE" --sim "$3" set --show -f json |
        python3 -c "import json, sys; print(json.load(sys.stdin)['gpus'][0]['controls']['$1']['value'])")
    [ "$got" = "$2" ] || explain "$1 is $got, expected $2"
}

# alone MACHINE [PYTHON]: m.json, one GPU that nobody uses
alone() {
    machine "$1" "m['workload'] = []; m['devices'] = m['devices'][:1]; d['processes'] = []; ${2-}"
}

# two MACHINE PYTHON: m.json, that GPU d and another one, e, on bus 77
two() {
    machine "$1" "import copy
e = copy.deepcopy(d)
e['uuid'] = 'GPU-00000000-0000-0000-0000-000000000077'
e['pci']['bus_id'] = '00000000:77:00.0'
m['devices'] = [d, e]
m['workload'] = []
d['processes'] = e['processes'] = []
$2"
}

# Nothing that changes something was called.
no_setter_was_called() {
    ! grep -E '^nvml(Device)?(Set|Reset|Clear|Create)|Destroy' count || explain "a setter was called"
}

# bus MACHINE: of its first GPU
bus() {
    "$GPULSE" --sim "$1" query pci.bus_id -i 0 -f csv --no-header
}

warning() {
    printf '\nWarning: persistence mode is disabled on device %s. See the Known Issues section of the nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get more information on how to enable persistence mode.\n' "$1"
}

# ---- each setting ----

@test "-pm: on, off, already so; numbers and words in any case, long names with = or a blank" {
    answers 0 --sim t4 -pm 1 <<<"Persistence mode is already Enabled for GPU $T4.
All done."
    answers 0 --sim t4 -pm Disabled <<<"Disabled persistence mode for GPU $T4.
All done."
    is t4 persistence_mode Disabled
    answers 0 --sim t4 --persistence-mode=0 <<<"Persistence mode is already Disabled for GPU $T4.
All done."
    answers 0 --persistence-mode ENABLED --sim t4 <<<"Enabled persistence mode for GPU $T4.
All done."
    is t4 persistence_mode Enabled
}

@test "-pm without nvidia-persistenced, as drivers since 580 say it" {
    mkdir -p root/run/nvidia-persistenced
    "$GPULSE" smi --sim t4 -pm 0
    answers 0 --sim t4 --root "$PWD/root" -pm 1 <<<"Enabled Legacy persistence mode for GPU $T4.
All done."
    "$GPULSE" smi --sim t4 -pm 0
    touch root/run/nvidia-persistenced/socket
    answers 0 --sim t4 --root "$PWD/root" -pm 1 <<<"Enabled persistence mode for GPU $T4.
All done."
    answers 0 --sim a100 --root /nowhere -pm 1 <<<"Persistence mode is already Enabled for GPU $A100.
All done."
    answers 0 --sim a100 --root /nowhere -pm 0 <<<"Disabled persistence mode for GPU $A100.
All done."
    answers 0 --sim a100 --root /nowhere -pm 1 <<<"Enabled persistence mode for GPU $A100.
All done."
}

@test "-pl: from what to what, also for no change; fractions of a watt" {
    answers 0 --sim t4 -pl 65 <<<"Power limit for GPU $T4 was set to 65.00 W from 70.00 W.
All done."
    is t4 power.limit 65.00
    answers 0 --sim t4 --power-limit=65 <<<"Power limit for GPU $T4 was set to 65.00 W from 65.00 W.
All done."
    answers 0 --sim t4 -pl 60.5 <<<"Power limit for GPU $T4 was set to 60.50 W from 65.00 W.
All done."
    is t4 power.limit 60.50
    answers 2 --sim t4 -pl 150 <<<"Provided power limit 150.00 W is not a valid power limit which should be between 60.00 W and 70.00 W for GPU $T4
Terminating early due to previous errors."
    is t4 power.limit 60.50
}

@test "-pl --scope: of the GPU, or of the module around it" {
    answers 0 --sim gb200 -i 0 -pl 2000 -sc 1 <<<"Power limit for GPU $(bus gb200) was set to 2000.00 W from 2500.00 W.
All done."
    shows module-power-limit 2000 gb200
    is gb200 power.limit 1200.00 -i 0
    answers 0 --sim gb200 -i 0 -pl 1000 --scope=gpu <<<"Power limit for GPU $(bus gb200) was set to 1000.00 W from 1200.00 W.
All done."
    is gb200 power.limit 1000.00 -i 0
    answers 0 --sim t4 -pl 65 --scope TOTAL_MODULE <<<"Changing power management limit is not supported in current scope for GPU: $T4.
All done."
    answers 2 --sim t4 -pl 65 -sc 7 <<<'Option "7" is invalid for "--scope".'
}

@test "-pl where it is not supported is a warning, in the words of the driver" {
    alone t4 'd["answers"]["PowerManagementLimit"] = "NOT_SUPPORTED"'
    answers 0 --sim ./m.json -pl 65 <<<"Changing power management limit is not supported in current scope for GPU: $T4.
All done."
    answers 3 --sim ./m.json -pl 65 -eow <<<"Changing power management limit is not supported in current scope for GPU: $T4.
All done."
    answers 0 --sim ./m.json,driver=550 -pl 65 <<<"Changing power management limit is not supported for GPU: $T4.
Treating as warning and moving on.
All done."
}

@test "-lgc, -rgc: one clock or two; the driver does not tell them, so a reset says nothing" {
    answers 0 --sim t4 -lgc 1200 <<<"GPU clocks set to \"(gpuClkMin 1200, gpuClkMax 1200)\" for GPU $T4
All done."
    is t4 clocks.sm 1200
    answers 0 --sim t4 --lock-gpu-clocks=300,600 --mode=0 <<<"GPU clocks set to \"(gpuClkMin 300, gpuClkMax 600)\" for GPU $T4
All done."
    answers 0 --sim t4 -rgc <<<"All done."
    [ "$("$GPULSE" --sim t4 query clocks.sm -f csv --no-header)" -gt 600 ]
    answers 0 --sim t4 -lgc tdp,tdp <<<"GPU clocks set to \"(gpuClkMin tdp, gpuClkMax tdp)\" for GPU $T4
All done."
    # before Volta
    answers 0 --sim p100 -lgc 1000 <<<"Setting locked GPU clocks is not supported for GPU $(bus p100).
Treating as warning and moving on.
All done."
    answers 0 --sim p100 -rgc <<<"Setting locked GPU clocks is not supported for GPU $(bus p100).
Treating as warning and moving on.
All done."
    answers 3 --sim t4 -lgc 1000 -m 1 <<<"Locking GPU clocks with --mode=1 is not supported.
gpulse: the driver's public interface has no call for this; NVIDIA's own nvidia-smi may do it."
}

@test "-lmc, -rmc" {
    answers 0 --sim a100 -lmc 1215 <<<"Memory clocks set to \"(memClkMin 1215, memClkMax 1215)\" for GPU $A100
All done."
    answers 0 --sim a100 --reset-memory-clocks <<<"All done."
    answers 0 --sim t4 -lmc 5001 <<<"Setting locked Memory clocks is not supported for GPU $T4.
Treating as warning and moving on.
All done."
}

@test "-ac, -rac: supported, not that pair, not supported, given up" {
    answers 0 --sim a100 -ac 1215,900 <<<"Applications clocks set to \"(MEM 1215, SM 900)\" for GPU $A100
All done."
    is a100 clocks.applications.graphics 900
    answers 0 --sim a100 -ac 715,111 <<<"Specified clock combination \"(MEM 715, SM 111)\" is not supported for GPU $A100. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations
Treating as warning and moving on.
All done."
    is a100 clocks.applications.graphics 900
    answers 0 --sim a100 -rac <<<"All done."
    is a100 clocks.applications.graphics 1095
    answers 0 --sim rtx4090 -rac <<<"Setting applications clocks is not supported for GPU $(bus rtx4090).
Treating as warning and moving on.
All done."
    answers 0 --sim t4 -ac 5001,900 <<<"The requested functionality has been deprecated.
All done."
}

@test "-ac of several GPUs: each has its turn, and a refused pair speaks for one GPU alone" {
    two a100 'd["lists"]["supported_clocks"][0]["graphics"] = "1410"'
    answers 0 --sim ./m.json -ac 1215,900 <<<"Specified clock combination \"(MEM 1215, SM 900)\" is not supported for GPU $A100. Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations
Treating as warning and moving on.
Applications clocks set to \"(MEM 1215, SM 900)\" for GPU $OTHER
All done."
}

@test "-c: the mode, already so, and the one that was given up" {
    answers 0 --sim t4 -c EXCLUSIVE_PROCESS <<<"Set compute mode to EXCLUSIVE_PROCESS for GPU $T4.
All done."
    is t4 compute_mode Exclusive_Process
    answers 0 --sim t4 --compute-mode 3 <<<"Compute mode is already set to EXCLUSIVE_PROCESS for GPU $T4.
All done."
    answers 0 --sim t4 -c prohibited <<<"Set compute mode to PROHIBITED for GPU $T4.
All done."
    answers 0 --sim t4 -c 1 <<<"Warning: Exclusive_Thread was deprecated! Setting Exclusive_Process instead.
Set compute mode to EXCLUSIVE_PROCESS for GPU $T4.
All done."
    is t4 compute_mode Exclusive_Process
    answers 0 --sim t4 -c 0 <<<"Set compute mode to DEFAULT for GPU $T4.
All done."
}

@test "-e: takes effect after a reboot" {
    answers 0 --sim t4 -e 0 <<<"Disabled ECC support for GPU $T4.
All done.
Reboot required."
    is t4 ecc.mode.current Enabled
    is t4 ecc.mode.pending Disabled
    # it is not so already: it waits for the reboot
    answers 0 --sim t4 --ecc-config=DISABLED <<<"Disabled ECC support for GPU $T4.
All done.
Reboot required."
    answers 0 --sim t4 -e 1 <<<"Enabled ECC support for GPU $T4.
All done.
Reboot required."
    is t4 ecc.mode.pending Enabled
}

@test "-p: the counters of errors" {
    gpulse --sim t4 set --show
    answers 0 --sim t4 -p 0 <<<"Reset volatile ECC errors to zero for GPU $T4.
All done."
    answers 0 --sim t4 --reset-ecc-errors=AGGREGATE <<<"Reset aggregate ECC errors to zero for GPU $T4.
All done."
}

@test "-am, -caa" {
    answers 0 --sim t4 -am 0 <<<"Disabled Accounting Mode for GPU $T4.
All done."
    is t4 accounting.mode Disabled
    answers 0 --sim t4 -am ENABLED <<<"Enabled Accounting Mode for GPU $T4.
All done."
    is t4 accounting.mode Enabled
    answers 0 --sim t4 -caa <<<"Cleared Accounted PIDs for GPU $T4.
All done."
}

@test "a closed output does not stop a half-done change" {
    gpulse sim reset -m h100x2
    run --separate-stderr bash -c "'$GPULSE' smi --sim h100x2 -pl 300 >/dev/full"
    status_is 255
    gpulse query power.limit --no-header --sim h100x2
    [ "${lines[*]}" = "300.00 W 300.00 W" ]
}

@test "--gom: where a GPU has modes of operation" {
    machine t4 'd["answers"]["GpuOperationMode"] = {"current": "Compute", "pending": "Compute"}'
    answers 0 --sim ./m.json --gom ALL_ON <<<"GOM changed to \"All On\" for GPU $T4.
All done.
Reboot required."
    is ./m.json gom.pending 'All On'
    # what waits for the reset is not so already
    answers 0 --sim ./m.json --gom=0 <<<"GOM changed to \"All On\" for GPU $T4.
All done.
Reboot required."
    answers 0 --sim ./m.json --gom=1 <<<"GOM changed to \"Compute\" for GPU $T4.
All done.
Reboot required."
    answers 0 --sim ./m.json --gom=1 <<<"GOM is already set to \"Compute\" for GPU $T4.
All done."
    answers 0 --sim ./m.json --gom=0 <<<"GOM changed to \"All On\" for GPU $T4.
All done.
Reboot required."
    GPULSE_SIM_ROOT=0 answers 4 --sim ./m.json --gom=1 <<<"Unable to set GOM to \"Compute\" for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 0 --sim t4 --gom=0 <<<"Unable to set GOM to \"All On\" for GPU $T4: Not Supported
Treating as warning and moving on.
All done."
}

@test "-mig: at once, waiting for the last client, waiting for a reset, refused" {
    alone h100
    answers 0 --sim ./m.json -mig 1 <<<"Enabled MIG Mode for GPU $H100
All done."
    is ./m.json mig.mode.current Enabled
    answers 0 --sim ./m.json --multi-instance-gpu=ENABLED <<<"Enabled MIG Mode for GPU $H100
All done."
    answers 0 --sim ./m.json -mig DISABLED <<<"Disabled MIG Mode for GPU $H100
All done."
    is ./m.json mig.mode.current Disabled
    answers 0 --sim h100x8 -i 0 -mig 1 <<<"Warning: MIG mode is in pending enable state for GPU $H100:In use by another client
$H100 is currently being used by one or more other processes (e.g. CUDA application or a monitoring application such as another instance of nvidia-smi). Please first kill all processes using the device and retry the command or reboot the system to make MIG mode effective.
All done."
    is h100x8 mig.mode.pending Enabled -i 0
    fault ./m.json error=IN_USE:nvmlDeviceSetMigMode
    answers 19 --sim ./m.json -mig 1 <<<"Unable to enable MIG Mode for GPU $H100: In use by another client
Terminating early due to previous errors."
    answers 0 --sim t4 -mig 1 <<<"Unable to enable MIG Mode for GPU $T4: Not Supported
Treating as warning and moving on.
All done."
}

@test "-gtt: within the range of the GPU" {
    bus=$(bus rtx3060)
    answers 0 --sim rtx3060 -gtt 70 <<<"GPU target temperature for GPU $bus was set to 70 C from 83 C.
All done."
    is rtx3060 temperature.target 70
    answers 2 --sim rtx3060 --gpu-target-temp=91 <<<"Provided target temperature 91 C is not a valid target temperature which should be between 65 C and 90 C for GPU $bus
Terminating early due to previous errors."
    GPULSE_SIM_ROOT=0 answers 4 --sim rtx3060 -gtt 80 <<<"Unable to set target temperature for GPU $bus: Insufficient Permissions
Terminating early due to previous errors."
    is rtx3060 temperature.target 70
    answers 0 --sim t4 -gtt 80 <<<"GPU Temperature Target Threshold not supported for GPU $T4.
Treating as warning and moving on.
All done."
    # it tells its target, and takes no other
    answers 0 --sim rtx2080s -gtt 80 <<<"GPU Temperature Target Threshold not supported for GPU $(bus rtx2080s).
Treating as warning and moving on.
All done."
}

@test "-acp, --auto-boost-default, --auto-boost-permission" {
    machine p100 'd["answers"].update(AutoBoostedClocksEnabled={"current": 1, "default": 1},
        APIRestriction={"SET_APPLICATION_CLOCKS": 1, "SET_AUTO_BOOSTED_CLOCKS": 1})'
    bus=$(bus p100)
    answers 0 --sim ./m.json --auto-boost-default=DISABLED <<<"All done."
    is ./m.json clocks.auto_boost_default Off
    answers 0 --sim ./m.json --auto-boost-permission 0 <<<"All done."
    shows auto-boost-access all ./m.json
    GPULSE_SIM_ROOT=0 answers 4 --sim ./m.json -ac 715,544 <<<"The current user does not have permission to change clocks for GPU $bus.
Terminating early due to previous errors."
    answers 0 --sim ./m.json -acp unrestricted <<<"Applications clocks commands have been set to UNRESTRICTED for GPU $bus
All done."
    shows app-clocks-access all ./m.json
    GPULSE_SIM_ROOT=0 answers 0 --sim ./m.json -ac 715,544 <<<"Applications clocks set to \"(MEM 715, SM 544)\" for GPU $bus
$(warning "$bus")
All done."
    GPULSE_SIM_ROOT=0 answers 4 --sim ./m.json -acp 1 <<<"Unable to set applications clocks commands to RESTRICTED for GPU $bus: Insufficient Permissions
Terminating early due to previous errors."
    answers 0 --sim t4 --auto-boost-default=0 <<<"Enabling/disabling default auto boosted clocks is not supported for GPU: $T4.
Treating as warning and moving on.
All done."
    for option in --applications-clocks-permission=0 --auto-boost-permission=1; do
        run "$GPULSE" smi --sim t4 $option
        status_is 0
        says "not supported for GPU: $T4"
    done
}

@test "-vm, -den, --set-hostname, --get-hostname" {
    machine t4 'd["answers"].update(VirtualizationMode="Host VGPU", Hostname="old-name", DramEncryptionMode={"current": 0, "pending": 0})'
    answers 0 --sim ./m.json -vm 4 <<<"Set virtualization mode to VSGA for GPU $T4.
All done."
    is ./m.json virtualization.mode "Host VSGA"
    answers 0 --sim ./m.json --dram-encryption=1 <<<"Enabled DRAM Encryption for GPU $T4.
All done.
Reboot required."
    is ./m.json dramEncryption.mode.pending Enabled
    answers 0 --sim ./m.json -den enabled <<<"Enabled DRAM Encryption for GPU $T4.
All done.
Reboot required."
    answers 0 --sim ./m.json --get-hostname <<<"Hostname for GPU $T4: old-name
All done."
    answers 0 --sim ./m.json --set-hostname=node-17 <<<"Hostname for GPU $T4 was set to node-17.
All done."
    is ./m.json hostname node-17
    answers 0 --sim ./m.json --get-hostname --dry-run <<<"Hostname for GPU $T4: node-17
All done."
    answers 2 --sim ./m.json --set-hostname 'a b' <<<'Option "a b" is invalid for "--set-hostname".'
    GPULSE_SIM_ROOT=0 answers 4 --sim ./m.json --set-hostname=x <<<"Unable to set hostname for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    GPULSE_SIM_ROOT=0 answers 0 --sim ./m.json --get-hostname <<<"Hostname for GPU $T4: node-17
All done."
    for option in --virt-mode=3 --dram-encryption=1 --set-hostname=x --get-hostname; do
        run "$GPULSE" smi --sim t4 $option
        status_is 0
        says "is not supported for GPU $T4"
    done
}

@test "a warning counts with -eow, and only there" {
    answers 19 --sim h100x8 -i 0 -mig 1 --error-on-warning <<<"Warning: MIG mode is in pending enable state for GPU $H100:In use by another client
$H100 is currently being used by one or more other processes (e.g. CUDA application or a monitoring application such as another instance of nvidia-smi). Please first kill all processes using the device and retry the command or reboot the system to make MIG mode effective.
All done."
    answers 3 --sim t4 -mig 1 -eow <<<"Unable to enable MIG Mode for GPU $T4: Not Supported
Treating as warning and moving on.
All done."
    answers 0 --sim t4 -pl 65 -eow <<<"Power limit for GPU $T4 was set to 65.00 W from 70.00 W.
All done."
}

# ---- persistence mode ----

@test "settings lost without persistence mode are reported; a reset and a mode are not" {
    alone a100 'd["answers"]["PersistenceMode"] = "Disabled"'
    answers 0 --sim ./m.json -pl 300 <<<"Power limit for GPU $A100 was set to 300.00 W from 400.00 W.
$(warning $A100)
All done."
    answers 0 --sim ./m.json -lgc 1000,1100 <<<"GPU clocks set to \"(gpuClkMin 1000, gpuClkMax 1100)\" for GPU $A100
$(warning $A100)
All done."
    answers 0 --sim ./m.json -mig 1 <<<"Enabled MIG Mode for GPU $A100
$(warning $A100)
All done."
    answers 255 --sim ./m.json -mig 0 -eow <<<"Disabled MIG Mode for GPU $A100
$(warning $A100)
All done."
    answers 0 --sim ./m.json -rgc <<<"All done."
    answers 0 --sim ./m.json -am 1 <<<"Enabled Accounting Mode for GPU $A100.
All done."
}

# ---- rights ----

@test "who may not: a line for the first GPU, exit status 4, and nothing is changed" {
    export GPULSE_SIM_ROOT=0
    answers 4 --sim t4 -pm 0 <<<"Unable to set persistence mode for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 4 --sim h100x8 -pl 600 <<<"Failed to set power management limit for GPU $H100: Insufficient Permissions
Terminating early due to previous errors."
    for option in "-lgc 900" -rgc "-lmc 1215" -rmc "-ac 1215,900" -rac; do
        # shellcheck disable=SC2086
        answers 4 --sim a100 $option <<<"The current user does not have permission to change clocks for GPU $A100.
Terminating early due to previous errors."
    done
    answers 4 --sim t4 -c 1 <<<"Warning: Exclusive_Thread was deprecated! Setting Exclusive_Process instead.
Unable to set the compute mode for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 4 --sim t4 -e 0 <<<"Unable to disable ECC support for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 4 --sim t4 -p 1 <<<"Unable to reset aggregate ECC errors for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 4 --sim t4 -am 0 <<<"Unable to disable Accounting Mode for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 4 --sim t4 -caa <<<"Unable to clear Accounted PIDs for GPU $T4: Insufficient Permissions
Terminating early due to previous errors."
    answers 4 --sim h100x1 -mig 1 <<<"Unable to enable MIG Mode for GPU $H100: Insufficient Permissions
Terminating early due to previous errors."
    # it is so already: nothing is asked of the driver
    answers 0 --sim t4 -pm 1 <<<"Persistence mode is already Enabled for GPU $T4.
All done."
    # what a GPU does not have is said before the rights are looked at
    answers 0 --sim t4 -lmc 5001 <<<"Setting locked Memory clocks is not supported for GPU $T4.
Treating as warning and moving on.
All done."
    unset GPULSE_SIM_ROOT
    is t4 persistence_mode Enabled
    is h100x8 power.limit 700.00 -i 0
    is t4 compute_mode Default
    is t4 ecc.mode.pending Enabled
    is t4 accounting.mode Enabled
    is h100x1 mig.mode.pending Disabled
}

# ---- several GPUs ----

@test "all GPUs, or those of -i: a line for each and one at the end" {
    answers 0 --sim h100x2 -pl 500 <<<"Power limit for GPU $H100 was set to 500.00 W from 700.00 W.
Power limit for GPU 00000000:64:00.0 was set to 500.00 W from 700.00 W.
All done."
    answers 0 --sim h100x2 -pl 400 --id=1 <<<"Power limit for GPU 00000000:64:00.0 was set to 400.00 W from 500.00 W.
All done."
    answers 0 --sim h100x2 -i 00000000:53:00.0 -pl 300 <<<"Power limit for GPU $H100 was set to 300.00 W from 500.00 W.
All done."
    is h100x2 power.limit '300.00
400.00'
    answers 6 --sim h100x2 -i 7 -pl 300 <<<"No devices were found"
}

@test "an error stops the command: the GPUs before it are changed, the ones after it are not" {
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:3]; m["devices"][1]["answers"]["PowerManagementLimitConstraints"]["max"] = 350000'
    answers 2 --sim ./m.json -pl 400 <<<"Power limit for GPU $H100 was set to 400.00 W from 700.00 W.
Provided power limit 400.00 W is not a valid power limit which should be between 200.00 W and 350.00 W for GPU 00000000:64:00.0
Terminating early due to previous errors."
    is ./m.json power.limit '400.00
700.00
700.00'
}

@test "a GPU that lacks it is passed over" {
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:2]; m["devices"][0]["answers"]["AccountingMode"] = "NOT_SUPPORTED"'
    answers 0 --sim ./m.json -am 1 <<<"Unable to enable Accounting Mode for GPU $H100: Not Supported
Treating as warning and moving on.
Enabled Accounting Mode for GPU 00000000:64:00.0.
All done."
}

@test "a MIG device has a compute mode of its own" {
    uuid=$("$GPULSE" --sim a100-mig query uuid --mig -f csv --no-header | sed -n 2p)
    answers 0 --sim a100-mig -i "$uuid" -c 2 <<<"Set compute mode to PROHIBITED for GPU $(bus a100-mig).
All done."
    is a100-mig compute_mode Prohibited --mig -i "$uuid"
}

# ---- drivers that fail ----

@test "the driver's return code is the exit status" {
    fault t4 error=UNKNOWN:nvmlDeviceSetPersistenceMode
    answers 255 --sim t4 -pm 0 <<<"Unable to set persistence mode for GPU $T4: Unknown Error
Terminating early due to previous errors."
    fault t4 error=INVALID_ARGUMENT:nvmlDeviceSetGpuLockedClocks
    answers 2 --sim t4 -lgc 1000 <<<"Unable to set locked GPU clocks for GPU $T4: Invalid Argument
Terminating early due to previous errors."
    fault t4 error=NOT_SUPPORTED:nvmlDeviceSetComputeMode
    answers 0 --sim t4 -c 3 <<<"Unable to set the compute mode for GPU $T4: Not Supported
Treating as warning and moving on.
All done."
    fault t4 error=UNKNOWN:nvmlDeviceGetEccMode
    answers 255 --sim t4 -e 0 <<<"Unable to disable ECC support for GPU $T4: Unknown Error
Terminating early due to previous errors."
}

@test "a lost GPU, and one that hangs" {
    fault t4 --gpu 0 lost
    answers 15 --sim t4 -pl 60 <<<"Unable to determine the device handle for GPU0: GPU is lost
Terminating early due to previous errors."
    fault h100x2 --gpu 0 lost
    answers 15 --sim h100x2 -pl 400 <<<"Unable to determine the device handle for GPU0: 0000:53:00.0: GPU is lost
Treating as warning and moving on.
Power limit for GPU 00000000:64:00.0 was set to 400.00 W from 700.00 W.
All done."
    is h100x2 power.limit 400.00 -i 1
    fault h100x2 clear
    fault h100x2 --gpu 1 hang=1h:nvmlDeviceSetPowerManagementLimit
    answers 10 --sim h100x2 --timeout 2s -pl 450 <<<"Power limit for GPU $H100 was set to 450.00 W from 700.00 W.
Failed to set power management limit for GPU 00000000:64:00.0: Timeout
Treating as warning and moving on.
All done."
    fault h100x2 clear
    fault h100x2 --gpu 0 hang=1h:nvmlDeviceSetPowerManagementLimit
    answers 10 --sim h100x2 --timeout 2s -pl 500 <<<"Failed to set power management limit for GPU $H100: Timeout
Treating as warning and moving on.
Power limit for GPU 00000000:64:00.0 was set to 500.00 W from 400.00 W.
All done."
}

@test "a setting that the driver accepts and does not keep" {
    alone h100
    fault ./m.json ignore
    answers 255 --sim ./m.json -pl 400 <<<"Failed to set power management limit for GPU $H100: the driver accepted the change, but reports another value
Terminating early due to previous errors."
    answers 255 --sim ./m.json -c 3 <<<"Unable to set the compute mode for GPU $H100: the driver accepted the change, but reports another value
Terminating early due to previous errors."
}

@test "a GPU that sleeps is not woken, and that is said" {
    answers 255 --sim laptop-asleep -pm 1 <<<"Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error
gpulse: GPU 0: asleep to save power; gpulse does not wake it up
Terminating early due to previous errors."
}

# ---- what the public interface cannot do ----

@test "-r: idle GPU: not supported, and what to do instead" {
    alone h100
    GPULSE_SIM_COUNT=$PWD/count answers 3 --sim ./m.json -r <<<"Resetting GPU $H100 is not supported.
gpulse cannot reset GPUs, because the driver has no public call for it; use NVIDIA's own nvidia-smi --gpu-reset, or reboot."
    no_setter_was_called
}

@test "-r: who holds the GPUs" {
    answers 255 --sim t4 --gpu-reset <<<"
The following GPUs could not be reset:
  GPU $T4: In use by another client

1 device is currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, graphics application such as an X server, or a monitoring application such as another instance of nvidia-smi). Please first kill all processes using this device and all compute applications running in the system.
gpulse cannot reset GPUs, because the driver has no public call for it; use NVIDIA's own nvidia-smi --gpu-reset, or reboot."
    answers 255 --sim h100x8 -r bus -i 0,1,7 <<<"
The following GPUs could not be reset:
  GPU $H100: In use by another client
  GPU 00000000:64:00.0: In use by another client
  GPU 00000000:CA:00.0: Not Supported

2 devices are currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, graphics application such as an X server, or a monitoring application such as another instance of nvidia-smi). Please first kill all processes using these devices and all compute applications running in the system.
gpulse cannot reset GPUs, because the driver has no public call for it; use NVIDIA's own nvidia-smi --gpu-reset, or reboot."
    # what runs in a MIG instance holds the GPU
    answers 255 --sim h100-mig -r <<<"
The following GPUs could not be reset:
  GPU $(bus h100-mig): In use by another client

1 device is currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, graphics application such as an X server, or a monitoring application such as another instance of nvidia-smi). Please first kill all processes using this device and all compute applications running in the system.
gpulse cannot reset GPUs, because the driver has no public call for it; use NVIDIA's own nvidia-smi --gpu-reset, or reboot."
}

@test "settings without a public call are refused: no success, and nothing is tried" {
    export GPULSE_SIM_COUNT=$PWD/count
    for option in "-lmcd 1000" -rmcd "--lock-memory-clocks-deferred=1000"; do
        # shellcheck disable=SC2086
        answers 3 --sim t4 $option <<<"Setting deferred locked Memory clocks is not supported for GPU $T4.
gpulse: the driver's public interface has no call for this; NVIDIA's own nvidia-smi may do it.
Terminating early due to previous errors."
    done
    answers 3 --sim t4 -cc OVERRIDE <<<"Setting CUDA clocks is not supported for GPU $T4.
gpulse: the driver's public interface has no call for this; NVIDIA's own nvidia-smi may do it.
Terminating early due to previous errors."
    no_setter_was_called
}

# ---- the command line ----

@test "one setting at a time, and no other options with it" {
    export GPULSE_SIM_COUNT=$PWD/count
    for odd in "-pm 0 -pl 65" "-q -pm 0" "-pm 0 -l 1" "-pm 0 -f out" "--dry-run" "-eow" "-pm 0 -sc 0" "-pl 65 -m 0"; do
        # shellcheck disable=SC2086
        answers 2 --sim t4 $odd <<<"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.
"
    done
    [ ! -e count ]
    is t4 persistence_mode Enabled
}

@test "values that mean nothing" {
    for word in "-pm 2" "-pm on" "-e" "-c 4" "-c exclusive" "-p 2" "--gom 3" "-mig yes" "-am -1" "-pl -5" "-cc 2"; do
        # shellcheck disable=SC2086
        run "$GPULSE" smi --sim t4 $word
        [[ $status -eq 2 || $status -eq 255 ]] || explain "$word"
        says '^(ERROR: )?Option '
    done
    answers 2 --sim t4 -pl many <<<'Option "many" is invalid for "-pl".'
    answers 2 --sim t4 -lgc 900,100 <<<'Option "900,100" is invalid for "-lgc".'
    answers 2 --sim t4 -ac 5001 <<<'Option "5001" is invalid for "-ac".'
    answers 2 --sim t4 -r now <<<'Option "now" is invalid for "-r".'
    answers 255 --sim t4 -pm <<<"ERROR: Option -pm is missing its value. Please run 'nvidia-smi -h' for help.
"
    answers 255 --sim t4 -fdm 1 <<<"ERROR: Option -fdm is not recognized. Please run 'nvidia-smi -h'.
"
}

# ---- --dry-run ----

@test "--dry-run says from what to what, and what would be refused; nothing is changed" {
    export GPULSE_SIM_COUNT=$PWD/count
    answers 0 --sim h100x2 -pl 300 --dry-run <<<"GPU 0  power-limit: 700 W -> 300 W
GPU 1  power-limit: 700 W -> 300 W
nothing was changed (--dry-run)"
    answers 0 --sim t4 -pm 1 --dry-run <<<"GPU 0  persistence-mode: on -> on                 already set
nothing was changed (--dry-run)"
    answers 0 --sim t4 -mig 1 --dry-run <<<"Unable to enable MIG Mode for GPU $T4: Not Supported
Treating as warning and moving on.
nothing was changed (--dry-run)"
    answers 2 --sim t4 -pl 10 --dry-run <<<"Provided power limit 10.00 W is not a valid power limit which should be between 60.00 W and 70.00 W for GPU $T4
Terminating early due to previous errors."
    answers 0 --sim t4 -e 0 --dry-run <<<"GPU 0  ecc-mode: on -> off
nothing was changed (--dry-run)"
    no_setter_was_called
    unset GPULSE_SIM_COUNT
    is h100x2 power.limit '700.00
700.00'
    is t4 ecc.mode.pending Enabled
}

@test "what cannot be written is an error" {
    run "$GPULSE" smi --sim t4 -pm 1 >/dev/full
    status=0
    "$GPULSE" smi --sim t4 -pm 1 >/dev/full 2>err || status=$?
    status_is 255
}
