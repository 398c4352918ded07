# What people and other programs hand us: misspelt fields, broken files, hostile names.
# variants: asan

load helpers

# ---- the command line ----

@test "an unknown field: the nearest one is named" {
    gpulse --sim t4 query memory.usd
    fails 2 "unknown field 'memory.usd' \(did you mean 'memory.used'\?\); gpulse query --list shows all"
    gpulse --sim t4 query index,utilisation.gpu
    fails 2 "unknown field 'utilisation.gpu' \(did you mean 'utilization.gpu'\?\); .*"
    gpulse --sim t4 query sneeze
    fails 2 "unknown field 'sneeze'; gpulse query --list shows all"
    gpulse --sim t4 query 'sneeze.*'
    fails 2 "no field of this kind starts with 'sneeze\.'; .*"
    gpulse query --describe memory.usd
    fails 2 "unknown field 'memory.usd' \(did you mean 'memory.used'\?\); .*"
}

@test "no fields, empty fields, too many words" {
    gpulse --sim t4 query
    fails 2 'no fields given; .*'
    gpulse --sim t4 query ''
    fails 2 'no fields given; .*'
    gpulse --sim t4 query index,,name
    fails 2 "empty field name in 'index,,name'"
    gpulse --sim t4 query index name
    fails 2 "expected one comma-separated list of fields, but 'name' follows it; try index,name"
    gpulse --sim t4 query "$(printf 'index,%.0s' {1..1100})"
    fails 2 'too many fields: at most 1024'
    gpulse --sim t4 query "$(head -c 5000 /dev/zero | tr '\0' x)"
    fails 2 "field name too long: 'x{40}…'"
}

@test "unknown commands, options and values" {
    gpulse --sim t4 stauts
    fails 2 "unknown command 'stauts' \(did you mean 'status'\?\); try --help"
    gpulse --sim t4 query index --fromat csv
    fails 2 "unknown option '--fromat' \(did you mean --format\?\); try --help"
    gpulse --sim t4 query index -f yaml
    fails 2 "bad value 'yaml' for --format: expected one of table csv tsv json ndjson xml openmetrics"
    gpulse --sim t4 query index --timeout
    fails 2 '--timeout needs a value: TIME'
    gpulse --sim t4 query index --timeout nope
    fails 2 "bad value 'nope' for --timeout: .*"
}

# ---- files ----

@test "a simulated machine that does not exist" {
    gpulse --sim nosuch status
    fails 2 "unknown simulated machine 'nosuch'; for a list: gpulse sim list"
    gpulse --sim h100x0 status
    fails 2 "unknown simulated machine 'h100x0': .*"
    gpulse --sim h100x99999 status
    fails 2 "unknown simulated machine 'h100x99999': .*"
    gpulse --sim SICK status
    fails 2 "unknown simulated machine 'SICK' \(did you mean 'sick'\?\): .*"
    gpulse --sim H100x8 status
    fails 2 "unknown simulated machine 'H100x8' \(did you mean 'h100'\?\): .*"
    gpulse --sim inferense status
    fails 2 "unknown simulated machine 'inferense' \(did you mean 'inference'\?\); .*"
    gpulse --sim ../../etc/passwd status
    status_is 2
    gpulse --sim ./none.json status
    status_is 2
    complains 'none\.json'
    gpulse sim fault -m nosuch lost
    fails 2 "unknown simulated machine 'nosuch'; for a list: gpulse sim list"
}

# refuses REGEX: m.json is refused with these words, by gpulse and by its tools
refuses() {
    gpulse --sim ./m.json status
    fails 2 "\./m\.json:$1"
    gpulse sim load -m ./m.json --for 1ms
    fails 2 "\./m\.json:$1"
}

@test "a malformed machine file: file, line, what" {
    printf '{\n "gpulse_machine": 1,\n oops\n}\n' >m.json
    refuses "3: .*oops.*"
    printf '{"gpulse_machine": 1' >m.json
    refuses '1: .*'
    : >m.json
    refuses '[0-9]+: .*'
    printf '{"a": 1, "a": 2}' >m.json
    refuses '1: duplicate object key.*'
    head -c 200000 /dev/zero | tr '\0' '[' >m.json
    refuses '1: .*depth.*'
    printf '{"gpulse_machine": "\xff\xfe"}' >m.json
    refuses '1: unable to decode byte 0xff .*'
}

@test "a machine file with wrong contents: file, place, what" {
    echo '[]' >m.json
    refuses ' document: expected an object'
    machine t4 'm["gpulse_machine"] = 2'
    refuses ' .*version 2 is unknown; expected 1'
    machine t4 'm["devces"] = m.pop("devices")'
    refuses " document: unknown key 'devces' \(did you mean 'devices'\?\)"
    machine t4 'm["devices"] = []'
    refuses ' devices: expected an array of at least one device'
    machine t4 'd["pci"]["bus_id"] = "here"'
    refuses ' devices\[0\]\.pci: bus_id: expected the form "00000000:53:00\.0"'
    machine t4 'd["answers"]["Temperature"] = "warm"'
    refuses ' devices\[0\]\.answers\.Temperature: expected a number .*'
    machine t4 'd["answers"]["Temprature"] = 40'
    refuses " devices\[0\]\.answers\.Temprature: unknown answer \(did you mean 'Temperature'\?\).*"
    machine t4 'd["answers"]["MemoryInfo"]["total"] = -1'
    refuses ' devices\[0\]\.answers\.MemoryInfo\.total: expected a number.*'
    machine t4 'd["processes"] = [{"pid": 1e99}]'
    refuses ' devices\[0\]\.processes\[0\]\.pid: expected a number.*'
    machine t4 'm["faults"] = ["7:explode"]'
    refuses " faults\[0\]: unknown fault 'explode'.*"
    machine t4 'm["workload"][0]["gpus"] = [1]'
    refuses ' workload\[0\]: gpus: expected numbers from 0 to 0'
}

# no_escapes: nothing that a terminal obeys, on either stream
no_escapes() {
    if LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' <<<"$output$stderr"; then
        explain "a control character"
    fi
}

@test "hostile machine files: their words reach no terminal raw" {
    name=$'\033]0;owned\007.json'
    machine t4 'm["\u001b]0;owned\u0007"] = 1'
    refuses ' document: unknown key .*\\x1b\]0;owned\\x07.*'
    no_escapes
    cp m.json "$name"
    for command in "--sim ./X status" "--sim X status" "sim load -m ./X" "sim fault -m X" "sim import ./X" "sim exec -m X -- true"; do
        mapfile -t words < <(tr ' ' '\n' <<<"$command")
        gpulse "${words[@]//X/$name}"
        [ "$status" -ne 0 ]
        complains '\\x1b\]0;owned'
        no_escapes
    done
    GPULSE_SIM=$name gpulse status
    complains '\\x1b\]0;owned'
    no_escapes
    # a value, and the name of one that works
    machine t4 'd["answers"]["Temperature"] = "\u001b[2J"'
    gpulse --sim ./m.json status
    status_is 2
    no_escapes
    cp "$GPULSE_BUILD/sim/machines/t4.json" "$name"
    gpulse --sim "./$name" status
    status_is 0
    says '\(simulated: \./\\x1b\]0;owned\\x07\.json\)$'
    no_escapes
}

@test "hostile words of the command line" {
    for words in "query X" "query index -i X" "X" "status --X" "query index -f X" "query --describe X" "query index:X" "query index -n X" "status --line {X}" "query index -o none/X"; do
        mapfile -t words < <(tr ' ' '\n' <<<"$words")
        gpulse --sim t4 "${words[@]//X/$'\033[2J\007'}"
        [ "$status" -ne 0 ]
        [ -n "$stderr" ]
        no_escapes
    done
}

@test "a hostile source of a built-in machine" {
    mkdir -p tree/sim/machines
    cp "$GPULSE" tree/
    cp "$GPULSE_BUILD/sim/gpulse-sim" "$GPULSE_BUILD/sim/libnvidia-ml.so.1" tree/sim/
    machine t4 'm["about"] = "from \u001b]0;owned\u0007\nhere"'
    mv m.json tree/sim/machines/evil.json
    run --separate-stderr tree/gpulse sim list
    status_is 0
    says '^evil .* from \\x1b\]0;owned\\x07\\nhere$'
    no_escapes
}

# no_import REGEX: the file c.xml is refused
no_import() {
    gpulse sim import c.xml -o out.json
    fails 2 "c\.xml:$1"
    [ ! -e out.json ]
}

@test "a malformed capture: file, line, what" {
    printf '<?xml version="1.0" ?>\n<nvidia_smi_log>\n<gpu id="x"><uuid>GPU-1</uuidd></gpu>\n</nvidia_smi_log>\n' >c.xml
    no_import '3: mismatched tag'
    printf '<nvidia_smi_log>\n<gpu>' >c.xml
    no_import '2: no element found'
    : >c.xml
    no_import '1: the file is empty'
    echo 'Fri Nov 20 16:00:00 2026' >c.xml
    no_import '1: not a capture: no output of nvidia-smi -q -x, .*'
    echo '<html/>' >c.xml
    no_import '1: not the output of nvidia-smi -q -x: .*'
    printf '<nvidia_smi_log>\n</nvidia_smi_log>\n' >c.xml
    no_import '1: the capture has no <gpu>'
    printf '<nvidia_smi_log>\n<gpu id="00000000:01:00.0">\n</gpu></nvidia_smi_log>\n' >c.xml
    no_import '2: this GPU has no uuid'
    printf '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>\n<nvidia_smi_log>&c;</nvidia_smi_log>' >c.xml
    no_import '1: contains an entity, which nvidia-smi never prints'
    { echo '<nvidia_smi_log>'; printf '<a>%.0s' {1..50}; } >c.xml
    no_import '2: nested too deeply'
    gpulse sim import none.xml
    status_is 1
    complains "cannot open 'none.xml': No such file or directory"
}

@test "a capture whose last GPU is cut in two" {
    head -n 400 "$HERE/data/captures/qx__k8stestinfra_h100.xml" >c.xml
    no_import '401: no element found'
    head -n 100 "$HERE/data/captures/q__tesla-t4_530.30.02.txt" >c.xml
    no_import '100: 00000000:00:08\.0 has no process section; was the capture cut off\?'
    head -c 5000 "$HERE/data/captures/q__tesla-t4_530.30.02.txt" >c.xml
    no_import '114: the line has no newline; was the capture cut off\?'
    head -c 4000 "$HERE/data/captures/query-gpu__l40s_595.80__load.txt" >c.xml
    no_import '1: the line has no newline; was the capture cut off\?'
    head -c 5000 "$GPULSE" >c.xml
    no_import '1: not a text: it contains the byte 0x7f; a capture is UTF-8.*'
    truncate -s 65M c.xml
    gpulse sim import c.xml
    fails 2 'c\.xml: larger than 64 MiB'
}

# ---- processes ----

# The names under which a process of the T4 may hide; the machine's own pid is 4190001.
ESC=$'\033'

clean_everywhere() {
    local words=(--sim "${1}" --sim-still --root root)
    # nothing that a terminal obeys, and valid UTF-8
    for command in "status -a" "status -f" "status --json" "query pid,process_name,process.path,process.command --processes" \
        "query pid,process_name,process.path,process.command --processes -f csv" "query pid,process_name,process.path,process.command --processes -f tsv" \
        "query pid,process_name,process.path,process.command --processes -f json" "query pid,process_name,process.path,process.command --processes -f ndjson"; do
        "$GPULSE" "${words[@]}" $command >printed 2>&1
        python3 - "$command" <<'PYTHON'
import sys
text = open("printed", "rb").read()
decoded = text.decode("utf-8")
bad = [c for c in decoded if c != "\n" and (ord(c) < 32 and c != "\t" or 0x7f <= ord(c) < 0xa0
       or c in "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")]
assert not bad, (sys.argv[1], bad[:10])
if "tsv" not in sys.argv[1]:
    assert "\t" not in decoded, sys.argv[1]
if "csv" in sys.argv[1] or "tsv" in sys.argv[1]:
    assert decoded.count("\n") == 2, (sys.argv[1], decoded)
assert len(text) < 40000, (sys.argv[1], len(text))
PYTHON
    done
}

@test "hostile names in /proc: ESC, newline, tab, invalid UTF-8, overrides" {
    fake_process root 4190001 0 "/bin/${ESC}]0;owned${ESC}[2J" $'line\nbreak\ttab' $'\xff\xfe\xc3\x28' $'\u202egnp.exe' $'quo"te,comma'
    clean_everywhere t4
    gpulse --sim t4 --root root query process_name --processes -f csv --no-header
    [ "$output" = '\x1b]0;owned\x1b[2J' ]
    gpulse --sim t4 --root root query process.command --processes -f json
    json_is 'd["processes"][0]["process.command"]' \
        $'/bin/\\x1b]0;owned\\x1b[2J line\\nbreak\\ttab \ufffd\ufffd\ufffd( \\u{202e}gnp.exe quo"te,comma'
    # a comma and a quote are text like any other, and quoted
    gpulse --sim t4 --root root query process.command --processes -f csv --no-header
    [[ $output == *'quo""te,comma"' ]]
}

@test "a name of 1 MB" {
    fake_process root 4190001 0 x
    head -c 1048576 /dev/zero | tr '\0' 'A' >root/proc/4190001/cmdline
    cp root/proc/4190001/cmdline root/proc/4190001/comm
    clean_everywhere t4
    gpulse --sim t4 --root root query process_name --processes -f csv --no-header
    status_is 0
    [[ $output =~ ^A{10,200}…$ ]]
    head -c 1048576 /dev/zero | tr '\0' $'\033' >root/proc/4190001/cmdline
    clean_everywhere t4
}

@test "a name that is nothing, or one byte of everything" {
    fake_process root 4190001 0 ''
    printf '(x) y) S' >root/proc/4190001/comm
    clean_everywhere t4
    gpulse --sim t4 --root root query process_name --processes -f csv --no-header
    [ "$output" = '(x) y) S' ]
    for i in $(seq 1 255); do printf "\\x$(printf %x "$i")"; done >root/proc/4190001/cmdline
    clean_everywhere t4
}

@test "hostile names from the driver" {
    mkdir root
    machine t4 'm["workload"][0]["name"] = "\u001b[31mred\n\u0007\u202e" + "x" * 3000'
    clean_everywhere ./m.json
    gpulse --sim ./m.json --root root status --no-header
    says '\\x1b\[31mred'
}

@test "hostile names of a GPU" {
    mkdir root
    machine t4 'd["answers"]["Name"] = "GPU \u001b[2J\n[1] fake"'
    clean_everywhere ./m.json
    gpulse --sim ./m.json --root root status --no-header
    line_count 1
    says '^\[0\] GPU \\x1b\[2J\\n\[1\] fake \|'
}

@test "a hostile real process" {
    (exec -a "$(printf '\033]0;owned\007\377\nx')" sleep 600) >/dev/null 2>&1 3>&- &
    STARTED+=("$!")
    until_true grep -q owned "/proc/$!/cmdline"
    machine t4 "m['workload'][0]['pid'] = $!"
    gpulse --sim ./m.json query pid,process_name,user --processes -f csv --no-header
    status_is 0
    # GNU cat -v would show what a terminal obeys
    [ "$(cat -v <<<"$output")" = "$(cat -v <<<"$!,\\x1b]0;owned\\x07"$'\ufffd'"\\nx,$(id -un)")" ]
}

@test "a process that ended between list and /proc" {
    mkdir -p root/proc
    gpulse --sim t4 --sim-still --root root status --no-header -a
    status_is 0
    is_quiet
    # the driver still knows its name and memory
    says '\| \?:tritonserver.*/4190001\(6349MiB\)$'
    machine t4 'del m["workload"][0]["name"]'
    gpulse --sim ./m.json --sim-still --root root status --no-header
    says '\| \?/4190001\(6349MiB\)$'
    gpulse --sim ./m.json --sim-still --root root query pid,process_name,process.path,user,process.command,process.rss,process.start_time --processes -f json
    status_is 0
    json_is 'd["processes"][0]["pid"], set(d["processes"][0]["reasons"].values())' "(4190001, {'not in /proc: it has exited, is hidden, or runs in another pid namespace'})"
    json_is 'len(d["processes"][0]["reasons"])' 6
}

@test "half-written files in /proc" {
    fake_process root 4190001 0 /bin/job
    for stat in '' '4190001' '4190001 (job' '4190001 (job) S' '4190001 (job) S 1 1 1 0 -1 0 0 0 0 0 30 20 0 0 20 0 1 0 99999999999999999999999 1 -5 0'; do
        printf '%s' "$stat" >root/proc/4190001/stat
        gpulse --sim t4 --root root status -a -f
        status_is 0
        is_quiet
        says 'tritonserver|job'
    done
    rm root/proc/4190001/*
    gpulse --sim t4 --root root status -a -f
    status_is 0
}

@test "what would be forgotten in silence is refused" {
    gpulse --sim h100x2 status -i 0 -i 1
    fails 2 '--id is given twice; use a comma-separated list'
    gpulse --sim t4 query --describe pid index
    fails 2 '--describe takes one comma-separated list of fields, and nothing else'
    gpulse --sim t4 query index -o -
    fails 2 '--output needs a file name; omit it to write to standard output'
}

@test "blanks in a list of GPUs are none of a name" {
    gpulse --sim h100x8 query index -i "0, 2 ,5" --no-header
    status_is 0
    [ "$(tr -d '\n ' <<<"$output")" = 025 ]
}

@test "words of other tools are answered with the right ones" {
    gpulse free
    fails 2 "unknown command or option 'free'; try gpulse pick --explain"
    gpulse -l 1
    fails 2 "unknown command or option '-l'; try gpulse smi -l"
    gpulse --sim t4 -l
    fails 2 "unknown command or option '-l'; try gpulse smi -l"
    gpulse --sim t4 -cpu
    fails 2 "unknown command or option '-cpu'; try gpulse status -cpu"
    gpulse --mine
    fails 2 "unknown command or option '--mine'; try gpulse ps --mine"
    gpulse ls
    fails 2 "unknown command or option 'ls'; try gpulse status, gpulse ps or gpulse sim list"
    gpulse help smi
    status_is 0
    says '^gpulse smi: drop-in replacement for nvidia-smi$'
    says '^Usage: gpulse smi '
    gpulse --query-gpu=index --format=csv
    fails 2 "unknown command or option '--query-gpu=index'; try gpulse smi --query-gpu=… --format=csv, or gpulse query"
    gpulse -n 1
    fails 2 "unknown command or option '-n'; try gpulse status -n TIME"
    gpulse -u root
    fails 2 "unknown command or option '-u'; try gpulse ps -u USER"
    gpulse -cpu
    fails 2 "unknown command or option '-cpu'; try gpulse status -cpu"
    gpulse submit
    fails 2 "unknown command or option 'submit'; try gpulse run --wait"
    gpulse set power=300
    fails 2 "unknown setting 'power' \(did you mean 'power-limit'\?\).*"
    gpulse query temp
    fails 2 "unknown field 'temp' \(did you mean 'temperature.gpu'\?\).*"
    gpulse run --wait 5minutes -- true
    fails 2 "bad value '5minutes' for --wait: expected a duration .*"
    gpulse mem --params 7
    fails 2 '--params 7 is a model with 7 parameters; 7B is 7 billion'
    gpulse --sim h100x8 run --dry-run --gpu 6 -- true
    says ' CUDA_VISIBLE_DEVICES=6 true$'
    gpulse --sim h100x8 query index --gpu 6 --no-header -f csv
    [ "$output" = 6 ]
    gpulse -lms 500
    fails 2 "unknown command or option '-lms'; try gpulse smi -lms 500"
    gpulse version
    status_is 0
    says '^gpulse [0-9]'
}

@test "--json is --format json, where there is that format" {
    for command in ps mem pick queue 'query index' 'set --show' doctor; do
        # shellcheck disable=SC2086 # words
        gpulse --sim t4 $command --json
        json '"schema" in d' >/dev/null || explain "$command"
    done
    gpulse --sim t4 kill --json
    status_is 2
    complains "unknown option '--json'"
}

@test "an option is no value of another one" {
    gpulse --sim t4 ps --user -i 0
    fails 2 "--user needs a value: NAMES, not '-i'"
    gpulse --sim t4 ps --sort -memory
    status_is 0
}

# meant LINES: each line is a command, a tab, and what its message names
meant() {
    local words spelling
    while IFS=$'\t' read -r words spelling; do
        eval "gpulse --sim h100x8 $words"
        [ "$status" -eq 2 ] && [[ $stderr == *"$spelling"* ]] || explain "gpulse $words" || return
    done
}

@test "nvidia-smi's options that change settings" {
    meant <<'END'
-pl 300	'-pl'; try gpulse set power-limit=300
-i 0 -pl 300	try gpulse set power-limit=300
-pl	try gpulse set power-limit=WATTS
-pm 1	try gpulse set persistence-mode=1
-lgc 1200,1500	try gpulse set lock-gpu-clocks=1200,1500
-rgc	try gpulse set lock-gpu-clocks=reset
-mig 1	try gpulse set mig-mode=1
-c	try gpulse status -c, or gpulse set compute-mode=MODE
-r	try gpulse smi -r -i GPU
set -pl 400	unknown option '-pl'; try gpulse set power-limit=400
set --power-limit=400	try gpulse set power-limit=400
set -pm	try gpulse set persistence-mode=on
set -rgc	try gpulse set lock-gpu-clocks=reset
set -e 1	try gpulse set ecc-mode=1
set --undo	--restore FILE
END
}

@test "a word behind an optional time is a bad time" {
    for command in ps status events; do
        gpulse --sim t4 $command -n abc
        fails 2 "bad value 'abc' for --interval: expected a duration .*"
    done
    gpulse --sim t4 status -n -c --count 1
    status_is 0
    gpulse --sim t4 query -l index --count 1
    status_is 0
    gpulse --sim h100x8 run --wait true
    status_is 0
}

@test "options that other commands and tools have" {
    meant <<'END'
status -g 3	unknown option '-g'; try -i 3
status -g3	unknown option '-g3'; try -i 3
ps -g 3	try -i 3
kill -g 3	try -i 3
mem -g 3	try -i 3
reclaim -g	try -i GPUS
status -f json	status takes no argument 'json'; try --json
status --format json	try --json
events -f json	did you mean 'ndjson'?
events --json	try -f ndjson
events -l 1	try -n 1
top -d 1	try -n 1
status -d 1	try -n 1
query index --delay=3	try -n 3
ps --duration 5	try -n TIME --count N
query --help-query-gpu	try gpulse query --list
query -q	try gpulse smi -q
query index -p 4711	try gpulse ps -p 4711
query mem.used	did you mean 'memory.used'?
query temp.gpu	did you mean 'temperature.gpu'?
query name memory.used	try name,memory.used
queue -u mia	try gpulse queue | grep mia
queue --mine	try gpulse queue | grep "$USER"
ps -ef	unknown option '-ef'; try gpulse ps, which lists the processes of all users
ps -l	or -n TIME to repeat
ps -o pid,user	try --columns pid,user
ps aux	ps takes no argument 'aux'; try gpulse ps, which
ps pid 3	try -p 3
ps -sort memory	did you mean --sort?
kill -f train.py	try --name train.py
kill -l	try -s int, -s term or -s kill
kill -9 %1	'%1' is a job of the shell; use its kill: kill %1
run -t 10 -- true	try --timeout 10
run --gres=gpu:1 -- true	try -g N
run -J name -- true	try --name name
run -N1 -- true	try -g 1
run -o log -- true	try --keep-output
run --retries=2 -x -- true	unknown option '-x'; try --help
status --pid 4711	try gpulse ps -p 4711
mem -u mia	try gpulse ps -u mia
query index --mine	try gpulse ps --mine
top -b	try gpulse top --plain
top -s	try gpulse status, which prints once
top -C	try NO_COLOR=1 gpulse top
top --light	try gpulse top --theme light
ps --forest	try --tree
why --duration 5s	try --for 5s
why --time 5s	try --for 5s
why --pid 3	try gpulse why 3
query index --for 3s	try --duration 3s
events --for 3s	try --duration 3s
status --for 3s	try -n TIME --count N
status --cp	try -cp
status --process	try -cp, or gpulse ps
ps --gpus 3	try -i 3
run --memory 2G -- true	try --mem 2G
run --num-gpus 2 -- true	try -g 2
run --after x -- true	try --pipeline FILE
queue --watch	try watch gpulse queue
explain --last	try gpulse explain last
explain --xid 79	try gpulse explain xid 79
set --power 300	try gpulse set power-limit=300
sim up sick	try gpulse --sim MACHINE
ps -H	try --tree
top -o memory	try --sort memory
query index --log f	try -o f
queue --me	try gpulse queue | grep "$USER"
run -d afterok:5 -- true	try --pipeline FILE
run --exclusive -- true	without it: a job has its GPUs alone
kill -STOP 4711	gpulse suspend frees the memory of a job for a while
run 6 -- true	'6' is not a command; to run on these GPUs: --gpu-ids 6
run -wait -- true	unknown option '-wait' (did you mean --wait?)
mem --model 7B	try --params 7B
sim run	gpulse --sim MACHINE run -- COMMAND
sim h100x8	'h100x8' is a machine; try gpulse --sim h100x8 COMMAND
sim t4,driver=470 status	try gpulse --sim t4,driver=470 COMMAND
query index -i all -f yaml	bad value 'yaml'
END
}

@test "commands of other tools" {
    meant <<'END'
-o 0 1	try gpulse top -i GPUS
--watch	try gpulse status --watch, or gpulse top
-v	try gpulse --version
nvtop	try gpulse top
sbatch	try gpulse run --wait -- COMMAND
srun	try gpulse run --wait -- COMMAND
salloc	try gpulse run --wait -- bash
exec	try gpulse run -- COMMAND
scancel	the shell
squeue	try gpulse queue
processes	try gpulse ps
gpu	try gpulse status
3	try gpulse status -i 3
0,1	try gpulse status -i 0,1
reset	try gpulse smi -r -i GPU
clocks	gpulse query 'clocks.*'
sinfo	try gpulse pick --explain
sacct	try gpulse explain list
stop 4711	try gpulse kill 4711
killall train.py	try gpulse kill --name train.py
pause 4711	try gpulse suspend 4711
continue	try gpulse resume PID
-lms 500	try gpulse smi -lms 500
-C	try NO_COLOR=1 gpulse top
-m compact	try gpulse top --view=bar
mig -lgi	try gpulse smi mig
mps	try gpulse ps --type M
power	try gpulse query power.draw
pkill -f train.py	try gpulse kill --name TEXT
scontrol show job 5	try gpulse queue
--gpu-reset -i 0	try gpulse smi --gpu-reset
-d 10	try gpulse top -n 10
exporter	-f openmetrics
pipeline	try gpulse run --pipeline FILE
query-gpu	try gpulse query FIELDS
END
}

@test "every suggested spelling is one that works" {
    gpulse --sim h100x8 set power-limit=300 persistence-mode=1 lock-gpu-clocks=reset --dry-run
    status_is 0
    gpulse --sim h100x8 set ecc-mode=1 --dry-run
    status_is 0
    gpulse --sim h100x8 query 'clocks.*' --csv
    status_is 0
    says '^clocks.*,'
    gpulse --sim h100x8 query '*' -f openmetrics
    status_is 0
    gpulse --sim h100x8 query index -i all --no-header --csv
    line_count 8
    gpulse --sim h100x8 query index -i 0:2
    fails 3 "no GPU matches '0:2', which is a MIG instance; a range is 0-2"
}

@test "a script that is not executable" {
    touch train.py run.sh
    gpulse --sim h100x8 run train.py
    status_is 127
    complains "cannot run 'train.py': .*; try python train.py$"
    gpulse --sim h100x8 run ./run.sh
    status_is 126
    complains "cannot run './run.sh': .*; try bash ./run.sh$"
}
