# How long something takes, or how often something happens in a time: nothing that computes runs beside these.
# What only has to come to an end at all does not belong here.
# variants: default asan tsan
# needs: quiet

load helpers

# lines_ok GPU…: the complete lines of these GPUs of h100x8 stand in the output.
lines_ok() {
    local i
    for i in "$@"; do
        says "^\[$i\] NVIDIA H100 80GB HBM3 \| *[0-9]+°C, +[0-9]+ % \| *[0-9]+ / 81559 MiB \|"
    done
}

# watching ARG…: gpulse events in the background, once it records events
watching() {
    start "$@"
    until_true grep -Eq ' start  |"kind":"start"' out
}

interrupt() {
    kill -INT "$pid"
    finish
    status_is 130
    [ ! -s err ] || { cat err; explain "there are messages"; }
}

@test "a call that hangs 30 s on one of 8 GPUs: status answers within its timeout" {
    fault h100x8 --gpu 3 hang=30s
    SECONDS=0
    gpulse --sim h100x8 status
    took=$SECONDS
    status_is 6
    is_quiet
    line_count 9
    lines_ok 0 1 2 4 5 6 7
    says '^\[3\] .*\| no answer for 3 s \(nvml[A-Za-z0-9_]+\)$'
    [ "$took" -lt 20 ]
}

@test "--timeout says how long" {
    fault h100x8 --gpu 3 hang=30s
    SECONDS=0
    gpulse --sim h100x8 query index,temperature.gpu -f json --timeout 500ms
    took=$SECONDS
    status_is 6
    json_is '[g["index"] for g in d["gpus"] if type(g["temperature.gpu"]) is int]' '[0, 1, 2, 4, 5, 6, 7]'
    json_is 'd["gpus"][3]["reasons"]' "{'temperature.gpu': 'no answer in time'}"
    complains '^gpulse: GPU 3: no answer for [01] s \(nvml[A-Za-z0-9_]+\)$'
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [ "$took" -lt 20 ]
}

@test "a GPU that hangs holds up a look for 3 s, and the others are shown" {
    fault h100x8 --gpu 4 hang=60s
    SECONDS=0
    gpulse --sim h100x8 set --show
    took=$SECONDS
    status_is 6
    [ "$took" -lt 20 ]
    says '^GPU 4$'
    says '^  no response within 3\.0 s \(nvmlDeviceGetHandleByIndex_v2\)$'
    [ "$(grep -c '^  power-limit ' <<<"$output")" -eq 7 ]
    [ "$stderr" = 'gpulse: GPU 4: no response within 3.0 s (nvmlDeviceGetHandleByIndex_v2)' ]
    gpulse --sim h100x8 set --show -f json --timeout 1
    json_is '[(g["uuid"], g["controls"]) for g in d["gpus"] if "error" in g]' '[(None, {})]'
    gpulse --sim h100x8 set --save s.json --timeout 1
    status_is 6
    gpulse --sim h100x8 set power-limit=300 -i 3-4 --dry-run --timeout 1
    status_is 6
    says '^GPU 4  power-limit: 300 W +failed: no response'
    # a file without anything in it does not take the place of a better one
    gpulse --sim h100x8 set --save s.json -i 4 --timeout 1
    fails 4 'GPU 4: no response within 1\.0 s \(.*\); nothing is saved'
    [ "$(json 'len(d["gpus"])' s.json)" -eq 7 ]
    # nobody knows whether the one that is missing is GPU 4
    fault h100x8 clear
    gpulse --sim h100x8 set --save all.json
    fault h100x8 --gpu 4 hang=60s
    gpulse --sim h100x8 set --restore all.json --timeout 1
    status_is 6
    complains '^gpulse: GPU 4: no response within .*; it may be one of the skipped GPUs$'
    gpulse --sim h100x8 set --restore s.json --timeout 1
    status_is 0
}

@test "a change says for which GPU it waits" {
    fault h100x2 --gpu 1 hang=3s:nvmlDeviceSetPowerManagementLimit
    gpulse --sim h100x2 set power-limit=300
    status_is 0
    [ "$stderr" = 'gpulse: waiting for GPU 1 (nvmlDeviceSetPowerManagementLimit), at most 30 s' ]
    [ "$(grep -c ' done$' <<<"$output")" -eq 2 ]
}

@test "samples stay in step with the clock when the driver is slow" {
    fault t4 slow=400ms:nvmlDeviceGetPowerUsage
    # A sample that is late, on a busy machine, makes the next gap shorter. With a pause of a second
    # after each reading, no gap would be below 1.4 s.
    local line now last=0 shortest=9000000
    while read -r line; do
        now=${EPOCHREALTIME/./}
        ((last == 0 || now - last >= shortest)) || shortest=$((now - last))
        last=$now
    done < <("$GPULSE" smi dmon -s p -d 1 -c 8 --sim t4 | sed -u 1,2d)
    ((shortest > 0 && shortest < 1300000)) || explain "the shortest gap was $shortest µs"
}

# told_last: an error is told that was injected behind all others
told_last() {
    grep -q '"xid":31' out && return
    fault h100x8 --gpu 7 xid=31
    return 1
}

@test "a GPU is lost: events of the others are reported, or the time in which they may be missing" {
    watching --sim h100x8 events -f ndjson -n 0.5
    fault h100x8 --gpu 1 lost
    for xid in {100..139}; do
        before=$(date +%s.%N)
        fault h100x8 --gpu 7 xid=$xid
        echo "$xid $before $(date +%s.%N)"
        sleep 0.05
    done >injected
    until_true grep -q '"missed"' out
    until_true told_last
    interrupt
    python3 - <<'EOF'
import datetime
import json
def seconds(text):
    return datetime.datetime.fromisoformat(text).timestamp()
lines = [json.loads(line) for line in open("out")]
told = {e["xid"] for e in lines if e["kind"] == "xid"} - {31}
gaps = [(seconds(e["from"]), seconds(e["to"])) for e in lines if e["kind"] == "missed"]
assert all(begin <= end for begin, end in gaps), gaps
assert all("missed" not in e and "was reopened" in e["text"] for e in lines if e["kind"] == "missed")
for xid, begin, end in (line.split() for line in open("injected")):
    # they are told in milliseconds
    near = any(a - 0.001 <= float(end) and float(begin) <= b + 0.001 for a, b in gaps)
    assert int(xid) in told or near, (xid, begin, end, gaps)
# and it is short: what the old event set still holds is taken
assert len(told) > 30, told
EOF
}

@test "a wait that fails at once is not repeated without a pause" {
    fault h100x2 error=UNKNOWN:nvmlEventSetWait
    GPULSE_SIM_COUNT=counts gpulse --sim h100x2 events --duration 3
    status_is 0
    calls=$(awk '/nvmlEventSetWait_v2/ { print $2 }' counts)
    # 0.1, 0.2, 0.4 … seconds apart
    [ "$calls" -ge 2 ] && [ "$calls" -le 7 ]
}

@test "nothing happens: a few calls a second" {
    machine h100 'm["devices"] = m["devices"][:2]; m["workload"] = []'
    GPULSE_SIM_COUNT=counts gpulse --sim ./m.json events --duration 4
    status_is 0
    line_count 1
    # two waits a second, and one look
    [ "$(awk '/nvmlEventSetWait_v2/ { print $2 }' counts)" -le 10 ]
    [ "$(awk '/nvmlDeviceGetPerformanceState/ { print $2 }' counts)" -le 4 ]
    [ "$(awk '/nvmlDeviceRegisterEvents/ { print $2 }' counts)" -eq 2 ]
    [ "$(awk '/nvmlEventSetFree/ { print $2 }' counts)" -eq 1 ]
}
