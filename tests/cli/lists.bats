# gpulse query --rows: the lists of a GPU, in every format and in every trouble.
# variants: asan

load helpers

still() {
    gpulse --sim "$1" --sim-still query "${@:2}"
}

# denied, refused, lost and hanging calls of one list of a machine
calls() {
    GPULSE_SIM_COUNT=$PWD/counts "$GPULSE" --sim "$1" --sim-still query "${@:2}" >out
}

called() {
    awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' counts
}

@test "links: a row for each, with fields of its GPU" {
    still h100x2 index,number,state,version,links.speed,remote.type,remote.bus_id,capabilities --rows links -f csv
    status_is 0
    is_quiet
    line_count 37
    [ "${lines[0]}" = "index,links.number,links.state,links.version,links.speed,links.remote.type,links.remote.bus_id,links.capabilities" ]
    [ "${lines[1]}" = "0,0,Active,4.0,26562000000.00,Switch,00000000:05:00.0,p2p sysmem p2p_atomics sysmem_atomics valid" ]
    [ "${lines[36]}" = "1,17,Active,4.0,26562000000.00,Switch,00000000:08:00.0,p2p sysmem p2p_atomics sysmem_atomics valid" ]
    still h100x2 number,speed:GB/s --rows links -f csv --no-header -i 1
    [ "${lines[17]}" = "17,26.562" ]
}

@test "links: counters and their growth, also of NVLink 5" {
    still h100 number,tx,raw.tx,errors.replay,errors.ecc,errors.rx --rows links -f csv --no-header
    [ "${lines[0]}" = "0,940312212480,999081724928,0,0,[N/A]" ]
    still b200x1 number,tx,raw.tx,errors.replay,errors.rx,errors.effective_ber --rows links -f csv --no-header
    [ "${lines[0]}" = "0,940312212480,[N/A],[N/A],0,1e-15" ]
    gpulse --sim h100x1 query throughput.tx --rows links -f json
    json_is 'all(6e9 < r["links.throughput.tx"] < 7e9 for r in d["links"])' True
    gpulse --sim b200x1 query throughput.tx --rows links -f json
    json_is 'all(1e10 < r["links.throughput.tx"] < 2e10 for r in d["links"])' True
    gpulse --sim b200x1 query nvlink.throughput.tx,nvlink.count,nvlink.active -f json
    json_is '2e11 < d["gpus"][0]["nvlink.throughput.tx"] < 3e11, d["gpus"][0]["nvlink.count"], d["gpus"][0]["nvlink.active"]' \
        '(True, 18, 18)'
}

@test "links: none, all down, not told in MIG mode" {
    still t4 index,number --rows links -f csv
    status_is 0
    line_count 1
    still t4 nvlink.count,nvlink.active,nvlink.throughput.tx -f csv --no-header
    [ "$output" = "[N/A],[N/A],[N/A]" ]
    machine h100 'd["lists"]["nvlinks"] = [{"state": 0}, {"speed_mbps": 25781, "version": 2, "peer": 15}]'
    still ./m.json number,state,version,speed,remote.bus_id,tx --rows links -f csv --no-header -i 0
    [ "${lines[0]}" = "0,Inactive,[N/A],[N/A],[N/A],[N/A]" ]
    [ "${lines[1]}" = "1,Inactive,[N/A],[N/A],[N/A],[N/A]" ]
    still a100-mig state --rows links -f json
    status_is 0
    json_is 'd["links"]' "[{'links.state': None, 'reasons': {'links.state': 'not reported in MIG mode'}}]"
}

@test "links: counters that only root may see leave the rest as it is" {
    machine h100 'd["fields"].update({f"{f}/{n}": "NO_PERMISSION" for f in (138, 139) for n in range(18)})'
    still ./m.json number,state,tx --rows links -f csv --no-header -i 0
    status_is 0
    [ "${lines[0]}" = "0,Active,[Insufficient Permissions]" ]
}

@test "peers: the connections between GPUs" {
    still h100x8 index,number,connection,level,nvlinks,p2p.read --rows peers -f csv --no-header -i 0
    line_count 7
    [ "${lines[0]}" = "0,1,NV18,NODE,18,OK" ]
    [ "${lines[3]}" = "0,4,NV18,SYS,18,OK" ]
    still rtx4090x2 number,remote_uuid,connection,nvlinks,p2p.read,p2p.nvlink --rows peers -f csv --no-header -i 1
    [[ "$output" = "0,GPU-"*",PHB,0,CNS,NS" ]]
    still rtx4090 number --rows peers -f csv
    line_count 1
    still p100x2 number,connection,p2p.read --rows peers -f csv --no-header -i 0
    [ "$output" = "1,[N/A],[N/A]" ]
    still h100x8 index,affinity.cpu,affinity.memory -f csv --no-header
    [ "${lines[3]}" = "3,0-51,0" ]
    [ "${lines[4]}" = "4,52-103,1" ]
}

@test "peers: one that is lost is lost in its own row only" {
    fault h100x8 --gpu 3 lost
    still h100x8 index,number,connection --rows peers -f csv --no-header
    status_is 6
    complains 'GPU 3: GPU is lost'
    grep -qx '0,2,NV18' <<<"$output"
    grep -qx '0,3,\[GPU is lost\]' <<<"$output"
    grep -qx '3,\[GPU is lost\],\[GPU is lost\]' <<<"$output"
}

@test "clocks, fans, sessions, accounted apps, pages, profiles" {
    still t4 memory,graphics --rows supported_clocks -f csv --no-header
    line_count 111
    [ "${lines[0]}" = "5001,1590" ]
    still rtx4090 'fans.*' --rows fans -f csv --no-header
    [ "${lines[1]}" = "1,42,42,[N/A],Automatic,30,100" ]
    still rtx4090 id,pid,codec,width,height,fps,latency --rows encoder_sessions -f csv --no-header
    [ "$output" = "1,4190002,HEVC,3840,2160,58,5120" ]
    still rtx4090 '*' --rows fbc_sessions -f csv --no-header
    [ -z "$output" ]
    still t4 pid,gpu_util,time,running --rows accounted_apps -f csv --no-header
    [ "${lines[0]}" = "4180771,71,5270,No" ]
    [ "${lines[1]}" = "4190001,38,0,Yes" ]
    machine t4 'd["lists"]["retired_pages"] = [{"cause": 1, "address": 0xabc, "time": 1700000000}, {"cause": 0, "address": 16}]'
    TZ=UTC still ./m.json 'retired_pages.*' --rows retired_pages -f csv --no-header
    [ "${lines[0]}" = "0x0000000000000010,Single Bit ECC,[N/A]" ]
    [ "${lines[1]}" = "0x0000000000000ABC,Double Bit ECC,2023-11-14T22:13:20.000+00:00" ]
    still a100-mig id,profile,instances,remaining,placements --rows mig_profiles -f csv --no-header
    [ "${lines[2]}" = '9,3g.40gb,2,0,"{0,4}:4"' ]
    # drivers before 510 do not name them
    still a100-mig profile --rows mig_profiles -f csv --no-header
    named=$output
    still a100-mig,driver=470 profile --rows mig_profiles -f csv --no-header
    [ "$output" = "$named" ]
}

@test "samples: a row for each kind, in its unit, and those that are refused" {
    machine t4 'd["lists"]["samples"] = [
    {"kind": 0, "count": 4, "duration_us": 1500000, "max": 70000, "min": 10000, "sum": 130001},
    {"kind": 1, "count": 1, "duration_us": 0, "max": 7, "min": 7, "sum": 7},
    {"kind": 2, "count": 0}, {"kind": 3, "count": "NO_PERMISSION"}, {"kind": 9}]
m["workload"] = []'
    still ./m.json 'samples.*' --rows samples -f csv --no-header
    status_is 0
    line_count 10
    [ "${lines[0]}" = "power,1.50,4,70.00,10.00,32.50" ]
    [ "${lines[1]}" = "gpu,0.00,1,7.00,7.00,7.00" ]
    [ "${lines[2]}" = "memory,[N/A],[N/A],[N/A],[N/A],[N/A]" ]
    [ "${lines[3]}" = "encoder,[Insufficient Permissions],[Insufficient Permissions],[Insufficient Permissions],[Insufficient Permissions],[Insufficient Permissions]" ]
    # without a row: out of the value of now
    [ "${lines[4]}" = "decoder,19.83,120,0.00,0.00,0.00" ]
    [ "${lines[9]}" = "ofa,[N/A],[N/A],[N/A],[N/A],[N/A]" ]
    still a100-mig samples.count --rows samples -f csv --no-header
    [ "$(sort -u <<<"$output")" = "[N/A]" ]
    calls t4 kind --rows samples
    [ "$(called nvmlDeviceGetSamples)" -eq 0 ]
}

@test "samples move with the load" {
    machine t4 'd["lists"]["samples"] = [{"kind": 1, "count": 3, "duration_us": 2000000, "max": 30, "min": 10, "sum": 60}]
m["workload"] = []
d["answers"]["UtilizationRates"] = {"gpu": 20, "memory": 1}'
    still ./m.json max,min,average --rows samples -f csv --no-header
    [ "${lines[1]}" = "30.00,10.00,20.00" ]
    fault ./m.json set=UtilizationRates.gpu=60
    still ./m.json max,min,average,utilization.gpu.peak --rows samples -f csv --no-header
    [ "${lines[1]}" = "70.00,50.00,60.00,70" ]
    fault ./m.json set=UtilizationRates.gpu=0
    still ./m.json max,min --rows samples -f csv --no-header
    [ "${lines[1]}" = "10.00,0.00" ]
}

@test "a number without a name of a newer driver is an error, not an absent value" {
    machine rtx4090 'd["lists"]["fbc_sessions"] = [{"id": 3, "pid": 77, "display": 0, "type": 9, "flags": 5, "max_width": 1920,
        "max_height": 1080, "width": 1280, "height": 720, "fps": 60, "latency_us": 900}]
m["driver"]["version"] = "580.95.05"'
    still ./m.json id,type --rows fbc_sessions -f csv --no-header
    [ "$output" = "3,[Unknown Error]" ]
}

@test "fbc sessions and a fan that turns" {
    machine rtx4090 'd["lists"]["fbc_sessions"] = [{"id": 3, "pid": 77, "display": 0, "type": 1, "flags": 5, "max_width": 1920,
        "max_height": 1080, "width": 1280, "height": 720, "fps": 60, "latency_us": 900}]
m["driver"]["version"] = "580.95.05"'
    still ./m.json 'fbc_sessions.*' --rows fbc_sessions -f csv --no-header
    [ "$output" = "3,77,0,ToSys,0x0000000000000005,1920,1080,1280,720,60,900" ]
    still ./m.json number,rpm --rows fans -f csv --no-header
    [ "${lines[1]}" = "1,1049" ]
}

@test "every format" {
    machine t4 'd["lists"]["supported_clocks"] = [{"memory": 5001, "graphics": "1590 1575"}]'
    still ./m.json index,graphics --rows supported_clocks
    [ "${lines[0]}" = "index  supported_clocks.graphics" ]
    [ "${lines[2]}" = "    0                   1575 MHz" ]
    still ./m.json index,graphics --rows supported_clocks -f tsv
    [ "${lines[1]}" = $'0\t1590' ]
    still ./m.json index,graphics --rows supported_clocks -f json
    json_is 'd["supported_clocks"]' \
        "[{'index': 0, 'supported_clocks.graphics': 1590}, {'index': 0, 'supported_clocks.graphics': 1575}]"
    still ./m.json index,graphics --rows supported_clocks -f ndjson
    line_count 2
    output=${lines[1]}
    json_is 'd["schema"], d["index"], d["supported_clocks.graphics"]' "('gpulse.query.row/1', 0, 1575)"
}

@test "lists in xml and openmetrics" {
    machine t4 'd["lists"]["supported_clocks"] = [{"memory": 5001, "graphics": "1590 1575"}]'
    still ./m.json index,graphics --rows supported_clocks -f xml
    [ "$(grep -c '^    <clock>$' <<<"$output")" -eq 2 ]
    grep -q '<supported_clocks.graphics>1575</supported_clocks.graphics>' <<<"$output"
    still h100x1 number,state,tx,errors.replay --rows links -f openmetrics
    grep -Eq '^gpulse_link_tx_bytes_total\{gpu="0",uuid="GPU-[-0-9a-f]+",link="17"\} 940312212480$' <<<"$output"
    grep -Eq '^gpulse_link_state_info\{gpu="0",uuid="GPU-[-0-9a-f]+",link="3",links_state="Active"\} 1$' <<<"$output"
    grep -Eq '^gpulse_link_errors_replay_total\{.*link="0"\} 0$' <<<"$output"
    [ -z "$(grep -v '^#' <<<"$output" | sed 's/ [^ ]*$//' | sort | uniq -d)" ] || explain "a series stands twice"
    still t4 '*' --rows supported_clocks -f openmetrics
    [ -z "$(grep -v '^#' <<<"$output" | sed 's/ [^ ]*$//' | sort | uniq -d)" ] || explain "a series stands twice"
}

@test "a list that a GPU does not have is one row that says so, and no failure" {
    still h100 index,pid --rows accounted_apps
    status_is 0
    is_quiet
    says '^ +0 +N/A$'
    still h100 index,pid --rows accounted_apps -f csv --no-header -i 0
    [ "$output" = "0,[N/A]" ]
    still h100 pid --rows accounted_apps -f json -i 0
    json_is 'd["accounted_apps"][0]["reasons"]' \
        "{'accounted_apps.pid': 'accounting mode is off; to enable it: gpulse set accounting-mode=on'}"
}

@test "a list that is denied or refused is named" {
    fault t4 deny:nvmlDeviceGetSupportedMemoryClocks
    still t4 memory --rows supported_clocks -f csv --no-header
    status_is 6
    [ "$output" = "[Insufficient Permissions]" ]
    complains '^gpulse: GPU 0: no permission to list its supported_clocks$'
    fault t4 clear
    fault t4 error=UNKNOWN:nvmlDeviceGetSupportedMemoryClocks
    still t4 memory --rows supported_clocks -f json
    status_is 6
    complains '^gpulse: GPU 0: the driver cannot list its supported_clocks$'
    json_is 'd["supported_clocks"][0]["reasons"]' "{'supported_clocks.memory': 'driver error: Unknown Error'}"
    fault a100-mig deny:nvmlDeviceGetGpuInstanceRemainingCapacity
    still a100-mig profile,remaining --rows mig_profiles -f csv --no-header
    status_is 0
    [ "${lines[0]}" = "1g.10gb,[Insufficient Permissions]" ]
}

@test "a GPU that hangs or is lost in a list does not hold up the others" {
    fault h100x2 --gpu 1 hang=1h:nvmlDeviceGetSupportedMemoryClocks
    gpulse --sim h100x2 --sim-still --timeout 2 query index,memory --rows supported_clocks -f csv --no-header
    status_is 6
    complains 'GPU 1: no answer for [0-9]+ s \(nvmlDeviceGetSupportedMemoryClocks\)'
    line_count 221
    [ "${lines[220]}" = "1,[Timeout]" ]
    fault h100x2 clear
    fault h100x2 --gpu 1 lost:nvmlDeviceGetSupportedMemoryClocks
    still h100x2 index,memory --rows supported_clocks -f csv --no-header
    status_is 6
    complains 'GPU 1: GPU is lost \(nvmlDeviceGetSupportedMemoryClocks\)'
    [ "${lines[220]}" = "1,[GPU is lost]" ]
}

@test "a GPU that hangs in the topology holds up the others for a moment only" {
    fault h100x4 --gpu 1 hang=1h:nvmlDeviceGetP2PStatus
    gpulse --sim h100x4 --sim-still --timeout 8 query index,number,p2p.read --rows peers -f csv --no-header -i 0,1
    status_is 6
    complains 'GPU 1: no answer for [0-9]+ s'
    grep -q '^0,1,' <<<"$output"
}

@test "a GPU that hangs costs its own connections only" {
    for gpu in 0 2; do
        fault h100x4 clear
        fault h100x4 --gpu $gpu hang=1h
        gpulse --sim h100x4 --sim-still --timeout 8 query index,number,connection,p2p.read --rows peers -f csv --no-header
        status_is 6
        others=$(seq 0 3 | grep -v $gpu)
        for one in $others; do
            for other in $others; do
                [ $one = $other ] || grep -qx "$one,$other,NV18,OK" <<<"$output" || explain "$one and $other are not connected"
            done
            grep -q "^$one,$gpu,\[Timeout\]" <<<"$output" || explain "GPU $one knows GPU $gpu"
        done
    done
}

@test "lists that grow while they are fetched, and 65,536 entries" {
    fault t4 grow
    still t4 memory,graphics --rows supported_clocks -f csv --no-header
    status_is 0
    line_count 111
    machine t4 'd["lists"]["encoder_sessions"] = [{"repeat": 65536, "id": 1, "pid": 2, "codec": 0}]'
    still ./m.json id,codec --rows encoder_sessions -f csv --no-header
    status_is 0
    line_count 65536
    machine t4 'd["lists"]["encoder_sessions"] = [{"repeat": 65537, "id": 1, "pid": 2, "codec": 0}]'
    still ./m.json id,codec --rows encoder_sessions -f csv --no-header
    status_is 6
    complains 'GPU 0: the driver cannot list its encoder_sessions'
}

@test "accounted apps that are forgotten while they are asked for" {
    machine t4 'd["lists"]["accounted_apps"][0]["gpu_utilization"] = "NOT_FOUND"'
    still ./m.json pid --rows accounted_apps -f csv --no-header
    status_is 0
    [ "$output" = "4190001" ]
}

@test "drivers that lack the newer calls" {
    machine rtx4090 'm["missing"] = ["nvmlDeviceGetNumFans", "nvmlDeviceGetMinMaxFanSpeed", "nvmlDeviceGetTargetFanSpeed"]'
    still ./m.json number,speed,target,min --rows fans -f csv --no-header
    status_is 0
    [ "${lines[1]}" = "1,42,[N/A],[N/A]" ]
    machine t4 'm["missing"] = ["nvmlDeviceGetRetiredPages_v2"]
d["lists"]["retired_pages"] = [{"cause": 1, "address": 1, "time": 5}]'
    still ./m.json cause,timestamp,retired_pages.timestamp --rows retired_pages -f csv --no-header
    [[ "$output" = "Double Bit ECC,20"*",[N/A]" ]]
    # before R520 links have functions instead of fields
    machine h100 'd["fields"].update({f"{f}/{n}": "INVALID_ARGUMENT" for f in range(161, 168) for n in range(18)})
for l in d["lists"]["nvlinks"]: l.update(version=4, replay=3)'
    still ./m.json number,state,speed,power_state,errors.replay,errors.crc_data --rows links -f csv --no-header -i 0
    [ "${lines[0]}" = "0,Active,26562000000.00,[N/A],3,0" ]
}

@test "fields that are not requested cost nothing" {
    calls h100x1 index,name
    for name in nvmlDeviceGetSupportedMemoryClocks nvmlDeviceGetNvLinkState nvmlDeviceGetTopologyCommonAncestor \
        nvmlDeviceGetFieldValues nvmlDeviceGetAccountingPids nvmlDeviceGetNumFans; do
        [ "$(called $name)" -eq 0 ] || explain "$name was called"
    done
    calls h100x1 number,state --rows links
    [ "$(called nvmlDeviceGetNvLinkVersion)" -eq 0 ]
    [ "$(called nvmlDeviceGetNvLinkCapability)" -eq 0 ]
    [ "$(called nvmlDeviceGetFieldValues)" -le 2 ]
}

@test "what lasts is asked once, the rest in one call for all links" {
    calls h100x1 memory --rows supported_clocks -n 0.1 -c 5
    [ "$(called nvmlDeviceGetSupportedMemoryClocks)" -eq 1 ]
    calls h100x1 version,remote.bus_id,speed,tx --rows links -n 0.1 -c 5
    [ "$(called nvmlDeviceGetNvLinkVersion)" -eq 18 ]
    [ "$(called nvmlDeviceGetNvLinkRemotePciInfo_v2)" -eq 18 ]
    [ "$(called nvmlDeviceGetFieldValues)" -le 10 ]
    calls h100x2 connection,p2p.read --rows peers -n 0.1 -c 5 -i 0
    [ "$(called nvmlDeviceGetTopologyCommonAncestor)" -eq 1 ]
    [ "$(called nvmlDeviceGetP2PStatus)" -eq 1 ]
}

@test "bad input" {
    gpulse --sim t4 query name --rows sneezes
    fails 2 "bad value 'sneezes' for --rows: expected one of hosts gpus processes .*"
    gpulse --sim t4 query name --rows link
    fails 2 "bad value 'link' for --rows \(did you mean 'links'\?\): expected one of hosts .*"
    gpulse --sim t4 query name --rows links,fans
    fails 2 "--rows takes one kind of row, not 'links,fans'"
    gpulse --sim t4 query name --rows links --host
    fails 2 "--rows and --host cannot be combined"
    gpulse --sim t4 query links.state
    fails 2 "field 'links.state' belongs to a link; add --rows links"
    gpulse --sim t4 query 'links.*'
    fails 2 "'links\.\*' are fields of a link; add --rows links"
    gpulse --sim t4 query stat --rows links
    fails 2 "unknown field 'stat'.*"
    gpulse status --line '{links.state}' --sim t4
    fails 2 "a line describes a GPU: it cannot contain fields of links"
}

@test "machine files with bad lists" {
    bad() {
        machine t4 "$1"
        gpulse --sim ./m.json query name
        fails 2 "\./m\.json: $2"
    }
    bad 'd["lists"]["fanz"] = []' "devices\[0\]\.lists: unknown list 'fanz' \(did you mean 'fans'\?\)"
    bad 'd["lists"]["fans"] = {}' 'devices\[0\]\.lists: fans: expected an array or the name of a return code'
    bad 'd["lists"]["fans"] = [{"rpm": -1}]' 'devices\[0\]\.lists: fans\[0\]: rpm: expected a number from 0 or .*'
    bad 'd["lists"]["fans"] = [{}, {"rpn": 1}]' "devices\[0\]\.lists: fans\[1\]: unknown key 'rpn' \(did you mean 'rpm'\?\)"
    bad 'd["lists"]["fans"] = [{"repeat": 0}]' 'devices\[0\]\.lists: fans\[0\]: repeat: expected a number from 1 to 100000'
    bad 'd["lists"]["fans"] = [{"repeat": 99999}, {"repeat": 2}]' 'devices\[0\]\.lists: fans: expected at most 100000 rows'
    bad 'm["topology"]["levels"] = ["FAR"]' 'topology: levels\[0\]: expected PIX, PXB, PHB, NODE or SYS'
    bad 'm["topology"]["cpus"] = ["3-1"]' 'topology: cpus\[0\]: expected a list, for example "0-31,64-95"'
    bad 'm["topology"]["p2p"] = "X"' 'topology: p2p: expected OK, CNS, GNS, TNS, DR, NS or U'
    bad 'm["topology"]["sockets"] = 2' "topology: unknown key 'sockets'; known: levels, cpus, nodes, p2p"
}

@test "MIG: GPU instances, compute instances and the profiles of these" {
    still h100-mig id,profile,profile_id,start,size --rows gpu_instances -f csv --no-header
    status_is 0
    [ "$output" = "9,1g.10gb,19,2,1
10,1g.10gb,19,3,1
3,2g.20gb,14,0,2
2,3g.40gb,9,4,4" ]
    still h100-mig gpu_instance,id,profile,profile_id,start,size --rows compute_instances -f csv --no-header
    [ "${lines[3]}" = "2,0,3g.40gb,2,0,3" ]
    still h100-mig gpu_instance,id,profile,default,instances,remaining,multiprocessors --rows compute_profiles -f csv --no-header
    [ "${lines[4]}" = "2,0,1c.3g.40gb,No,3,0,16" ]
    [ "${lines[6]}" = "2,2,3g.40gb,Yes,1,0,60" ]
    # drivers before 510 do not name the profiles
    named=$output
    still h100-mig,driver=470 gpu_instance,id,profile,default,instances,remaining,multiprocessors --rows compute_profiles -f csv --no-header
    [ "$output" = "$named" ]
    GPULSE_SIM_ROOT=0 still h100-mig '*' --rows gpu_instances -f json
    [[ "$output" = *'"no permission"'* ]]
}
