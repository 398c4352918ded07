# gpulse pick, gpulse run, gpulse queue: GPUs that are chosen, kept, and given back. Real processes
# on simulated GPUs.
# variants: asan

load helpers

@test "a free GPU" {
    idle_gpus
    gpulse pick
    status_is 0
    [ "$output" = 3 ]
    gpulse pick -n 2 --order index
    [ "$output" = 0,1 ]
    gpulse pick --avoid 3 --prefer 1
    [ "$output" = 1 ]
    gpulse pick -i 0,2
    [ "$output" = 2 ]
    gpulse pick -f export
    [ "$output" = "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=3" ]
    gpulse pick --uuid
    says '^GPU-'
    gpulse pick -n 3 --at-most 9
    [ "$output" = 0,1,2,3 ]
    CUDA_VISIBLE_DEVICES=2,1 gpulse pick
    [ "$output" = 2 ]
    CUDA_VISIBLE_DEVICES=2,1 gpulse pick -i 0
    status_is 78
    CUDA_VISIBLE_DEVICES='' gpulse pick
    status_is 78
    CUDA_VISIBLE_DEVICES=1 gpulse pick --ignore-mask
    [ "$output" = 3 ]
}

@test "GPUs as docker names them" {
    idle_gpus
    gpulse pick --gpus 2
    [ "$output" = 2,3 ]
    gpulse pick -g 2 --order default
    [ "$output" = 3,2 ]
    gpulse pick --gpus all
    [ "$output" = 0,1,2,3 ]
    gpulse pick --gpus all --order default --avoid 1
    [ "$output" = 3,2,0 ]
    gpulse pick -i 1-2 --gpus all
    [ "$output" = 1,2 ]
    local ids
    for ids in 0,2 GPU-00000000,GPU-00000002 2,0; do
        gpulse pick --gpu-ids "$ids"
        [ "$output" = 0,2 ]
    done
    for ids in device=0,2 '"device=0,2"'; do
        gpulse pick --gpus "$ids"
        [ "$output" = 0,2 ]
    done
    gpulse pick --gpus device=1
    [ "$output" = 1 ]
    gpulse pick --gpu-ids 1-3
    [ "$output" = 1,2,3 ]
    CUDA_VISIBLE_DEVICES=2,1 gpulse pick --gpus all
    [ "$output" = 1,2 ]
    CUDA_VISIBLE_DEVICES=2,1 gpulse pick --gpu-ids 0,1
    fails 78 '2 GPUs requested, but only 1 of 4 can ever be used; GPU 0: hidden by CUDA_VISIBLE_DEVICES .*'
    CUDA_VISIBLE_DEVICES='' gpulse pick --gpus all
    status_is 78
    gpulse run -q --gpu-ids 0,3 -- printenv CUDA_VISIBLE_DEVICES
    [ "$output" = 0,3 ]
    job --gpu 3 --mem 5GiB
    gpulse pick --gpus all
    fails 69 '3 of the 4 requested GPUs are free; GPU 3: pid .*'
    gpulse run --gpu-ids 2,3 --wait=100ms -- true
    status_is 75
}

@test "invalid names of GPUs" {
    idle_gpus
    gpulse pick --gpus 0
    fails 2 '--gpus 0: expected 1 to 64; to choose a GPU by index use --gpu-ids 0'
    gpulse pick --gpus 5
    status_is 78
    gpulse pick --gpu-ids 0,9
    fails 3 "no GPU matches '9'; this machine has 4 \(0 to 3\)"
    gpulse pick --gpu-ids GPU-x
    status_is 3
    gpulse pick --gpu-ids 0,
    status_is 2
    gpulse pick --gpus 2 -n 2
    fails 2 '--gpus and --count cannot be combined'
    gpulse pick --gpus 0,1
    fails 2 '--gpus takes a number of GPUs; to choose GPUs use --gpu-ids 0,1'
    gpulse pick --gpus 2 --gpu-ids 0,1
    fails 2 '--gpus and --gpu-ids cannot be combined'
    gpulse pick -n 2 --gpu-ids 0,1
    fails 2 '--gpu-ids and --count cannot be combined'
    gpulse pick --gpu-ids 0,1 -i 2
    fails 2 '--gpu-ids names GPUs, and so does --id; use only one of them'
    gpulse pick --gpus device=0,1 -i 2
    fails 2 '--gpus names GPUs, and so does --id; use only one of them'
    gpulse pick --gpus all --at-most 3
    fails 2 '--at-most needs --gpus with a number of GPUs'
    gpulse run --gpus all --pipeline steps.ini
    status_is 2
    GPULSE_SIM=a100-mig gpulse pick --gpus all
    fails 78 '.*a program can use only one MIG instance'
}

@test "the users of a GPU, and its free memory" {
    idle_gpus
    job --gpu 3 --mem 60GiB
    gpulse pick
    [ "$output" = 2 ]
    gpulse pick -n 4
    fails 69 "3 of the 4 requested GPUs are free; GPU 3: pid $job \($(id -un)\), 60\.0 GiB: .*"
    gpulse pick -n 4 --share --mem 10GiB
    status_is 0
    gpulse pick -n 4 --share --mem 30GiB
    fails 69 '3 of the 4 requested GPUs are free; GPU 3: .* GiB free, 30\.0 GiB requested; use --wait to wait for free GPUs'
    gpulse pick -n 5
    fails 78 '5 GPUs requested, but this machine has 4'
    gpulse pick --mem 100GiB
    fails 78 '.* GPUs 0-3: 79\.6 GiB per GPU, 100\.0 GiB requested'
    gpulse pick --explain
    line_count 4
    says '^GPU 2: selected \(79\.2 GiB\)$'
    gpulse pick -f json -n 4
    status_is 69
    json_is '[g["state"] for g in d["gpus"]]' "['free', 'free', 'free', 'busy']"
    gpulse pick --share
    fails 2 '--share needs --mem, .*'
}

@test "GPUs with errors" {
    idle_gpus
    fault "$GPULSE_SIM" --gpu 3 lost
    gpulse pick --timeout 2m
    [ "$output" = 2 ]
    fault "$GPULSE_SIM" --gpu 2 set:ComputeMode=3 2>/dev/null || skip "this fault is not played"
    gpulse pick --timeout 2m --explain
    says '^GPU 3: busy: it does not respond'
}

@test "MIG instances" {
    unset CUDA_VISIBLE_DEVICES
    export GPULSE_SIM=a100-mig
    gpulse pick
    says '^MIG-'
    gpulse pick -n 2
    status_is 78
    complains 'a program can use only one MIG instance'
}

@test "several that are near each other" {
    unset CUDA_VISIBLE_DEVICES
    machine rtx4090 'm["workload"] = []'
    GPULSE_SIM=h100x8 gpulse pick -n 2 --nvlink
    status_is 0
    GPULSE_SIM=rtx4090x2 gpulse pick -n 2 --nvlink
    [ "$status" -ne 0 ]
}

@test "several only on one NUMA node" {
    unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
    # GPUs 0 and 1 are on one node, 2 and 3 on another
    machine rtx4090 '
import copy
m["workload"] = []
m["devices"] = [copy.deepcopy(d) for _ in range(4)]
for n, device in enumerate(m["devices"]):
    device["uuid"] = d["uuid"][:-1] + str(n)
    device["pci"]["bus_id"] = "00000000:%02x:00.0" % (n + 1)
    device["answers"].pop("Serial", None)
m["topology"].update(levels=["NODE", "SYS", "SYS"], cpus=["0-15", "16-31"], nodes=["0", "1"])'
    export GPULSE_SIM=$PWD/m.json GPULSE_SIM_STILL=1
    gpulse pick -n 2 --same-node
    status_is 0
    [ "$output" = 2,3 ]
    gpulse pick -n 2 --same-node --avoid 2
    status_is 0
    [ "$output" = 0,1 ]
    gpulse pick -n 3
    status_is 0
    gpulse pick -n 3 --same-node
    fails 78 'no 3 free GPUs are on one NUMA node'
    job --gpu 0
    job --gpu 2
    gpulse pick -n 2
    [ "$output" = 1,3 ]
    gpulse pick -n 2 --same-node
    fails 69 'no 2 free GPUs are on one NUMA node; use --wait to wait for free GPUs'
    gpulse run -n 2 --same-node -- true
    status_is 69
}

@test "a command with its GPU, its output and its status" {
    idle_gpus
    gpulse run -- bash -c 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"; exit 7'
    status_is 7
    [ "$output" = "3 PCI_BUS_ID" ]
    complains '^gpulse: on GPU 3$'
    complains '^gpulse: exited after .* s with status 7; GPU 3: no use seen$'
    gpulse run -q -n 2 -- printenv CUDA_VISIBLE_DEVICES
    [ "$output" = 2,3 ]
    is_quiet
    CUDA_VISIBLE_DEVICES=99 gpulse run -q --ignore-mask -- printenv CUDA_VISIBLE_DEVICES
    [ "$output" = 3 ]
    gpulse run -q -- bash -c 'kill -KILL $$'
    status_is 137
    run -127 --separate-stderr "$GPULSE" run -q -- no-such-program
    fails 127 "cannot run 'no-such-program': No such file or directory"
    gpulse run -q -- /etc/passwd
    status_is 126
    gpulse run --mem 20k -- true
    fails 2 '--mem must be at least 1 MiB; sizes are written as in 20GiB, without a unit they are MiB'
    gpulse run -n 0 -- true
    fails 2 '--count must be at least 1'
    gpulse run
    fails 2 'missing command; .*'
    [ -z "$(find notes -type f)" ]
}

@test "a reserved GPU is not given to others, even before memory is allocated" {
    idle_gpus
    in_background -i 3 --name training -- bash -c 'echo $$ >pid; exec sleep 1000'
    until_true test -s pid
    gpulse pick
    [ "$output" = 2 ]
    gpulse pick -i 3
    fails 69 "no requested GPU is free; GPU 3: reserved by training \($(id -un)\); use --wait to wait for free GPUs"
    gpulse pick -i 3 -f json
    json_is '[g["reservation"]["pid"] for g in d["gpus"] if g["reservation"]]' "[$running]"
    json_is '[g["reservation"]["file"].split("/")[-2] for g in d["gpus"] if g["reservation"]]' "['gpulse-$(id -u)']"
    gpulse run -i 3 -- true
    status_is 69
    gpulse run -i 3 --wait=300ms -- true
    status_is 75
    complains '^gpulse: waiting: .*reserved by training'
    gpulse queue
    says "^running +- +$(id -un) +$running +3 +[0-9]+s  training$"
    gpulse queue -f json
    json_is '[(l["state"], l["gpus"]) for l in d["leases"]]' "[('held', '3')]"
    kill -KILL "$running" # however it ends, its promise does
    until_true eval '[ "$("$GPULSE" pick)" = 3 ]'
    gpulse queue
    [ -z "$output" ]
    until_true is_gone "$(cat pid)" # and its command with it
}

@test "a dry run prints the plan, and does nothing" {
    idle_gpus
    gpulse run --dry-run -g 2 -- touch 'it is' $'there\e'
    status_is 0
    [ "$output" = 'CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2,3 touch '\''it is'\'' $'\''there\x1b'\' ] || explain
    [ ! -e there ]
    eval "$output" # it is a command that a shell runs
    [ -e 'it is' ] && [ -e $'there\e' ]
    gpulse queue
    [ -z "$output" ]
    complains '^gpulse: no reservations; start a job with gpulse run -- COMMAND$'
    in_background -i 3 -- sleep 1000
    gpulse run --dry-run -i 3 -- true
    status_is 69
    complains 'GPU 3: reserved by'
    gpulse run --dry-run -i 3 --wait -- true
    status_is 0
    says '^must wait: .*reserved by'
    gpulse run --dry-run -q -i 3 -- true
    status_is 0
    [ -z "$output" ]
}

@test "who waits is woken, in the order of asking" {
    idle_gpus
    in_background -i 3 -- sleep 1000
    local first=$running n
    for n in 1 2 3; do
        setsid "$GPULSE" run -q -i 3 --wait -- bash -c "echo $n >>order; sleep 0.2" 2>/dev/null 3>&- &
        STARTED+=("$!")
        until_true eval '[ "$("$GPULSE" queue | grep -c "^waiting")" -eq '"$n"' ]'
    done
    # GPU 2 was free all the time: nobody who needs it is held up
    gpulse run -q -i 2 -- true
    status_is 0
    # a later one that would do with any GPU takes none that an earlier one waits for
    gpulse run -q -- printenv CUDA_VISIBLE_DEVICES
    [ "$output" = 2 ]
    kill -TERM "$first"
    until_true eval '[ "$(wc -l <order 2>/dev/null)" = 3 ]'
    [ "$(tr '\n' ' ' <order)" = "1 2 3 " ]
}

@test "a job with a time limit goes into the gap that a larger one cannot use yet" {
    idle_gpus
    in_background -i 3 -- sleep 1000
    setsid "$GPULSE" run -q -g 2 -i 2,3 --wait -- true 2>/dev/null 3>&- &
    STARTED+=("$!")
    until_true eval '[ "$("$GPULSE" queue | grep -c "^waiting  *1 ")" -eq 1 ]'
    gpulse queue
    says "^waiting +1 +$(id -un) +[0-9]+ +2,3 "
    gpulse queue -f json
    json_is '[(l["state"], l["position"], l["wanted"]) for l in d["leases"]]' "[('held', None, 1), ('waiting', 1, 2)]"
    gpulse run -q -i 2 -- true # it may take days
    status_is 69
    complains 'has waited for it longer'
    gpulse run -q -i 2 --timeout 2h -- true
    status_is 69
    gpulse run -q -i 2 --timeout 10m --retries 1 -- true # ten minutes more
    status_is 69
    gpulse run -q -i 2 --timeout 10m -- printenv CUDA_VISIBLE_DEVICES
    status_is 0
    [ "$output" = 2 ]
}

@test "several jobs on one GPU, as long as their reservations fit" {
    idle_gpus
    in_background -i 3 --share --mem 30GiB -- "$GPULSE" sim load --mem 10GiB
    gpulse pick -i 3 --share --mem 49GiB # of 79: 30 are promised, whether or not they are in use
    status_is 0
    gpulse pick -i 3 --share --mem 50GiB
    status_is 69
    gpulse pick -i 3
    status_is 69
    kill -TERM "$running"
    until_true eval '"$GPULSE" pick -i 3 --share --mem 70GiB'
}

# leaves_behind FILE: what is run, and leaves a job of its own, of which FILE tells
leaves_behind() {
    echo "setsid $GPULSE sim load --mem 5GiB >$1 2>&1 3>&- & until grep -q holds $1; do sleep 0.05; done"
}

@test "leftover processes are terminated, and their memory is waited for" {
    idle_gpus
    gpulse run -i 3 -- bash -c "$(leaves_behind first)"
    status_is 0
    complains '^gpulse: terminated 1 leftover process$'
    is_gone "$(awk '{ print $2 }' first)"
    gpulse query memory.used -i 3 -f csv --no-header
    [ "$output" -lt 1073741824 ]
    gpulse run -q --no-clean-after -i 3 -- bash -c "$(leaves_behind second)"
    status_is 0
    job=$(awk '{ print $2 }' second)
    STARTED+=("$job")
    runs_on "$job"
}

@test "a job on a GPU that it was not given" {
    idle_gpus
    in_background -i 2 -- env CUDA_VISIBLE_DEVICES=0 "$GPULSE" sim load --mem 5GiB
    until_true grep -q 'of this job uses' run.err
    end_load
    status_is 0
    complains '^gpulse: process [0-9]+ of this job uses GPU 0 \(5120 MiB\), but the job has reserved GPU 2: it was started with CUDA_VISIBLE_DEVICES=0 instead of 2'
    complains '; GPU 2: no use seen; GPU 0: peak 5120 MiB'
    in_background -i 2 -- env -u CUDA_VISIBLE_DEVICES "$GPULSE" sim load --mem 5GiB
    until_true grep -q 'of this job uses' run.err
    end_load
    complains ': CUDA_VISIBLE_DEVICES was removed from its environment; '
    rm -r home
    gpulse run -i 2 -- bash -c "$(sampled 5368709120 --mem 5GiB)"
    complains '; GPU 2: peak 5120 MiB \(sampled\), [0-9]+ % busy, [0-9.]+ kJ$'
    gpulse run --strict -i 2 -- env CUDA_VISIBLE_DEVICES=0 "$GPULSE" sim load --mem 5GiB
    status_is 1
}

@test "a GPU on which a job is that was not given it is not free" {
    idle_gpus
    in_background -i 2 -- env CUDA_VISIBLE_DEVICES=3 "$GPULSE" sim load --mem 5GiB
    until_true grep -q holds run.out
    gpulse pick -i 3
    status_is 69
    complains 'GPU .*: pid '
}

@test "a lease whose file was removed is written again" {
    idle_gpus
    in_background -i 3 -- sleep 1000
    rm notes/*/*
    until_true eval '[ "$("$GPULSE" pick)" = 2 ]'
    gpulse run -q -i 3 -- true
    status_is 69
}

@test "jobs that start jobs end with them" {
    idle_gpus
    in_background -i 3 -- "$GPULSE" run --ignore-mask -i 2 -- bash -c 'echo $$ >pid; exec sleep 1000'
    until_true test -s pid
    kill -KILL "$running"
    until_true is_gone "$(cat pid)"
    until_true eval '[ -z "$("$GPULSE" queue)" ]'
}

# escape NAME: a script whose children leave it in every way; each has NAME in its arguments
escape() {
    local sleeper="bash -c 'exec -a $1 sleep 1000'"
    cat <<EOF
env -i $sleeper &
setsid $sleeper &
(env -i setsid nohup $sleeper >/dev/null 2>&1 &)
until [ "\$(pgrep -cf '^$1 ')" = 3 ]; do sleep 0.05; done
echo >ready
exec sleep 1000
EOF
}

@test "a hangup that is ignored, as by nohup, ends neither the job nor its retries" {
    idle_gpus
    env --ignore-signal=HUP "$GPULSE" run -q --retries 1 --on failure -- \
        bash -c 'test -e again && exit 0; touch again; until [ -e go ]; do sleep 0.05; done; exit 1' >out 2>err 3>&- &
    running=$!
    STARTED+=("$running")
    until_true test -e again
    kill -HUP "$running"
    touch go
    wait "$running"
}

@test "no child escapes when gpulse is killed" {
    idle_gpus
    local name=escaped-$$-$BATS_TEST_NUMBER
    in_background -- bash -c "$(escape "$name")"
    until_true test -e ready
    kill -KILL "$running"
    until_true eval "! pgrep -f '^$name '"
}

@test "a guard that is killed takes its job with it, and is named" {
    idle_gpus
    local name=escaped-$$-$BATS_TEST_NUMBER guard
    in_background --retries 2 --on failure -- bash -c "$(escape "$name")"
    until_true test -e ready
    guard=$(pgrep -P "$running" -x job-guard)
    [ "$(tr '\0' ' ' <"/proc/$guard/cmdline")" = "job-guard " ]
    kill -KILL "$guard"
    status=0
    wait "$running" || status=$?
    status_is 137
    stderr=$(cat run.err)
    complains "^gpulse: the job's guard \(process $guard\) was killed, and the job with it$"
    ! pgrep -f "^$name " || false
    [ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["ended_by"])' <home/gpulse/runs/*/run.json)" = guard ]
}

@test "children that were there before are not the job's" {
    idle_gpus
    bash -c "sleep 1000 & echo \$! >pid; exec $GPULSE run -q -- true"
    STARTED+=("$(cat pid)")
    runs_on "$(cat pid)"
}

@test "signals are handed on" {
    idle_gpus
    in_background -- bash -c 'trap "echo got it >heard; exit 9" TERM; echo >ready; while :; do sleep 0.05; done'
    until_true test -e ready
    kill -TERM "$running"
    status=0
    wait "$running" || status=$?
    status_is 9
    [ "$(cat heard)" = "got it" ]
}

@test "a GPU that hangs does not keep others from jobs on several GPUs" {
    fault h100x8 --gpu 3 hang=30s
    gpulse --sim h100x8 run -g 2 --nvlink -- true
    status_is 0
    grep -q '^gpulse: on GPUs 6 and 7 (CUDA_VISIBLE_DEVICES=GPU-0*6-.*,GPU-0*7-.*)$' <<<"$stderr" || explain "$stderr"
    gpulse --sim h100x8 pick -g 2
    status_is 0
    says '^GPU-00000006-.*,GPU-00000007-'
    grep -q 'UUIDs instead of indices, because GPU 3 does not respond' <<<"$stderr" || explain "$stderr"
    gpulse --sim h100x8 pick -g 3
    status_is 69
    grep -q '2 of the 3 requested GPUs are free; GPUs 0-2: reserved by llama-8b' <<<"$stderr" || explain "$stderr"
}

@test "next to a lost GPU, messages name the GPU, and its number for CUDA" {
    gpulse --sim sick run -g 2 -- true
    status_is 0
    grep -q '^gpulse: on GPUs 4 and 7 (CUDA_VISIBLE_DEVICES=3,6)$' <<<"$stderr" || explain "$stderr"
    gpulse --sim sick pick
    status_is 0
    [ "$output" = 6 ]
    grep -q '^gpulse: GPU 7 (CUDA_VISIBLE_DEVICES=6): CUDA does not count' <<<"$stderr" || explain "$stderr"
    gpulse --sim h100x8 pick -g 2 --wait
    status_is 0
    [ "$output $stderr" = "6,7 " ]
}
