# gpulse suspend, gpulse resume: real processes whose memory of a simulated GPU goes away and comes
# back.
# variants: asan

load helpers

suspended_rows() {
    "$GPULSE" ps --columns pid,type,memory,suspended -f csv --no-header
}

@test "its memory goes, and comes back" {
    quiet_t4
    job --mem 1GiB --util 50
    gpulse suspend "$job" --yes
    status_is 0
    is_quiet
    says "^ *$job .* 1\.0G "
    says "^process $job is suspended with 1024 MiB; to resume it: gpulse resume $job$"
    says '^GPU 0: 0 MiB used, [0-9]+ MiB free now$'
    runs_on "$job"
    gpulse ps --columns pid,type,memory,suspended -f csv --no-header
    [ "$output" = "$job,S,0,1073741824" ] || explain "not the row of a suspended process"
    gpulse ps
    says '^ *PID .* GPU-MEM  SUSPENDED '
    gpulse status
    says "$(id -un)\(0MiB, 1024MiB suspended\)$"
    gpulse mem
    says "^ +$job +$(id -un) .* 0  \(suspended: 1024 MiB in host memory\) "
    gpulse mem -f json
    json_is '[p["suspended"] for p in d["gpus"][0]["processes"]]' "[1073741824]"
    gpulse ps --format json
    json_is '[(p["type"], p["suspended"]) for p in d["processes"]]' "[('S', 1073741824)]"
    gpulse resume
    status_is 0
    says "^ *$job .* 1\.0G "
    gpulse resume "$job"
    status_is 0
    says "^process $job runs again with 1024 MiB$"
    says '^GPU 0: 1024 MiB used, [0-9]+ MiB free now$'
    [ "$(suspended_rows)" = "$job,C,1073741824," ] || explain "$(suspended_rows)"
    gpulse resume
    status_is 0
    complains 'no suspended processes'
    [ -z "$(ls notes/gpulse-*)" ] || explain "a note is left: $(ls notes/gpulse-*)"
}

@test "a suspended job keeps its reservation, and everybody says so" {
    idle_gpus
    in_background -i 3 --name training -- "$GPULSE" sim load --mem 1GiB
    until_true grep -q holds run.out
    job=$(awk '/holds/ { print $2 }' run.out)
    gpulse queue
    says "^running +- +$(id -un) +$running +3 .* training$"
    gpulse suspend "$job" --yes
    status_is 0
    says "^its reservation stays \(gpulse run, pid $running\): see gpulse queue$"
    gpulse queue
    says "^suspended +- +$(id -un) +$running +3 .* training$"
    gpulse queue -f json
    json_is '[(l["state"], l["suspended"]) for l in d["leases"]]' "[('held', True)]"
    gpulse pick -i 3
    fails 69 "no requested GPU is free; GPU 3: reserved by training \(.*, suspended\); .*"
    reserved=$job
    job --mem 1GiB -g 2 # without a reservation
    gpulse suspend "$job" --yes
    status_is 0
    says_not reservation
    job=$reserved
    gpulse resume "$job"
    status_is 0
    says_not reservation
    gpulse queue
    says '^running '
}

@test "other programs do not see it, as with the real driver" {
    quiet_t4
    job
    gpulse suspend "$job" --yes
    status_is 0
    gpulse smi
    says_not "$job"
    says 'No running processes found'
    gpulse smi --query-compute-apps=pid --format=csv,noheader
    [ -z "$output" ]
}

@test "every view shows it, whatever its columns" {
    quiet_t4
    job --mem 1GiB
    gpulse suspend "$job" --yes
    gpulse query pid,used_gpu_memory --processes -f csv --no-header
    [ "$output" = "$job,0" ]
    gpulse query pid,process.suspended --processes -f csv --no-header
    says "^$job,1073741824$"
    gpulse status --json
    json_is '[(p["pid"], p["gpu_memory_usage"], p["gpu_memory_suspended"]) for p in d["gpus"][0]["processes"]]' "[($job, 0, 1024)]"
    gpulse ps --by user
    says '^USER .* RSS  SUSPENDED$'
    says " 1\.0G$"
    gpulse ps --by user -f json
    json_is '[s["suspended"] for s in d["sums"]]' '[1073741824]'
    gpulse ps --explain
    says '^  0 MiB held by 0 listed processes, 0 MiB unattributed$'
    says '^  1024 MiB of 1 suspended process in host memory$'
    gpulse ps --explain -f json
    json_is 'd["gpus"][0]["suspended"]' 1073741824
    gpulse pick --explain
    says "^GPU 0: selected \([0-9.]+ GiB\); 1\.0 GiB suspended of pid $job$"
    gpulse kill "$job" --yes
    status_is 0
    says '^ *PID .* GPU-MEM  SUSPENDED '
    says "^$job terminated after [0-9.]+ s, by SIG[A-Z]+, freed 1024 MiB of host memory, where it was suspended$"
}

@test "no process is suspended without confirmation" {
    quiet_t4
    job
    gpulse suspend "$job" </dev/null
    status_is 2
    complains 'nothing was suspended: cannot ask without a terminal; add --yes'
    gpulse suspend "$job" --dry-run
    status_is 0
    complains 'nothing was suspended \(--dry-run\)'
    gpulse suspend
    fails 2 'no processes selected; .*'
    [ "$(suspended_rows)" = "$job,C,1073741824," ]
}

# waiting_resume PID: resume in the background, which has seen the process and waits for memory
waiting_resume() {
    start resume "$1" --wait 10m
    until_true grep -q 'waiting for free GPU memory' err
}

@test "without room it is not resumed, because that would lose it" {
    quiet_t4
    job --mem 8GiB
    local first=$job
    gpulse suspend "$first" --yes
    status_is 0
    job --mem 9GiB
    gpulse resume "$first"
    status_is 1
    complains 'GPU 0 has [0-9]+ MiB free of the 8192 MiB needed'
    gpulse resume "$first" --wait 300ms
    status_is 75
    complains 'gave up waiting: GPU 0 has [0-9]+ MiB free of the 8192 MiB needed'
    gpulse ps --columns pid,type --no-header -f csv
    says "^$first,S$"
    # as soon as there is some
    waiting_resume "$first"
    kill "$job"
    finish
    output=$(<out)
    status_is 0
    says "^process $first runs again with 8192 MiB$"
}

@test "what the driver refuses runs on, all of it" {
    quiet_t4
    job
    local good=$job
    job --managed
    gpulse suspend "$good" "$job" --yes
    status_is 4
    complains "process $job: .*not supported .* nothing was suspended"
    [ "$(suspended_rows | cut -d, -f2 | sort -u)" = C ]
    [ -z "$(ls notes/gpulse-*)" ]
    job --busy
    gpulse suspend "$good" "$job" --grace 300ms --yes
    status_is 4
    complains "process $job: stopping its CUDA calls: its GPU work did not come to an end"
    [ "$(suspended_rows | cut -d, -f2 | sort -u)" = C ]
    # nothing of it has stayed behind
    gpulse suspend "$good" --yes
    status_is 0
}

@test "processes that are refused at once" {
    quiet_t4
    job
    kill -STOP "$job"
    until_true grep -q '^State:.T' "/proc/$job/status"
    gpulse suspend "$job" --yes
    fails 1 "process $job cannot be suspended: it is stopped, .*; first continue it: kill -CONT $job"
    kill -CONT "$job"
    gpulse suspend "$job" --yes
    status_is 0
    gpulse suspend "$job" --yes
    fails 1 "process $job cannot be suspended: it is already suspended"
    gpulse resume 1
    fails 5 "process 1: process 1 cannot be signalled"
    GPULSE_CUDA=$GPULSE_BUILD/sim/libnvidia-ml.so.1 gpulse suspend "$job" --yes
    fails 4 'the driver is too old to suspend processes: it does not have cuInit \(since 570\)'
    GPULSE_CUDA=/nowhere gpulse suspend "$job" --yes
    status_is 4
    gpulse --root "$PWD" suspend "$job" --yes
    status_is 2
}

# as_another_user COMMAND…: as root by a user who is not root; otherwise it is this one. Its folder of
# settings is $other, which all can enter.
as_another_user() {
    local who=()
    [ "$(id -u)" -ne 0 ] || who=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${who[@]}" env GPULSE_SIM="$other/m.json" GPULSE_SIM_STATE="$other/state" \
        GPULSE_STATE_DIR="$other/notes" "$@"
}

@test "a process of another user" {
    local theirs=
    if [ "$(id -u)" -eq 0 ]; then
        started sleep 1000
        theirs=$pid
    else
        theirs=$(ps -eo pid=,uid= | awk -v own="$(id -u)" '$1 > 1 && $2 != own { print $1; exit }')
        [ -n "$theirs" ] || skip "no process of another user is seen here"
    fi
    machine t4 "m['workload'] = [{'name': 'x', 'pid': $theirs, 'gpus': [0], 'util': 1, 'memory_bytes': 1 << 20}]"
    other=$(mktemp -d /tmp/gpulse-suspend-XXXXXX)
    cp m.json "$other"
    install -d -m 700 "$other/state" "$other/notes"
    [ "$(id -u)" -ne 0 ] || chown -R 65534:65534 "$other"
    chmod 755 "$other"
    if ! (cd / && as_another_user "$GPULSE" --version) >/dev/null 2>&1; then
        rm -r "$other"
        skip "another user cannot run $GPULSE"
    fi
    cd /
    run --separate-stderr as_another_user "$GPULSE" suspend "$theirs" --yes
    local notes
    notes=$(find "$other/notes" -type f)
    cd "$BATS_TEST_TMPDIR"
    rm -r "$other"
    fails 5 "process $theirs cannot be suspended: it belongs to another user; only root can suspend it"
    [ -z "$notes" ] || explain "there is a note: $notes"
}

@test "more than host memory has room for" {
    machine t4 'm["workload"] = []; d["answers"]["MemoryInfo"].update(total=1 << 50, free=1 << 50)'
    export GPULSE_SIM=$PWD/m.json GPULSE_SIM_STILL=1
    job --mem 500TiB
    gpulse suspend "$job" --yes
    fails 1 "524288256 MiB of host memory needed, but process $job can use only [0-9]+ MiB"
    [ "$(suspended_rows | cut -d, -f2)" = C ]
    [ -z "$(ls notes/gpulse-* 2>/dev/null)" ]
}

@test "a MIG instance, several GPUs, ranks and a capture" {
    started env RANK=0 WORLD_SIZE=8 sleep 1000
    machine h100 "m['workload'] = [{'name': 'x', 'pid': $pid, 'gpus': [0, 1], 'util': 1, 'memory_bytes': 1 << 30}]"
    export GPULSE_SIM=$PWD/m.json
    gpulse suspend "$pid" --yes
    fails 1 "process $pid cannot be suspended: it uses several GPUs, .*"
    gpulse suspend "$pid" --yes --force
    status_is 4
    complains 'no process that uses CUDA'
    machine t4 "m['workload'] = [{'name': 'x', 'pid': $pid, 'gpus': [0], 'util': 1, 'memory_bytes': 1 << 30}]"
    gpulse suspend "$pid" --yes
    fails 1 "process $pid cannot be suspended: it is one of 8 distributed ranks, .*"
    GPULSE_SIM=a100-mig job
    GPULSE_SIM=a100-mig gpulse suspend "$job" --yes
    fails 1 "process $job cannot be suspended: it runs on a MIG instance, .*"
}

@test "a process that grows until it is stopped" {
    quiet_t4
    job --mem 1GiB --grow 1GiB
    until_true eval '[ "$("$GPULSE" query memory.used -f csv --no-header)" -gt 1073741824 ]'
    gpulse suspend "$job" --yes
    status_is 0
    local noted free
    noted=$(sed -n 's/^gpu .* 0*//p' notes/gpulse-*/suspended.*)
    [ "$noted" -gt 1073741824 ] # what it had when it stood still, not when it was listed
    free=$("$GPULSE" query memory.free -f csv --no-header)
    local grown=$job
    job --mem "$(((free - noted + 2097152) / 1024))KiB"
    gpulse resume "$grown"
    status_is 1
    complains 'MiB free of the .* MiB needed'
}

@test "implausible notes do not prevent the others from resuming" {
    quiet_t4
    local good claims
    job
    good=$job
    job
    claims=$job
    gpulse suspend "$good" "$claims" --yes
    status_is 0
    sed -i 's/^\(gpu [^ ]*\) .*/\1 00000001000000000000/' notes/gpulse-*/suspended."$claims".*
    started sleep 1000
    cp notes/gpulse-*/suspended."$good".* \
        "$(echo notes/gpulse-*)/suspended.$pid.$(awk '{ print $22 }' "/proc/$pid/stat")"
    gpulse resume "$good" "$claims" "$pid"
    status_is 1
    complains '^gpulse: 2 of 3 were skipped$'
    says "^process $good runs again with 1024 MiB$"
    complains "^gpulse: process $pid skipped: "
    complains "^gpulse: process $claims skipped: its note claims more memory than GPU 0 has$"
}

@test "one whose note is lost" {
    quiet_t4
    job
    gpulse suspend "$job" --yes
    status_is 0
    rm notes/*/*
    gpulse resume "$job"
    fails 1 "process $job: the note about its memory is lost, .*; --force tries it"
    gpulse resume "$job" --force
    status_is 0
    complains "^gpulse: process $job runs again$"
    [ "$(suspended_rows)" = "$job,C,1073741824," ]
    gpulse resume "$job"
    fails 1 "process $job: it is not suspended"
}

@test "while it waits for room the process may stop or end" {
    quiet_t4
    job --mem 8GiB
    local first=$job
    gpulse suspend "$first" --yes
    status_is 0
    job --mem 9GiB
    waiting_resume "$first"
    kill -STOP "$first"
    finish
    stderr=$(<err)
    status_is 1
    complains "process $first: it is stopped"
    kill -CONT "$first"
    waiting_resume "$first"
    kill -KILL "$first"
    finish
    stderr=$(<err)
    status_is 1
    complains "process $first"
}

@test "a folder in which anybody could change a note" {
    quiet_t4
    job
    chmod 777 notes
    chmod 777 notes # not sticky
    gpulse suspend "$job" --yes
    status_is 5
    complains 'must have mode 1777'
    [ "$(suspended_rows)" = "$job,C,1073741824," ]
}

@test "resume with no choice lists" {
    quiet_t4
    gpulse resume --timeout 5s
    status_is 0
    complains 'no suspended processes'
    gpulse resume -i 0
    status_is 0
    gpulse resume --all
    fails 1 'none of the selected processes is suspended'
}

@test "a suspended process can be terminated" {
    quiet_t4
    job
    gpulse suspend "$job" --yes
    status_is 0
    gpulse kill "$job" --yes
    status_is 0
    is_gone "$job"
    gpulse resume
    complains 'no suspended processes'
}
