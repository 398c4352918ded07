# Where output goes and how it ends: files, pipes, full disks, signals. What was written is whole.
# variants: asan

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
    fault t4 hang=1h:nvmlInit
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
    fails 1 "cannot write '/dev/full': No space left on device"
    to_full sim list
    status_is 1
}

@test "a closed standard output" {
    run --separate-stderr bash -c '"$@" >&-' bash "$GPULSE" --sim t4 status
    status_is 1
    complains '^gpulse: cannot write the output: Bad file descriptor$'
}

@test "closed descriptors: no file gets their numbers" {
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

@test "a closed pipe stops a loop quietly" {
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
    local formats=(csv tsv ndjson json table xml openmetrics) format
    local -A loops
    for signal in INT TERM HUP; do
        for format in "${formats[@]}"; do
            mkdir -p "$format"
            cd "$format"
            start --sim h100x8 query timestamp,index,name -f $format -n 0.1
            cd ..
            loops[$format]=$pid
        done
        for format in "${formats[@]}"; do
            pid=${loops[$format]}
            cd "$format"
            until_true at_least out 60
            kill -"$signal" "$pid"
            finish
            status_is 130
            [ ! -s err ]
            ends_in_newline out
            case $format in
            json) python3 -c 'import json; d = json.load(open("out")); assert d and all(len(s["gpus"]) == 8 for s in d)' ;;
            xml) python3 -c 'import xml.etree.ElementTree as e; d = e.parse("out").getroot(); assert len(d) and all(len(s) == 8 for s in d)' ;;
            openmetrics) [ "$(tail -n 1 out)" = '# EOF' ] ;;
            ndjson) python3 -c 'import json; d = [json.loads(l) for l in open("out")]; assert len(d) % 8 == 0' ;;
            *) [ $((($(wc -l <out) - 1) % 8)) -eq 0 ] ;;
            esac
            cd ..
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
    fault t4 hang=1h
    start --sim t4 --timeout 1h query index
    until_true grep -q gpulse "/proc/$pid/comm"
    kill -TERM "$pid"
    finish
    status_is 143
}

@test "the last sample of a file is complete, however the loop ends" {
    gpulse --sim h100x8 query index,name -f json -n 0.1 -c 3 -o file
    status_is 0
    python3 -c 'import json; assert len(json.load(open("file"))) == 3'
    gpulse --sim h100x8 query index,name -f json -n 0.1 --duration 0.25 -o file
    status_is 0
    python3 -c 'import json; assert json.load(open("file"))'
}

# ---- rotation ----

# whole FORMAT: every file here is a document of this format, none larger than 1500 bytes, and all
# of them together, the oldest first, hold the samples: their times, one a line
whole() {
    python3 - "$1" <<'PYTHON'
import csv, glob, json, os, sys
import xml.etree.ElementTree as ElementTree
times = []
for name in sorted(glob.glob("file*"), key=lambda n: -int(n[5:] or 0)):
    text = open(name).read()
    assert len(text) <= 1500 and text.endswith("\n"), (name, len(text))
    if sys.argv[1] == "csv":
        rows = list(csv.DictReader(text.splitlines()))
    elif sys.argv[1] == "ndjson":
        rows = [json.loads(line) for line in text.splitlines()]
    elif sys.argv[1] == "json":
        rows = [row for document in json.loads(text) for row in document["gpus"]]
    else:
        rows = [{f.tag: f.text for f in row} for s in ElementTree.fromstring(text) for row in s]
    assert rows and [int(row["index"]) for row in rows] == [0, 1] * (len(rows) // 2), name
    times += [row["timestamp"] for row in rows[::2]]
assert times == sorted(set(times)), times
print(len(times))
PYTHON
}

@test "rotation by size: no sample is lost, every file is whole" {
    local formats=(csv ndjson json xml) format
    local -A loops
    for format in "${formats[@]}"; do
        mkdir "$format"
        cd "$format"
        start --sim h100x2 query timestamp,index,name -f $format -n 0.1 -c 16 -o file --rotate-size 1.5kB --keep 100
        cd ..
        loops[$format]=$pid
    done
    for format in "${formats[@]}"; do
        pid=${loops[$format]}
        cd "$format"
        finish
        status_is 0
        [ ! -s out ]
        [ -e file.1 ]
        [ "$(whole $format)" -eq 16 ]
        cd ..
    done
}

@test "rotation keeps the given number of old files" {
    gpulse --sim t4 query index -f csv -n 0.1 -c 9 -o file --rotate-size 8 --keep 3
    status_is 0
    [ "$(echo file*)" = 'file file.1 file.2 file.3' ]
    [ "$(cat file.3)" = $'index\n0' ]
    rm file*
    gpulse --sim t4 query index -f csv -n 0.1 -c 9 -o file --rotate-size 8
    [ "$(echo file*)" = 'file file.1 file.2 file.3 file.4 file.5' ]
}

@test "rotation by age" {
    gpulse --sim h100x2 query timestamp,index -f csv -n 0.1 -c 10 -o file --rotate-age 300ms --keep 100
    status_is 0
    [ -e file.1 ]
    [ "$(whole csv)" -eq 10 ]
}

@test "rotation leaves what an earlier run wrote, and standard output alone" {
    echo 'of an earlier run' >file
    gpulse --sim t4 query index -f csv -n 0.1 -c 3 -o file --rotate-size 8 --tee
    status_is 0
    [ "$output" = $'index\n0\n0\n0' ]
    [ "$(cat file.3)" = 'of an earlier run' ]
    [ "$(cat file.2)" = $'index\n0' ]
    # but not to a driver that does not start
    GPULSE_NVML=/nonexistent gpulse query index -o file --rotate-size 8
    status_is 4
    [ "$(cat file.3)" = 'of an earlier run' ]
}

@test "a signal stops a loop with rotation, and every file is complete" {
    for signal in INT TERM; do
        rm -f file*
        start --sim h100x2 query timestamp,index -f json -n 0.1 -o file --rotate-size 1.5kB --keep 100
        until_true test -e file.3
        kill -$signal "$pid"
        finish
        status_is 130
        [ "$(whole json)" -ge 4 ]
    done
}

@test "what cannot be rotated is said at once" {
    gpulse --sim t4 query index -o /dev/null --rotate-size 1MiB
    fails 1 "cannot rotate '/dev/null': it is not a regular file"
    mkfifo fifo
    gpulse --sim t4 query index -o fifo --rotate-age 1h
    fails 1 "cannot rotate 'fifo': it is not a regular file"
    gpulse --sim t4 query index -o none/file --rotate-age 1h
    fails 1 "cannot write 'none/file': No such file or directory"
    mkdir file.1
    gpulse --sim t4 query index -n 0.1 -o file --rotate-size 1 --keep 1
    fails 1 "cannot rotate 'file': cannot rename it to 'file\.1': Is a directory"
    if [ "$(id -u)" -ne 0 ]; then
        mkdir -m 500 closed
        gpulse --sim t4 query index -o closed/file --rotate-size 1
        fails 1 "cannot rotate 'closed/file': no files can be created there: Permission denied"
    fi
}

@test "options of files need a file" {
    for option in --append --replace '--rotate-size 1M' '--rotate-age 1h' --tee; do
        gpulse --sim t4 query index $option
        fails 2 "${option%% *} needs --output FILE"
    done
    gpulse --sim t4 query index -o file --keep 3
    fails 2 '--keep needs --rotate-size or --rotate-age'
    for keep in 0 1001; do
        gpulse --sim t4 query index -o file --rotate-size 1M --keep $keep
        fails 2 '--keep takes 1 to 1000'
    done
    gpulse --sim t4 query index -o file --rotate-size 10QiB
    fails 2 "bad value '10QiB' for --rotate-size: expected a size such as 512MiB or 20GiB"
    gpulse --sim t4 query index -o file --rotate-age soon
    fails 2 "bad value 'soon' for --rotate-age: .*"
    for format in json xml; do
        gpulse --sim t4 query index -f $format -o file --append
        fails 2 "--append cannot be combined with $format, which is one document; use ndjson"
    done
    [ ! -e file ]
}

@test "--append continues after the existing content" {
    for i in 1 2; do
        gpulse --sim t4 query index,name -f csv -o file --append
        status_is 0
    done
    [ "$(cat file)" = $'index,name\n0,Tesla T4\n0,Tesla T4' ]
    printf 'torn' >torn
    gpulse --sim t4 query index -f ndjson -o torn --append
    [ "$(head -n 1 torn)" = torn ]
    [ "$(wc -l <torn)" -eq 2 ]
    # a cron job whose file stays small
    for i in 1 2 3 4 5; do
        gpulse --sim t4 query index -f csv -o small --append --rotate-size 10 --keep 1
    done
    [ "$(cat small)" = $'index\n0' ]
    [ "$(cat small.1)" = $'index\n0\n0' ]
}

@test "the file of an earlier run is kept" {
    local run
    for run in name uuid index; do
        gpulse --sim t4 query "$run" -f csv --no-header -o power.csv
        status_is 0
        is_quiet
    done
    [ "$(cat power.csv)" = 0 ]
    [[ $(cat power.csv.1) = GPU-* ]]
    [ "$(cat power.csv.2)" = "Tesla T4" ]
    gpulse --sim t4 query index -o /dev/null
    status_is 0
    [ -c /dev/null ]
    gpulse --sim t4 query index -o power.csv --replace --no-header
    status_is 0
    [ "$(tr -d ' ' <power.csv)" = 0 ]
    [ ! -e power.csv.3 ]
}

@test "--append does not mix columns" {
    for format in csv tsv; do
        rm -f file
        gpulse --sim t4 query index,memory.total -f $format -o file --append
        cp file before
        for fields in index,name index memory.total,index index,memory.total:GiB; do
            gpulse --sim t4 query $fields -f $format -o file --append
            status_is 2
            complains "^gpulse: cannot append to 'file': it has other columns: its first line is '.*memory.total', but the header of this query is '.*'; query the same fields, or write to another file"
            cmp file before
        done
        gpulse --sim t4 query index,memory.total -f $format -o file --append
        status_is 0
        [ "$(wc -l <file)" -eq 3 ] && [ "$(grep -c index file)" -eq 1 ]
    done
    gpulse --sim t4 query index,memory.total -f tsv --units -o file --append
    status_is 2
    gpulse --sim t4 query '*' -f tsv -o file --append # of which the message shows the beginning
    fails 2 "cannot append to 'file': .* '…memory.total', but the header of this query is '…status.*…'; .*"
    # who asks for no header is believed
    gpulse --sim t4 query name -f tsv --no-header -o file --append
    status_is 0
    [ "$(tail -n 1 file)" = 'Tesla T4' ]
}

@test "--replace: the file holds one whole sample at every moment" {
    start --sim h100x8 query '*' -f openmetrics -n 0.1 -o metrics.prom --replace
    until_true test -e metrics.prom
    # some thousand looks, while it is replaced forty times
    python3 - <<'PYTHON'
import time
seen, looks = set(), 0
while looks < 300 or len(seen) < 40:
    with open("metrics.prom") as file:
        text = file.read()
    assert text.startswith("# TYPE"), text[:100]
    assert text.splitlines().count("# EOF") == 1 and text.endswith("\n# EOF\n"), text[-100:]
    seen.add(hash(text))
    looks += 1
    time.sleep(0.001)
PYTHON
    kill -TERM "$pid"
    finish
    status_is 130
    [ "$(echo metrics*)" = metrics.prom ]
    gpulse --sim t4 query index -f json -n 0.1 -c 2 -o file --replace
    [ "$(json 'd["gpus"]' file)" = "[{'index': 0}]" ]
    gpulse --sim t4 query index -o /dev/null --replace
    fails 1 "cannot replace '/dev/null': it is not a regular file"
    gpulse --sim t4 query index -o file --replace --append
    fails 2 '--replace and --append cannot be combined'
}

@test "a fifo and /dev/null accept the same output as a file" {
    mkfifo fifo
    gpulse --sim t4 query index -f csv -o fifo
    fails 1 "cannot write 'fifo': it is a FIFO without a reader"
    exec 7<>fifo
    gpulse --sim t4 query index -f csv -n 0.1 -c 2 -o fifo
    status_is 0
    [ "$(head -n 3 <&7)" = $'index\n0\n0' ]
    exec 7>&-
    gpulse --sim t4 query index -f csv -o /dev/null --append
    status_is 0
}

@test "a disk that fills up: a clear message, and a document of whole samples" {
    # a limit on the size of files stands for the disk; the simulated machine's own is there before
    fields=timestamp,index,name,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu,power.draw
    fault h100x8 clear
    run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 16; "$@"' bash "$GPULSE" --sim h100x8 \
        query $fields -f json -n 0.1 -o file
    fails 1 "cannot write 'file': File too large"
    python3 -c 'import json; d = json.load(open("file")); assert d and all(len(s["gpus"]) == 8 for s in d)'
    run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 16; "$@"' bash "$GPULSE" --sim h100x8 \
        query $fields -f csv --no-header -n 0.1 -o file
    fails 1 "cannot write 'file': File too large"
    [ $(($(wc -l <file) % 8)) -eq 0 ]
    ends_in_newline file
}

@test "all JSON is JSON" {
    for machine in h100x8 a100-mig gtx1660ti rtx2080-win gb200; do
        local loops=()
        for command in "status --json" "query * -f json" "query * -f json --mig --units" "query * --processes -f json" "query * --host -f json"; do
            mkdir -p "$machine/${#loops[@]}"
            cd "$machine/${#loops[@]}"
            set -f
            start --sim "$machine" $command
            set +f
            cd ../..
            loops+=("$pid")
        done
        for pid in "${loops[@]}"; do
            finish
            status_is 0
        done
    done
    python3 -c 'import json, sys; assert len(sys.argv) == 26; [json.load(open(path)) for path in sys.argv[1:]]' */*/out
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

@test "--append names line ends that are not ours" {
    printf 'index,name\r\n0,x\r\n' >t.csv
    gpulse --sim t4 query index,name -f csv -o t.csv --append
    fails 2 "cannot append to 't.csv': its lines do not end in a line feed; .*"
    [ "$(wc -l <t.csv)" -eq 2 ]
}

# narrow MACHINE ARG…: prints something, and no line is wider than $wide columns, or 80
narrow() {
    local columns=${wide:-80}
    COLUMNS=$columns gpulse --sim "$1" --sim-still "${@:2}"
    [ -n "$output" ] || explain "no output: $*"
    says_not ".{$((columns + 1))}"
}

@test "COLUMNS limits the width of lines; without it and a terminal, nothing is cut" {
    export LC_ALL=C.UTF-8
    for machine in h100x8 a100-mig desktop inference sick t4; do
        for command in ps mem "pick --explain" "events --list" doctor "doctor --list" "explain xid 79"; do
            # shellcheck disable=SC2086 # words
            narrow "$machine" $command
        done
    done
    narrow h100x8 queue
    says '^waiting +1  ray +[0-9]+  0-3 .*  torchrun .*…$'
    says '^ +GPUs 0-3: reserved by llama-8b \(mia\)$'
    narrow h100x8 events --list
    says '^KIND +GROUP +GPUs +WHAT$'
    narrow sick events --list
    says '^KIND +GROUP +GPUs 0-1,3-7 +GPU 2 +WHAT$'
    says '^driver: reported at once; poll: found by comparing readings; '
    says '^xid +health +driver +- +the driver reported'
    narrow t4 sim list
    says '^NAME +GPUS +MODEL +ABOUT$'
    says '^sick +8  H100 80GB HBM3 +a faulty server: '
    COLUMNS=many gpulse --sim h100x8 --sim-still queue
    says 'torchrun --nproc-per-node 4 sft.py$'
    gpulse sim list
    says '^NAME +GPUS +MODEL +DRIVER +ABOUT$'
    says '^gb10 .* a DGX Spark: '
    says '^h100 .* eight H100s \(h100x4: four\) shared by a team'
    says_not 'k8s-test-infra|data/captures'
    gpulse sim list -f json
    json_is '[m["source"] for m in d if m["name"] == "t4"]' "['NVIDIA/k8s-test-infra, Tesla T4, 595.91.07']"
    run script -qec "stty cols 80; '$GPULSE' sim list" /dev/null
    says '^sick +8  H100 80GB HBM3 +a faulty server: .*…'
}

@test "a narrow terminal has the most important columns, and the jobs" {
    export LC_ALL=C.UTF-8
    for machine in h100x8 a100-mig desktop inference sick; do
        for wide in 40 60; do
            narrow "$machine" mem
            narrow "$machine" ps
        done
    done
    for wide in 40 60; do
        narrow h100x8 queue
        says '^running +.* 4189103  0-3 .* llama-8b$'
    done
    wide=40 narrow h100x8 queue
    says '^STATE +PID  GPUS  JOB$'
    wide=60 narrow h100x8 queue
    says '^STATE +USER +PID  GPUS +FOR  JOB$'
    wide=40 narrow h100x8 mem
    says '^  GPU  NAME \(MiB\) +USED +FREE$'
    wide=60 narrow h100x8 mem
    says '^  GPU  NAME \(MiB\) +TOTAL +USED +FREE  UNATTRIBUTED$'
}

@test "doctor advise on a narrow terminal: prose is wrapped, commands are not" {
    COLUMNS=80 gpulse --sim h100x8 doctor advise torch
    says '^      run    # with pip$'
    says '^             pip install torch.*/cu130$'
    [ "$(grep -Evc '^ +(uv )?pip install|^.{,80}$' <<<"$output")" -eq 0 ]
    gpulse --sim h100x8 doctor advise torch
    says '/cu130   # with pip$'
}
