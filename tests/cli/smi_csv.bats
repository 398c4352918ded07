# gpulse smi --query-…: what is taken and refused, in loops, with GPUs in trouble. What the tables
# hold is compared with captures in check_smi_csv.py.
# variants: asan

load helpers

# csv MACHINE ARG…: a table of a machine that stands still
csv() {
    gpulse smi --sim "$1" --sim-still --format=csv "${@:2}"
}

# The message goes to standard output, followed by an empty line, and nothing else.
refuses() {
    status_is "$1"
    is_quiet
    [ "$output" = "$2" ] || explain "the message is not: $2"
}

@test "smi csv: names are taken with blanks around them, twice, with a comma at the end" {
    csv h100x2 --query-gpu=index,gpu_name,index,
    status_is 0
    is_quiet
    [ "$output" = $'index, name, index\n0, NVIDIA H100 80GB HBM3, 0\n1, NVIDIA H100 80GB HBM3, 1' ]
    csv h100x2 --query-gpu ' index , uuid, ' -i 1
    [ "$output" = $'index, uuid\n1, GPU-00000001-0000-0000-0000-000000000001' ]
    csv h100x2 --query-gpu=count,pcie.link.gen.gpucurrent,clocks_throttle_reasons.active,gpu.power.draw.average
    [ "${lines[0]}" = "count, pcie.link.gen.gpucurrent, clocks_event_reasons.active, power.draw.average [W]" ]
    [ "${lines[2]}" = "2, 5, 0x0000000000000004, 640.27 W" ]
}

@test "smi csv: --format in any order, with blanks; nounits keeps the units of the header" {
    gpulse smi --sim h100x1 --sim-still --format=noheader,csv --query-gpu=memory.total
    [ "$output" = "81559 MiB" ]
    gpulse smi --sim h100x1 --sim-still --query-gpu=memory.total --format 'csv, nounits'
    [ "$output" = $'memory.total [MiB]\n81559' ]
    gpulse smi --sim h100x1 --sim-still --query-gpu=memory.total --format nounits,noheader,csv
    [ "$output" = 81559 ]
}

@test "smi csv: --format may be left out" {
    gpulse smi --sim h100x1 --sim-still --query-gpu=memory.total
    [ "$output" = $'memory.total [MiB]\n81559 MiB' ]
    gpulse smi --sim h100x1 --sim-still --query-gpu=memory.total --format=noheader
    [ "$output" = "81559 MiB" ]
}

@test "smi csv: refused arguments" {
    csv h100 --query-gpu=index,bogus.field,name
    refuses 2 $'Field "bogus.field" is not a valid field to query.'
    run --keep-empty-lines --separate-stderr "$GPULSE" smi --sim h100 --format=csv --query-gpu=bogus
    [ "$output" = $'Field "bogus" is not a valid field to query.\n\n' ]
    csv h100x1 --query-gpu=index,,name
    [ "${lines[0]}" = "index, name" ]
    csv h100 --query-gpu=,
    refuses 2 'Field "" is not a valid field to query.'
    csv h100 --query-compute-apps=pid,uuid
    refuses 2 'Field "uuid" is not a valid field to query.'
    gpulse smi --sim h100 --query-gpu=index --format=csv,json
    refuses 2 "Format modifier is not recognized."
    csv h100 --query-gpu=index --query-compute-apps=pid
    refuses 2 "Only one --query-* switch can be used at a time."
    csv h100 --query-gpu=index -q
    refuses 2 "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."
    local part
    for part in --format=csv "-q --format=csv"; do
        # shellcheck disable=SC2086
        gpulse smi --sim h100 $part
        refuses 2 "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."
    done
    local needs="Invalid combination of input arguments. Specify -q/--query and"
    gpulse smi --sim h100 -x
    refuses 2 "$needs -x/--xml-format to run an XML query.  Please run 'nvidia-smi -h' for help."
    gpulse smi --sim h100 -L -x
    refuses 2 "$needs -x/--xml-format to run an XML query.  Please run 'nvidia-smi -h' for help."
    gpulse smi --sim h100 -d POWER
    refuses 2 "$needs -d/--display to run a filtered query.  Please run 'nvidia-smi -h' for help."
    csv h100 --query-gpu
    refuses 255 "ERROR: Option --query-gpu is missing its value. Please run 'nvidia-smi -h' for help."
    csv h100 --query-gpu="$(printf 'index,%.0s' {1..1025})"
    refuses 2 "More than 1024 fields cannot be queried."
    csv h100 --query-gpu=index -i GPU-none
    refuses 6 "No devices were found"
}

@test "smi csv: nothing is asked that is not printed" {
    count() {
        GPULSE_SIM_COUNT=$PWD/counts "$GPULSE" "$@" >out
        sort counts
    }
    query=$(count --sim h100x8 query temperature.gpu)
    [ "$query" = "$(count smi --sim h100x8 --query-gpu=temperature.gpu --format=csv)" ]
    grep -qx 'nvmlDeviceGetTemperature 8' counts
    [ "$(count --sim h100x8 query pid --processes)" = "$(count smi --sim h100x8 --query-compute-apps=pid --format=csv)" ]
}

@test "smi csv: a loop prints its header once, every pass at once and with a time stamp of its own" {
    start smi --sim h100x2 --query-gpu=timestamp,index --format=csv -lms 100
    four_passes() { [ "$(wc -l <out)" -ge 9 ]; }
    until_true four_passes
    kill -INT "$pid"
    finish
    [ "$(grep -c timestamp out)" -eq 1 ]
    [ "$(sed 1d out | head -8 | grep -Ec '^[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:]{8}\.[0-9]{3}, [01]$')" -eq 8 ]
    [ "$(sed 1d out | head -8 | cut -d, -f1 | uniq -c | awk '{ print $1 }' | uniq)" = 2 ]
    [ ! -s err ]
}

@test "smi csv: -f overwrites a file" {
    seq 1000 >f.csv
    csv t4 --query-gpu=name,pstate -f f.csv
    status_is 0
    [ -z "$output" ]
    [ "$(<f.csv)" = $'name, pstate\nTesla T4, P0' ]
    csv t4 --query-gpu=bogus -f f.csv
    [ "$(wc -l <f.csv)" -eq 2 ]
}

@test "smi csv: a GPU that the driver does not hand out is a line at its place, and a row that says why" {
    fault h100x3 --gpu 1 error=999
    mkdir -p root/sys/bus/pci/drivers/nvidia/0000:{53,64,75}:00.0
    csv h100x3 --query-gpu=index,name,count --root root
    is_quiet
    line_count 5
    [ "${lines[1]}" = "0, NVIDIA H100 80GB HBM3, 3" ]
    [ "${lines[2]}" = "Unable to determine the device handle for GPU1: 0000:64:00.0: Unknown Error" ]
    [ "${lines[3]}" = "[Unknown Error], [Unknown Error], [Unknown Error]" ]
    [ "${lines[4]}" = "2, NVIDIA H100 80GB HBM3, 3" ]
    csv h100x3 --query-compute-apps=pid
    [ "$output" = $'pid\n4190001\nUnable to determine the device handle for GPU1: 0000:64:00.0: Unknown Error\n4190003' ]
    csv h100x3 --query-retired-pages=retired_pages.cause -i 0-1
    line_count 4
}

@test "smi csv: a GPU that is lost in a loop has values that say so" {
    start smi --sim h100x3 --query-gpu=index,temperature.gpu --format=csv,noheader -lms 100
    until_true grep -q '^1, ' out
    fault h100x3 --gpu 1 lost
    until_true grep -qx '\[GPU is lost\], \[GPU is lost\]' out
    two_more() { [ "$(sed '1,/lost/d' out | grep -c '^2, ')" -ge 2 ]; }
    until_true two_more
    kill -INT "$pid"
    finish
    [ ! -s err ]
    run ! grep Unable out
}

@test "smi csv: a GPU that hangs has cells without values, and a row without processes" {
    fault h100x2 --gpu 0 hang=1h
    csv h100x2 --query-gpu=index,temperature.gpu --timeout 2
    [ "${lines[1]}" = "0, [Timeout]" ]
    [[ "${lines[2]}" = "1, "?? ]]
    csv h100x2 --query-compute-apps=pid --timeout 2
    [ "$output" = $'pid\n[Timeout]\n4190002' ]
}

@test "smi csv: values without permission" {
    fault h100x2 --gpu 0 deny:nvmlDeviceGetComputeRunningProcesses
    csv h100x2 --query-compute-apps=pid,used_memory
    [ "$output" = $'pid, used_gpu_memory [MiB]\n[Insufficient Permissions], [Insufficient Permissions]\n4190002, 72909 MiB' ]
    fault h100x2 --gpu 1 deny:nvmlDeviceGetTemperature
    csv h100x2 --query-gpu=index,temperature.gpu -i 1
    [ "${lines[1]}" = "1, [Insufficient Permissions]" ]
}

@test "smi csv: a GPU that sleeps is not woken" {
    csv laptop-asleep --query-gpu=index,name,temperature.gpu
    [ "${lines[1]}" = "0, NVIDIA GeForce RTX 3060 Laptop GPU, [N/A]" ]
    csv laptop-asleep --query-compute-apps=pid
    line_count 1
}

@test "smi csv: processes that compute, in the driver's order, of a GPU with its instances" {
    machine h100-mig 'd["processes"] = [
        {"pid": 30, "type": "C", "name": "a,b", "memory_bytes": 1 << 20, "gpu_instance": 2, "compute_instance": 0},
        {"pid": 20, "type": "G", "name": "x", "memory_bytes": 1},
        {"pid": 10, "type": "C+G", "name": "c d", "memory_bytes": (1 << 20) + 1}]'
    csv ./m.json --query-compute-apps=pid,name,used_memory,gpu_uuid --root .
    [ "${lines[1]}" = "30, a,b, 1 MiB, $(json 'd["devices"][0]["uuid"]' m.json)" ]
    [ "${lines[2]}" = "10, c d, 2 MiB, $(json 'd["devices"][0]["uuid"]' m.json)" ]
    line_count 3
    machine t4 'd["processes"] = [{"pid": 30, "type": "C"}]'
    csv ./m.json --query-compute-apps=pid,name,used_memory --root .
    [ "${lines[1]}" = "30, [Not Found], [N/A]" ]
}

@test "smi csv: retired pages and supported clocks" {
    machine p100 'd["lists"]["retired_pages"] = [{"cause": 1, "address": 0xabcd, "time": 1700000000}, {"cause": 0, "address": 16}]'
    TZ=UTC csv ./m.json --query-retired-pages=retired_pages.address,retired_pages.timestamp,retired_pages.cause
    [ "${lines[1]}" = "0x0000000000000010, [N/A], Single Bit ECC" ]
    [ "${lines[2]}" = "0x000000000000abcd, 2023/11/14 22:13:20.000, Double Bit ECC" ]
    line_count 3
    machine p100 'd["lists"]["retired_pages"] = []'
    csv ./m.json --query-retired-pages=retired_pages.address
    line_count 1
    csv rtx3060x2 --query-supported-clocks=gpu_bus_id,mem,gr
    [ "${lines[0]}" = "gpu_bus_id, memory [MHz], graphics [MHz]" ]
    [ "${lines[1]}" = "00000000:2D:00.0, 7501 MHz, 2145 MHz" ]
    machine t4 'd["lists"].pop("supported_clocks", None)'
    csv ./m.json --query-supported-clocks=mem,gr
    [ "${lines[1]}" = "[N/A], [N/A]" ]
    line_count 2
}

@test "smi csv: the words for no value follow the driver" {
    csv t4,driver=450 --query-gpu=mig.mode.current,temperature.memory,display_mode
    [ "${lines[1]}" = "[Not Supported], [Not Supported], Enabled" ]
    csv t4,driver=570 --query-gpu=mig.mode.current,temperature.memory,display_mode
    [ "${lines[1]}" = "[N/A], N/A, Enabled" ]
    csv t4,driver=595 --query-gpu=power.management,clocks.applications.gr,display_mode,fabric.state
    [ "${lines[1]}" = "[Requested functionality has been deprecated], [Requested functionality has been deprecated], [Requested functionality has been deprecated], N/A" ]
}

@test "smi csv: the pages of help need no driver" {
    for query in gpu supported-clocks compute-apps accounted-apps retired-pages remapped-rows; do
        GPULSE_NVML=/nowhere gpulse smi --help-query-$query
        status_is 0
        is_quiet
        [ "${lines[0]}" = "List of valid properties to query for the switch \"--query-$query\":" ]
        says '^"timestamp"$'
    done
    GPULSE_NVML=/nowhere gpulse smi -h
    status_is 0
    is_quiet
    [[ "${lines[0]}" = "NVIDIA System Management Interface -- gpulse "* ]]
    gpulse smi --help --sim h100
    [ "${lines[0]}" = "NVIDIA System Management Interface -- v580.105.08" ]
    fault h100x2 error=NOT_FOUND:nvmlSystemGetDriverVersion # it has one, and does not tell which
    gpulse smi -h --sim h100x2
    [[ "${lines[0]}" = "NVIDIA System Management Interface -- gpulse "* ]]
    for option in --query-gpu= --query-remapped-rows= --help-query-gpu --format= -lms, -q, -i,; do
        says "^ {4}(-[a-z], |--id, )*$option"
    done
}
