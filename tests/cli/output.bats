# Where output goes and how it ends: files, pipes, full disks, signals. What was written is whole.
# variants: default asan

load helpers

# lines FILE: its number of lines; at_least FILE N: it has so many
at_least() {
    [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ]
}

ends_in_newline() {
    [ -z "$(tail -c 1 "$1")" ]
}

@test "-o writes a file and nothing else, --tee both" {
    gpulse --sim t4 query index,name -f csv -o file
    status_is 0
    [ -z "$output" ]
    [ "$(cat file)" = $'index,name\n0,Tesla T4' ]
    # a longer file is replaced, not overlaid
    printf '%01000d' 0 >file
    gpulse --sim t4 query index,name -f csv -o file --tee
    [ "$output" = $'index,name\n0,Tesla T4' ]
    [ "$(cat file)" = "$output" ]
    gpulse --sim t4 query index --tee
    fails 2 '--tee needs --output FILE'
}

@test "-o leaves a file alone when there is nothing to write" {
    echo 'of an earlier run' >file
    GPULSE_NVML=/nonexistent gpulse query index -o file
    status_is 4
    gpulse --sim nosuch query index -o file
    status_is 2
    gpulse --sim t4 query nosuch -o file
    status_is 2
    gpulse --sim t4 query index -i 7 -o file
    status_is 3
    fault t4 unloaded
    gpulse --sim t4 query index -o file
    status_is 4
    fault t4 clear
    fault t4 hang=30s:nvmlInit
    gpulse --sim t4 --timeout 0.3 query index -o file
    status_is 4
    [ "$(cat file)" = 'of an earlier run' ]
}

@test "-o in a place where nothing can be written" {
    gpulse --sim t4 query index -o none/file
    fails 1 "cannot write 'none/file': No such file or directory"
    gpulse --sim t4 query index -o .
    fails 1 "cannot write '\.': Is a directory"
}

@test "/dev/full" {
    [ -c /dev/full ] || skip "no /dev/full"
    to_full() {
        run --separate-stderr bash -c '"$@" >/dev/full' bash "$GPULSE" "$@"
    }
    for command in "status" "status --json" "query index" "query index -f json" "query --list" "--help" "--version" "query index -n 0.1"; do
        to_full --sim t4 $command
        status_is 1
        complains '^gpulse: cannot write the output: No space left on device$'
    done
    gpulse --sim t4 query index -n 0.1 -o /dev/full
    fails 1 'cannot write the output: No space left on device'
    to_full sim list
    status_is 1
}

@test "a closed standard output" {
    run --separate-stderr bash -c '"$@" >&-' bash "$GPULSE" --sim t4 status
    status_is 1
    complains '^gpulse: cannot write the output: Bad file descriptor$'
}

@test "closed descriptors: no file takes their place" {
    closed() {
        run --separate-stderr bash -c 'exec "$@" '"$1" bash "$GPULSE" "${@:2}"
    }
    fault t4 --gpu 0 slow=1ms
    before=$("$GPULSE" sim fault -m t4)
    for command in "status" "query index" "query index -f json" "status --json" "sim list" "sim fault -m t4" "--help"; do
        closed '<&- >&-' --sim t4 $command
        status_is 1
        complains '^gpulse( sim)?: cannot write .*'
        closed '<&- >&- 2>&-' --sim t4 $command
        status_is 1
    done
    # neither the state of the simulated machine nor anything else was written to
    [ "$("$GPULSE" sim fault -m t4)" = "$before" ]
    [ "$(cat "$GPULSE_SIM_STATE"/* | grep -ac 'index\|Tesla\|gpulse: ')" -eq 0 ]
    # a file is written, and nothing but the output goes there
    closed '<&- >&- 2>&-' --sim t4 query index,name -f csv -o file
    status_is 0
    [ "$(cat file)" = $'index,name\n0,Tesla T4' ]
}

@test "a reader that goes away ends a loop quietly" {
    run --separate-stderr bash -c '"$@" | head -n 2; exit "${PIPESTATUS[0]}"' bash \
        "$GPULSE" --sim t4 query index -f csv --no-header -n 0.1
    status_is 141
    is_quiet
    line_count 2
    # even where the parent ignores SIGPIPE
    run --separate-stderr bash -c 'trap "" PIPE; "$@" | head -n 2; exit "${PIPESTATUS[0]}"' bash \
        "$GPULSE" --sim t4 query index -f csv --no-header -n 0.1
    status_is 141
    is_quiet
}

@test "every sample is there at once" {
    start --sim t4 query timestamp -f csv --no-header -n 0.1
    until_true at_least out 3
    ends_in_newline out
    kill -KILL "$pid"
}

@test "SIGINT, SIGTERM and SIGHUP end a loop with a complete last record" {
    for signal in INT TERM HUP; do
        for format in csv tsv ndjson json table; do
            start --sim h100x8 query timestamp,index,name -f $format -n 0.1
            until_true at_least out 17
            kill -"$signal" "$pid"
            finish
            status_is 130
            [ ! -s err ]
            ends_in_newline out
            case $format in
            json) python3 -c 'import json; d = json.load(open("out")); assert d and all(len(s["gpus"]) == 8 for s in d)' ;;
            ndjson) python3 -c 'import json; d = [json.loads(l) for l in open("out")]; assert len(d) % 8 == 0' ;;
            *) [ $((($(wc -l <out) - 1) % 8)) -eq 0 ] ;;
            esac
        done
    done
}

@test "signals that the parent ignores stay ignored, as under nohup" {
    for signal in HUP INT; do
        rm -f out
        env --ignore-signal=$signal "$GPULSE" --sim t4 query index -f csv --no-header -n 0.1 >out 2>err 3>&- &
        pid=$!
        STARTED+=("$pid")
        until_true at_least out 2
        kill -$signal "$pid"
        kill -$signal "$pid"
        lines=$(wc -l <out)
        until_true at_least out $((lines + 3))
        kill -TERM "$pid"
        finish
        status_is 130
    done
}

@test "SIGINT at once still leaves a document" {
    start --sim t4 query index -f json -n 60
    until_true at_least out 1
    kill -INT "$pid"
    finish
    status_is 130
    python3 -m json.tool out >/dev/null
}

@test "signals end a single sample as they end any program" {
    fault t4 hang=30s
    start --sim t4 --timeout 60 query index
    until_true grep -q gpulse "/proc/$pid/comm"
    kill -TERM "$pid"
    SECONDS=0
    finish
    status_is 143
    [ "$SECONDS" -lt 20 ]
}

@test "the last sample of a file is whole, however the loop ends" {
    gpulse --sim h100x8 query index,name -f json -n 0.1 -c 3 -o file
    status_is 0
    python3 -c 'import json; assert len(json.load(open("file"))) == 3'
    gpulse --sim h100x8 query index,name -f json -n 0.1 --duration 0.25 -o file
    status_is 0
    python3 -c 'import json; assert json.load(open("file"))'
}

@test "all JSON is JSON" {
    for machine in h100x8 a100-mig gtx1660ti rtx2080-win gb200; do
        for command in "status --json" "query * -f json" "query * -f json --mig --units" "query * --processes -f json" "query * --host -f json"; do
            set -f
            gpulse --sim "$machine" $command
            set +f
            status_is 0
            python3 -m json.tool <<<"$output" >/dev/null
        done
    done
}

@test "CSV survives a spreadsheet's reader" {
    machine t4 'd["answers"]["Name"] = "GPU, \"the\" best"'
    gpulse --sim ./m.json query index,name,uuid -f csv
    python3 - "$output" <<'PYTHON'
import csv, io, sys
rows = list(csv.reader(io.StringIO(sys.argv[1])))
assert rows[1][:2] == ["0", 'GPU, "the" best'] and len(rows[1]) == 3, rows
PYTHON
}
