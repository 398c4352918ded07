# Whose job is this? Real processes in namespaces and control groups of their own.
# variants: release

load helpers

# job_by COMMAND…: a job that COMMAND starts
job_by() {
    job_of "$@" "$GPULSE" sim load --mem 1GiB
}

# in_group PATH COMMAND…: runs it in this control group of systemd's hierarchy
in_group() {
    mkdir -p "$1"
    echo "$BASHPID" >"$1/cgroup.procs"
    shift
    exec "$@"
}

# groups: where the control groups are, or the test is skipped
groups() {
    local base
    for base in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
        if [ -e "$base/cgroup.procs" ] && mkdir "$base/gpulse-test-$$" 2>/dev/null; then
            rmdir "$base/gpulse-test-$$"
            group=$base
            return
        fi
    done
    skip "control groups are not writable here"
}

# leave FOLDER…: removes control groups as soon as they are empty
leave() {
    local folder
    kill -KILL "$job" 2>/dev/null || true
    for folder in "$@"; do
        until_true eval "rmdir '$folder' 2>/dev/null || [ ! -e '$folder' ] || compgen -G '$folder/*/' >/dev/null"
    done
}

@test "the listing shows the started command" {
    quiet_t4
    local pids=() i
    for i in 1 2 3; do
        job_by env
        pids+=("$job")
    done
    gpulse ps --columns pid,memory -f csv --no-header --sort pid
    [ "$output" = "$(printf '%s,1073741824\n' "${pids[@]}" | sort -n)" ]
}

@test "one in a pid namespace of its own" {
    unshare -pf true 2>/dev/null || skip "pid namespaces cannot be made here"
    quiet_t4
    job_by unshare -pf --kill-child
    [ "$(awk '/^NSpid:/ { print NF }' "/proc/$job/status")" -eq 3 ]
    gpulse ps --columns pid,user,command -f csv --no-header
    says "^$job,$(id -un),python load --mem 1GiB$"
    # by the pid that it has inside, and back
    gpulse ps --columns pid,ns_pid -f csv --no-header
    says "^$job,1$"
    gpulse ps --ns-pid 1 --columns pid -f csv --no-header
    [ "$output" = "$job" ]
    gpulse ps --ns-pid 2 --no-header
    [ -z "$output" ]
    gpulse kill --ns-pid 1 --yes
    status_is 0
    says "^$job terminated .* freed 1024 MiB$"
}

@test "gpulse in a pid namespace of its own" {
    unshare -pf --mount-proc true 2>/dev/null || skip "pid namespaces cannot be made here"
    quiet_t4
    machine t4 'm["workload"] = [{"name": "x", "pid": 4190001, "gpus": [0], "util": 1, "memory_bytes": 1 << 30}]'
    run --separate-stderr unshare -pf --mount-proc "$GPULSE" ps --columns pid,user,memory
    status_is 0
    says '^4190001 +- +1\.0G$'
    complains '^gpulse: 1 of them cannot be seen from this container.s pid namespace; gpulse ps --holders'
    gpulse ps
    unseen_are 1
}

@test "its session and where it works" {
    quiet_t4
    mkdir here
    cd here
    job
    gpulse ps --columns pid,session,cwd,command -f csv --no-header
    says "^$job,$(awk '{ print $6 }' "/proc/$job/stat"),$PWD,python load$"
}

@test "one whose parent takes no notice of its end" {
    quiet_t4
    # the parent of the job is this shell's child, which only sleeps
    bash -c '"$0" sim load --mem 1GiB >job.out 2>&1 & exec sleep 600' "$GPULSE" 3>&- &
    STARTED+=("$!")
    until_true grep -q 'holds' job.out
    job=$(awk '{ print $2 }' job.out)
    kill -KILL "$job" 2>/dev/null || true
    until_true grep -q '^State:.*Z' "/proc/$job/status"
    gpulse ps --columns pid,state -f csv --no-header
    [ "$output" = "$job,Z" ]
    gpulse kill "$job" --yes --wait 200ms
    says "^$job terminated after [0-9.]+ s, by SIGINT" # at once: the next one comes 10 s later
}

@test "one in a service" {
    local group
    groups
    quiet_t4
    job_by bash -c "$(declare -f in_group); in_group \"\$@\"" in_group "$group/system.slice/gpulse-test-$$.service"
    gpulse ps --columns pid,container -f csv --no-header
    [ "$output" = "$job,unit:gpulse-test-$$.service" ] || explain "it is elsewhere"
    gpulse ps --by unit -f csv --no-header
    says "^unit:gpulse-test-$$\.service,1,1073741824,"
    leave "$group/system.slice/gpulse-test-$$.service" "$group/system.slice"
}

@test "one of Slurm" {
    local group
    groups
    quiet_t4
    local top=$group/system.slice/gpulse-test-$$_slurmstepd.scope
    job_by bash -c "$(declare -f in_group); in_group \"\$@\"" in_group "$top/job_4711/step_0/user/task_0"
    gpulse ps --job 4711 --columns pid,container -f csv --no-header
    [ "$output" = "$job,slurm:4711.0" ] || explain "it is elsewhere"
    gpulse kill --job 4711 --yes
    status_is 0
    leave "$top/job_4711/step_0/user/task_0" "$top/job_4711/step_0/user" "$top/job_4711/step_0" \
        "$top/job_4711" "$top" "$group/system.slice"
}

@test "whose memory grows" {
    quiet_t4
    job_by env
    local level=$job
    setsid "$GPULSE" sim load --mem 1GiB --grow 100MiB >grow.out 2>&1 3>&- &
    STARTED+=("$!")
    until_true grep -q holds grow.out
    job=$(awk '{ print $2 }' grow.out)
    STARTED+=("$job")
    gpulse ps --watch 0.1 --leaks -c 130 -f csv
    status_is 0
    [ "${lines[0]}" = "pid,gpu,memory,growth,rises,full_in" ]
    # about 100 MiB/s; 14 GiB last for some two minutes
    tail -n 2 <<<"$output" | grep -Eq "^$job,0,[0-9]+,[0-9]{8,9},yes,[0-9]{2,3}$" || explain "not seen"
    tail -n 2 <<<"$output" | grep -Eq "^$level,0,1073741824,0,no,$" || explain "not level"
    gpulse ps --leaks
    status_is 2
    complains 'leaks needs --interval'
}
