# gpulse status: a line per GPU, gpustat's options, patterns for status bars, colours, JSON.
# variants: asan

load helpers

# The T4 of the built-in machines, standing still, with its one job as a process of alice.
t4() {
    fake_process root 4190001 1234 /opt/tritonserver --model-repository=/models
    printf 'root:x:0:0::/:\nalice:x:1234:100:Alice:/home/alice:/bin/sh\n' >root/etc/passwd
    # the owner of a folder is the user, except that for root the file "status" decides
    [ "$(id -u)" -eq 0 ] || sed -i "s/^alice:x:1234/alice:x:$(id -u)/" root/etc/passwd
    gpulse --sim t4 --sim-still --root root status "$@"
}

h100() {
    gpulse --sim h100x8 --sim-still status "$@"
}

@test "a header line and a line per GPU" {
    h100
    status_is 0
    is_quiet
    line_count 9
    [[ ${lines[0]} =~ ^gpu07\ \ [0-9]{4}-[0-9]{2}-[0-9]{2}\ [0-9:]{8}\ \ driver\ 580\.105\.08\ \ \(simulated:\ h100x8\)$ ]]
    for i in 0 1 2 3 4 5 6 7; do
        [[ ${lines[i + 1]} =~ ^\[$i\]\ NVIDIA\ H100\ 80GB\ HBM3\ \|[0-9\ ]{3}°C,\ [0-9\ ]{3}\ %\ \|\ [0-9\ ]{5}\ /\ 81559\ MiB\ \| ]]
    done
}

@test "without a command, and not on a terminal, status is printed once" {
    gpulse --sim h100x2 --sim-still
    status_is 0
    line_count 3
}

@test "--no-header leaves the first line out" {
    t4 --no-header
    line_count 1
    says '^\[0\] Tesla T4 \|'
}

@test "the user is shown first unless the program is requested" {
    t4 --no-header
    says '\| alice\(6349MiB\)$'
    t4 --no-header -c
    says '\| tritonserver\(6349MiB\)$'
    t4 --no-header -c -u
    says '\| alice:tritonserver\(6349MiB\)$'
    t4 --no-header -u
    says '\| alice\(6349MiB\)$'
    t4 --no-header --show-cmd --show-user --show-pid
    says '\| alice:tritonserver/4190001\(6349MiB\)$'
    t4 --no-header -p
    says '\| alice/4190001\(6349MiB\)$'
}

@test "fans, codecs, power" {
    t4 --no-header -F
    says '°C,  38 % \|'
    gpulse --sim rtx3060 --sim-still status --no-header --show-fan
    says '°C, [0-9 ]{3} %, [0-9 ]{3} % \|'
    t4 --no-header -e
    says '38 % \(E:   0 %  D:   0 %\) \|'
    t4 --no-header -e enc
    says '38 % \(E:   0 %\) \|'
    t4 --no-header --show-codec=dec
    says '38 % \(D:   0 %\) \|'
    t4 --no-header -P
    says '38 %,   4[0-9] /  70 W \|'
    t4 --no-header -P draw
    says '38 %,   4[0-9] W \|'
    t4 --no-header --show-power limit
    says '38 %,   70 W \|'
    t4 --no-header -P limit,draw
    says '38 %,   4[0-9] /  70 W \|'
}

@test "-a is everything but full commands" {
    t4 --no-header -a
    line_count 1
    says '^\[0\] Tesla T4 \| 49°C,  38 % \(E:   0 %  D:   0 %\),   4[0-9] /  70 W \|  6349 / 15360 MiB \| alice:tritonserver/4190001\(6349MiB\)$'
}

@test "-f adds a line per process with its full command" {
    t4 --no-header -f
    line_count 2
    [[ ${lines[1]} =~ ^\ └─\ 4190001\ \(\ *[0-9]+%,\ 12\ KiB\):\ /opt/tritonserver\ --model-repository=/models$ ]]
}

@test "--no-processes ends the line after the memory" {
    t4 --no-header --no-processes
    says '/ 15360 MiB$'
}

@test "--gpuname-width cuts the head of a name, 0 hides it" {
    h100 --no-header --no-processes -i 0 --gpuname-width 8
    says '^\[0\] …GB HBM3 \| '
    h100 --no-header --no-processes -i 0 --gpuname-width 0
    says '^\[0\] +[0-9]+°C, '
    h100 --no-header --no-processes -i 0 --gpuname-width 30
    says '^\[0\] NVIDIA H100 80GB HBM3          \| '
}

@test "a GPU without a number for its memory shows what its processes have" {
    gpulse --sim gb10 --sim-still status --no-header
    status_is 0
    says '\|   608 /    \?\? MiB \| .*\(117MiB\) .*\(147MiB\) .*\(313MiB\) .*\(31MiB\)'
    gpulse --sim gb10 --sim-still status --no-header --no-processes
    says '\|    \?\? /    \?\? MiB$'
}

@test "query for people rounds memory as status does" {
    gpulse --sim a100-mig --sim-still status --no-header
    says '^    MIG 1 1g.20gb  \|    13 / '
    gpulse --sim a100-mig --sim-still query memory.used --mig -i MIG-00000400 --no-header
    [ "$output" = "13 MiB" ]
}

@test "memory is rounded up to MiB: one byte is not 0" {
    machine t4 'm["workload"][0]["memory_bytes"] = 1'
    gpulse --sim ./m.json --sim-still status --no-header
    says '\(1MiB\)$'
}

@test "MIG instances are indented below their GPU, with their processes" {
    gpulse --sim a100-mig --sim-still status --no-header
    status_is 0
    line_count 5
    [[ ${lines[0]} =~ ^\[0\]\ NVIDIA\ A100-SXM4-80GB\ \|\ .*MiB\ \|$ ]]
    for i in 0 1 2 3; do
        [[ ${lines[i + 1]} =~ ^\ \ \ \ MIG\ $i\ 1g\.20gb\ \ \|\ *[0-9]+\ /\ 19968\ MiB\ \| ]]
    done
    [[ ${lines[1]} == *"| www("* ]]
    [[ ${lines[3]} == *"| lena("* ]]
}

@test "-i chooses by index, range, UUID, bus id and name" {
    for term in 3 3-3 GPU-00000003 gpu-00000003-0000 86:00.0 0000:86:00.0 00000000:86:00.0; do
        h100 --no-header -i "$term"
        status_is 0
        line_count 1
        says '^\[3\] '
    done
    h100 --no-header --id 0-1,7
    [ "${lines[*]%% *}" = "[0] [1] [7]" ]
    h100 --no-header -i h100
    line_count 8
    gpulse --sim rtx4090 status --no-header -i 4090
    line_count 1
}

@test "-i that matches nothing, or means nothing" {
    h100 -i 8
    fails 3 "no GPU matches '8'; this machine has 8 \(0 to 7\)"
    h100 -i 0,h200
    fails 3 "no GPU matches 'h200'; this machine has 8 \(0 to 7\)"
    h100 -i 0,,1
    fails 2 "bad GPU '': expected an index.*"
}

@test "--line fills a pattern per GPU" {
    gpulse --sim t4 --sim-still status \
        --line '{index} {utilization.gpu}% {memory.used:GiB}/{memory.total:GiB} {temperature.gpu}C'
    status_is 0
    [ "$output" = "0 38% 6.2/15.0 49C" ]
    gpulse --sim h100x2 --sim-still status --line '{{{index}}} {fan.speed} {driver_version}'
    [ "${lines[0]}" = "{0} N/A 580.105.08" ]
    [ "${lines[1]}" = "{1} N/A 580.105.08" ]
    # nothing is left out of a status bar: a GPU without an answer has its line too
    fault h100x2 --gpu 1 lost
    gpulse --sim h100x2 status --line '{index} {temperature.gpu} {status}'
    status_is 6
    line_count 2
    says '^1 lost lost$'
}

@test "--line refuses unknown fields" {
    gpulse --sim t4 status --line '{index} {tmperature.gpu}'
    fails 2 "unknown field 'tmperature.gpu' \(did you mean 'temperature.gpu'\?\); .*"
    gpulse --sim t4 status --line 'a {index'
    fails 2 "'\{' without '\}' at column 3 of the line pattern"
    gpulse --sim t4 status --line '{pid}'
    fails 2 "a line describes a GPU: it cannot contain fields of processes"
    gpulse --sim t4 status --line '{memory.used:W}'
    fails 2 "unknown unit 'W' for memory.used; known: B KiB .*"
}

@test "--json has gpustat's keys" {
    t4 --json
    status_is 0
    is_quiet
    json_is 'd["schema"]' gpulse.status/1
    json_is 'd["driver"], d["driver_version"], d["host"] == d["hostname"]' "('595.91.07', '595.91.07', True)"
    json_is 'sorted(d["gpus"][0])' "['enforced.power.limit', 'fan.speed', 'index', 'memory.total', 'memory.used', 'name', 'power.draw', 'processes', 'temperature.gpu', 'utilization.dec', 'utilization.enc', 'utilization.gpu', 'uuid']"
    json_is 'd["gpus"][0]["fan.speed"]' None
    json_is 'd["gpus"][0]["memory.used"]' 6349
    json_is '[d["gpus"][0]["processes"][0][k] for k in ("username", "command", "full_command", "gpu_memory_usage", "pid", "cpu_memory_usage")]' \
        "['alice', 'tritonserver', '/opt/tritonserver --model-repository=/models', 6349, 4190001, 12288]"
}

@test "--json excludes a loop and a pattern" {
    t4 --json --watch 1
    fails 2 '--json is one document; for a stream: .*'
    t4 --json --line x
    fails 2 '--json and --line cannot be combined'
}

@test "--watch repeats, --count ends it" {
    gpulse --sim h100x2 status --no-header --watch 0.1 --count 3
    status_is 0
    line_count 6
    gpulse --sim h100x2 status --no-header --interval=0.1 --count 2
    line_count 4
    gpulse --sim h100x2 status --watch 0.01
    fails 2 '--interval must be at least 0.1 seconds'
    gpulse --sim h100x2 status --watch never
    status_is 2
    gpulse --sim h100x2 status --watch 0
    fails 2 '--interval must be at least 0.1 seconds'
    gpulse --sim h100x2 status --watch --count 0
    fails 2 '--count must be at least 1'
    gpulse --sim h100x2 status --count 3
    fails 2 '--count needs --interval'
}

@test "values change, and are frozen with --sim-still" {
    gpulse --sim h100x8 query power.draw -f csv --no-header -n 0.2 -c 5
    moving=$(sort -u <<<"$output" | wc -l)
    gpulse --sim h100x8 --sim-still query power.draw -f csv --no-header -n 0.2 -c 5
    still=$(sort -u <<<"$output" | wc -l)
    [ "$moving" -gt "$still" ]
    [ "$still" -le 8 ]
}

@test "colours only where they are asked for" {
    esc=$'\033'
    t4
    says_not "$esc"
    t4 --color=always
    says "$esc\[36m\[0\]$esc\[0m"
    t4 --force-color
    says "$esc"
    NO_COLOR=1 t4 --color=always
    says "$esc"
    t4 --force-color --no-color
    says_not "$esc"
    # the same text, only painted
    t4 -a --no-header
    plain=$output
    t4 -a --no-header --color=always
    [ "$(sed "s/$esc\[[0-9;]*m//g" <<<"$output")" = "$plain" ]
}

@test "on a terminal there are colours, unless NO_COLOR is set or TERM is dumb" {
    needs_terminal
    esc=$'\033'
    on_terminal() {
        run env "$@" script -qec "'$GPULSE' --sim t4 status" /dev/null
        status_is 0
    }
    on_terminal TERM=xterm
    says "$esc\[36m"
    on_terminal TERM=xterm NO_COLOR=1
    says_not "$esc\["
    on_terminal TERM=xterm NO_COLOR=
    says "$esc\[36m"
    on_terminal TERM=dumb
    says_not "$esc\["
}

@test "--version and --help before and after the command" {
    gpulse --version
    version=$output
    [[ ${output%%$'\n'*} =~ ^gpulse\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    says '^build: -O[0-3sg], (gcc|clang) [0-9.]+'
    says '^libraries: jansson [0-9.]+, ncurses [0-9.]+'
    mkdir -p root/sys/module/nvidia
    gpulse --version --root root
    says '^driver: no NVIDIA kernel module is loaded$'
    echo 580.105.08 >root/sys/module/nvidia/version
    gpulse --root root --version
    says '^driver: NVIDIA 580\.105\.08$'
    gpulse --sim h100x8 --version
    says '^driver: simulated: h100x8$'
    for words in "-V" "status --version" "status -V" "query --version" "query index -V" "--version status"; do
        GPULSE_NVML=/nonexistent gpulse $words
        status_is 0
        is_quiet
        [ "$output" = "$version" ]
    done
}

@test "status takes options only" {
    gpulse --sim t4 status 0
    fails 2 "status takes no arguments, got '0'; GPUs are selected with -i, as in -i 3"
    gpulse --sim t4 status --show-pwer
    fails 2 "unknown option '--show-pwer' \(did you mean --show-power\?\); try --help"
    gpulse --sim t4 status -e video
    fails 2 "status takes no arguments, got 'video'.*"
    gpulse --sim t4 status --show-codec=video
    fails 2 "bad value 'video' for --show-codec: expected one of enc dec"
}

@test "a watch on a narrow terminal shows that lines are cut" {
    needs_terminal
    run script -qec "stty cols 60 rows 24; '$GPULSE' --sim h100x2 --sim-still status -a --watch 0.1 --count 1" /dev/null
    [[ $output == *$'\033[60G\033[m…'* ]]
    run script -qec "stty cols 200 rows 24; '$GPULSE' --sim h100x2 --sim-still status -a --watch 0.1 --count 1" /dev/null
    [[ $output == *H100* ]]
    [[ $output != *…* ]]
}

@test "memory that no listed process accounts for is shown" {
    gpulse --sim sick --sim-still status -i 5,6,7
    says '^\[5\] .* MiB \| lee\([0-9]+MiB\)$'
    says '^\[6\] .* / 81559 MiB \| unattributed\(37200MiB\)$'
    says '^\[7\] .* MiB \|$'
    gpulse --sim sick --sim-still status -i 6 --no-processes
    says_not unattributed
}

@test "in a narrow terminal a line per GPU: the list of processes is cut" {
    COLUMNS=80 gpulse --sim inference --sim-still status -cup
    [ "${#lines[@]}" -eq 2 ]
    says '^\[0\] NVIDIA L40S .* \| ops:ffmpeg/20037\(538MiB\) …, \+6$'
    gpulse --sim inference --sim-still status -cup
    says 'svc:tritonserver/4190003\(6420MiB\)'
}

@test "a GPU in MIG mode has no utilization, a GPU without a fan no fan speed" {
    gpulse --sim a100-mig --sim-still status -aP
    says '^\[0\] .*°C,   MIG \(E:'
    says_not '\?\? %,  '
}
