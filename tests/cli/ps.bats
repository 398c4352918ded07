# gpulse ps: the processes as a list, as sums, as a tree, for people and programs.
# variants: asan

load helpers

@test "--idle counts down on a terminal, and says how long it takes elsewhere" {
    needs_terminal
    quiet_t4
    job --util 0
    run script -qec "'$GPULSE' ps --idle 2s" /dev/null
    says 'gpulse: observing, 2 s left'
    says 'gpulse: observing, 1 s left'
    says_not 'observing for'
    gpulse ps --idle 2s
    [ "$(grep -c 'observing' <<<"$stderr")" -eq 1 ]
    complains '^gpulse: observing for 2 s$'
}

@test "--idle does not observe where no process can be idle for so long" {
    quiet_t4
    gpulse ps --idle 10m
    status_is 0
    complains_not observing
    gpulse ps --mine --idle 10m
    status_is 3
    complains '^gpulse: no processes on the GPUs$'
    job --util 50
    gpulse ps --mine --idle 10m # ends when it was seen at work
    status_is 0
    [ "${#lines[@]}" -eq 1 ]
}

ps() {
    gpulse --sim h100x8 --sim-still ps "$@"
}

# Two of the jobs as processes of alice and of a pod.
with_owners() {
    fake_process root 4190001 1234 python train.py
    fake_process root 4190002 1234 python train.py
    printf 'root:x:0:0::/:\nalice:x:1234:100:Alice:/home/alice:/bin/sh\n' >root/etc/passwd
    [ "$(id -u)" -eq 0 ] || sed -i "s/^alice:x:1234/alice:x:$(id -u)/" root/etc/passwd
    printf '0::/system.slice/docker-%s.scope\n' \
        ba7b10d15d16e10e3de7a2dcd408a3d971169ae303f46cfad4c5453c6326fee2 >root/proc/4190001/cgroup
    printf '0::/system.slice/ollama.service\n' >root/proc/4190002/cgroup
    gpulse --sim h100x8 --sim-still --root root ps "$@"
}

@test "a line per process, those with most memory first" {
    ps
    status_is 0
    is_quiet
    line_count 7
    [[ ${lines[0]} =~ ^\ +PID\ +USER\ +JOB\ +GPU\ .*\ COMMAND$ ]]
    [[ ${lines[1]} =~ ^4190001\ .*\ python\ train.py\ --config\ llama-8b.yaml$ ]]
    [[ ${lines[6]} =~ ^4190006\ .*\ 23.1G\ .*jupyter ]]
}

@test "columns and order are those that are asked for" {
    ps --columns gpu,pid --sort pid --no-header
    status_is 0
    line_count 6
    [[ ${lines[0]} =~ ^\ *0\ +4190001$ ]]
    ps --columns gpu,pid --sort -pid --no-header
    [[ ${lines[0]} =~ ^\ *5\ +4190006$ ]]
    ps --columns color
    status_is 2
    complains "unknown column 'color'"
    ps --sort size
    status_is 2
    complains "unknown column 'size'"
}

@test "their users, containers and jobs" {
    with_owners --columns pid,user,container -f csv --sort pid
    status_is 0
    line_count 7
    [ "${lines[0]}" = "pid,user,container" ]
    [ "${lines[1]}" = "4190001,alice,docker:ba7b10d15d16" ]
    [ "${lines[2]}" = "4190002,alice,unit:ollama.service" ]
    [ "${lines[3]}" = "4190003,," ]
}

@test "only those that are chosen" {
    with_owners --user alice --columns pid --no-header -f csv --sort pid
    [ "$output" = $'4190001\n4190002' ]
    with_owners --container ollama --columns pid --no-header -f csv
    [ "$output" = 4190002 ]
    with_owners -p 4190003,4190006 --columns pid --no-header -f csv --sort pid
    [ "$output" = $'4190003\n4190006' ]
    with_owners --filter 'cmd:vllm' --columns pid --no-header -f csv
    [ "$output" = 4190005 ]
    gpulse --sim h100x8 --sim-still -i 3 ps --columns pid --no-header -f csv
    [ "$output" = 4190004 ]
    with_owners --pid alice
    status_is 2
    complains "--pid takes process ids"
}

@test "sums by job and by service" {
    with_owners --by unit -f csv --no-header
    status_is 0
    says '^unit:ollama\.service,1,'
    line_count 2
    printf '0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_0\n' >root/proc/4190001/cgroup
    printf '0::/system.slice/slurmstepd.scope/job_17/step_1/user/task_0\n' >root/proc/4190002/cgroup
    gpulse --sim h100x8 --sim-still --root root ps --by job -f csv
    line_count 3
    [ "${lines[0]}" = "job,processes,memory,sm,cpu,rss" ]
    says '^slurm:17,2,'
    says '^,4,'
    gpulse --sim h100x8 --sim-still --root root ps --by job -f json
    json_is 'sorted((s["job"] or "", s["processes"]) for s in d["sums"])' "[('', 4), ('slurm:17', 2)]"
    gpulse --sim h100x8 --sim-still --root root ps # the column appears with the first job
    says '^ *PID  USER +JOB '
    says '^4190001  .* 17\.0 '
    gpulse --sim h100x8 --sim-still --root root ps -p 4190003
    says_not ' JOB '
    gpulse --sim h100x8 --sim-still --root root ps -p 4190002 --columns job -f csv --no-header
    [ "$output" = 17.1 ]
    gpulse --sim h100x8 --sim-still --root root ps --job 17 --columns pid -f csv --no-header --sort pid
    [ "$output" = $'4190001\n4190002' ]
    gpulse --sim h100x8 --sim-still --root root ps --job 1 --no-header
    [ -z "$output" ]
}

@test "sums by user, container and GPU are those of the list" {
    with_owners -f csv --columns memory --no-header
    local all=0 sums part
    for part in "${lines[@]}"; do all=$((all + part)); done
    for key in user container gpu; do
        with_owners -f csv --by "$key" --no-header
        status_is 0
        sums=0
        for part in "${lines[@]}"; do sums=$((sums + $(cut -d, -f3 <<<"$part"))); done
        [ "$sums" -eq "$all" ]
    done
    with_owners --by user
    [[ ${lines[0]} =~ ^USER\ +PROCESSES\ +GPU-MEM ]]
    [[ ${lines[1]} =~ ^-\ +4\  ]]
    [[ ${lines[2]} =~ ^alice\ +2\  ]]
    with_owners --by user,gpu
    status_is 2
    complains "--by takes one of"
}

@test "JSON has the numbers of csv" {
    with_owners -f json --sort pid
    json_is 'd["schema"]' gpulse.ps/1
    json_is 'len(d["processes"])' 6
    json_is 'd["processes"][0]["user"]' alice
    json_is 'd["processes"][0]["container"]' docker:ba7b10d15d16
    json_is 'd["processes"][2]["user"]' None
    local memory
    memory=$(json 'd["processes"][0]["memory"]')
    with_owners -f csv --columns memory --no-header -p 4190001
    [ "$output" = "$memory" ]
    with_owners -f json --by user
    json_is 'd["sums"][1]["user"]' alice
    json_is 'd["sums"][1]["processes"]' 2
}

@test "memory that no process accounts for is a line of its own" {
    machine t4 'm["devices"][0]["answers"]["MemoryInfo"]["used"] += 3 << 30'
    gpulse --sim ./m.json --sim-still ps --columns pid,gpu,memory,command --no-header --sort pid
    status_is 0
    line_count 2
    [[ ${lines[0]} =~ ^\ +-\ +0\ +3.*G\ +\(not\ attributed\ to\ any\ listed\ process\)$ ]]
    gpulse --sim ./m.json --sim-still ps --by gpu -f csv --no-header
    [[ $output =~ ^0,1, ]]
}

in_list() {
    gpulse --sim t4 ps
    [[ $output == *"load -m t4"* ]]
}

@test "parents are above their children" {
    started "$GPULSE" sim load -m t4 --mem 1GiB --for 60s
    until_true in_list
    gpulse --sim t4 ps --tree --columns pid,command --no-header
    status_is 0
    [[ $output == *"└─"*"load -m t4"* ]]
    gpulse --sim t4 ps --tree --by user
    status_is 2
    complains '--tree and --by cannot be combined'
}

@test "a GPU that is lost leaves the others, and says so" {
    fault h100x8 --gpu 0 lost
    ps --columns pid --no-header -f csv --sort pid
    status_is 6
    [ "$output" = $'4190002\n4190003\n4190004\n4190005\n4190006' ]
    complains "GPU 0"
}

@test "what matches nothing is an error that says so" {
    ps 3
    status_is 3
    complains '^gpulse: no process 3 on the GPUs; GPU 3 is -i 3$'
    ps -p 99999999
    status_is 3
    complains '^gpulse: no process 99999999 on the GPUs$'
    gpulse ps --sim h100x8 -u nosuch
    status_is 3
    complains '^gpulse: no process of nosuch on the GPUs; those there belong to mia, jon, ana$'
    ps -u nosuch -f json
    status_is 3
    json_is 'd["processes"]' '[]'
    ps --mine --user root
    fails 2 '--mine and --user cannot be combined'
}

# at COLUMNS WORDS...: what gpulse prints on a terminal of that width
at() {
    run script -qec "stty cols $1; '$GPULSE' --sim h100x8 --sim-still ${*:2}" /dev/null
    output=$(tr -d '\r' <<<"$output")
}

@test "--columns help lists the columns, in top too" {
    ps --columns help
    status_is 0
    says '^command +command line$'
    local of_ps=$output
    gpulse --sim t4 top --columns help
    status_is 0
    says '^cpu_past +past of the CPU utilization, as a graph$'
    [ "$(grep -v '^cpu_past' <<<"$output")" = "$of_ps" ]
    ps --columns cpu_past
    fails 2 "unknown column 'cpu_past'; --columns help lists all"
    ps --columns pid,nonsense
    fails 2 "unknown column 'nonsense'; --columns help lists all"
}

@test "on a narrow terminal the command is readable, and no line is wider" {
    at 80 ps
    says '^    PID  USER  GPU  SM%  GPU-MEM  CPU% +TIME +IDLE  COMMAND$'
    says 'python train'
    says_not '.{81}'
    at 60 ps
    says '^    PID  USER  GPU .* GPU-MEM .* COMMAND$'
    says 'vllm serve'
    says_not '.{61}'
    at 200 ps
    says ' ENC  DEC '
    at 80 ps --columns pid,enc,dec,cwd,command
    says '^    PID  ENC  DEC  DIRECTORY'
    at 80 mem
    says '^  GPU  NAME \(MiB\) +TOTAL .*UNATTRIBUTED$'
    says '^    0  H100 80GB HBM3   81559 '
    says_not '.{81}'
}

@test "one's own processes" {
    quiet_t4
    job
    gpulse ps --mine --columns pid --no-header
    [ "$output" = "$job" ] || explain "not $job"
    gpulse kill --mine --dry-run
    says "^ *$job "
}

@test "again and again" {
    ps -n 0.1 -c 3 --columns pid -f csv
    status_is 0
    line_count 19
    ps -n 0.1 -c 2 --columns pid
    [ "$(grep -c PID <<<"$output")" -eq 2 ]
}

@test "old numbers do not look like new ones" {
    ps -n 0.2 -c 1 -f csv --columns pid,memory --no-header --sort pid
    local before=${lines[0]}
    fault h100x8 --gpu 0 hang=1h
    gpulse --sim h100x8 --sim-still --timeout 2 ps -f csv --columns pid,memory --no-header --sort pid
    status_is 6
    [[ $output != *"$before"* ]]
    [[ ${lines[-1]} =~ ^4190006,[0-9]+$ ]]
}

@test "options that cannot be combined are refused" {
    local words
    for words in "-c 3" "-n 1 -f json" "--by user --sort sm" "--by gpu --columns pid" "-f table,json" "-u ," "--container ,"; do
        # shellcheck disable=SC2086 # words
        ps $words
        status_is 2
        [ -z "$output" ]
    done
    ps --user ""
    status_is 2
    ps --container "a b"
    status_is 2
    ps --filter "$(printf 'x%.0s' {1..1100})"
    status_is 2
    complains "too many words to select processes"
}

@test "how they were started" {
    fake_process root 4190001 1234 python train.py
    fake_process root 4190002 1234 python -m ipykernel_launcher
    fake_process root 4190003 1234 python serve.py
    printf 'RANK=3\0WORLD_SIZE=8\0SECRET=sesame\0' >root/proc/4190001/environ
    printf 'JPY_SESSION_NAME=/home/a/train.ipynb\0' >root/proc/4190002/environ
    printf 'HOME=/root\0' >root/proc/4190003/environ
    gpulse --sim h100x8 --sim-still --root root ps --columns pid,origin -f csv --no-header --sort pid
    status_is 0
    [ "${lines[0]}" = "4190001,rank 3/8" ]
    [ "${lines[1]}" = "4190002,notebook train.ipynb" ]
    [ "${lines[2]}" = "4190003," ]
    [ "${lines[3]}" = "4190004," ]
    gpulse --sim h100x8 --sim-still --root root ps -f json
    says_not sesame
    json_is 'sorted(p["origin"] or "" for p in d["processes"])[-1]' 'rank 3/8'
}

@test "containers by their names" {
    local folder=root/var/lib/docker/containers/ba7b10d15d16e10e3de7a2dcd408a3d9
    mkdir -p "$folder"
    printf '{"Name": "/quiet_hopper"}' >"$folder/config.v2.json"
    with_owners --columns pid,container,container_name -f csv --no-header --sort pid
    status_is 0
    [ "${lines[0]}" = "4190001,docker:ba7b10d15d16,quiet_hopper" ]
    [ "${lines[1]}" = "4190002,unit:ollama.service," ]
    with_owners --container hopper --columns pid -f csv --no-header
    [ "$output" = 4190001 ]
    with_owners --filter container=quiet_hopper --columns pid -f csv --no-header
    [ "$output" = 4190001 ]
}

@test "arguments are pids and words" {
    ps 4190001,4190002 --columns pid --no-header
    line_count 2
    ps llama gpu:1 --columns pid --no-header
    [ "${output// /}" = 4190002 ]
    ps ''
    fails 2 'an argument is empty'
    ps --explain llama
    fails 2 "--explain and --leaks show all processes, not 'llama'"
    ps 4190001 4190002 --columns pid --no-header
    line_count 2
    ps gpu:1-2 --columns pid -f csv --no-header --sort pid
    [ "$output" = $'4190002\n4190003' ]
    ps foo:bar
    fails 2 "unknown field 'foo'; known: user pid ns_pid cmd type container job gpu; .*"
}

@test "environments are shown to who asks, and only then" {
    fake_process root 4190001 "$(id -u)" python train.py
    fake_process root 4190002 "$(id -u)" python train.py
    printf 'TOKEN=s3cret\0PATH=/bin\0TMUX_PANE=%%2\0A=\033[2J\0' >root/proc/4190001/environ
    local plain
    for plain in '' '--tree' '-f json' '-f csv' '--columns pid,origin' '--by user'; do
        # shellcheck disable=SC2086 # several words
        gpulse --sim h100x8 --sim-still --root root ps $plain
        status_is 0
        says_not s3cret
    done
    gpulse --sim h100x8 --sim-still --root root ps 4190001,4190002 --env
    status_is 0
    [ "${lines[0]##* python}" = " train.py" ] || explain "not the process"
    says '^  TOKEN=s3cret$'
    says '^  A=\\x1b\[2J$'
    says '^  \(it is empty\)$'
    gpulse --sim h100x8 --sim-still --root root ps 4190001,4190002 --env -f json
    json_is 'd["schema"]' gpulse.environment/1
    json_is 'd["processes"][0]["environment"]["TOKEN"]' s3cret
    json_is 'd["processes"][1]["environment"], d["processes"][1]["reason"]' "(None, 'it is empty')"
    ps --env --tree
    fails 2 '--env supports only .*'
}

@test "how long processes have been idle, as far as gpulse can know" {
    quiet_t4
    job --util 0 --name idle.py
    local idle=$job
    job --util 70 --name busy.py
    gpulse ps --columns pid,idle --no-header
    says "^ *$idle +≥1s$"
    says "^ *$job +0s$"
    gpulse ps -n 300ms -c 8 --columns pid,idle --no-header
    says "^ *$idle +≥3s$"
    gpulse ps -f json
    json_is '{p["pid"]: (p["idle"], p["idle_at_least"]) for p in d["processes"]}' "{$idle: (1, True), $job: (0, False)}"
    gpulse ps -f csv
    says ',idle,idle_at_least,'
    says "^$idle,.*,1,true,"
    says "^$job,.*,0,false,"
    gpulse ps -f csv --columns idle # exactly what was requested
    [ "${lines[0]}" = idle ]
    gpulse query pid,process.last_active --processes -f csv --no-header
    says "^$idle,\[N/A\]$"
    says "^$job,20..-..-..T"
}

@test "when repeating, a filter that matches nothing is explained once" {
    gpulse --sim t4 ps nothing -n 0.1 -c 3
    status_is 0
    [ "$(grep -c "no process on the GPUs matches 'nothing'" <<<"$stderr")" -eq 1 ] || explain "not once"
    gpulse --sim t4 ps -n 0.1 -c 2
    [[ $stderr != *matches* ]] || explain "nothing is filtered here" # in a container, it says what it cannot see
}

@test "ps sorts as ps(1) is asked to" {
    gpulse --sim h100x8 --sim-still ps --sort=-%mem
    status_is 0
    gpulse --sim t4 ps --sort help
    status_is 0
    says '^pid +process id'
}
