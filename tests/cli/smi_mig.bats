#!/usr/bin/env bats
# gpulse smi mig: changes, choices, errors, exit statuses. The captures: check_smi_mig.py.
# variants: asan

load helpers

mig() {
    GPULSE_SIM_ROOT=${ROOT-1} gpulse smi mig --sim-still --root "$BATS_TEST_TMPDIR" "$@"
}

@test "mig -cgi stops at the first instance that does not fit; its code is the exit status" {
    machine h100 'm["devices"] = m["devices"][:1]; m["workload"] = []
d["answers"]["MigMode"] = {"current": "Enabled", "pending": "Enabled"}'
    mig --sim ./m.json -cgi 4g.40gb,3g.40gb,1g.10gb,1g.10gb -C
    status_is 23
    [ "$output" = "Successfully created GPU instance ID  1 on GPU  0 using profile MIG 4g.40gb (ID  5)
Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 using profile MIG 4g.40gb (ID  3)
Successfully created GPU instance ID  2 on GPU  0 using profile MIG 3g.40gb (ID  9)
Successfully created compute instance ID  0 on GPU  0 GPU instance ID  2 using profile MIG 3g.40gb (ID  2)
Unable to create a GPU instance on GPU  0 using profile 1g.10gb: Insufficient Resources
Failed to create GPU instances: Insufficient Resources" ]
    mig --sim ./m.json -lci
    status_is 0
    [ "${lines[8]}" = "|   0      1       MIG 4g.40gb          3         0          0:4     |" ]
}

@test "mig -cgi at a given place" {
    machine h100 'm["devices"] = m["devices"][:1]; m["workload"] = []
d["answers"]["MigMode"] = {"current": "Enabled", "pending": "Enabled"}'
    mig --sim ./m.json -cgi 19:1,1g.10gb+me:5,9:4
    status_is 23
    [ "$output" = "Successfully created GPU instance ID  8 on GPU  0 using profile MIG 1g.10gb (ID 19)
Successfully created GPU instance ID 12 on GPU  0 using profile MIG 1g.10gb+me (ID 20)
Unable to create a GPU instance on GPU  0 using profile 9:4: Insufficient Resources
Failed to create GPU instances: Insufficient Resources" ]
    local place
    for place in 14:1 14:x 14: 14:1x; do
        mig --sim ./m.json -cgi "$place"
        status_is 2
        [ "${lines[0]}" = "Unable to create a GPU instance on GPU  0 using profile $place: Invalid Argument" ]
    done
}

@test "mig -cgi on every GPU in MIG mode, and on no other" {
    machine h100 'm["devices"] = m["devices"][:3]; m["workload"] = []
for i in (0, 2): m["devices"][i]["answers"]["MigMode"] = {"current": "Enabled", "pending": "Enabled"}'
    mig --sim ./m.json -cgi 0
    status_is 0
    [ "$output" = "Successfully created GPU instance ID  0 on GPU  0 using profile MIG 7g.80gb (ID  0)
Successfully created GPU instance ID  0 on GPU  2 using profile MIG 7g.80gb (ID  0)" ]
    mig --sim ./m.json -dgi -i 2
    status_is 0
    [ "$output" = "Successfully destroyed GPU instance ID  0 from GPU  2" ]
    mig --sim ./m.json -lgi
    [ "${#lines[@]}" -eq 7 ]
    mig --sim ./m.json -cgi 0 -i 1
    status_is 6
    [ "$output" = "No MIG-enabled devices found." ]
}

@test "mig -cci, -dci and -dgi choose by -gi and -ci" {
    machine h100-mig 'd["processes"] = []'
    mig --sim ./m.json -dgi -gi 3
    status_is 19
    [ "$output" = "Unable to destroy GPU instance ID  3 from GPU  0: In use by another client
Failed to destroy GPU instances: In use by another client" ]
    mig --sim ./m.json -dci -gi 2,3
    status_is 0
    [ "$output" = "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  3
Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  2" ]
    mig --sim ./m.json -cci 1c.3g.40gb,0,0 -gi 2
    status_is 0
    [ "${lines[0]}" = "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  2 using profile MIG 1c.3g.40gb (ID  0)" ]
    [ "${lines[2]}" = "Successfully created compute instance ID  2 on GPU  0 GPU instance ID  2 using profile MIG 1c.3g.40gb (ID  0)" ]
    mig --sim ./m.json -lcip -gi 2
    [ "${lines[6]}" = "|   0      2       MIG 1c.3g.40gb       0      0/3           16        3     0     0   |" ]
    mig --sim ./m.json -dci -gi 2 -ci 0,2
    [ "${#lines[@]}" -eq 2 ]
    mig --sim ./m.json -lci -gi 2
    [ "${lines[6]}" = "|   0      2       MIG 1c.3g.40gb       0         1          0:1     |" ]
    [ "${#lines[@]}" -eq 8 ]
    mig --sim ./m.json -cci -gi 3
    [ "$output" = "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  3 using profile MIG 2g.20gb (ID  1)" ]
    mig --sim ./m.json -cci -gi 3
    status_is 23
    [ "${lines[0]}" = "Unable to create a compute instance on GPU  0 GPU instance ID  3 using profile 1: Insufficient Resources" ]
}

@test "mig: where there is nothing" {
    local option
    for option in -lgi -lci -lcip; do
        mig --sim t4 $option
        status_is 0
        [ "$output" = "No MIG-enabled devices found." ]
    done
    for option in "-dgi" "-dci" "-cci" "-cgi 0"; do
        # shellcheck disable=SC2086
        mig --sim t4 $option
        status_is 6
        [ "$output" = "No MIG-enabled devices found." ]
    done
    for option in -lgi -lcip -dgi -cci; do
        mig --sim h100-mig $option -gi 99
        status_is 6
        [ "$output" = "No GPU instances found: Not Found" ]
    done
    mig --sim h100-mig -dci -ci 7
    status_is 6
    [ "$output" = "No compute instances found: Not Found" ]
    mig --sim h100x1 -lgip
    status_is 0
    [ "${lines[5]}" = "|   0  MIG 1g.10gb         19     7/7        9.75       No     16     1     0   |" ]
    mig --sim h100x1 -lgipp # an H100 lists them without MIG mode, too
    status_is 0
    [ "${lines[0]}" = "GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1" ]
}

@test "mig: without the right" {
    export ROOT=0
    mig --sim h100-mig -lgi
    status_is 4
    [ "$output" = "Failed to display GPU instances: Insufficient Permissions
No GPU instances found: Insufficient Permissions" ]
    mig --sim h100-mig -lgip
    status_is 4
    [ "$output" = "Failed to display GPU instance profiles: Insufficient Permissions" ]
    mig --sim h100-mig -cgi 19
    status_is 4
    [ "$output" = "Unable to create a GPU instance on GPU  0 using profile 19: Insufficient Permissions
Failed to create GPU instances: Insufficient Permissions" ]
    mig --sim h100-mig -dgi
    status_is 4
    [ "$output" = "No GPU instances found: Insufficient Permissions" ]
}

@test "mig: a GPU that hangs in the middle of a change" {
    machine h100 'm["devices"] = m["devices"][:1]; m["workload"] = []
d["answers"]["MigMode"] = {"current": "Enabled", "pending": "Enabled"}'
    fault ./m.json --gpu 0 hang=1h:nvmlGpuInstanceCreateComputeInstance
    mig --sim ./m.json --timeout 2 -cgi 19 -C
    status_is 10
    [ "${lines[0]}" = "Successfully created GPU instance ID 13 on GPU  0 using profile MIG 1g.10gb (ID 19)" ]
    [ "${lines[1]}" = "Unable to create a compute instance on GPU  0 GPU instance ID 13 using profile 0: Timeout" ]
}

@test "mig refuses unknown options" {
    local words
    for words in "-lgi -lci" "-cgi 0 -dgi" "-lgi -C"; do
        # shellcheck disable=SC2086
        mig --sim h100-mig $words
        status_is 2
    done
    mig --sim h100-mig -lgi -gi 1,x
    status_is 2
    [ "$output" = 'Option "1,x" is invalid for "-gi".' ]
    mig --sim h100-mig -cgi 12,19
    status_is 2
    [ "${lines[0]}" = "Unable to create a GPU instance on GPU  0 using profile 12: Invalid Argument" ]
    mig --sim h100-mig -lgi -i 3
    status_is 6
    [ "$output" = "No devices were found" ]
}

@test "mig -h lists every option" {
    mig -h
    status_is 0
    [[ "$output" = *"-lgip, --list-gpu-instance-profiles"*"-cci, --create-compute-instance[=PROFILES]"*"-gi, --gpu-instance-id=IDS"* ]]
}

@test "mig: -gi and -ci only where they choose something" {
    local words
    for words in "-dgi -ci 5" "-cgi 19 -gi 1" "-lgip -gi 1" "-lgipp -ci 0" "-lcip -ci 0" "-cci -ci 0"; do
        # shellcheck disable=SC2086
        mig --sim h100-mig $words
        status_is 2
        [ "$output" = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help." ]
    done
    mig --sim h100-mig -lgi
    [[ "$output" = *" 9 "* ]]
}

@test "mig: what cannot be said is done all the same" {
    machine h100 'm["devices"] = m["devices"][:1]; m["workload"] = []
d["answers"]["MigMode"] = {"current": "Enabled", "pending": "Enabled"}'
    GPULSE_SIM_ROOT=1 run bash -c '"$GPULSE" smi --sim ./m.json mig -cgi 19,19,19 -C >/dev/full'
    status_is 255
    mig --sim ./m.json -lci
    [ "$(grep -c 'MIG 1g.10gb' <<<"$output")" -eq 3 ]
    GPULSE_SIM_ROOT=1 run bash -c '"$GPULSE" smi --sim ./m.json mig -dci | true'
    mig --sim ./m.json -lci
    [[ "$output" = *"No compute instances found"* ]]
}

@test "mig: a GPU that is lost is not one without MIG" {
    fault h100-mig lost
    mig --sim h100-mig -lgi
    status_is 15
    [ "$output" = "Unable to determine the device handle for GPU0: GPU is lost" ]
}
