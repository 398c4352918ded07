# gpulse ps --explain, ps --holders, gpulse reclaim: memory that no listed process accounts for. Real
# processes with files open that stand for the devices of a simulated GPU.
# variants: asan

load helpers

# A T4 on which nothing runs, whose device file is root/dev/nvidia0.
setup_machine() {
    quiet_t4
    mkdir -p root/dev root/etc
    ln -s /proc root/proc
    : >root/dev/nvidia0
    cp /etc/passwd root/etc/passwd
    export GPULSE_ROOT=$PWD/root
}

children() {
    pgrep -P "$1"
}

# A job that was killed, with two children that keep its memory; their pids are $left.
orphans() {
    setup_machine
    job --mem 5GiB --workers 2
    until_true eval '[ "$(children "$job" | wc -l)" -eq 2 ]'
    mapfile -t left < <(children "$job")
    STARTED+=("${left[@]}")
    kill -KILL "$job"
    until_true eval '"$GPULSE" query memory.unattributed --no-header -f csv | grep -q 5368709120'
}

@test "all of it is accounted for" {
    setup_machine
    gpulse ps --explain
    status_is 0
    says '^GPU 0: Tesla T4$'
    says '^  15360 MiB = 0 MiB used \+ 448 MiB reserved by the driver \+ 14912 MiB free$'
    says '^  All memory is accounted for\.$'
    job --mem 5GiB
    gpulse ps --explain
    says '^  5120 MiB held by 1 listed process, 0 MiB unattributed$'
    gpulse reclaim
    status_is 0
    says '^Nothing to reclaim'
}

@test "leftovers of a killed job" {
    orphans
    gpulse ps --explain
    status_is 0
    says '^  0 MiB held by 0 listed processes, 5120 MiB unattributed$'
    says "^    ${left[0]} $(id -un) python load .*: has the GPU open; its parent has exited$"
    says '^  Left over from a job that has exited\. To free it: gpulse reclaim -i 0$'
    gpulse ps --explain -f json
    json_is 'd["schema"]' gpulse.memory/1
    json_is 'd["gpus"][0]["verdict"]' leftovers
    json_is 'd["gpus"][0]["unattributed"]' 5368709120
    json_is '[s["kind"] for s in d["gpus"][0]["suspects"]]' "['leftover', 'leftover']"
    gpulse ps --holders --columns pid,gpu -f csv --no-header --sort pid
    [ "$output" = "${left[0]},0"$'\n'"${left[1]},0" ]
}

@test "its memory is freed" {
    orphans
    gpulse reclaim --dry-run
    status_is 0
    says "^ *${left[0]} "
    complains 'nothing was terminated'
    gpulse reclaim </dev/null
    status_is 2
    gpulse reclaim --yes --wait-free 14GiB
    status_is 0
    says "^${left[0]} terminated after [0-9.]+ s, by SIGINT$"
    says "^${left[1]} terminated after [0-9.]+ s, by SIGINT$"
    says '^GPU 0: 5120 MiB in use before, 0 MiB now$'
    gpulse ps --explain
    says 'All memory is accounted for'
}

@test "who only has it open is no leftover" {
    setup_machine
    sleep 600 <root/dev/nvidia0 >/dev/null 2>&1 3>&- &
    STARTED+=("$!")
    gpulse ps --holders --columns pid,gpu,command -f csv --no-header
    [ "$output" = "$!,0,sleep 600" ]
    gpulse reclaim
    status_is 0
    kill -0 "$!"
}

@test "free memory is waited for" {
    setup_machine
    job --mem 5GiB --for 1s
    gpulse reclaim --wait-free 14GiB --wait 10m
    status_is 0
    gpulse reclaim --wait-free 20GiB --wait 100ms
    status_is 1
    complains 'not every selected GPU has 20480 MiB free after 0 s'
}

@test "what cannot be done is said" {
    setup_machine
    gpulse ps --explain --by user
    status_is 2
    gpulse ps --explain --holders
    status_is 2
    gpulse ps --explain -f csv
    fails 2 '--explain supports only --format table and json'
    gpulse reclaim 17
    status_is 2
    complains 'GPUs are selected with -i'
    rm root/proc
    mkdir root/proc
    gpulse ps --explain
    status_is 0
}

# a machine with a host of its own: its files are not those of this computer
@test "leftovers on a machine with simulated processes" {
    export GPULSE_SIM=h100x8
    job --mem 5GiB --gpu 6 --workers 2
    until_true eval '[ "$(children "$job" | wc -l)" -eq 2 ]'
    mapfile -t left < <(children "$job")
    STARTED+=("${left[@]}")
    gpulse ps --holders --columns pid,gpu -f csv --no-header --sort pid
    [ "$output" = "${left[0]},6"$'\n'"${left[1]},6" ] || explain 'the workers have the GPU open'
    kill -KILL "$job"
    until_true eval '"$GPULSE" query memory.unattributed -i 6 --no-header -f csv | grep -q 5368709120'
    gpulse ps --explain -i 6
    says "^    ${left[0]} $(id -un) python load .*: has the GPU open; its parent has exited$"
    says '^  Left over from a job that has exited\. To free it: gpulse reclaim -i 6$'
    gpulse --sim-still reclaim --dry-run
    says "^ *${left[1]} "
    gpulse reclaim --yes -i 6
    status_is 0
    says "^${left[1]} terminated after [0-9.]+ s, by SIGINT$"
    says '^GPU 6: 5120 MiB in use before, 0 MiB now$'
}
