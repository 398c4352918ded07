# What the tests of the command line share. Every test has a simulated machine room of its own: a
# state directory, so that its faults and jobs concern nobody else.

bats_require_minimum_version 1.5.0

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${GPULSE:=$HERE/build/gpulse}"
: "${GPULSE_BUILD:=$(dirname "$GPULSE")}"

setup() {
    export GPULSE_SIM_STATE=$BATS_TEST_TMPDIR/state
    export GPULSE_SIM_STRICT=1 # gpulse makes no call that would crash a real library
    export GPULSE_SIM_TIMEOUT=5m # a driver that does not hang is waited for
    export GPULSE_STATE_DIR=$BATS_TEST_TMPDIR/notes
    export XDG_STATE_HOME=$BATS_TEST_TMPDIR/home
    unset GPULSE_SIM GPULSE_SIM_STILL GPULSE_SIM_COUNT GPULSE_ROOT GPULSE_NVML NO_COLOR COLUMNS
    mkdir -m 700 "$GPULSE_SIM_STATE"
    mkdir -m 1777 "$GPULSE_STATE_DIR"
    cd "$BATS_TEST_TMPDIR" || return
    STARTED=()
    exec {nothing}<> <(:)
}

teardown() {
    local pid
    for pid in ${STARTED[@]}; do # unquoted, to leave out the empty ones
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
}

# gpulse ARG…: $status, $output, $stderr, ${lines[@]}
gpulse() {
    run --separate-stderr "$GPULSE" "$@"
}

# fault MACHINE ARG…: injects, or clears. From one that hangs on, gpulse waits no longer than it does
# by itself.
fault() {
    case " $*" in
    *[\ ,]hang*) unset GPULSE_SIM_TIMEOUT ;;
    esac
    "$GPULSE" sim fault -m "$@"
}

# start ARG…: gpulse in the background, its output in the files out and err; its pid is $pid. A shell
# without job control starts those with INT and QUIT ignored, and gpulse leaves that alone: so it is
# undone.
start() {
    rm -f out err # of an earlier program: nobody shall take them for this one's
    env --default-signal=INT,QUIT,TERM,HUP "$GPULSE" "$@" >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
}

# started COMMAND…: another program in the background
started() {
    env --default-signal=INT,QUIT,TERM,HUP "$@" >/dev/null 2>&1 3>&- &
    pid=$!
    STARTED+=("$pid")
}

# finish: waits for the end of $pid; its exit status is $status. From then on the number may be another
# process's: teardown leaves it alone.
finish() {
    local i
    status=0
    wait "$pid" || status=$?
    for i in "${!STARTED[@]}"; do
        [ "${STARTED[i]}" != "$pid" ] || STARTED[i]=
    done
}

# nap: 0.02 s, without a process: nothing ever comes from this pipe
nap() {
    read -rt 0.02 -u "$nothing" || true
}

# until_true COMMAND…: waits for it, with a limit that only a broken program meets.
until_true() {
    local i
    for ((i = 0; i < 10000; i++)); do
        if "$@"; then
            return 0
        fi
        nap
    done
    explain "never came true: $*"
}

explain() {
    printf '%s\n' "$@" "status: ${status-}" "output: ${output-}" "stderr: ${stderr-}" >&2
    return 1
}

status_is() {
    [ "$status" -eq "$1" ] || explain "expected exit status $1"
}

# A line of the output, or of the messages, matches this extended regular expression.
says() {
    grep -Eq -e "$1" <<<"$output" || explain "the output does not say: $1"
}

says_not() {
    ! grep -Eq -e "$1" <<<"$output" || explain "the output says: $1"
}

complains() {
    grep -Eq -e "$1" <<<"$stderr" || explain "the messages do not say: $1"
}

complains_not() {
    ! grep -Eq -e "$1" <<<"$stderr" || explain "the messages say: $1"
}

# Nothing on standard error: neither a message nor a sanitizer.
is_quiet() {
    [ -z "$stderr" ] || explain "there are messages"
}

# unseen_are COUNT: only what gpulse says of so many processes that are not in /proc, where that is a
# container's; nothing anywhere else.
unseen_are() {
    if [ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ]; then
        is_quiet
    else
        [ "$stderr" = "gpulse: $1 of them cannot be seen from this container's pid namespace; gpulse ps --holders shows which processes in it have the GPUs open" ] ||
            explain "the messages are not the one of $1 processes"
    fi
}

# fails STATUS REGEX: this one line on standard error, and nothing else.
fails() {
    status_is "$1"
    [ -z "$output" ] || explain "there is output"
    [ "$(wc -l <<<"$stderr")" -eq 1 ] || explain "more than one line of messages"
    grep -Eq -e "^gpulse( sim)?: $2\$" <<<"$stderr" || explain "the message is not: $2"
}

line_count() {
    [ "${#lines[@]}" -eq "$1" ] || explain "expected $1 lines, there are ${#lines[@]}"
}

# json EXPRESSION [FILE]: prints a Python expression over the JSON document d of the output.
json() {
    if [ $# -gt 1 ]; then
        python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print(($1))" "$2"
    else
        python3 -c "import json, sys; d = json.load(sys.stdin); print(($1))" <<<"$output"
    fi
}

json_is() {
    local got
    got=$(json "$1") || explain "not JSON"
    [ "$got" = "$2" ] || explain "$1 is $got, expected $2"
}

# machine NAME SCRIPT: copies a built-in machine to the file m.json; the Python script changes m.
machine() {
    python3 - "$GPULSE_BUILD/sim/machines/$1.json" "$2" <<'PYTHON'
import json
import sys
m = json.load(open(sys.argv[1]))
d = m["devices"][0]
exec(sys.argv[2])
json.dump(m, open("m.json", "w"))
PYTHON
}

# needs_terminal: skips the test where script(1) cannot give a program a terminal
needs_terminal() {
    command -v script >/dev/null || skip "no script(1)"
    script -qec true /dev/null >/dev/null 2>&1 </dev/null ||
        skip "no pseudo-terminal to be had; is /dev/pts mounted?"
}

# quiet_t4: chooses a machine with a T4 on which nothing runs but what a test starts.
quiet_t4() {
    machine t4 'm["workload"] = []'
    export GPULSE_SIM=$PWD/m.json GPULSE_SIM_STILL=1
}

# job_of COMMAND…: a job that COMMAND starts, in a session of its own, so that nothing that is done to
# it is done to this test; its pid is $job
job_of() {
    : >job.out
    setsid env --default-signal=INT,QUIT,TERM "$@" >job.out 2>&1 3>&- &
    STARTED+=("$!")
    until_true grep -q 'holds' job.out
    job=$(awk '/holds/ { print $2 }' job.out)
    STARTED+=("$job")
}

# job ARG…: a job of gpulse sim load
job() {
    job_of "$GPULSE" sim load "$@"
}

# sampled BYTES ARG…: a job of gpulse sim load, for a shell, that ends when the record of gpulse run has a
# sample of it with this much GPU memory
sampled() {
    local bytes=$1
    shift
    echo "'$GPULSE' sim load $* & load=\$!"
    echo "until grep -qs ',$bytes,[^,]*,[^,]*,[^,]*,[^,]*\$' '$XDG_STATE_HOME'/gpulse/runs/*/samples.csv; do sleep 0.05; done"
    echo 'kill $load; wait $load'
}

# end_load: what `in_background … sim load` runs is ended; the messages of gpulse run are $stderr.
end_load() {
    until_true grep -q holds run.out
    kill "$(awk '/holds/ { print $2 }' run.out)"
    status=0
    wait "$running" || status=$?
    stderr=$(<run.err)
}

is_gone() {
    if runs_on "$1"; then
        explain "process $1 still runs"
    fi
}

runs_on() {
    grep -q '^State:[[:space:]][^ZX]' "/proc/$1/status" 2>/dev/null
}

# fake_process ROOT PID UID ARG…: a process below ROOT/proc. Started 1000 ticks after boot, 50 ticks of
# CPU time, 3 pages of memory.
fake_process() {
    local root=$1 pid=$2 uid=$3
    shift 3
    mkdir -p "$root/proc/$pid" "$root/etc"
    printf '%s\0' "$@" >"$root/proc/$pid/cmdline"
    printf '%.15s\n' "${1##*/}" >"$root/proc/$pid/comm"
    printf '%s (%.15s) S 1 1 1 0 -1 0 0 0 0 0 30 20 0 0 20 0 1 0 1000 9999 3 0\n' "$pid" "${1##*/}" \
        >"$root/proc/$pid/stat"
    printf 'Name:\tx\nUid:\t%s\t%s\t%s\t%s\n' "$uid" "$uid" "$uid" "$uid" >"$root/proc/$pid/status"
    printf 'cpu  1 2 3 4 5 6 7 8\nbtime 1700000000\n' >"$root/proc/stat"
}

# nothing_is_left: no reservation, and no memory in use on GPU 3 of idle_gpus
nothing_is_left() {
    [ -z "$("$GPULSE" queue)" ]
    gpulse query memory.used -i 3 -f csv --no-header
    [ "$output" = 0 ]
}

# Four GPUs on which nothing runs.
idle_gpus() {
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:4]'
    export GPULSE_SIM=$PWD/m.json GPULSE_SIM_STILL=1
    unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
}

# in_background ARG…: gpulse run in the background, until it says where it is
in_background() {
    : >run.err
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" run "$@" >run.out 2>run.err 3>&- &
    running=$!
    STARTED+=("$running")
    until_true grep -q '^gpulse: ' run.err
}
