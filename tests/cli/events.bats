# gpulse events: everything that can happen happens to a simulated machine while it is watched.
# variants: asan tsan

load helpers

# watching ARG…: gpulse events in the background, once it records events
watching() {
    start "$@"
    until_true grep -Eq ' start  |"kind":"start"' out
}

# told GPU KIND REGEX: a line of the file out
told() {
    until_true grep -Eq -e "^20[0-9: .-]{21}  $1 +$2 +$3$" out || { cat out err >&2; return 1; }
}

# only_once GPU KIND: exactly one line of this kind, although driver and readings both showed it
only_once() {
    [ "$(grep -Ec "^20[0-9: .-]{21}  $1 +$2 " out)" -eq 1 ] || { cat out; explain "not once: $2"; }
}

interrupt() {
    kill -INT "$pid"
    finish
    status_is 130
    [ ! -s err ] || { cat err; explain "there are messages"; }
}

# every_type: the machine file m.json of two H100 whose driver reports whatever a driver can
every_type() {
    machine h100 'm["devices"] = m["devices"][:2]
m["workload"] = []
for x in m["devices"]: x["answers"]["SupportedEventTypes"] = 0xff9f'
}

# records: how many JSON objects of the file out satisfy a Python expression over e
records() {
    python3 -c "import json, sys; print(sum(1 for e in map(json.loads, open('out')) if ($1)))"
}

@test "errors that the driver reports by their number" {
    watching --sim h100x2 events
    fault h100x2 --gpu 1 xid=13
    told 'GPU 1' xid 'Xid 13: graphics engine exception, .* \(application\); debug the program, .*'
    fault h100x2 --gpu 0 xid=48 xid=45
    told 'GPU 0' xid 'Xid 48: uncorrectable .*memory error \(hardware\); .*'
    told 'GPU 0' xid 'Xid 45: .* \(application\); see the preceding Xid errors'
    fault h100x2 xid=119
    told 'GPU 0' xid 'Xid 119: .*GSP.*'
    told 'GPU 1' xid 'Xid 119: .*GSP.*'
    fault h100x2 --gpu 0 xid=4711 xid=0
    told 'GPU 0' xid 'Xid 4711: not in the catalog; .*'
    told 'GPU 0' xid 'Xid 0: unknown number'
    interrupt
    [ "$(grep -c ' xid ' out)" -eq 7 ]
}

@test "Xid 79: the error, then the loss, then the return" {
    watching --sim h100x2 events -n 0.1
    fault h100x2 --gpu 1 xid=79
    told 'GPU 1' xid 'Xid 79: the GPU has fallen off the bus \(hardware\); .*'
    told 'GPU 1' lost 'GPU is lost .*'
    fault h100x2 clear
    told 'GPU 1' back 'responds again'
    # registered again in the new session
    until_true registered_again
    interrupt
    [ "$(grep -c ' lost ' out)" -eq 1 ]
    # the other one was never away
    run ! grep -qE '^[0-9-]+ [0-9:.]+ +GPU 0 ' out
}

@test "no gap is reported if no driver events are selected" {
    watching --sim h100x2 events -n 0.1 --kind lost,back
    fault h100x2 --gpu 1 lost
    told 'GPU 1' lost 'GPU is lost .*'
    fault h100x2 clear
    told 'GPU 1' back 'responds again'
    sleep 0.6
    interrupt
    [ "$(wc -l <out)" -eq 3 ]
}

# registered_again: an error injected now is reported, so the new session has its event set
registered_again() {
    grep -q 'Xid 31' out && return
    fault h100x2 --gpu 1 xid=31
    return 1
}

@test "what only the driver knows" {
    every_type
    watching --sim ./m.json events --kind all
    while read -r event kind words; do
        fault ./m.json --gpu 1 "event=$event"
        told 'GPU 1' "$kind" "$words"
    done <<'EOF'
storm ecc.storm corrected memory errors occur at a high rate
poison poison poisoned data was contained
fatal-poison poison poisoned data was consumed: results may be wrong
retirement retirement bad memory was retired or remapped
retirement-failed retirement bad memory could not be retired or remapped
unavailable unavailable the driver can no longer use the GPU
clock clock the driver changed the clocks
power power_source switched between mains and battery
corrected ecc.corrected a memory error was corrected
uncorrected ecc.uncorrected an uncorrectable memory error occurred
recovery recovery the recovery action requested by the driver changed
pstate pstate the performance state changed
mig mig MIG mode changed, or instances were created or destroyed
EOF
    interrupt
    [ "$(grep -c 'GPU 1' out)" -eq 13 ]
}

@test "an H100 reports its clocks ten times a second: only if they are requested" {
    every_type
    watching --sim ./m.json events
    fault ./m.json --gpu 1 event=clock
    fault ./m.json --gpu 1 event=power
    told 'GPU 1' power_source 'switched between mains and battery'
    interrupt
    [ "$(grep -c ' clock ' out)" -eq 0 ]
}

# what an answer becomes, and what is said of it
changes='
TotalEccErrors.corrected.volatile=3|ecc.corrected|3 corrected memory errors \(3 since the driver was loaded\)
TotalEccErrors.uncorrected.volatile=1|ecc.uncorrected|1 uncorrectable memory error \(1 since .*\)
230=1|recovery|recovery action None → Reset
PerformanceState=P8|pstate|performance state P0 → P8
CurrentClocksEventReasons=68|throttle|clocks limited by the power limit, temperature \(hardware\)
CurrPcieLinkGeneration=1|pcie|PCIe generation [2-9] → 1
CurrPcieLinkWidth=8|pcie|PCIe width 16 → 8
MigMode.current=Enabled|mig|MIG mode Disabled → Enabled
PersistenceMode=Disabled|persistence|persistence mode Enabled → Disabled
EccMode.current=Disabled|ecc.mode|ECC mode Enabled → Disabled
RemappedRows.pending=1|retirement|memory rows pending remapping: No → Yes
RemappedRows.failure=1|retirement|memory rows that failed to be remapped: No → Yes'

# apply_changes: one after the other on GPU 1 of m.json, each told
apply_changes() {
    local answer kind words
    while IFS='|' read -r answer kind words; do
        [ -n "$answer" ] || continue
        fault ./m.json --gpu 1 "set=$answer"
        told 'GPU 1' "$kind" "$words"
    done <<<"$changes"
}

@test "a change shown by driver and readings is reported once" {
    every_type
    watching --sim ./m.json events -n 0.1
    apply_changes
    sleep 1 # whatever would be told twice is told now
    interrupt
    for kind in ecc.corrected ecc.uncorrected recovery pstate throttle persistence ecc.mode; do
        only_once 'GPU 1' "$kind"
    done
    run ! grep -qE '^[0-9-]+ [0-9:.]+ +GPU 0 ' out
}

@test "a driver that reports nothing: all is found by comparing" {
    every_type
    for types in 0 '"NOT_SUPPORTED"'; do
        sed -i "s/\"SupportedEventTypes\": [^,}]*/\"SupportedEventTypes\": $types/g" m.json
        watching --sim ./m.json events -n 0.1
        grep -q 'watching 2 GPUs; the driver reports events for 0$' out
        apply_changes
        interrupt
        only_once 'GPU 1' pstate
        fault ./m.json clear
    done
}

@test "a GPU that is silent, and answers again" {
    watching --sim h100x2 --timeout 2 events -n 0.3
    fault h100x2 --gpu 1 hang=1h:nvmlDeviceGetPerformanceState
    told 'GPU 1' silent 'no answer for [0-9]+ s \(nvmlDeviceGetPerformanceState\)'
    # the driver's events come all the same
    fault h100x2 --gpu 0 xid=13
    told 'GPU 0' xid 'Xid 13: .*'
    fault h100x2 clear
    told 'GPU 1' back 'responds again'
    interrupt
    only_once 'GPU 1' silent
}

@test "a GPU that falls asleep, and wakes up" {
    local gpu=root/sys/bus/pci/drivers/nvidia/0000:01:00.0
    mkdir -p "$gpu/power"
    echo auto >"$gpu/power/control"
    echo active >"$gpu/power/runtime_status"
    watching --sim rtx3060-laptop --root root events -n 0.1
    echo suspended >"$gpu/power/runtime_status"
    told 'GPU 0' asleep 'asleep to save power; gpulse does not wake it up'
    echo active >"$gpu/power/runtime_status"
    told 'GPU 0' awake 'awake again'
    interrupt
}

@test "processes, if they are asked for" {
    watching --sim t4 events --kind process -n 0.1
    started "$GPULSE" sim load -m t4 --mem 1GiB --util 50 --for 60s
    job=$pid
    pid=${STARTED[0]}
    told 'GPU 0' process.start 'process [0-9]+ started: .*'
    kill -KILL "$job"
    told 'GPU 0' process.end 'process [0-9]+ ended: .*'
    fault t4 --gpu 0 xid=13 # not asked for
    sleep 0.5
    interrupt
    [ "$(wc -l <out)" -eq 3 ]
}

@test "MIG: instances that go and come, and errors of one of them" {
    watching --sim a100-mig events -n 0.1 --kind xid,mig -f ndjson
    fault a100-mig --gpu 0 xid=94:2/0
    until_true grep -q '"xid":94' out
    [ "$(records 'e["kind"] == "xid" and (e["gpu_instance"], e["compute_instance"]) == (2, 0)')" -eq 1 ]
    fault a100-mig --gpu 0 set=MaxMigDeviceCount=0
    removed=4 # all that there are
    until_true eval '[ "$(grep -c "removed, MIG-" out)" -ge $removed ]'
    fault a100-mig --gpu 0 clear
    until_true eval '[ "$(grep -c "created, MIG-" out)" -ge $removed ]'
    interrupt
    [ "$(grep -c 'removed, MIG-' out)" -eq "$removed" ]
    [ "$(grep -c 'created, MIG-' out)" -eq "$removed" ]
    # the driver of this machine reports MIG changes: the removals are its events
    [ "$(records 'e["kind"] == "mig" and e["origin"] == "driver"')" -eq "$removed" ]
    fault a100-mig --gpu 0 xid=94:2/0 # text names the instance
    watching --sim a100-mig events --kind xid
    fault a100-mig --gpu 0 xid=94:2/0
    told 'GPU 0 GI 2 CI 0' xid 'Xid 94: .*'
    interrupt
}

@test "ndjson: one object a line, with its fields" {
    watching --sim h100x2 events -f ndjson -n 0.1 -c 3
    fault h100x2 --gpu 0 set=TotalEccErrors.corrected.volatile=5
    until_true grep -q '"ecc.corrected"' out
    fault h100x2 --gpu 1 xid=79
    finish
    status_is 0
    [ "$(wc -l <out)" -eq 4 ]
    python3 - out <<'EOF'
import datetime
import json
import sys
start, ecc, *both = [json.loads(line) for line in open(sys.argv[1])]
# two threads see them
lost, xid = sorted(both, key=lambda e: e["kind"])
for e in (start, xid, lost, ecc):
    assert e["schema"] == "gpulse.event/1", e
    assert datetime.datetime.fromisoformat(e["time"]).tzinfo, e
    assert e["monotonic"] > 0 and e["host"] and e["text"], e
assert start["kind"] == "start" and "gpu" not in start and "origin" not in start, start
assert (xid["kind"], xid["gpu"], xid["xid"], xid["origin"]) == ("xid", 1, 79, "driver"), xid
assert xid["fault"] == "hardware" and "reboot" in xid["advice"], xid
assert xid["uuid"].startswith("GPU-") and xid["pci.bus_id"].endswith(".0"), xid
assert "gpu_instance" not in xid and "old" not in xid, xid
assert (lost["kind"], lost["gpu"], lost["origin"]) == ("lost", 1, "poll"), lost
assert (ecc["kind"], ecc["gpu"], ecc["origin"]) == ("ecc.corrected", 0, "driver"), ecc
assert (ecc["old"], ecc["new"]) == (0, 5), ecc
EOF
}

@test "only chosen GPUs, and only chosen kinds" {
    watching --sim h100x4 events -i 2 --kind xid,pstate -n 0.1
    fault h100x4 --gpu 1 xid=13
    fault h100x4 set=PersistenceMode=Disabled set=PerformanceState=P8
    fault h100x4 xid=31
    told 'GPU 2' xid 'Xid 31: .*'
    told 'GPU 2' pstate 'performance state P0 → P8'
    interrupt
    [ "$(wc -l <out)" -eq 3 ]
    grep -q 'watching 1 GPU; the driver reports events for 1$' out
    # by name
    watching --sim h100x2 events -i H100 --kind xid
    fault h100x2 xid=13
    told 'GPU 0' xid 'Xid 13: .*'
    told 'GPU 1' xid 'Xid 13: .*'
    interrupt
}

@test "a storm: every event is reported, or counted as lost" {
    watching --sim h100x2 events --kind xid -f ndjson
    fault h100x2 --gpu 1 'xid=31*10000'
    fault h100x2 --gpu 0 xid=13
    until_true grep -q '"xid":13' out
    interrupt
    told=$(records 'e.get("xid") == 31 and e["gpu"] == 1')
    lost=$(python3 -c "import json; print(sum(json.loads(l).get('missed', 0) for l in open('out')))")
    [ $((told + lost)) -eq 10000 ] || explain "$told told, $lost lost"
    [ "$told" -gt 0 ]
}

@test "a driver that is unloaded and loaded again" {
    watching --sim h100x2 events -n 0.1
    fault h100x2 unloaded error=UNINITIALIZED:nvmlDevice error=UNINITIALIZED:nvmlEventSetWait
    told 'GPU 0' lost 'the NVIDIA kernel module is not loaded; .*|.*Uninitialized.*'
    told 'GPU 1' lost 'the NVIDIA kernel module is not loaded; .*|.*Uninitialized.*'
    fault h100x2 clear
    told 'GPU 0' back 'responds again'
    told 'GPU 1' back 'responds again'
    until_true registered_again
    interrupt
    only_once 'GPU 0' lost
    only_once 'GPU 0' back
}

@test "a wait that hangs: it is reported, the rest continues, and Ctrl-C stops it" {
    watching --sim h100x2 --timeout 2 events -n 0.2 -f ndjson
    fault h100x2 hang=1h:nvmlEventSetWait
    until_true grep -Eq "the driver's events: no answer for [0-9]+ s \(nvmlEventSetWait_v2\); " out
    fault h100x2 --gpu 1 set=PersistenceMode=Disabled set=PerformanceState=P8
    until_true grep -q 'persistence mode Enabled → Disabled' out
    until_true grep -q 'performance state P0 → P8' out
    interrupt
    [ "$(records 'e["kind"] == "stuck"')" -eq 1 ]
    # the driver does not report it now: found by comparing
    [ "$(records 'e["kind"] in ("persistence", "pstate") and e["origin"] == "poll"')" -eq 2 ]
}

@test "older drivers: the older wait, or none" {
    machine h100 'm["missing"] = ["nvmlEventSetWait_v2"]'
    watching --sim ./m.json events --kind xid
    fault ./m.json --gpu 1 xid=94:1/0
    told 'GPU 1' xid 'Xid 94: .*' # it does not tell the instance
    interrupt
    machine h100 'm["missing"] = ["nvmlEventSetCreate"]; m["workload"] = []'
    watching --sim ./m.json events -n 0.1
    grep -q 'the driver reports events for 0$' out
    fault ./m.json --gpu 1 set=PersistenceMode=Disabled
    told 'GPU 1' persistence '.*'
    interrupt
}

@test "a registration that fails concerns its own GPU only" {
    for code in UNKNOWN NOT_SUPPORTED NO_PERMISSION; do
        fault h100x2 --gpu 0 "error=$code:nvmlDeviceRegisterEvents"
        watching --sim h100x2 events -n 0.1
        grep -q 'the driver reports events for 1$' out
        fault h100x2 xid=13
        told 'GPU 1' xid 'Xid 13: .*'
        fault h100x2 --gpu 0 set=PerformanceState=P8
        told 'GPU 0' pstate 'performance state P0 → P8'
        interrupt
        run ! grep -q 'GPU 0 .*Xid' out
        fault h100x2 clear
    done
}

@test "the end: count, duration, signals" {
    watching --sim h100x2 events -c 2
    fault h100x2 --gpu 1 'xid=13*5'
    finish
    status_is 0
    [ "$(grep -c ' xid ' out)" -eq 2 ]
    gpulse --sim h100x2 events --kind xid --duration 0.5
    status_is 0
    is_quiet
    line_count 1
    for signal in INT TERM HUP; do
        watching --sim h100x2 events
        kill "-$signal" "$pid"
        finish
        status_is 130
        [ ! -s err ]
    done
}

@test "a closed pipe stops it, even if nothing happens" {
    mkfifo pipe
    "$GPULSE" --sim h100x2 events --kind xid >pipe 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    head -n 1 pipe >line
    grep -q ' start ' line
    finish
    status_is 141
    [ ! -s err ]
}

@test "into a file, and onto a full disk" {
    gpulse --sim h100x2 events --duration 0.2 -o events.log
    status_is 0
    [ -z "$output" ]
    grep -q ' start ' events.log
    gpulse --sim h100x2 events --duration 0.2 -o /dev/full
    status_is 1
    complains "cannot write '/dev/full': No space left on device"
    gpulse --sim h100x2 events -o nowhere/events.log
    fails 1 "cannot write 'nowhere/events.log': No such file or directory"
}

@test "a file of events is rotated between them, and by the same options as that of a query" {
    for i in 1 2; do # the second run keeps what the first one wrote
        start --sim h100x2 events --kind xid -f ndjson -o log --rotate-size 2kB --keep 100 -c 20
        until_true grep -qs '"start"' log
        fault h100x2 --gpu 1 "xid=$((30 + i))*20"
        finish
        status_is 0
    done
    [ -e log.3 ]
    python3 - <<'EOF'
import glob, json
xids = []
for name in sorted(glob.glob("log*"), key=lambda n: -int(n[4:] or 0)):
    text = open(name).read()
    assert 0 < len(text) <= 2000 and text.endswith("\n"), (name, len(text))
    xids += [e["xid"] for e in map(json.loads, text.splitlines()) if e["kind"] == "xid"]
assert xids == [31] * 20 + [32] * 20, xids
EOF
    gpulse --sim h100x2 events --rotate-size 2kB
    fails 2 '--rotate-size needs --output FILE'
    gpulse --sim h100x2 events -o log --keep 3
    fails 2 '--keep needs --rotate-size or --rotate-age'
}

@test "an earlier file is overwritten, or kept by --append" {
    echo earlier >log
    gpulse --sim h100x2 events --duration 0.2 -o log --append
    [ "$(head -n 1 log)" = earlier ] && [ "$(wc -l <log)" -eq 2 ]
    gpulse --sim h100x2 events --duration 0.2 -o log
    [ "$(wc -l <log)" -eq 1 ]
}

@test "SIGUSR1 closes the driver, and reopens it" {
    watching --sim h100x2 events -n 0.1
    kill -USR1 "$pid"
    told 'GPU 1' released 'released: gpulse closed the driver; SIGUSR1 reopens it'
    kill -USR1 "$pid"
    told 'GPU 1' back 'responds again'
    until_true registered_again
    interrupt
}

@test "--list: who reports what" {
    gpulse --sim h100x2 events --list
    status_is 0
    says '^KIND +GROUP +GPUs +WHAT$'
    says '^xid +health +driver +the '
    says '^lost +health +poll +the '
    says '^ecc.storm +health +- +corrected '
    says '^start +stream +gpulse +recording '
    says '^driver: reported at once; poll: .*; -: not reported for this GPU$'
    gpulse --sim rtx2080-win events --list
    says '^xid +health +- '
    says '^pstate +state +poll '
    gpulse --sim h100x2 events --list -i 1
    says '^KIND +GROUP +GPU 1 +WHAT$'
}

@test "wrong use" {
    gpulse --sim h100x2 events --kind xids
    fails 2 "unknown event kind 'xids' \(did you mean 'xid'\?\); gpulse events --list shows all"
    gpulse --sim h100x2 events --kind xid,,lost
    fails 2 "unknown event kind ''; gpulse events --list shows all"
    gpulse --sim h100x2 events -n 0.01
    fails 2 '--interval must be at least 0\.1 seconds'
    gpulse --sim h100x2 events xid
    fails 2 "unexpected argument 'xid'; select kinds with --kind"
    gpulse --sim h100x2 events -f json
    status_is 2
    gpulse --sim h100x2 events -i 7
    status_is 3
}

@test "injections that make no sense" {
    for bad in xid= xid=x 'xid=1*0' 'xid=1:2' 'xid=1:1/0x' event= event=nonsense 'event=pstate*x' \
        set=Nonsense=1 set=PerformanceState set=PerformanceState=P99 set=Name=x set=99999=1; do
        run --separate-stderr "$GPULSE" sim fault -m h100x2 --gpu 0 "$bad"
        status_is 2
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
    done
    gpulse sim fault -m t4 xid=31 event=storm
    fails 2 "'event=storm': this machine's driver does not report such events; .*"
    fault h100x2 --gpu 1 set=230=1 set=230=2
    run "$GPULSE" sim fault -m h100x2
    [ "$output" = "1	set=230=2" ]
}

@test "the start is the first line, also where something is found at once" {
    gpulse --sim laptop-asleep events -c 1 -f ndjson
    status_is 0
    [[ ${lines[0]} == *'"kind":"start"'* || ${lines[0]} == *'"kind": "start"'* ]]
    [[ ${lines[1]} == *asleep* ]]
}
