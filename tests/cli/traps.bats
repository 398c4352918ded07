# The ways in which drivers break monitors, played below the ABI; the numbers are those of the list of
# pitfalls in docs. The simulated driver is strict here: a call that would crash a real library ends
# gpulse (see helpers.bash).
# variants: asan

load helpers

query() {
    gpulse --sim-still query "$@" -f csv --no-header
}

# ---- A: initialisation ----

@test "5: nvmlInit that hangs is reported, and not waited for" {
    fault h100x2 hang=1h:nvmlInit
    gpulse --sim h100x2 --timeout 300ms status
    fails 4 'the driver did not start within 0\.3 s \(nvmlInit\); .*'
}

@test "22: UNKNOWN at nvmlInit is explained as a matter of permission" {
    fault h100x2 error=UNKNOWN:nvmlInit
    gpulse --sim h100x2 status
    status_is 4
    complains 'Unknown Error'
}

# ---- B: GPUs that go ----

@test "15: a GPU that is not counted any more; later ones move up and keep their identity" {
    fault h100x4 --gpu 1 gone
    query --sim h100x4 index,uuid
    status_is 0
    [ "${lines[*]}" = "0,GPU-00000000-0000-0000-0000-000000000000 1,GPU-00000002-0000-0000-0000-000000000002 2,GPU-00000003-0000-0000-0000-000000000003" ]
}

@test "15: a GPU that goes while it is watched is lost, and back when it is" {
    start --sim h100x2 --sim-still query uuid,status,temperature.gpu -f csv --no-header -n 0.2
    until_true grep -q '^GPU-00000001.*,ok,' out
    fault h100x2 --gpu 1 gone
    until_true grep -q '^GPU-00000001-.*lost' out
    : >out
    fault h100x2 clear
    until_true grep -aq '^GPU-00000001.*,ok,[0-9]' out
    kill -INT "$pid"
    finish
    [ "$status" -eq 130 ]
    # never a number of another GPU under this one's name
    run ! grep -av -e ',ok,67$' -e '\[' out
}

@test "15: more GPUs counted than there are handles" {
    fault h100x2 overcount
    query --sim h100x2 index,temperature.gpu
    status_is 6
    line_count 3
    [ "${lines[0]}" = 0,67 ]
    [ "${lines[2]}" = '2,[Unknown Error]' ]
    complains 'GPU 2: Invalid Argument \(nvmlDeviceGetHandleByIndex_v2\)'
}

@test "56: another order after a re-initialisation: numbers stay with their UUID" {
    start --sim h100x4 --sim-still query uuid,memory.used -f csv --no-header -n 0.2
    until_true grep -q '^GPU-00000003-.*,[0-9]' out
    sort -u out >before
    fault h100x4 reorder
    fault h100x4 --gpu 0 lost
    until_true grep -q '^GPU-00000000-.*lost' out
    fault h100x4 --gpu 0 clear
    : >out
    until_true grep -aq '^GPU-00000000-.*,[0-9]' out
    until_true grep -aq '^GPU-00000003-.*,[0-9]' out
    kill -INT "$pid"
    finish
    tr -d '\0' <out | grep ',[0-9]*$' | sort -u >after
    diff before after
}

# ---- C: permissions ----

@test "23: memory and processes of a MIG GPU are refused; the MIG devices tell theirs" {
    fault a100-mig parent
    query --sim a100-mig uuid,memory.used,temperature.gpu --mig
    status_is 0
    line_count 5
    [ "${lines[0]##*1e69664bb298,}" = '[Insufficient Permissions],27' ]
    [[ ${lines[1]} == MIG-*,10213654528,* ]]
    query --sim a100-mig pid,used_gpu_memory,process.gpu_instance_id --processes
    [ "${lines[0]}" = 4190001,10200547328,3 ]
}

@test "24: counters kept for root cost themselves alone" {
    query --sim h100 'name,temperature.gpu,memory.used,power.draw,gpm.*'
    status_is 0
    says_not 'Permission'
    fault h100 profiling
    query --sim h100 name,temperature.gpu,memory.used,power.draw
    status_is 0
    [[ ${lines[0]} == "NVIDIA H100 80GB HBM3,67,76665166233,640."* ]]
    gpulse --sim h100 --sim-still query 'gpm.*' -f csv --no-header -c 2 -n 0.3
    says 'Insufficient Permissions'
}

# ---- E: values that lie ----

@test "20: utilization stuck at 100 %" {
    fault h100x8 --gpu 7 stuck
    query --sim h100x8 utilization.gpu,power.draw -i 7
    [[ $output == 100,68.* ]] || [[ $output == 100,7* ]]
}

@test "32, 38: impossible pids are nobody" {
    fault h100x4 pids
    query --sim h100x4 pid --processes
    status_is 0
    [ -z "$output" ]
    gpulse --sim h100x4 --sim-still status
    status_is 0
    says_not '4294967295|3000000000'
    line_count 5
}

@test "39, 40: no samples since the last time are no failure" {
    fault h100 error=NOT_FOUND:nvmlDeviceGetSamples error=NOT_FOUND:nvmlDeviceGetProcess
    gpulse --sim h100 --sim-still query '*' -f json -c 2 -n 0.3
    status_is 0
    gpulse --sim h100 --sim-still query pid,process.utilization.sm --processes -f csv --no-header
    status_is 0
    line_count 6
}

@test "42: a new partition has new identities and old instance numbers" {
    start --sim a100-mig --sim-still query uuid,memory.used --mig -f csv --no-header -n 0.2
    until_true grep -q '^MIG-00000300' out
    fault a100-mig repartition
    until_true grep -q '^MIG-f0000300.*,10213654528$' out
    : >out
    until_true grep -aq '^MIG-f0000600' out
    run ! grep -aq '^MIG-0' out
    kill -INT "$pid"
    finish
}

@test "44: an energy counter that begins again never makes a negative power" {
    fault h100 energy
    query --sim h100 energy.consumption -i 0
    [ "$output" = 0.00 ] || explain "it begins at 0"
    fault h100 clear
    start --sim h100 query energy.consumption,power.draw -f csv --no-header -n 0.2
    until_true grep -q '^[0-9]\{8\}' out
    fault h100 energy
    until_true grep -q '^[0-9]\{1,6\}[.,]' out
    kill -INT "$pid"
    finish
    run ! grep -q -- - out
}

@test "47: field values of the wrong type are read by what they are" {
    query --sim h100x2 temperature.memory,power.draw.instant,temperature.tlimit.shutdown
    plain=$output
    fault h100x2 types
    query --sim h100x2 temperature.memory,power.draw.instant,temperature.tlimit.shutdown
    status_is 0
    [ "$output" = "$plain" ] || explain "$plain"
}

@test "48: GPM that is not a number is no number here either" {
    fault h100 absurd:nvmlGpm
    gpulse --sim h100 --sim-still query 'gpm.*' -f csv --no-header -c 2 -n 0.3
    says_not '[Nn][Aa][Nn]|[Ii][Nn][Ff]'
}

@test "21, 52: memory in use and nobody listed" {
    fault h100x2 hidden
    query --sim h100x2 memory.used
    [ "${lines[0]}" = 76665166233 ]
    query --sim h100x2 pid --processes
    status_is 0
    [ -z "$output" ]
}

@test "every fault that is offered is one that can be injected" {
    gpulse sim fault -m t4 nosuch
    status_is 2
    offered=$(sed -n 's/.*: expected \(.*\), clear; or.*/\1/p' <<< "$stderr" | tr -d ,)
    set -- $(sed 's/=TIME/=20ms/g; s/=CODE/=UNKNOWN/g; s/[][]//g' <<< "$offered")
    [ "$#" -gt 20 ]
    for name; do
        fault t4 "$name"
    done
    gpulse sim fault -m t4
    line_count "$#"
}
