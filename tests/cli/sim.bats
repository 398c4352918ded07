# gpulse sim: machines, captures, faults, jobs, and other programs on the simulated driver.
# variants: asan

load helpers

@test "list names every built-in machine, and all of them work" {
    gpulse sim list
    status_is 0
    for machine in t4 a100 a100-mig h100 h100-mig l40s b200 gb200 gb10 p100 rtx2080s rtx3060 rtx4090 laptop-asleep desktop inference sick; do
        says "^$machine +[0-9]+ "
    done
    names=$(awk 'NR > 1 { print $1 }' <<<"$output")
    for machine in $names; do
        gpulse --sim "$machine" query index,name,uuid,memory.total -f csv --no-header
        [ "$machine" = sick ] && continue # not all of it works: host.bats
        status_is 0
        is_quiet
        [ "$machine" = gb10 ] || says_not '\[N/A\]'
    done
}

@test "a machine that has no memory of its own, one that sleeps, one in parts" {
    gpulse --sim gb10 --sim-still query pci.bus_id,memory.total,memory.used,fan.speed,temperature.gpu -f csv --no-header
    status_is 0
    [ "$output" = '0000000F:01:00.0,[N/A],[N/A],[N/A],39' ]
    gpulse --sim gb10 --sim-still query used_gpu_memory --processes -f csv --no-header
    [ "${lines[*]}" = '122683392 154140672 328204288 32505856' ]
    GPULSE_SIM_COUNT=$PWD/calls gpulse --sim laptop-asleep query name,temperature.gpu -f csv --no-header
    status_is 0
    [ "$output" = 'NVIDIA GeForce RTX 3060 Laptop GPU,[Asleep]' ]
    [ ! -e calls ]
    gpulse --sim h100-mig query name --mig -f csv --no-header
    line_count 5
    says 'MIG 3g\.40gb$'
    says 'MIG 2g\.20gb$'
}

@test "a machine file may have a root beside it" {
    machine rtx3060-laptop ''
    bound=m.root/sys/bus/pci/drivers/nvidia/0000:01:00.0/power
    mkdir -p $bound
    echo suspended >$bound/runtime_status
    for driver in '' ,driver=470; do
        gpulse --sim "./m.json$driver" query temperature.gpu -f csv --no-header
        [ "$output" = '[Asleep]' ] || explain "$driver"
    done
    echo active >$bound/runtime_status
    gpulse --sim ./m.json query temperature.gpu --sim-still -f csv --no-header
    [ "$output" = 45 ] || [ "$output" = 46 ]
}

@test "a count gives more GPUs, each with an identity of its own" {
    gpulse --sim h100x2 query index -f csv --no-header
    line_count 2
    gpulse --sim h100x72 query uuid,pci.bus_id,minor_number -f csv --no-header
    status_is 0
    line_count 72
    for column in 1 2 3; do
        [ "$(cut -d, -f$column <<<"$output" | sort -u | wc -l)" -eq 72 ]
    done
}

@test "import makes a machine of a capture" {
    gpulse sim import "$HERE/data/captures/qx__netdata_tesla-p100.xml" -o p100.json
    status_is 0
    gpulse --sim ./p100.json query name,driver_version,temperature.gpu --sim-still -f csv --no-header
    [ "$output" = "Tesla P100-PCIE-16GB,510.47.03,38" ]
    gpulse sim import "$HERE/data/captures/qx__netdata_tesla-p100.xml"
    [ "$output" = "$(cat p100.json)" ]
    for capture in q__tesla-t4_530.30.02 q-d-POWER__gpu180W_595.71.05 query-gpu__l40s_595.80__load; do
        gpulse sim import "$HERE/data/captures/$capture.txt" -o m.json
        status_is 0
        gpulse --sim ./m.json query name,driver_version,power.draw --sim-still -f csv --no-header
        echo "$output" >>all
    done
    [ "$(cat all)" = "Tesla T4,530.30.02,14.04
[N/A],595.71.05,11.67
NVIDIA L40S,595.80,110.23" ]
    gpulse sim import
    fails 2 'import needs one capture: .*'
}

# printed ELEMENT TEXT: in the capture c.xml that is what nvidia-smi has printed there.
printed() {
    sed -i "s|<$1>[^<]*</$1>|<$1>$2</$1>|w changed" c.xml
    [ -s changed ] || explain "no $1 in the capture"
}

# imported FIELDS VALUES: the machine of c.xml says so.
imported() {
    gpulse sim import c.xml -o m.json
    status_is 0
    gpulse --sim ./m.json query "$1" -f csv --no-header
    [ "$output" = "$2" ] || explain "expected $2"
}

@test "import takes what nvidia-smi prints of GPUs that are none of ours" {
    cp "$HERE/data/captures/qx__k8stestinfra_a100.xml" c.xml
    imported capabilities.egm disabled
    printed egm enabled
    imported capabilities.egm enabled
    imported 'reset.*' "[N/A],[N/A]" # deprecated, it says
    printed reset_required Yes
    printed drain_and_reset_recommended No
    imported 'reset.*' Yes,No
    imported 'bridge_chip.*' "[N/A],[N/A]"
    printed bridge_chip_type PLX
    imported 'bridge_chip.*' "PLX,[N/A]"
    printed bridge_chip_type BRO4
    printed bridge_chip_fw 0xF0472900
    imported 'bridge_chip.*' BRO4,0xF0472900
    imported clocks.auto_boost,clocks.auto_boost_default "[N/A],[N/A]"
    printed auto_boost Off
    printed auto_boost_default On
    imported clocks.auto_boost,clocks.auto_boost_default Off,On
    imported virtualization.vgpu_heterogeneous "[N/A]"
    printed vgpu_heterogeneous_mode Enabled
    imported virtualization.vgpu_heterogeneous Enabled
}

@test "exec runs another program on the simulated driver" {
    gpulse sim exec -m h100x2 --still -- sh -c 'echo "$GPULSE_SIM $GPULSE_SIM_STILL ${LD_LIBRARY_PATH%%:*}" "$@"; exit 7' sh -n --still
    status_is 7
    [[ $output == "h100x2 1 "*"/sim -n --still" ]]
    gpulse sim exec -m h100x2 -- /nonexistent/program
    status_is 1
    complains "cannot run '/nonexistent/program': No such file or directory"
    gpulse sim exec -m nosuch -- true
    fails 2 "unknown simulated machine 'nosuch'; .*"
    gpulse sim exec -m t4
    fails 2 'missing program; usage: gpulse sim exec \[options\] -- PROGRAM'
    gpulse sim exec -- true
    fails 2 'no machine given; use -m, for example -m h100x8'
}

@test "a job takes memory and utilization, is seen, and gives them back" {
    gpulse --sim h100x8 --sim-still query memory.used -i 7 -f csv --no-header
    before=$output
    start sim load -m h100x8 --gpu 7 --mem 20GiB --util 80
    until_true grep -q 'holds 20.00 GiB' out
    gpulse --sim h100x8 --sim-still query index,pid,used_gpu_memory:GiB,process_name,user --processes -i 7 -f csv --no-header
    [ "$output" = "7,$pid,20.0,python,$(id -un)" ]
    gpulse --sim h100x8 query memory.used -i 7 -f csv --no-header
    [ "$((output - before))" -ge $((20 << 30)) ]
    kill -TERM "$pid"
    finish
    status_is 0
    gpulse --sim h100x8 query pid --processes -i 7 -f csv --no-header
    [ -z "$output" ]
    gpulse --sim h100x8 --sim-still query memory.used -i 7 -f csv --no-header
    [ "$output" = "$before" ]
}

@test "a job that was killed leaves nothing behind" {
    start sim load -m h100x8 --gpu 7 --mem 20GiB
    until_true grep -q 'holds' out
    kill -KILL "$pid"
    finish
    gpulse --sim h100x8 query pid --processes -i 7 -f csv --no-header
    [ -z "$output" ]
}

# accounts FIELDS ARG…: the rows of the first GPU, without their identity
accounts() {
    gpulse query "$1" --rows accounted_apps -i 0 -f csv --no-header "${@:2}"
}

@test "a driver in accounting mode keeps account of jobs, also when they have ended" {
    machine h100 'm["workload"] = []; d["answers"]["AccountingMode"] = "Enabled"'
    export GPULSE_SIM=$PWD/m.json
    start sim load --gpu 0 --mem 5GiB --spike 3GiB --util 70
    until_true grep -q 'holds 5.00 GiB' out
    local first=$pid
    accounts pid,gpu_util,max_memory_usage:GiB,time,running
    [ "$output" = "$first,70,8.0,0,Yes" ]
    kill -TERM "$first"
    finish
    start sim load --gpu 0 --mem 2GiB
    until_true grep -q holds out
    kill -KILL "$pid" # it cannot say so
    finish
    accounts pid,max_memory_usage:GiB,running
    [ "${lines[0]}" = "$first,8.0,No" ]
    [ "${lines[1]}" = "$pid,2.0,No" ]
    accounts time
    [ "${lines[0]}" -gt 0 ]
    start sim load --gpu 0 --mem 2GiB
    until_true grep -q holds out
    gpulse set accounting-records=clear -i 0 --yes
    accounts pid
    [ "$output" = "$pid" ]
    gpulse set accounting-mode=off -i 0 --yes
    gpulse set accounting-mode=on -i 0 --yes
    accounts pid
    [ -z "$output" ] # it has none: it began before
}

@test "a job obeys CUDA_VISIBLE_DEVICES" {
    CUDA_VISIBLE_DEVICES=6,7 gpulse sim load -m h100x8 --gpu 1 --mem 1GiB --for 10ms
    status_is 0
    says '\(GPU 7\)$'
    CUDA_VISIBLE_DEVICES='6x, 7' gpulse sim load -m h100x8 --gpu 1 --mem 1GiB --for 10ms # as CUDA reads it
    says '\(GPU 7\)$'
    CUDA_VISIBLE_DEVICES=GPU-00000005 gpulse sim load -m h100x8 --mem 1GiB --for 10ms
    says '\(GPU 5\)$'
    for none in '' -1 99 6,6; do
        CUDA_VISIBLE_DEVICES=$none gpulse sim load -m h100x8 --mem 1GiB --for 10ms
        status_is 1
        complains 'No CUDA GPUs are available'
    done
    CUDA_VISIBLE_DEVICES=6 gpulse sim load -m h100x8 --gpu 1 --for 10ms
    status_is 1
    complains 'invalid device ordinal'
}

@test "a job without memory prints PyTorch's words and exits with 1" {
    gpulse sim load -m t4 --mem 200GiB
    status_is 1
    complains '^torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate 200\.00 GiB\. GPU 0 has a total capacity of 15\.00 GiB of which [0-9.]+ GiB is free\.'
}

@test "faults are listed, and cleared by GPU or all" {
    fault h100x8 --gpu 3 lost
    fault h100x8 slow=20ms:nvmlDeviceGetFanSpeed
    gpulse sim fault -m h100x8
    line_count 2
    says $'^3\tlost$'
    says $'^all\tslow=20ms:nvmlDeviceGetFanSpeed$'
    # of this machine only
    gpulse sim fault -m h100x4
    [ -z "$output" ]
    fault h100x8 --gpu 3 clear
    gpulse sim fault -m h100x8
    line_count 1
    fault h100x8 clear
    gpulse sim fault -m h100x8
    [ -z "$output" ]
}

@test "faults that mean nothing change nothing" {
    for bad in explode hang=soon slow error=NOSUCH lost=3 slow=1ms:nvmlNoSuchThing; do
        gpulse sim fault -m t4 lost "$bad"
        status_is 2
        [ -n "$stderr" ]
    done
    gpulse sim fault -m t4 --gpu 7 lost
    fails 2 '--gpu 7: the machine has GPUs 0 to 0'
    gpulse sim fault -m t4
    [ -z "$output" ]
}

@test "calls cost what the machine file says" {
    machine t4 'm["latency_us"] = {"nvmlDeviceGetTemperature": 300000}'
    start=$(date +%s%N)
    gpulse --sim ./m.json query temperature.gpu
    status_is 0
    [ $((($(date +%s%N) - start) / 1000000)) -ge 300 ]
}
