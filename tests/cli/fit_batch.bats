# gpulse fit-batch: the largest batch size, by real processes on simulated GPUs.
# variants: asan tsan

load helpers

# A program whose memory is 400 MiB and 100 MiB for each sample of a batch.
trainer() {
    idle_gpus
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    cat >train.sh <<END
#!/bin/sh
echo "batch \$1"
exec "$GPULSE" sim load --mem \$((400 + 100 * \$1))MiB
END
    chmod +x train.sh
}

@test "the largest that fits, with a margin" {
    trainer
    gpulse fit-batch --steady 300ms -- ./train.sh {}
    status_is 0
    # 79.18 GiB are free, 5 % of 79.65 stay so: (75.20 GiB - 400 MiB) / 100 MiB
    says '^batch 766: larger sizes do not fit, or leave less than the margin$'
    says '^  uses 75.20 GiB, and leaves 3.98 GiB free$'
    says '^  fixed: 0.39 GiB .*; per sample: 100.0 MiB$'
    says '^  \(estimated from [0-9]+ trials\)$'
    says_not 'R2'
    says '^  batch 1532   would need 150.00 GiB: 74.80 GiB more than fits with the margin$'
    complains '^gpulse: trial with batch 256: ok, 25.39 GiB'
    grep -qx "batch 256" home/gpulse/runs/*/trial-*-batch-256.log
    nothing_is_left
    # a second time all is known
    gpulse fit-batch -q --steady 300ms -- ./train.sh {}
    [ "$output" = 766 ]
    [ -z "$stderr" ]
    gpulse fit-batch --steady 300ms -- ./train.sh {}
    complains '^gpulse: reusing 8 earlier trials '
    echo "# changed" >>train.sh
    gpulse fit-batch --max 4 --steady 300ms -- ./train.sh {}
    complains '^gpulse: trial with batch 1: ok'
    # another long run is not known, the trials are
    gpulse fit-batch --max 4 --steady 300ms --confirm 400ms -- ./train.sh {}
    complains '^gpulse: reusing 2 earlier trials '
    complains '^gpulse: long run with batch 4: ok'
}

@test "sizes that do not fit, multiples, a variable, a long run" {
    trainer
    gpulse fit-batch --start 1600 --multiple 8 --confirm 300ms --steady 300ms --env B={} -f json -- sh -c './train.sh $B'
    status_is 0
    json_is 'd["schema"], d["batch"], d["trials"][0]["verdict"], d["trials"][-1]["long"]' "('gpulse.fit/1', 760, 'oom', True)"
    nothing_is_left
}

@test "real memory" {
    [[ $GPULSE_BUILD != *tsan* ]] || skip "the thread sanitizer needs several times as much"
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:1]; d["answers"]["MemoryInfo"] = {"total": 2 << 30, "reserved": 0, "used": 0, "free": 2 << 30}'
    export GPULSE_SIM=$PWD/m.json GPULSE_SIM_STILL=1 XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
    gpulse fit-batch --steady 300ms -- sh -c "exec '$GPULSE' sim load --touch --mem \$((320 + 32 * {}))MiB"
    status_is 0
    # 2048 MiB, of which 512 stay free: (1536 - 320) / 32
    says '^batch 38: '
    # the largest trial had it as main memory too
    awk -F, '$9 + 0 > most { most = $9 + 0 } END { exit !(most > 1536 * 1048576) }' home/gpulse/runs/*/samples.csv
}

@test "a trial is over when it says so" {
    trainer
    gpulse fit-batch -q --max 2 --confirm no --until '^pid [0-9]+ holds ' -- ./train.sh {} # else it would be 20 s
    [ "$output" = 2 ]
    gpulse fit-batch --until '(' -- ./train.sh {}
    fails 2 "--until '\\(': .*"
}

@test "nothing fits" {
    trainer
    gpulse fit-batch --min 1000 --steady 300ms -- ./train.sh {}
    status_is 1
    complains '^gpulse: even the smallest size does not fit$'
    nothing_is_left
}

@test "a batch size that is not used" {
    trainer
    gpulse fit-batch --max 4 --steady 300ms -- "$GPULSE" sim load --mem 1GiB --name x{}
    status_is 0
    says '^  memory does not depend on the batch size: does the program use it\?$'
}

@test "commands that are no trial" {
    trainer
    gpulse fit-batch -- sh -c 'echo "no such file: {}"; exit 3'
    status_is 1
    complains '^no such file: 1$'
    complains '^gpulse: the trial with batch 1 failed with status 3, but not for lack of GPU memory; no size has fitted yet; see .*trial-1-batch-1.log$'
    gpulse fit-batch -- echo {}
    status_is 1
    complains '^gpulse: the trial with batch 1 used no GPU; '
    gpulse fit-batch -- sh -c 'echo "DefaultCPUAllocator: not enough memory: you tried to allocate {} bytes"; exit 1'
    complains 'the host has too little memory \(RAM\)'
    gpulse fit-batch -- ./nothing {}
    complains "^gpulse: cannot run './nothing'"
    status_is 1
    gpulse fit-batch
    fails 2 'missing command; usage: .*'
    gpulse fit-batch -- ./train.sh
    fails 2 'no place for the batch size: .*'
    gpulse fit-batch --env B -- ./train.sh
    fails 2 "--env takes NAME=\\{\\}, not 'B'"
    gpulse fit-batch --share --mem 1GiB -- ./train.sh {}
    fails 2 '--share cannot be combined with fit-batch: .*'
    gpulse fit-batch --confirm soon -- ./train.sh {}
    fails 2 "--confirm takes a time, 'full' or 'no', not 'soon'"
}

@test "contradictions are found before a GPU is reserved" {
    trainer
    export GPULSE_SIM=none/at/all.json
    gpulse fit-batch --min 10 --max 5 -- ./train.sh {}
    fails 2 'the largest batch size \(5\) is below the smallest \(10\)'
    gpulse fit-batch --min 10 --start 5 -- ./train.sh {}
    fails 2 'the first batch size \(5\) is below the smallest \(10\)'
    gpulse fit-batch --start 10 --max 5 -- ./train.sh {}
    fails 2 'the first batch size \(10\) is above the largest \(5\)'
    gpulse fit-batch --max 3 --multiple 8 -- ./train.sh {}
    fails 2 'no multiple of 8 is in the allowed range of batch sizes'
    gpulse fit-batch --trial-timeout 10s -- ./train.sh {}
    fails 2 '--trial-timeout \(10 s\) must be longer than --steady \(20 s\), or .*'
    : >file
    gpulse fit-batch --dir file -- ./train.sh {}
    fails 1 'cannot create the directory file: Not a directory'
}

@test "what would be tried" {
    trainer
    gpulse fit-batch --dry-run --multiple 8 --max 100 --env B={} -- ./train.sh --bs={}
    status_is 0
    is_quiet
    line_count 3
    [ "${lines[0]}" = 'GPU: 3 (79.18 GiB free, trials may use 75.20 GiB)' ]
    [ "${lines[1]}" = 'batch sizes: 8, 32, 96 as long as they fit, then sizes computed from their memory use; at most 14 trials, up to 96, multiples of 8' ]
    [ "${lines[2]}" = 'first trial: B=8 XLA_PYTHON_CLIENT_PREALLOCATE=false TF_FORCE_GPU_ALLOW_GROWTH=true ./train.sh --bs=8' ]
    gpulse fit-batch --dry-run --gpus 9 -- ./train.sh {}
    status_is 78
    [ ! -e home ] # nothing was tried
}

@test "a search that is interrupted" {
    trainer
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" fit-batch -- ./train.sh {} >fit.out 2>fit.err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true eval '[ "$("$GPULSE" query memory.used -i 3 -f csv --no-header)" != 0 ]'
    kill -INT "$pid"
    finish
    status_is 130
    grep -q '^gpulse: interrupted; no size has fitted yet$' fit.err
    nothing_is_left
}
