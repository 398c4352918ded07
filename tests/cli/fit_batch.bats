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

nothing_is_left() {
    [ -z "$("$GPULSE" queue)" ]
    gpulse query memory.used -i 3 -f csv --no-header
    [ "$output" = 0 ]
}

@test "the largest that fits, with a margin" {
    trainer
    gpulse fit-batch --steady 300ms -- ./train.sh {}
    status_is 0
    # 79.18 GiB are free, 5 % of 79.65 stay so: (75.20 GiB - 400 MiB) / 100 MiB
    says '^batch 766: what is larger does not fit, or leaves too little$'
    says '^  it needs 75.20 GiB, and leaves 3.98 GiB free$'
    says '^  0.39 GiB are fixed .*, 100.0 MiB go with each sample \(R2 1.000 of '
    says '^  batch 1532   would need 150.00 GiB, 74.80 more than the margin leaves$'
    complains '^gpulse: trial with batch 256: ok, 25.39 GiB'
    grep -qx "batch 256" home/gpulse/runs/*/trial-*-batch-256.log
    nothing_is_left
    # a second time all is known
    gpulse fit-batch -q --steady 300ms -- ./train.sh {}
    [ "$output" = 766 ]
    [ -z "$stderr" ]
    gpulse fit-batch --steady 300ms -- ./train.sh {}
    complains '^gpulse: 7 trials are known from before'
    echo "# changed" >>train.sh
    gpulse fit-batch --max 4 --steady 300ms -- ./train.sh {}
    complains '^gpulse: trial with batch 1: ok'
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
    gpulse fit-batch -q --max 2 --until '^pid [0-9]+ holds ' -- ./train.sh {} # else it would be 20 s
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
    says '^  memory does not depend on the batch size: is it really used\?$'
}

@test "what is no trial" {
    trainer
    gpulse fit-batch -- sh -c 'echo "no such file: {}"; exit 3'
    status_is 1
    complains '^no such file: 1$'
    complains '^gpulse: the trial with batch 1 failed with status 3: a trial failed, but not for want of GPU memory; batch 0 had fitted; see .*trial-1-batch-1.log$'
    gpulse fit-batch -- echo {}
    status_is 1
    complains '^gpulse: the trial with batch 1 used no GPU: '
    gpulse fit-batch -- sh -c 'echo "DefaultCPUAllocator: not enough memory: you tried to allocate {} bytes"; exit 1'
    complains 'the memory of the host is too little'
    gpulse fit-batch -- ./nothing {}
    complains "^gpulse: cannot run './nothing'"
    status_is 1
    gpulse fit-batch
    fails 2 'say what to try: .*'
    gpulse fit-batch -- ./train.sh
    fails 2 'nothing says where the batch size belongs: .*'
    gpulse fit-batch --env B -- ./train.sh
    fails 2 "--env takes NAME=\\{\\}, not 'B'"
    gpulse fit-batch --share --mem 1GiB -- ./train.sh {}
    fails 2 '--share is not for fit-batch: .*'
    gpulse fit-batch --confirm soon -- ./train.sh {}
    fails 2 "--confirm takes a time or 'full', not 'soon'"
    gpulse fit-batch --max 3 --multiple 8 -- ./train.sh {}
    status_is 2
}

@test "a trial that hangs, and one that is interrupted" {
    trainer
    gpulse fit-batch --trial-timeout 300ms -- sleep 100{}
    status_is 1
    complains '^gpulse: the trial with batch 1 used no GPU: '
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" fit-batch -- ./train.sh {} >fit.out 2>fit.err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true eval '[ "$("$GPULSE" query memory.used -i 3 -f csv --no-header)" != 0 ]'
    kill -INT "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ]
    grep -q '^gpulse: interrupted; batch 0 had fitted$' fit.err
    nothing_is_left
}
