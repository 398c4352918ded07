# gpulse query: fields, scopes, formats, units, loops, and what it costs.
# variants: asan

load helpers

t4() {
    gpulse --sim t4 --sim-still query "$@"
}

@test "fields in the order in which they are asked for" {
    t4 name,index,memory.total -f csv
    status_is 0
    is_quiet
    [ "${lines[0]}" = "name,index,memory.total" ]
    [ "${lines[1]}" = "Tesla T4,0,16106127360" ]
    line_count 2
}

@test "aliases, groups, blanks and a trailing comma" {
    t4 'gpu_name, clocks.gr,' -f csv
    [ "${lines[0]}" = "name,clocks.current.graphics" ]
    t4 'bar1.*' -f csv
    [ "${lines[0]}" = "bar1.total,bar1.used,bar1.free" ]
    t4 '*' -f csv
    [ "$(tr ',' '\n' <<<"${lines[0]}" | wc -l)" -gt 80 ]
    t4 'process.utilization.*' --processes -f csv --no-header
    [ "$output" = "38,20,0,0,0,0" ]
}

@test "every format" {
    t4 index,name,utilization.gpu
    [ "${lines[0]}" = "index  name      utilization.gpu" ]
    [ "${lines[1]}" = "    0  Tesla T4             38 %" ]
    t4 index,name,utilization.gpu -f csv
    [ "${lines[1]}" = "0,Tesla T4,38" ]
    t4 index,name,utilization.gpu -f tsv
    [ "${lines[1]}" = $'0\tTesla T4\t38' ]
    t4 index,name,utilization.gpu -f json
    json_is 'd["schema"], d["driver"], d["gpus"]' \
        "('gpulse.query/1', '595.91.07', [{'index': 0, 'name': 'Tesla T4', 'utilization.gpu': 38}])"
    t4 index,name,utilization.gpu -f ndjson
    line_count 1
    json_is '[d[k] for k in ("schema", "driver", "index", "name", "utilization.gpu")]' \
        "['gpulse.query.row/1', '595.91.07', 0, 'Tesla T4', 38]"
    t4 index,utilization.gpu -f xml --units
    says '^      <utilization.gpu unit="percent">38</utilization.gpu>$'
    t4 utilization.gpu -f openmetrics
    says '^gpulse_gpu_utilization_gpu_ratio\{gpu="0",uuid="GPU-[^"]+",pci_bus_id="[^"]+",name="Tesla T4"\} 0\.38$'
    [ "${lines[-1]}" = '# EOF' ]
}

@test "a single row wider than the terminal is shown vertically" {
    needs_terminal
    on_terminal() {
        run script -qec "stty cols 60; '$GPULSE' --sim $1 --sim-still query name,uuid,temperature.gpu" /dev/null
        output=${output//$'\r'/}
    }
    on_terminal t4
    says '^name             Tesla T4$'
    says '^temperature.gpu  49 °C$'
    on_terminal h100x2
    says '^name +uuid +temperature.gpu$'
    t4 name,uuid,temperature.gpu
    says '^name +uuid +temperature.gpu$'
}

@test "an absent value has a reason in each format" {
    t4 fan.speed
    says '^ +N/A$'
    t4 fan.speed -f csv --no-header
    [ "$output" = "[N/A]" ]
    t4 fan.speed -f tsv --no-header
    [ "$output" = "[N/A]" ]
    t4 fan.speed -f json
    json_is 'd["gpus"]' "[{'fan.speed': None, 'reasons': {'fan.speed': 'not supported'}}]"
    t4 fan.speed -f ndjson
    json_is 'd["fan.speed"], d["reasons"]' "(None, {'fan.speed': 'not supported'})"
    t4 fan.speed -f xml
    says '^ +<fan.speed reason="not supported"/>$'
    t4 fan.speed -f openmetrics
    says_not '^gpulse'
}

@test "units: selected after a colon, shown with --units" {
    t4 memory.total:GiB,power.limit:mW,utilization.gpu:ratio -f csv
    [ "${lines[0]}" = "memory.total [GiB],power.limit [mW],utilization.gpu [ratio]" ]
    [ "${lines[1]}" = "15.0,70000,0.38" ]
    t4 memory.total,power.limit,name -f csv --units
    [ "${lines[0]}" = "memory.total [bytes],power.limit [W],name" ]
    t4 memory.total,power.limit,name -f json --units
    json_is 'd["units"]' "{'memory.total': 'bytes', 'power.limit': 'W'}"
    # a number that is not in the catalogue's unit has a name of its own
    t4 memory.total:GiB,memory.total,power.limit:mW -f json --units
    json_is 'd["gpus"]' "[{'memory.total:GiB': 15.0, 'memory.total': 16106127360, 'power.limit:mW': 70000}]"
    json_is 'd["units"]' "{'memory.total:GiB': 'GiB', 'memory.total': 'bytes', 'power.limit:mW': 'mW'}"
    t4 memory.total:GiB -f ndjson
    json_is 'd["memory.total:GiB"], "memory.total" in d' '(15.0, False)'
    t4 memory.total
    says '^ +15\.00 GiB$'
    t4 memory.total:furlongs
    fails 2 "unknown unit 'furlongs' for memory.total; known: B KiB MiB GiB TiB kB MB GB"
    t4 name:B
    fails 2 "unknown unit 'B' for name, which has no unit"
}

@test "--no-header, and one number for a script" {
    t4 temperature.gpu --no-header
    [ "$(tr -d ' ' <<<"$output")" = "49°C" ]
    t4 temperature.gpu --no-header -f csv
    [ "$output" = "49" ]
}

@test "--processes: a row per process, with fields of its GPU and host" {
    gpulse --sim h100x8 --sim-still query index,pid,process.type,used_gpu_memory:GiB,driver_version --processes -f csv
    status_is 0
    line_count 7
    [[ ${lines[1]} =~ ^0,[0-9]+,C,71\.4,580\.105\.08$ ]]
    [[ ${lines[6]} =~ ^5,[0-9]+,C,23\.1,580\.105\.08$ ]]
    gpulse --sim h100x8 query pid
    fails 2 "field 'pid' belongs to a process; add --processes"
}

@test "--host: one row about the machine" {
    mkdir -p root/proc
    printf '%s kB\n' 'MemTotal:       1000' 'MemFree: 1' 'MemAvailable:    600' 'SwapTotal: 50' 'SwapFree: 20' >root/proc/meminfo
    echo '1.25 0.5 0.3 1/100 4711' >root/proc/loadavg
    printf 'cpu  10 0 30 60 0 0 0 0\ncpu0 1 1 1 1\ncpu2 1 1 1 1\n' >root/proc/stat
    echo '7200.25 100.00' >root/proc/uptime
    gpulse --sim h100x8 --root root query count,driver_version,cuda_version,nvml_version,host.memory.total,host.memory.available,host.load.1m,host.cpu.utilization --host -f csv --no-header
    status_is 0
    [ "$output" = "8,580.105.08,13.0,13.580.105.08,1024000,614400,1.25,40.00" ]
    gpulse --sim h100x8 --root root query host.swap.total,host.swap.used,host.cpu.count,host.uptime,host.uptime:h --host -f csv --no-header
    status_is 0
    [ "$output" = "51200,30720,2,7200,2.00" ]
    gpulse --sim h100x8 query index --host
    fails 2 "field 'index' belongs to a GPU; remove --host"
    gpulse --sim h100x8 query index --host --processes
    fails 2 '--processes and --host cannot be combined'
}

@test "--mig: rows for MIG instances too" {
    gpulse --sim a100-mig --sim-still query index,mig.gpu_instance_id,mig.profile,memory.total:MiB -f csv --no-header
    line_count 1
    gpulse --sim a100-mig --sim-still query index,mig.gpu_instance_id,mig.profile,memory.total:MiB -f csv --no-header --mig
    line_count 5
    [ "${lines[0]}" = "0,[N/A],[N/A],81920" ]
    [ "${lines[1]}" = "0,3,1g.20gb,19968" ]
    [ "${lines[4]}" = "0,6,1g.20gb,19968" ]
    gpulse --sim a100-mig query index,mig.index -f csv --no-header --mig
    [ "${lines[*]}" = "0,[N/A] 0,0 0,1 0,2 0,3" ]
    # what an instance has is shown of its processes too
    gpulse --sim h100-mig --sim-still query mig.index,mig.multiprocessors,mig.jpeg --processes -f csv --no-header
    [ "${lines[0]}" = "0,60,3" ]
}

@test "a MIG instance is chosen by its UUID" {
    gpulse --sim a100-mig query index,mig.index,mig.gpu_instance_id,uuid -i MIG-00000500 -f csv --no-header
    status_is 0
    is_quiet
    [ "$output" = "0,2,5,MIG-00000500-7d19-9063-b049-1e69664bb298" ]
    gpulse --sim a100-mig query mig.index -i mig-00000500,MIG-00000300 -f csv --no-header
    [ "${lines[*]}" = "0 2" ]
    gpulse --sim a100-mig query process_name --processes -i MIG-00000500 -f csv --no-header
    status_is 0
    says jupyter
    line_count 1
    gpulse --sim a100-mig query index -i MIG-00000999
    fails 3 "no GPU matches 'MIG-00000999'; this machine has 1"
}

@test "--list has every field of the table, --describe explains one" {
    gpulse query --list --no-header
    status_is 0
    line_count "$(grep -c '^METRIC(' "$HERE/src/model/metric.def")"
    says '^memory\.used +gpus +bytes +GPU memory in use'
    gpulse query --describe clocks.gr
    status_is 0
    [ "${lines[0]}" = clocks.current.graphics ]
    says '^  also +clocks\.gr$'
    says '^  origin +nvidia-smi has a field of this name$'
    says '^  rows +gpus$'
    gpulse query --describe clocks.grr
    status_is 2
    # as many as a query would take
    gpulse query --describe 'energy.*,clocks.gr'
    status_is 0
    [ "$(grep -v '^ ' <<<"$output" | tr -d '\n')" = energy.consumptionclocks.current.graphics ]
    gpulse query --describe number --rows links
    [ "${lines[0]}" = links.number ]
    gpulse query --describe gpm
    fails 2 "unknown field 'gpm' \(did you mean 'gpm\.graphics\.active', or 'gpm\.\*' for the whole group\?\); gpulse query --list shows all"
}

@test "--list: aligned columns, one kind of row, machine-readable formats" {
    gpulse query --list
    status_is 0
    python3 - "$output" <<'PYTHON'
import sys
head, *lines = sys.argv[1].splitlines()
starts = [head.index(word) for word in ("name", "rows", "unit", "help")]
assert any("°C" in line for line in lines)
for line in lines:
    for start in starts:
        assert line[start - 1] == " " or start == 0, line
        assert line[start] != " " or start == starts[2], line
PYTHON
    gpulse query --list --rows fans -f csv
    [ "${lines[0]}" = name,rows,unit,type,aliases,help ]
    [ "${lines[2]}" = 'fans.speed,fans,percent,whole number,,"intended speed of the fan, in percent of the maximum; may exceed 100"' ]
    [ "$(sed 1d <<<"$output" | cut -d, -f2 | sort -u)" = fans ]
    gpulse query --list --processes -f tsv --no-header
    [ "$(cut -f2 <<<"$output" | sort -u)" = processes ]
    # every word of that column is one that --rows takes
    gpulse query --list -f json
    kinds=$(json '" ".join(sorted({f["rows"] for f in d["fields"]}))')
    [ "$(wc -w <<<"$kinds")" -eq 16 ]
    for rows in $kinds; do
        gpulse query --list --rows "$rows"
        status_is 0
    done
    gpulse query --list 'gpm.tensor.*' -f json
    json_is 'd["schema"], len(d["fields"]), d["fields"][0]["unit"]' "('gpulse.field-list/1', 5, 'percent')"
    gpulse query --list -f xml
    fails 2 '--list goes with --format table, csv, tsv or json'
}

@test "a name that is no field: the group, or the kind of row, that was meant" {
    t4 fabric
    fails 2 "unknown field 'fabric' \(did you mean 'fabric\.state', or 'fabric\.\*' for the whole group\?\); .*"
    t4 links
    fails 2 "unknown field 'links' \(did you mean 'links\.\*' with --rows links\?\); .*"
    t4 temperature.gpu:F
    fails 2 "unknown unit 'F' for temperature.gpu, which is always in °C"
}

@test "a loop: -n, -c, --duration" {
    t4 temperature.gpu -f csv -n 0.1 -c 3
    status_is 0
    line_count 4
    # a count without an interval means one a second, an interval without a count never ends
    t4 temperature.gpu -f csv -c 1
    line_count 2
    t4 temperature.gpu -f csv --no-header -n 0.1 --duration 0.35
    status_is 0
    [ "${#lines[@]}" -ge 1 ]
    [ "${#lines[@]}" -le 4 ]
    t4 temperature.gpu -n 0.05
    fails 2 '--interval must be at least 0.1 seconds'
    t4 temperature.gpu -n 50ms
    fails 2 '--interval must be at least 0.1 seconds'
    t4 temperature.gpu -n 0
    fails 2 '--interval must be at least 0.1 seconds'
    t4 temperature.gpu -c 0
    fails 2 '--count must be at least 1'
    t4 temperature.gpu -n 1 -c 0
    fails 2 '--count must be at least 1'
    t4 temperature.gpu --duration 0
    fails 2 '--duration must be more than 0'
    t4 temperature.gpu --timeout 0s
    fails 2 '--timeout must be more than 0'
    t4 temperature.gpu -n soon
    fails 2 "bad value 'soon' for --interval: expected a duration such as .*"
    t4 temperature.gpu -c -1
    status_is 2
}

@test "a loop in JSON is one array, in ndjson a line per sample and GPU" {
    t4 timestamp,temperature.gpu -f json -n 0.1 -c 3
    json_is 'len(d), len({s["time"] for s in d})' '(3, 3)'
    gpulse --sim h100x2 query timestamp,index -f ndjson -n 0.1 -c 3
    line_count 6
    for line in "${lines[@]}"; do
        python3 -m json.tool <<<"$line" >/dev/null
    done
}

@test "GPUs that --id names must be there, also the last of a range" {
    gpulse --sim h100x2 query index -i 0-1 -f csv --no-header
    status_is 0
    line_count 2
    gpulse --sim h100x2 query index -i 0-99
    fails 3 "no GPU matches all of '0-99'; this machine has 2 \\(0 to 1\\)"
    gpulse --sim h100x2 query index -i 0,2
    fails 3 "no GPU matches '2'; this machine has 2 \\(0 to 1\\)"
}

@test "samples keep in step with the clock" {
    t4 timestamp -f csv --no-header -n 0.2 -c 6
    python3 - "${lines[@]}" <<'PYTHON'
import sys
from datetime import datetime
times = [datetime.fromisoformat(t).timestamp() for t in sys.argv[1:]]
# every sample is late by its own delay only: the delays do not add up
assert times[-1] - times[0] >= 0.95, times
assert all(b > a for a, b in zip(times, times[1:])), times
PYTHON
}

# calls NAME FILE: how often the driver function was called
calls() {
    awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$2"
}

total_calls() {
    awk '{ n += $2 } END { print n + 0 }' "$1"
}

@test "one field costs one driver call per GPU and tick" {
    GPULSE_SIM_COUNT=$PWD/one gpulse --sim h100x8 query temperature.gpu -n 0.1 -c 1
    GPULSE_SIM_COUNT=$PWD/ten gpulse --sim h100x8 query temperature.gpu -n 0.1 -c 10
    status_is 0
    [ "$(calls nvmlDeviceGetTemperature one)" -eq 8 ]
    [ "$(calls nvmlDeviceGetTemperature ten)" -eq 80 ]
    # and nothing else is asked again
    [ $(($(total_calls ten) - $(total_calls one))) -eq 72 ]
    [ "$(calls nvmlInit_v2 ten)" -eq 1 ]
    [ "$(calls nvmlDeviceGetHandleByIndex_v2 ten)" -eq 8 ]
}

@test "GPUs that are not chosen are left alone" {
    GPULSE_SIM_COUNT=$PWD/one gpulse --sim h100x8 query temperature.gpu -i 2,5
    [ "$(calls nvmlDeviceGetHandleByIndex_v2 one)" -eq 2 ]
    [ "$(calls nvmlDeviceGetTemperature one)" -eq 2 ]
}

@test "static values are asked once, refusals are remembered" {
    GPULSE_SIM_COUNT=$PWD/many gpulse --sim h100x2 query name,power.max_limit,fan.speed,pcie.link.gen.max -n 0.1 -c 5
    [ "$(calls nvmlDeviceGetName many)" -eq 2 ]
    [ "$(calls nvmlDeviceGetPowerManagementLimitConstraints many)" -eq 2 ]
    [ "$(calls nvmlDeviceGetFanSpeed many)" -eq 2 ]
    [ "$(calls nvmlDeviceGetMaxPcieLinkGeneration many)" -eq 2 ]
}

@test "names of processes are asked only where they are shown" {
    mkdir -p root/proc # none of the processes is visible
    GPULSE_SIM_COUNT=$PWD/none gpulse --sim h100x8 --root root query pid,used_gpu_memory,process.type --processes
    status_is 0
    [ "$(calls nvmlSystemGetProcessName none)" -eq 0 ]
    [ "$(calls nvmlDeviceGetComputeRunningProcesses_v3 none)" -eq 8 ]
    GPULSE_SIM_COUNT=$PWD/some gpulse --sim h100x8 --root root query pid,process_name --processes -f csv --no-header
    [ "$(calls nvmlSystemGetProcessName some)" -eq "${#lines[@]}" ]
    GPULSE_SIM_COUNT=$PWD/status gpulse --sim h100x8 --root root status
    [ "$(calls nvmlSystemGetProcessName status)" -gt 0 ]
}

@test "the path of a process is the driver's word; without one it is the first argument" {
    fake_process root 4190001 0 /bin/serve --port 80
    machine t4 'm["workload"][0]["name"] = "/opt/real/serve"'
    gpulse --sim ./m.json --root root query process_name,process.path,process.command --processes -f csv --no-header
    [ "$output" = "serve,/opt/real/serve,/bin/serve --port 80" ]
    machine t4 'del m["workload"][0]["name"]'
    gpulse --sim ./m.json --root root query process_name,process.path --processes -f csv --no-header
    [ "$output" = "serve,/bin/serve" ]
    mkdir -p empty/proc
    gpulse --sim ./m.json --root empty query process.path --processes -f csv --no-header
    [ "$output" = "[N/A]" ]
    fault t4 error=NO_PERMISSION:nvmlSystemGetProcessName
    gpulse --sim t4 --root root query process.path --processes -f csv --no-header
    [ "$output" = /bin/serve ]
}

@test "who a process is: parent, state, threads, and where it runs" {
    fake_process root 4190001 0 /bin/serve
    echo '0::/system.slice/docker-ba7b10d15d16e10e3de7a2dcd408a3d971169ae303f46cfad4c5453c6326fee2.scope' >root/proc/4190001/cgroup
    gpulse --sim t4 --root root query ppid,process.state,threads,container --processes -f csv --no-header
    status_is 0
    [ "$output" = "1,S,1,docker:ba7b10d15d16" ]
    echo '0::/user.slice/user-1000.slice/session-3.scope' >root/proc/4190001/cgroup
    gpulse --sim t4 --root root query container --processes -f json
    json_is 'd["processes"][0]["reasons"]["process.container"]' 'not in a container, job or service'
    rm root/proc/4190001/cgroup
    gpulse --sim t4 --root root query container,process.state --processes -f json
    json_is 'd["processes"][0]["reasons"]["process.container"]' 'not supported'
    # half a line tells nothing, instead of nonsense
    printf '4190001 (job) S 1 1' >root/proc/4190001/stat
    gpulse --sim t4 --root root query ppid,process.state,threads,process.cpu,process.rss,process.start_time --processes -f csv --no-header
    [ "$output" = "[N/A],[N/A],[N/A],[N/A],[N/A],[N/A]" ]
}

@test "--host queries the driver only for driver values" {
    GPULSE_SIM_COUNT=$PWD/none gpulse --sim h100x8 query host.load.1m,timestamp,host.name --host -f csv
    status_is 0
    [ ! -e none ] || [ "$(total_calls none)" -eq 0 ]
    GPULSE_NVML=/nonexistent gpulse query host.load.1m --host -f csv --no-header
    status_is 0
    is_quiet
    says '^[0-9.]+$'
    GPULSE_NVML=/nonexistent gpulse query host.load.1m --host -f json
    status_is 0
    json_is 'd["driver"]' None
    GPULSE_NVML=/nonexistent gpulse query driver_version --host
    status_is 4
    # the version touches no GPU
    GPULSE_SIM_COUNT=$PWD/version gpulse --sim h100x8 query driver_version,count --host -f csv --no-header
    [ "$output" = "580.105.08,8" ]
    [ "$(calls nvmlInit_v2 version)" -eq 1 ]
    [ "$(calls nvmlDeviceGetHandleByIndex_v2 version)" -eq 0 ]
    [ "$(grep nvmlDeviceGet version | grep -vc nvmlDeviceGetCount)" -eq 0 ]
}

@test "environment variables replace the common options" {
    GPULSE_SIM=h100x2 gpulse query index -f csv --no-header
    line_count 2
    # an option wins over the environment
    GPULSE_SIM=h100x2 gpulse --sim t4 query index -f csv --no-header
    line_count 1
    fake_process root 4190001 0 /bin/x
    GPULSE_SIM=t4 GPULSE_ROOT=root gpulse query process_name --processes -f csv --no-header
    [ "$output" = x ]
}

@test "a process has one row, whatever the instances report" {
    machine a100-mig '
for i in d["mig"]: i["gpu_instance"] = 3
m["workload"] = [{"name": "job", "pid": 4190001 + n, "gpus": [0], "util": 1, "memory_bytes": 1048576,
                  "type": "C", "gpu_instance": 3, "compute_instance": 0} for n in range(100)]'
    gpulse --sim ./m.json query pid,mig.index --processes -f csv --no-header
    status_is 0
    line_count 100
    [ "$(cut -d, -f1 <<<"$output" | sort -u | wc -l)" -eq 100 ]
}

@test "workload power profiles are told by their ids" {
    machine b200 '
def profiles(requested, enforced):
    return {"valid": "ff" * 31 + "7f", "requested": requested, "enforced": enforced}
d["answers"]["WorkloadPowerProfileCurrentProfiles"] = profiles("05" + "00" * 30 + "40", "")
m["devices"][1]["answers"]["WorkloadPowerProfileCurrentProfiles"] = profiles("ff" * 32, "NOT_SUPPORTED")'
    gpulse --sim ./m.json query 'power_profiles.*' -i 0-2 -f json
    json_is '[list(g.values())[:2] for g in d["gpus"]][::2]' "[['0,2,254', 'None'], [None, None]]"
    json_is 'd["gpus"][1]["power_profiles.requested"] == ",".join(map(str, range(255)))' True
}

@test "confidential computing is an answer of the machine, and may fail as any" {
    gpulse --sim h100x1 query conf_compute.mode,conf_compute.gpu,conf_compute.multi_gpu_mode -f csv --no-header
    [ "$output" = "Disabled,Yes,None" ]
    gpulse --sim t4 query conf_compute.mode,conf_compute.gpu -f csv --no-header
    [ "$output" = "[N/A],[N/A]" ]
    fault h100x1 error=NO_PERMISSION:nvmlSystemGetConfComputeSettings
    GPULSE_SIM_COUNT=$PWD/count gpulse --sim h100x1 query conf_compute.mode,conf_compute.gpu -f csv --no-header
    [ "${output##*,}" = Yes ]
    [ "${output%%,*}" != Disabled ]
    grep -q '^nvmlSystemGetConfComputeSettings 1$' count
}

@test "nvidia-smi's spelling of the same" {
    t4 --query-gpu=name,memory.used,memory.total --format=csv,noheader,nounits
    status_is 0
    [ "$output" = "Tesla T4, 6349, 15360" ]
    t4 --query-gpu=memory.used,memory.total --format=csv
    [ "$output" = $'memory.used [MiB], memory.total [MiB]\n6349 MiB, 15360 MiB' ]
    t4 --query-compute-apps=pid --format csv,noheader,nounits
    [ "$output" = 4190001 ]
    t4 memory.used,memory.total --format=csv,noheader,nounits
    fails 2 "nounits is nvidia-smi's, .* use gpulse smi --query-gpu=memory.used,memory.total --format=csv,noheader,nounits, or .*memory.used:MiB"
    t4 index -f csv,noheader
    [ "$output" = 0 ]
    t4 index -lms 100
    fails 2 "-lms is nvidia-smi's; use -n 0.1"
    t4 index --loop-ms=250
    fails 2 "--loop-ms=250 is nvidia-smi's; use -n 0.25"
    t4 index -lms
    fails 2 "-lms is nvidia-smi's; use -n SECONDS, as in -n 0.1"
    t4 index --loop=0.1 -c 2 --no-header -f csv
    [ "$output" = $'0\n0' ]
    t4 index -l 0.1 -c 2 --no-header -f csv
    [ "$output" = $'0\n0' ]
    t4 index -f csv,json
    fails 2 '--format takes one of: .*'
    t4 index -f noheader
    fails 2 "bad value 'noheader' for --format: .*"
    gpulse query --help
    says_not 'noheader'
}

@test "an interval longer than the duration: one sample, and a note" {
    t4 index -n 100 --duration 0.2 --no-header -f csv
    status_is 0
    [ "$output" = 0 ]
    complains '^gpulse: --interval is longer than --duration: only one sample is taken$'
}

@test "in rows of processes, name is that of the process, as in nvidia-smi" {
    gpulse --sim h100x8 --sim-still query pid,name,gpu_name --processes -f csv
    [ "${lines[0]}" = "pid,process_name,name" ]
    says '^[0-9]+,python[0-9.]*,NVIDIA H100 80GB HBM3$'
    gpulse --sim h100x8 query name -i 0 -f csv --no-header
    [ "$output" = "NVIDIA H100 80GB HBM3" ]
}

@test "the SMs of a partitioned GPU are measured, although its utilization is not" {
    gpulse --sim h100-mig query gpm.sm.active,utilization.gpu -n 0.1 -c 2 -f csv --no-header
    status_is 0
    [[ "${lines[1]}" =~ ^[4-6][0-9] ]]
}
