# gpulse set: what is changed, shown, verified, undone; what is refused before anything is changed.
# variants: asan tsan

load helpers

# as_user ARG…: gpulse for whom the driver changes nothing
as_user() {
    GPULSE_SIM_ROOT=0 run --separate-stderr "$GPULSE" "$@"
}

# No line of a function that changes something stands among the counted calls.
no_setter_was_called() {
    ! grep -E '^nvml(Device)?(Set|Reset|Clear|Create)|Destroy|CreateComputeInstance' count ||
        explain "a setter was called"
}

# undo: runs the commands that the last output offers.
undo() {
    local commands line
    commands=$(sed -n 's/^undo: gpulse //p' <<<"$output")
    [ -n "$commands" ] || explain "no undo command"
    while read -r line; do
        eval "run --separate-stderr \"\$GPULSE\" $line"
        status_is 0
    done <<<"$commands"
}

# shows MACHINE CONTROL VALUE [ARG…]: what another process reads
shows() {
    local machine=$1 control=$2 value=$3 got
    shift 3
    got=$("$GPULSE" --sim "$machine" set --show -f json "$@" |
        python3 -c "import json, sys; print(json.load(sys.stdin)['gpus'][0]['controls']['$control']['value'])")
    [ "$got" = "$value" ] || explain "$control is $got, expected $value"
}

# changes MACHINE CONTROL OLD NEW [ARG…]: a dry run changes nothing; the change is made, seen by
# others, and undone.
changes() {
    local machine=$1 control=$2 old=$3 new=$4
    shift 4
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim "$machine" set "$control=$new" --dry-run "$@"
    status_is 0
    says "^GPU 0.*  $control: .* -> "
    says '^nothing was changed'
    no_setter_was_called
    shows "$machine" "$control" "$old" "$@"
    gpulse --sim "$machine" set "$control=$new" --yes "$@"
    status_is 0
    says "^GPU 0.*  $control: .* -> .*  done$"
    shows "$machine" "$control" "$new" "$@"
    undo
    shows "$machine" "$control" "$old" "$@"
}

# ---- every control ----

@test "persistence mode" {
    changes t4 persistence-mode on off
}

@test "compute mode" {
    changes h100x1 compute-mode default exclusive-process
}

@test "compute mode of a MIG instance, named by its UUID" {
    gpulse --sim a100-mig set compute-mode=prohibited --yes
    fails 1 'GPU 0: compute-mode: not supported: in MIG mode this is set per instance: .*'
    uuid=$("$GPULSE" --sim a100-mig query uuid --mig -f csv --no-header | sed -n 3p)
    changes a100-mig compute-mode default prohibited -i "$uuid"
    gpulse --sim a100-mig set compute-mode=prohibited -i "$uuid"
    shows a100-mig compute-mode default -i "$("$GPULSE" --sim a100-mig query uuid --mig -f csv --no-header | sed -n 2p)"
    gpulse --sim a100-mig set power-limit=300 -i "$uuid"
    fails 1 'GPU 0: power-limit: not supported: applies to the whole GPU, not to an instance'
}

@test "power limit" {
    changes t4 power-limit 70 65
    changes h100x1 power-limit 700 350.5
}

@test "power limit of a module" {
    changes gb200 module-power-limit 2500 2000 -i 0
    gpulse --sim gb200 query power.limit -i 0 -f csv --no-header
    [ "$output" = "1200.00" ]
}

@test "application clocks, where the driver still has them" {
    changes a100 application-clocks 1215,1095 1215,900
    gpulse --sim a100 set application-clocks=1215,900
    gpulse --sim a100 set application-clocks=default
    shows a100 application-clocks 1215,1095
    gpulse --sim t4 set application-clocks=5001,900
    fails 1 'GPU 0: application-clocks: not supported: removed from this driver; use lock-gpu-clocks and lock-memory-clocks'
}

@test "locked clocks: the driver does not tell them, and says so" {
    before=$("$GPULSE" --sim a100 query clocks.sm,clocks.mem -f csv --no-header --sim-still)
    for control in lock-gpu-clocks lock-memory-clocks; do
        case $control in lock-gpu-clocks) least=900 most=1000 ;; *) least=900 most=1215 ;; esac
        GPULSE_SIM_COUNT=$PWD/count gpulse --sim a100 set $control=$least,$most --dry-run
        no_setter_was_called
        gpulse --sim a100 set $control=$least,$most
        status_is 0
        says "^GPU 0  $control: unknown -> $least,$most MHz +accepted; the driver does not report it$"
        says "^undo: .* $control=reset "
        shows a100 $control None
        case $control in
        lock-gpu-clocks) gpulse --sim a100 query clocks.sm -f csv --no-header ;;
        *) gpulse --sim a100 query clocks.mem -f csv --no-header ;;
        esac
        [ "$output" -ge $least ] && [ "$output" -le $most ]
        gpulse --sim a100 set $control=$most
        undo
        # of a reset nobody knows what was before
        says "$control: unknown -> reset "
        says_not '^undo'
    done
    gpulse --sim a100 query clocks.sm,clocks.mem -f csv --no-header --sim-still
    [ "$output" = "$before" ]
    # Volta and Ampere are the first that have them
    gpulse --sim p100 set lock-gpu-clocks=1000
    fails 1 'GPU 0: lock-gpu-clocks: not supported'
    gpulse --sim t4 set lock-memory-clocks=1000
    fails 1 'GPU 0: lock-memory-clocks: not supported'
}

@test "clock offsets, on drivers before and since 555" {
    changes rtx4090 gpu-clock-offset 0 -150
    changes rtx4090 memory-clock-offset 0 500
    machine rtx4090 'm["driver"] = {"version": "590.48.01"}'
    changes ./m.json gpu-clock-offset 0 -150
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim ./m.json set memory-clock-offset=500
    status_is 0
    grep -q '^nvmlDeviceSetClockOffsets 1$' count
    run ! grep -q 'VfOffset' count
}

@test "fan speed, of all fans and of each" {
    changes rtx4090 fan-speed auto 70
    machine rtx4090 'd["answers"]["NumFans"] = 3'
    changes ./m.json fan-speed auto 70
    changes ./m.json fan-speed auto 0:auto,1:60,2:auto
    gpulse --sim ./m.json set fan-speed=1:55
    status_is 0
    complains '^gpulse: GPU 0: the fans keep this speed regardless of the temperature, until fan-speed=auto$'
    shows ./m.json fan-speed 0:auto,1:55,2:auto
    gpulse --sim ./m.json set fan-speed=3:55
    fails 2 'GPU 0: fan-speed: fan 3 does not exist; the GPU has 3, starting at 0'
    # also where all fans have that speed already
    gpulse --sim ./m.json set fan-speed=50
    gpulse --sim ./m.json set fan-speed=7:50
    fails 2 'GPU 0: fan-speed: fan 7 does not exist; the GPU has 3, starting at 0'
    gpulse --sim ./m.json set fan-speed=auto
    is_quiet
    shows ./m.json fan-speed auto
}

@test "ECC mode waits for a reset" {
    gpulse --sim t4 set ecc-mode=off
    status_is 0
    says '^GPU 0  ecc-mode: on -> off +accepted, takes effect after a reset$'
    changed=$output
    shows t4 ecc-mode on
    gpulse --sim t4 set --show
    says 'ecc-mode +on \(after a reset: off\)'
    # what is pending is taken back
    output=$changed
    undo
    gpulse --sim t4 set --show
    says 'ecc-mode +on +on\|off$'
    gpulse --sim t4 set ecc-mode=off
    gpulse sim reset -m t4
    shows t4 ecc-mode off
}

@test "operation mode waits for a reboot" {
    machine p100 'd["answers"]["GpuOperationMode"] = {"current": 0, "pending": 0}'
    gpulse --sim ./m.json set operation-mode=compute
    status_is 0
    says 'all-on -> compute +accepted, takes effect after a reset$'
    gpulse sim reset -m ./m.json
    shows ./m.json operation-mode compute
}

@test "target temperature, within the range of the GPU" {
    changes rtx3060 target-temperature 83 70
    gpulse --sim rtx3060 set target-temperature=91
    fails 2 'GPU 0: target-temperature=91 °C is out of range: 65 to 90 °C'
    gpulse --sim rtx3060 set --show -f json
    json_is 'd["gpus"][0]["controls"]["target-temperature"]' "{'value': 83, 'min': 65, 'max': 90, 'unit': '°C'}"
    gpulse --sim t4 set target-temperature=80
    fails 1 'GPU 0: target-temperature: not supported'
}

@test "auto boost, and who may switch it" {
    machine p100 'd["answers"].update(AutoBoostedClocksEnabled={"current": 1, "default": 1},
        APIRestriction={"SET_AUTO_BOOSTED_CLOCKS": 1})'
    changes ./m.json auto-boost on off
    changes ./m.json auto-boost-access root all
    gpulse --sim ./m.json set auto-boost=off
    gpulse --sim ./m.json query clocks.auto_boost_default -f csv --no-header
    [ "$output" = Off ] || explain
    gpulse --sim t4 set auto-boost=off auto-boost-access=all
    fails 1 'GPU 0: auto-boost: not supported'
}

@test "application clocks that are open to all" {
    machine p100 'd["answers"]["APIRestriction"] = {"SET_APPLICATION_CLOCKS": 1}'
    as_user --sim ./m.json set application-clocks=715,544
    status_is 5
    changes ./m.json app-clocks-access root all
    gpulse --sim ./m.json set app-clocks-access=all
    as_user --sim ./m.json set application-clocks=715,544
    status_is 0
    says "application-clocks: .* done$"
    as_user --sim ./m.json set app-clocks-access=root
    [ "$status" -ne 0 ]
}

@test "encryption of the memory waits for a reset" {
    machine b200 'd["answers"]["DramEncryptionMode"] = {"current": 0, "pending": 0}'
    gpulse --sim ./m.json set dram-encryption=on -i 0
    status_is 0
    says 'off -> on +accepted, takes effect after a reset$'
    gpulse sim reset -m ./m.json
    shows ./m.json dram-encryption on
    gpulse --sim ./m.json query dramEncryption.mode.current -i 0 -f csv --no-header
    [ "$output" = Enabled ] || explain
}

@test "the virtualization mode is that of a host" {
    gpulse --sim t4 set virtualization-mode=host-vgpu
    fails 1 'GPU 0: virtualization-mode: not supported: the driver is not a vGPU host'
    machine t4 'd["answers"]["VirtualizationMode"] = "Host VGPU"'
    changes ./m.json virtualization-mode host-vgpu host-vsga
    gpulse --sim ./m.json set virtualization-mode=none
    [ "$status" -ne 0 ]
}

@test "the name of the machine, as the GPU keeps it" {
    machine t4 'd["answers"]["Hostname"] = "old-name"'
    changes ./m.json hostname old-name node-17.example
    gpulse --sim ./m.json set hostname=none
    gpulse --sim ./m.json query hostname -f csv --no-header
    gpulse --sim ./m.json set hostname=123456789-123456789-123456789-123456789-123456789-123456789-123
    shows ./m.json hostname 123456789-123456789-123456789-123456789-123456789-123456789-123
    gpulse --sim t4 set hostname=a
    fails 1 'GPU 0: hostname: not supported'
}

@test "accounting mode" {
    changes h100x1 accounting-mode off on
}

@test "controls that depend on a mode are listed for the current mode" {
    machine t4 'd["answers"]["AccountingMode"] = "Disabled"'
    gpulse --sim ./m.json query pid --rows accounted_apps -f csv --no-header
    [ "$output" = "[N/A]" ]
    gpulse --sim ./m.json set accounting-mode=on --yes
    gpulse --sim ./m.json query pid --rows accounted_apps -f csv --no-header
    says '^4180771$'
    gpulse --sim h100x8 query number,state --rows links -f csv --no-header -i 7
    says '^0,Active$'
    gpulse --sim h100x8 set mig-mode=on -i 7 --yes
    gpulse --sim h100x8 query state --rows links -f json -i 7
    json_is 'd["links"]' "[{'links.state': None, 'reasons': {'links.state': 'not reported in MIG mode'}}]"
}

@test "an answer changed by a fault is reset by the next change of the setting" {
    fault h100x2 set=PersistenceMode=Disabled set=PowerManagementLimit=250000
    gpulse --sim h100x2 set persistence-mode=on power-limit=300 -i 0 --yes
    status_is 0
    says '^GPU 0  persistence-mode: off -> on +done$'
    says '^GPU 0  power-limit: 250 W -> 300 W +done$'
    shows h100x2 persistence-mode on -i 0
    shows h100x2 power-limit 300 -i 0
    shows h100x2 persistence-mode off -i 1
    shows h100x2 power-limit 250 -i 1
    # and the next fault is the last word again
    fault h100x2 --gpu 0 set=PowerManagementLimit=200000
    shows h100x2 power-limit 200 -i 0
    machine t4 'd["answers"]["TotalEccErrors"] = {"corrected.volatile": 3, "corrected.aggregate": 0, "uncorrected.volatile": 0, "uncorrected.aggregate": 0}'
    fault ./m.json set=TotalEccErrors.corrected.volatile=9
    gpulse --sim ./m.json set ecc-counters=clear-volatile --yes
    status_is 0
    shows ./m.json ecc-counters '0 volatile, 0 aggregate'
}

@test "ECC counters are cleared, which nothing brings back" {
    machine t4 'd["answers"]["TotalEccErrors"] = {"corrected.volatile": 3, "corrected.aggregate": 7, "uncorrected.volatile": 1, "uncorrected.aggregate": 2}'
    shows ./m.json ecc-counters '4 volatile, 9 aggregate'
    gpulse --sim ./m.json set ecc-counters=clear-volatile </dev/null
    status_is 2
    [ -z "$output" ]
    [ "$stderr" = "gpulse: GPU 0: ecc-counters=clear-volatile: the memory error counts are lost (now 4 volatile, 9 aggregate)
gpulse: nothing was changed: cannot ask without a terminal; add --yes" ]
    gpulse --sim ./m.json set ecc-counters=clear-volatile --dry-run
    status_is 0
    complains '^gpulse: GPU 0: ecc-counters=clear-volatile: .* \(now 4 volatile, 9 aggregate\)$'
    complains '^gpulse: this will need confirmation; --yes skips the question$'
    gpulse --sim ./m.json set ecc-counters=clear-volatile --dry-run --yes
    is_quiet
    shows ./m.json ecc-counters '4 volatile, 9 aggregate'
    gpulse --sim ./m.json set ecc-counters=clear-volatile --yes
    status_is 0
    says '^GPU 0  ecc-counters: 4 volatile, 9 aggregate -> clear-volatile +done$'
    says_not '^undo'
    shows ./m.json ecc-counters '0 volatile, 9 aggregate'
    gpulse --sim ./m.json set ecc-counters=clear-aggregate --yes
    shows ./m.json ecc-counters '0 volatile, 0 aggregate'
}

@test "records of exited processes and error counters of links are cleared" {
    shows t4 accounting-records '2 records'
    gpulse --sim t4 set accounting-records=clear --yes
    status_is 0
    says '^GPU 0  accounting-records: 2 records -> clear +done$'
    gpulse --sim t4 query pid --rows accounted_apps -f csv --no-header
    [ "$output" = 4190001 ] # this one still runs
    machine h100 'for link in d["lists"]["nvlinks"]: link.update(replay=2, crc_flit=1)'
    shows ./m.json nvlink-counters '54 errors on 18 links' -i 0
    as_user --sim ./m.json set nvlink-counters=clear -i 0 --yes
    status_is 5
    gpulse --sim ./m.json set nvlink-counters=clear -i 0 --yes
    status_is 0
    says '^GPU 0  nvlink-counters: 54 errors on 18 links -> clear +done$'
    shows ./m.json nvlink-counters '0 errors on 18 links' -i 0
    gpulse --sim ./m.json query errors.replay --rows links -f csv --no-header -i 0
    [ "$(sort -u <<<"$output")" = 0 ]
}

# ---- MIG ----

@test "MIG mode and instances: created, seen by others, changed, undone" {
    gpulse --sim h100x1 set mig-instances=1g.10gb
    fails 2 'GPU 0: mig-instances: MIG mode is off; add mig-mode=on'
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:1]'
    gpulse --sim ./m.json set mig-mode=on mig-instances=3g.40gb,4g.40gb --yes
    status_is 0
    says '^GPU 0  mig-mode: off -> on +done$'
    says '^GPU 0  mig-instances: none -> 3g\.40gb,4g\.40gb +done$'
    first=$output
    gpulse --sim ./m.json query name --mig -f csv --no-header
    [ "$output" = "NVIDIA H100 80GB HBM3
NVIDIA H100 80GB HBM3 MIG 4g.40gb
NVIDIA H100 80GB HBM3 MIG 3g.40gb" ]
    gpulse --sim ./m.json query utilization.gpu -f csv --no-header
    [ "$output" = '[N/A]' ]
    # one stays, one goes, two come
    before=$("$GPULSE" --sim ./m.json query uuid --mig -f csv --no-header | sed -n 2p)
    gpulse --sim ./m.json set mig-instances=4g.40gb,1g.10gb,1g.20gb --yes
    status_is 0
    gpulse --sim ./m.json query uuid,name --mig -f csv --no-header
    line_count 4
    says "^$before,.* MIG 4g\.40gb$"
    says 'MIG 1g\.20gb$'
    # the same again is nothing to do
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim ./m.json set mig-instances=1g.10gb,1g.20gb,4g.40gb
    status_is 0
    says 'already set$'
    no_setter_was_called
    # one of them, by its UUID
    gpulse --sim ./m.json set mig-instances=none -i "$before" --yes
    status_is 0
    shows ./m.json mig-instances 1g.20gb,1g.10gb
    # the end of MIG mode takes them along, and its undo brings them back
    gpulse --sim ./m.json set mig-mode=off --dry-run
    complains '^gpulse: GPU 0: mig-mode=off: the GPU may be reset, .*; its MIG instances 1g\.20gb,1g\.10gb are destroyed \(now on\)$'
    gpulse --sim ./m.json set mig-mode=off --yes
    status_is 0
    gpulse --sim ./m.json query uuid --mig -f csv --no-header
    line_count 1
    output=$("$GPULSE" --sim ./m.json set mig-mode=on mig-instances=1g.20gb,1g.10gb --yes)
    gpulse --sim ./m.json set mig-mode=off --yes
    undo
    shows ./m.json mig-instances 1g.20gb,1g.10gb
    output=$first
    undo
    shows ./m.json mig-mode off
}

@test "MIG instances that do not fit are refused before anything is destroyed" {
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:1]'
    gpulse --sim ./m.json set mig-mode=on mig-instances=7g.80gb --yes
    for bad in \
        '5g.50gb unknown profile .5g\.50gb.; this GPU has 1g\.10gb, .*7g\.80gb, .*' \
        '4g.40gb,4g.40gb at most 1 instances of 4g\.40gb fit' \
        '4g.40gb,3g.40gb,1g.10gb 4g\.40gb,3g\.40gb,1g\.10gb needs 8 slices, but the GPU has 7'; do
        GPULSE_SIM_COUNT=$PWD/count gpulse --sim ./m.json set "mig-instances=${bad%% *}" --yes
        fails 2 "GPU 0: mig-instances: ${bad#* }"
        no_setter_was_called
    done
    shows ./m.json mig-instances 7g.80gb
}

@test "an instance that is destroyed has no settings: the two together are refused" {
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:1]'
    gpulse --sim ./m.json set mig-mode=on mig-instances=3g.40gb,4g.40gb --yes
    status_is 0
    uuid=$("$GPULSE" --sim ./m.json query uuid --mig -f csv --no-header | sed -n 2p)
    for mode in default prohibited; do
        GPULSE_SIM_COUNT=$PWD/count gpulse --sim ./m.json set mig-instances=none compute-mode=$mode \
            -i "$uuid" --yes
        fails 2 'GPU 0: compute-mode: an instance that is destroyed has no settings; omit mig-instances=none'
        no_setter_was_called
    done
    gpulse --sim ./m.json set mig-instances=none -i "$uuid" --yes
    status_is 0
}

@test "MIG instances in use stay, and changes made until then are reported" {
    gpulse --sim a100-mig set mig-instances=none --yes
    status_is 1
    says 'failed: in use: terminate the programs that use it first \(nvmlComputeInstanceDestroy\)'
    complains 'GPU 0: mig-instances: in use'
    gpulse --sim a100-mig query uuid --mig -f csv --no-header
    [ "${#lines[@]}" -ge 3 ] # the GPU and the two that are used
}

@test "MIG mode of a GPU in use waits, and says why" {
    gpulse --sim h100x8 set mig-mode=on -i 0 --yes
    status_is 0
    says 'mig-mode: off -> on +accepted, takes effect after a reset \(In use by another client\)$'
    shows h100x8 mig-mode off -i 0
    undo
    # a monitor is enough on Ampere
    start --sim a100 query index -n 0.2
    until_true test -s out
    gpulse --sim a100 set mig-mode=on --yes
    says 'takes effect after a reset \(In use by another client\)$'
    kill -TERM "$pid"
    finish
}

# ---- several at once ----

@test "all GPUs, or the selected ones; values already set are left unchanged" {
    gpulse --sim h100x8 set power-limit=300 -i 1,3-4
    status_is 0
    line_count 6
    gpulse --sim h100x8 query power.limit -f csv --no-header
    [ "$(grep -c '^300' <<<"$output")" -eq 3 ]
    gpulse --sim h100x8 set power-limit=300 lock-gpu-clocks=1200
    status_is 0
    says '^GPU 3  power-limit: 300 W -> 300 W +already set$'
    says '^GPU 2  power-limit: 700 W -> 300 W +done$'
    [ "$(grep -c '^undo: ' <<<"$output")" -eq 8 ]
    says '^undo: gpulse --sim h100x8 set lock-gpu-clocks=reset -i GPU-00000003-'
    says '^undo: gpulse --sim h100x8 set power-limit=700 lock-gpu-clocks=reset -i GPU-00000002-'
}

@test "a running monitor sees a change at once" {
    start --sim h100x8 query index,power.limit -i 5 -f csv --no-header -n 0.1
    until_true grep -q '5,700' out
    gpulse --sim h100x8 set power-limit=250 -i 5
    until_true grep -q '5,250' out
    kill -TERM "$pid"
    finish
}

@test "without persistence mode a setting is lost with the last client, and that is said before" {
    machine p100 'm["workload"] = []; d["processes"] = []'
    gpulse --sim ./m.json set power-limit=200
    status_is 0
    complains '^gpulse: GPU 0: persistence mode is off: the setting is lost when .* add persistence-mode=on$'
    shows ./m.json power-limit 250
    gpulse --sim ./m.json set power-limit=200 persistence-mode=on
    status_is 0
    is_quiet
    # applied in the order that makes sense, not in that of the command
    [[ ${lines[0]} == *persistence-mode* ]]
    shows ./m.json power-limit 200
    undo
    shows ./m.json power-limit 250
    # of the GPU's own default nothing is lost
    fault ./m.json set=PowerManagementLimit=200000
    gpulse --sim ./m.json set power-limit=default
    status_is 0
    says '^GPU 0  power-limit: 200 W -> 250 W +done$'
    is_quiet
    fault ./m.json clear
    # a program that runs on the GPU keeps it, too
    start sim load -m ./m.json --mem 1GiB
    until_true grep -q holds out
    gpulse --sim ./m.json set power-limit=200
    shows ./m.json power-limit 200
    kill -TERM "$pid"
    finish
}

# ---- refused as a whole ----

@test "an error of one value or GPU prevents all changes" {
    export GPULSE_SIM_COUNT=$PWD/count
    gpulse --sim h100x2 set power-limit=300 fan-speed=50
    fails 1 'GPU 0: fan-speed: not supported'
    no_setter_was_called
    gpulse --sim h100x2 set power-limit=701
    fails 2 'GPU 0: power-limit=701 W is out of range: 200 to 700 W'
    gpulse --sim h100x2 set lock-gpu-clocks=1000,2000
    fails 2 'GPU 0: lock-gpu-clocks=1000,2000 MHz is out of range: 345 to 1980 MHz'
    gpulse --sim h100x2 set lock-gpu-clocks=1,2
    fails 2 'GPU 0: lock-gpu-clocks=1,2 MHz is out of range: 345 to 1980 MHz'
    gpulse --sim h100x2 set lock-gpu-clocks=1500,1200
    fails 2 'lock-gpu-clocks=1500,1200: the minimum is greater than the maximum; expected MIN,MAX\|MHZ\|tdp\|reset \(in MHz\)'
    gpulse --sim t4 set nvlink-counters=clear --yes
    fails 1 'GPU 0: nvlink-counters: not supported: the GPU has no active NVLink'
    gpulse --sim rtx4090 set gpu-clock-offset=1001
    fails 2 'GPU 0: gpu-clock-offset=\+1001 MHz is out of range: -1000 to \+1000 MHz'
    gpulse --sim rtx4090 set fan-speed=10
    fails 2 'GPU 0: fan-speed=10 % is out of range: 30 to 100 %'
    no_setter_was_called
    unset GPULSE_SIM_COUNT
    # one GPU of two
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:2]; m["devices"][1]["answers"]["PowerManagementLimitConstraints"]["max"] = 350000'
    gpulse --sim ./m.json set power-limit=400
    fails 2 'GPU 1: power-limit=400 W is out of range: 200 to 350 W'
    shows ./m.json power-limit 700
}

@test "words that mean nothing" {
    gpulse --sim t4 set
    fails 2 'nothing to set; gpulse set --list shows the settings, gpulse set --show their values'
    gpulse --sim t4 set power-limit
    fails 2 "'power-limit': expected NAME=VALUE, as in power-limit=300; .*"
    gpulse --sim t4 set powerlimit=3
    fails 2 "unknown setting 'powerlimit' \(did you mean 'power-limit'\?\); .*"
    gpulse --sim t4 set power-limit=lots
    fails 2 "power-limit expects WATTS\|default \(in W\), not 'lots'"
    gpulse --sim t4 set power-limit=65 power-limit=66
    fails 2 'power-limit is given twice'
    gpulse --sim t4 set power-limit=65 --show
    fails 2 'NAME=VALUE, --show, --list, --save and --restore cannot be combined'
    gpulse --sim t4 set power-limit=65 -i 7
    status_is 3
}

# ---- refused by the driver ----

@test "no permission: which command would do it" {
    as_user --sim h100x2 set power-limit=300 -i 0
    status_is 5
    says '^GPU 0  power-limit: 700 W -> 300 W +failed: no permission \(nvmlDeviceSetPowerManagementLimit\)$'
    complains '^gpulse: GPU 0: power-limit: no permission \(nvmlDeviceSetPowerManagementLimit\); only root can do this: sudo gpulse --sim h100x2 set power-limit=300 -i 0$'
    shows h100x2 power-limit 700
    for control in persistence-mode=off compute-mode=prohibited ecc-mode=off accounting-mode=on \
        lock-gpu-clocks=1600 lock-memory-clocks=1600 mig-mode=on ecc-counters=clear-volatile; do
        as_user --sim h100x1 set $control --yes
        status_is 5
        complains "only root can do this: sudo gpulse --sim h100x1 set ${control/=1600/=1600,1600}"
    done
    # the list of instances is root's, too
    as_user --sim a100-mig set mig-instances=none --yes
    status_is 5
    complains 'mig-instances: no permission: .*; only root can do this: sudo gpulse --sim a100-mig set mig-instances=none$'
    # who only looks needs no permission
    as_user --sim h100x1 set --show
    status_is 0
    says 'power-limit +700 W'
}

@test "a setter is called once, whatever it answers" {
    for code in UNKNOWN NO_PERMISSION TIMEOUT IN_USE; do
        fault t4 error=$code:nvmlDeviceSetPowerManagementLimit
        GPULSE_SIM_COUNT=$PWD/count gpulse --sim t4 set power-limit=65
        [ "$status" -ne 0 ]
        grep -q '^nvmlDeviceSetPowerManagementLimit 1$' count
        fault t4 clear
    done
    shows t4 power-limit 70
}

@test "some GPUs fail: the others are changed, the result is a part" {
    fault h100x8 --gpu 2 error=UNKNOWN:nvmlDeviceSetPowerManagementLimit
    gpulse --sim h100x8 set power-limit=300 lock-gpu-clocks=900
    status_is 6
    says '^GPU 2  power-limit: 700 W -> 300 W +failed: Unknown Error \(nvmlDeviceSetPowerManagementLimit\)$'
    # behind a failure nothing more is tried on that GPU
    says '^GPU 2  lock-gpu-clocks: .* not tried$'
    [ "$(grep -c ' done$' <<<"$output")" -eq 7 ]
    [ "$(grep -c '^undo: ' <<<"$output")" -eq 7 ]
    complains '^gpulse: GPU 2: power-limit: Unknown Error \(nvmlDeviceSetPowerManagementLimit\)$'
}

@test "a lost GPU, a sleeping deadline: named, and the others continue" {
    fault h100x8 --gpu 2 lost
    gpulse --sim h100x8 set power-limit=300
    status_is 6
    says '^GPU 2  power-limit: 300 W +failed: GPU is lost'
    [ "$(grep -c ' done$' <<<"$output")" -eq 7 ]
    gpulse --sim h100x8 set power-limit=310 -i 2
    status_is 4
    gpulse --sim h100x8 set --show
    status_is 6
    says '^  GPU is lost'
    gpulse --sim h100x8 set --save s.json
    status_is 6
    [ "$(json 'len(d["gpus"])' s.json)" -eq 7 ]
}

@test "a setter that hangs is named, not waited for, and can be undone" {
    fault h100x8 --gpu 3 hang=1h:nvmlDeviceSetPowerManagementLimit
    gpulse --sim h100x8 set power-limit=300 --timeout 2
    status_is 6
    says '^GPU 3  power-limit: 700 W -> 300 W +no response within 2\.0 s \(nvmlDeviceSetPowerManagementLimit\)$'
    [ "$(grep -c ' done$' <<<"$output")" -eq 7 ]
    # it may have happened
    says '^undo: .* power-limit=700 -i GPU-00000003-'
    complains '^gpulse: GPU 3: no response within 2\.0 s \(nvmlDeviceSetPowerManagementLimit\)$'
}

@test "a reading that hangs: nothing is set on that GPU" {
    fault h100x2 --gpu 1 hang=1h:nvmlDeviceGetPowerManagementLimit
    gpulse --sim h100x2 set power-limit=300 --timeout 2
    status_is 6
    says '^GPU 0 .* done$'
    says '^GPU 1  power-limit: .*failed: no response within 2\.0 s \(nvmlDeviceGetPowerManagementLimit'
    [ "$(grep -c '^undo: ' <<<"$output")" -eq 1 ]
    fault h100x2 clear
    fault h100x2 hang=1h:nvmlInit
    gpulse --sim h100x2 set power-limit=300 --timeout 0.5
    fails 4 'the driver did not start within 0\.5 s \(nvmlInit\); .*'
}

# ---- GPUs that hang or sleep ----

@test "a GPU that was not selected may hang: it is not waited for" {
    fault h100x8 --gpu 4 hang=1h
    gpulse --sim h100x8 set --show -i 3 --timeout 1h
    status_is 0
    is_quiet
    gpulse --sim h100x8 set power-limit=300 -i 0-3,5 --timeout 1h
    status_is 0
    is_quiet
    # who it is must be asked, but not for longer than the chosen ones take
    gpulse --sim h100x8 set power-limit=310 -i GPU-00000003-0000-0000-0000-000000000003 --timeout 1h
    status_is 0
    is_quiet
    says '^GPU 3  power-limit: 300 W -> 310 W +done$'
    gpulse --sim h100x8 set power-limit=320 -i GPU-00000003-0000-0000-0000-000000000003,2,5-6 --timeout 1h
    status_is 0
    is_quiet
    [ "$(grep -c ' done$' <<<"$output")" -eq 4 ]
    gpulse --sim h100x8 set power-limit=310 -i GPU-00000004 --timeout 2
    status_is 4
    complains "^gpulse: no GPU matches 'GPU-00000004'; .*; it may be GPU 4, which does not respond$"
    # an index that is not there is nobody's
    for ids in 4,9 4-8; do
        gpulse --sim h100x8 set --show -i $ids
        fails 3 "no GPU matches (all of )?'(9|4-8)'; this machine has 8 \(0 to 7\)"
    done
}

@test "a sleeping GPU is not a driver problem, and is reported once" {
    asleep='GPU 0: asleep to save power; gpulse does not wake it up'
    gpulse --sim laptop-asleep set power-limit=50
    fails 1 "$asleep"
    gpulse --sim laptop-asleep set --show
    status_is 0
    is_quiet
    line_count 2
    gpulse --sim laptop-asleep set --save s.json
    fails 1 "$asleep; nothing is saved"
    [ ! -e s.json ]
}

@test "an option for loops is refused and not offered" {
    for words in 'set --show --release-when-idle' '--release-when-idle set --show'; do
        # shellcheck disable=SC2086 # these are words
        gpulse --sim t4 $words
        fails 2 'gpulse set does not repeat; --release-when-idle does not apply'
    done
    gpulse __complete -- set --rel
    says_not release
    gpulse __complete -- query --rel
    says release-when-idle
}

# ---- looking ----

@test "--show: value, range and default of every control, as table and JSON" {
    gpulse --sim gb200 set --show -i 1
    status_is 0
    is_quiet
    says '^GPU 1  NVIDIA GB200  GPU-'
    says '^  module-power-limit +2500 W +500 to 2500, default 2500$'
    says '^  lock-gpu-clocks +unknown +120 to 2062$'
    says '^  fan-speed +not supported$'
    gpulse --sim gb200 set --show -i 1 -f json
    json_is 'd["schema"]' gpulse.controls/1
    json_is 'd["driver"] is not None and d["host"] is not None and d["time"] is not None' True
    json_is 'd["gpus"][0]["index"]' 1
    json_is 'd["gpus"][0]["controls"]["module-power-limit"]' "{'value': 2500, 'min': 500, 'max': 2500, 'default': 2500, 'unit': 'W'}"
    json_is 'd["gpus"][0]["controls"]["lock-gpu-clocks"]["value"]' None
    json_is 'd["gpus"][0]["controls"]["lock-gpu-clocks"]["reason"]' 'unknown'
}

@test "a value that is too long for its column has the range below it" {
    gpulse --sim a100-mig set --show
    says '^  mig-instances        1g\.20gb,1g\.20gb,1g\.20gb,1g\.20gb$'
    says '^ {50}PROFILE,…\|none$'
}

@test "the limit of a module, of whatever type the driver says it is" {
    fault gb200 types
    shows gb200 module-power-limit 2500
}

@test "the words that reset are the same for all" {
    for word in default reset auto; do
        gpulse --sim rtx4090 set power-limit=$word lock-gpu-clocks=$word fan-speed=$word \
            gpu-clock-offset=$word
        status_is 0
        says '^GPU 0  power-limit: 450 W -> 450 W +already set$'
        says '^GPU 0  lock-gpu-clocks: unknown -> reset '
        says '^GPU 0  gpu-clock-offset: \+0 MHz -> \+0 MHz +already set$'
    done
}

@test "a dry run says what is needed: confirmation, and root" {
    as_user --sim h100x2 set mig-mode=on --dry-run -i 1
    status_is 0
    complains '^gpulse: GPU 1: mig-mode=on: the GPU may be reset, now or later: a reset kills everything on it \(now off\)$'
    complains '^gpulse: this will need confirmation; --yes skips the question$'
    complains '^gpulse: most changes need root: sudo gpulse --sim h100x2 set mig-mode=on -i 1$'
    as_user --sim h100x2 set power-limit=700 --dry-run
    is_quiet
    says '^GPU 0  power-limit: 700 W -> 700 W +already set$'
}

@test "--list describes every control, without a driver" {
    GPULSE_NVML=/nonexistent gpulse set --list
    status_is 0
    says '^power-limit=WATTS\|default  \(W\)$'
    [ "$(grep -c '^  needs ' <<<"$output")" -eq "$(grep -c '^  takes effect ' <<<"$output")" ]
    gpulse set --list -f json
    json_is 'len(d["controls"]) == len({c["name"] for c in d["controls"]})' True
    gpulse __complete -- set power-
    says '^power-limit=	WATTS\|default$'
}

# ---- save and restore ----

@test "save and restore: the differences are brought back, once" {
    gpulse --sim h100x2 set power-limit=300 ecc-mode=off -i 0
    gpulse --sim h100x2 set --save s.json
    status_is 0
    [ "$stderr" = "gpulse: not saved, because the driver does not report them: lock-gpu-clocks, lock-memory-clocks" ]
    [ "$(json 'd["schema"]' s.json)" = gpulse.settings/1 ]
    [ "$(json 'd["gpus"][0]["settings"]["power-limit"]' s.json)" = 300 ]
    [ "$(json 'd["gpus"][0]["settings"]["ecc-mode"]' s.json)" = off ]
    [ "$(json '"lock-gpu-clocks" in d["gpus"][0]["settings"]' s.json)" = False ]
    gpulse sim reset -m h100x2
    shows h100x2 power-limit 700 -i 0
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim h100x2 set --restore s.json --dry-run
    says '^GPU 0  power-limit: 700 W -> 300 W$'
    no_setter_was_called
    gpulse --sim h100x2 set --restore s.json
    status_is 0
    says '^GPU 0  power-limit: 700 W -> 300 W +done$'
    [ "$(grep -c ' done$' <<<"$output")" -eq 1 ]
    shows h100x2 power-limit 300 -i 0
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim h100x2 set --restore s.json
    status_is 0
    says_not ' done$'
    no_setter_was_called
    ln s.json kept.json
    gpulse --sim h100x2 set --save s.json
    [ ! s.json -ef kept.json ] # replaced as a whole, not written over
    diff <(json 'd["gpus"]' s.json) <(json 'd["gpus"]' kept.json)
    gpulse --sim h100x2 set --save again.json
    diff <(json 'd["gpus"]' s.json) <(json 'd["gpus"]' again.json)
}

@test "restore shows what differs only, and does not ask again for what waits for a reset" {
    gpulse --sim t4 set ecc-mode=off
    gpulse --sim t4 set --save s.json
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim t4 set --restore s.json
    status_is 0
    is_quiet
    [ "$output" = "nothing to change: the settings are as in 's.json'" ]
    gpulse --sim t4 set ecc-mode=off
    says 'ecc-mode: on \(after a reset: off\) -> off +already set after a reset$'
    says_not '^undo'
    no_setter_was_called
    gpulse --sim t4 set power-limit=65
    gpulse --sim t4 set --restore s.json
    [ "${lines[0]}" = 'GPU 0  power-limit: 65 W -> 70 W                  done' ]
    line_count 2
}

@test "a file about other GPUs is an error that names both" {
    gpulse --sim t4 set --save s.json
    sed -i 's/GPU-00000000/GPU-0000aaaa/' s.json
    gpulse --sim h100x2 set --restore s.json
    fails 3 "no GPU in 's\.json' \(GPU-0000aaaa-.*\) is in this machine; this machine has GPU-00000000-.*, GPU-00000001-.*"
    gpulse --sim h100x2 set --restore s.json -i 1
    fails 3 "no GPU in .*; --id selects GPU-00000001-[^,]*"
    echo '{"schema": "gpulse.settings/1", "gpus": []}' >none.json
    gpulse --sim t4 set --restore none.json
    fails 3 "no GPU in 'none\.json' \(none\) is in this machine; .*"
}

@test "restore leaves out what the device refuses" {
    gpulse --sim a100 set --save s.json
    sed -i 's/"application-clocks": "1215,1095"/"application-clocks": "1215,1"/; s/"compute-mode": "default"/"compute-mode": "prohibited"/' s.json
    gpulse --sim a100 set --restore s.json
    status_is 6
    [ "$stderr" = 'gpulse: GPU 0: application-clocks: 1 MHz is not a graphics clock for memory at 1215 MHz; they range from 210 to 1410 MHz in steps' ]
    says '^GPU 0  compute-mode: default -> prohibited +done$'
    gpulse --sim rtx2080s set --save s.json
    sed -i 's/"fan-speed": "[^"]*"/"fan-speed": "0:50,7:60"/' s.json
    gpulse --sim rtx2080s set --restore s.json
    status_is 6
    [ -z "$output" ]
    [ "$stderr" = 'gpulse: GPU 0: fan-speed: fan 7 does not exist; the GPU has 1, starting at 0' ]
}

@test "a settings file that is a link: its target is replaced, the link stays" {
    mkdir there
    ln -s there/s.json link.json
    echo old >there/s.json
    gpulse --sim t4 set --save link.json
    status_is 0
    [ -L link.json ]
    [ "$(json 'd["schema"]' there/s.json)" = gpulse.settings/1 ]
    [ "$(json 'd["units"]["power-limit"]' there/s.json)" = W ]
    # also where there is no file yet
    rm there/s.json
    gpulse --sim t4 set --save link.json
    status_is 0
    [ -L link.json ]
    [ "$(json 'd["schema"]' there/s.json)" = gpulse.settings/1 ]
    ln -s nowhere/s.json bad.json
    gpulse --sim t4 set --save bad.json
    fails 1 "cannot write 'nowhere/s\.json': No such file or directory"
    [ -L bad.json ]
}

@test "restore accepts a number in any JSON form" {
    uuid=$("$GPULSE" --sim rtx4090 query uuid -f csv --no-header)
    for words in '100.0 \+100 MHz' '15e1 \+150 MHz'; do
        echo '{"schema": "gpulse.settings/1", "gpus": [{"uuid": "'"$uuid"'", "settings": {"gpu-clock-offset": '"${words%% *}"'}}]}' >s.json
        gpulse --sim rtx4090 set --restore s.json
        status_is 0
        says "^GPU 0  gpu-clock-offset: .* -> ${words#* } +done$"
    done
    echo '{"schema": "gpulse.settings/1", "gpus": [{"uuid": "'"$uuid"'", "settings": {"power-limit": 350.5}}]}' >s.json
    gpulse --sim rtx4090 set --restore s.json
    shows rtx4090 power-limit 350.5
    # what is no whole number of MHz is refused as it was written
    sed -i 's/"power-limit": 350.5/"gpu-clock-offset": 0.25/' s.json
    gpulse --sim rtx4090 set --restore s.json
    fails 2 "s\.json: GPU-.*: gpu-clock-offset expects .*, not '0\.25'"
}

@test "restore skips missing GPUs, and values that are no longer valid" {
    gpulse --sim h100x8 set power-limit=300
    gpulse --sim h100x8 set --save s.json
    gpulse --sim h100x2 set --restore s.json
    status_is 0
    complains '^gpulse: GPU-00000007-.* is not in this machine: skipped$'
    shows h100x2 power-limit 300 -i 1
    sed -i 's/"power-limit": 300/"power-limit": 9000/; s/"compute-mode": "default"/"compute-mode": "prohibited"/' s.json
    gpulse --sim h100x8 set --restore s.json
    status_is 6
    complains '^gpulse: GPU 0: power-limit=9000 W is out of range: 200 to 700 W$'
    says '^GPU 0  compute-mode: default -> prohibited +done$'
}

@test "files that are none are refused with the place" {
    gpulse --sim t4 set --restore nosuch.json
    fails 1 "cannot read 'nosuch.json': No such file or directory"
    echo '{' >bad.json
    gpulse --sim t4 set --restore bad.json
    fails 2 'bad.json:[12]: .*'
    echo '{"gpus": []}' >bad.json
    gpulse --sim t4 set --restore bad.json
    fails 2 "'bad.json' is not a settings file; gpulse set --save FILE writes one"
    echo '{"schema": "gpulse.settings/99", "gpus": []}' >bad.json
    gpulse --sim t4 set --restore bad.json
    fails 2 "'bad.json' was written by a newer gpulse \(gpulse.settings/99\)"
    echo '{"schema": "gpulse.settings/1", "gpus": {"0": {}}}' >bad.json
    gpulse --sim t4 set --restore bad.json
    fails 2 'bad.json: expected an array "gpus"'
    python3 -c 'import json; print(json.dumps({"schema": "gpulse.settings/1", "gpus": [{"uuid": "GPU-x", "settings": {}}] * 1025}))' >bad.json
    gpulse --sim t4 set --restore bad.json
    fails 2 'bad.json: at most 1024 GPUs'
    for bad in '"power-limit": "lots"' '"power-limit": true' '"power-limit": -5' '"compute-mode": 3' '"nosuch": "1"' '"ecc-counters": "clear-volatile"'; do
        echo '{"schema": "gpulse.settings/1", "gpus": [{"uuid": "GPU-x", "settings": {'"$bad"'}}]}' >bad.json
        gpulse --sim t4 set --restore bad.json
        fails 2 'bad.json: GPU-x: .*'
    done
    echo '{"schema": "gpulse.settings/1", "gpus": [{"settings": {}}]}' >bad.json
    gpulse --sim t4 set --restore bad.json
    fails 2 'bad.json: a GPU needs a "uuid" and "settings"'
    for bad in '"uuid": "GPU-x"' '"uuid": "", "settings": {}' "\"uuid\": \"GPU-$(printf '%0300d' 0)\", \"settings\": {}"; do
        echo '{"schema": "gpulse.settings/1", "gpus": [{'"$bad"'}]}' >bad.json
        gpulse --sim t4 set --restore bad.json
        fails 2 'bad.json: a GPU needs a "uuid" and "settings"'
    done
    gpulse --sim t4 set --save /nonexistent/s.json
    fails 1 "cannot write '/nonexistent/s.json': No such file or directory"
    gpulse --sim t4 set --save /dev/full
    [ "$status" -eq 1 ]
}

@test "MIG instances wait for a MIG mode that waits for a reset" {
    for time in first second; do
        gpulse --sim h100x2 set mig-mode=on mig-instances=3g.40gb,4g.40gb -i 0 --yes
        status_is 1
        says '^GPU 0  mig-instances: none -> 3g.40gb,4g.40gb +failed: MIG mode takes effect after a GPU reset; set this again then$'
    done
}
