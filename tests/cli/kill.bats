# gpulse kill: real processes that hold memory of a simulated GPU.
# variants: asan

load helpers

@test "its memory is freed, which is reported" {
    quiet_t4
    job --mem 5GiB
    gpulse kill "$job" --yes
    status_is 0
    says "^ *$job .* 5\.0G "
    says "^$job terminated after [0-9.]+ s, by SIGINT, freed 5120 MiB$"
    says '^GPU 0: 5120 MiB in use before, 0 MiB now$'
    complains '^gpulse: SIGINT to 1 process$'
    is_gone "$job"
    gpulse ps --no-header
    [ -z "$output" ]
}

@test "no process is terminated without confirmation" {
    quiet_t4
    job
    gpulse kill "$job" </dev/null
    status_is 2
    says "^ *$job "
    complains 'nothing was terminated: cannot ask without a terminal; add --yes'
    gpulse kill "$job" --dry-run
    status_is 0
    says "^ *$job "
    runs_on "$job"
}

@test "a terminal is asked, and the answer counts" {
    needs_terminal
    quiet_t4
    job
    run script -qec "'$GPULSE' kill $job" /dev/null <<<"n"
    status_is 1
    [[ $output == *"Terminate 1 process? [y/N]"*"nothing was terminated"* ]]
    runs_on "$job"
    run script -qec "'$GPULSE' kill $job" /dev/null <<<"y"
    status_is 0
    is_gone "$job"
}

@test "one that heeds nothing is killed" {
    quiet_t4
    job --stubborn
    gpulse kill "$job" --yes --grace 200ms
    status_is 0
    says "^$job terminated after [0-9.]+ s, by SIGKILL, freed 1024 MiB$"
    complains 'SIGINT to 1 process'
    complains 'SIGTERM to 1 process'
    complains 'SIGKILL to 1 process'
}

@test "the first signal is chosen" {
    quiet_t4
    job
    gpulse kill "$job" --yes -s term
    status_is 0
    says 'by SIGTERM'
    [[ $stderr != *SIGINT* ]]
}

@test "with its children" {
    quiet_t4
    job --workers 3
    mapfile -t children < <(pgrep -P "$job")
    gpulse kill "$job" --tree --dry-run # they are shown before it asks
    status_is 0
    line_count 5
    says "^ *${children[2]} "
    gpulse kill "$job" --yes --tree -s kill
    status_is 0
    [ "$(grep -c '(child) terminated .* by SIGKILL' <<<"$output")" -eq 3 ]
    says "^$job terminated .* freed 1024 MiB"
    says '^GPU 0: 1024 MiB in use before, 0 MiB now$'
}

@test "memory that is not freed is reported" {
    quiet_t4
    job --workers 2 --mem 3GiB
    mapfile -t -O "${#STARTED[@]}" STARTED < <(pgrep -P "$job")
    gpulse kill "$job" --yes -s kill --wait 500ms
    status_is 1
    says "^$job terminated .* by SIGKILL"
    says '^GPU 0: 3072 MiB in use before, 3072 MiB now; some memory was not freed: see gpulse ps --explain -i 0$'
    says_not 'MiB came back'
    complains 'their memory was not freed'
}

@test "selected processes" {
    quiet_t4
    job --name train.py
    local train=$job
    job --name serve.py
    gpulse kill --name train --dry-run
    says "^ *$train "
    says_not serve.py
    gpulse kill cmd:serve "user=$(id -un)" --dry-run
    says "^ *$job "
    says_not train.py
    gpulse kill "$train,$job" --dry-run
    line_count 3
    gpulse kill -i 0 --all --dry-run
    line_count 3
    gpulse kill --all --user nobody-has-this-name --yes
    status_is 2
    complains '--all cannot be combined'
    gpulse kill --user nobody-has-this-name --yes
    fails 3 "no process of nobody-has-this-name on the GPUs; those there belong to $(id -un)"
    gpulse kill --job 17 --yes
    fails 3 "no process on the GPUs matches 'job:17'"
}

@test "an empty value selects no process" {
    quiet_t4
    job
    gpulse kill "" --user "$(id -un)" --yes
    fails 2 'an argument is empty'
    gpulse kill --name "" --yes
    fails 2 '--name is empty'
    gpulse kill --pid "" --user "$(id -un)" --yes
    fails 2 '--pid is empty'
    gpulse kill --name "xyz,load" --yes # a comma is a comma
    fails 3 'no matching process on the GPUs'
    runs_on "$job"
}

@test "a GPU that does not respond is not one that has given back" {
    quiet_t4
    job
    fault "$GPULSE_SIM" --gpu 0 deny:nvmlDeviceGetComputeRunningProcesses
    gpulse kill --all --yes
    [ "$status" -ne 0 ]
    gpulse reclaim
    status_is 1
    says_not 'Nothing to reclaim'
    runs_on "$job"
}

@test "other processes are not touched" {
    quiet_t4
    job
    gpulse kill
    status_is 2
    complains 'no processes selected'
    gpulse kill $$ --yes
    fails 1 "process $$ is not on the selected GPUs .*"
    gpulse kill -9 4194303 # above the highest pid of most machines
    fails 3 'no process 4194303 on the GPUs'
    gpulse --sim h100x8 kill 4189401
    fails 1 "process 4189401 is a gpulse run that waits in line; cancel it with the shell's kill: kill 4189401"
    gpulse --sim h100x8 kill 4189103
    fails 1 "process 4189103 is a gpulse run that has reserved GPUs: gpulse ps lists its job's processes on them; to end it and its job, use the shell's kill: kill 4189103"
    gpulse --sim h100x8 kill -i 6 --all
    fails 3 'no matching process on the GPUs'
    gpulse --sim sick kill -i 6 --all
    gpulse --sim sick kill -i 6 --mine
    fails 3 'no processes on the GPUs'
    gpulse --sim sick kill -i 6 --all
    fails 3 'no such process on the GPUs; to free memory of GPU 6 that no listed process holds: gpulse reclaim -i 6'
    gpulse kill 99999999999 --yes
    status_is 2
    complains "'99999999999' is not a process id"
    gpulse --root "$PWD" kill "$job" --yes
    status_is 2
    complains 'processes below --root are not running on this machine'
    runs_on "$job"
}

@test "what gpulse was started from is left alone" {
    machine t4 "m['workload'][0]['pid'] = $$"
    gpulse --sim ./m.json kill "$$" --yes
    fails 5 "process $$ is an ancestor of this gpulse"
    gpulse --sim ./m.json kill --all --yes
    fails 5 "process $$ is an ancestor of this gpulse"
}

@test "only those that do nothing, on several GPUs" {
    gpulse --sim h100x8 ps --idle 300ms -i 5 --columns pid --no-header
    status_is 0
    local idle=$output
    [ -n "$idle" ]
    for gpus in 0-7 1,2,5 0,1,2,3,4,5,6,7; do
        gpulse --sim h100x8 ps --idle 300ms -i "$gpus" --columns pid --no-header
        status_is 0
        [ "$output" = "$idle" ]
    done
    gpulse --sim h100x8 ps --idle 300ms -i 0-4,6,7 --columns pid --no-header
    [ -z "$output" ]
}

@test "only those that do nothing" {
    quiet_t4
    job --util 0 --name idle.py
    local idle=$job
    job --util 70 --name busy.py
    gpulse ps --idle 300ms --columns pid --no-header
    status_is 0
    [ "${output// /}" = "$idle" ]
    gpulse ps --idle 300ms -i 0 --columns pid --no-header
    [ "${output// /}" = "$idle" ]
    gpulse kill --idle 300ms -i 1 --yes
    fails 3 "no GPU matches '1'.*"
    gpulse kill --idle 300ms -i 0 --yes
    status_is 0
    says "^$idle terminated"
    says_not "^$job "
    runs_on "$job"
    gpulse reclaim --idle 300ms --yes
    status_is 0
    says '^Nothing to reclaim'
    gpulse ps --idle 1s --watch 1s
    status_is 2
}

@test "the spellings of kill(1)" {
    quiet_t4
    local words
    for words in -9 -KILL -SIGKILL "-s 9" "-s KILL" -sKILL --signal=9 "-s kill" -TERM -15 -2; do
        job
        # shellcheck disable=SC2086 # two words
        gpulse kill $words "$job" --yes
        status_is 0
        until_true is_gone "$job"
    done
    gpulse kill --force 4711
    fails 2 "unknown option '--force'; to send SIGKILL at once: -9 or -s kill"
    gpulse kill -HUP 4711
    fails 2 '-HUP: gpulse kill sends only INT, TERM and KILL; kill\(1\) sends others, .*'
    gpulse kill -1 4711
    fails 2 '-1: gpulse kill sends only INT, TERM and KILL; .*'
}

@test "a user without processes on the GPUs: those who have some" {
    local command
    for command in kill suspend; do
        gpulse --sim h100x8 "$command" -u nosuch --yes
        status_is 3
        complains '^gpulse: no process of nosuch on the GPUs; those there belong to mia, jon, ana$'
    done
}
