# gpulse run while the job runs: what it prints, why it fails, limits, and the record. Real processes
# on simulated GPUs.
# variants: asan tsan

load helpers

# the record of the only job
record() {
    ls -d home/gpulse/runs/*
}

@test "its output passes unchanged" {
    idle_gpus
    gpulse run -q -- bash -c 'echo out; echo err >&2; printf "no end"'
    [ "$output" = "out
no end" ]
    [ "$stderr" = err ]
    head -c 20000000 /dev/urandom >noise
    "$GPULSE" run -q -- cat noise >copy
    cmp noise copy
    [ "$("$GPULSE" run -q -- bash -c 'echo out; echo err >&2; echo out' 2>&1)" = "out
err
out" ]
    # who reads no more is noticed by the command
    [ "$("$GPULSE" run -q -- yes 2>/dev/null | head -1)" = y ]
    run --separate-stderr bash -c '"$GPULSE" run -q -- echo lost >/dev/full'
    status_is 1
    complains '^gpulse: output of the command is lost: No space left on device$'
}

@test "no memory, as another one has it" {
    idle_gpus
    job --gpu 3 --mem 70GiB
    gpulse run -i 3 --share --mem 5GiB -- "$GPULSE" sim load --mem 20GiB
    status_is 1
    complains '^gpulse: it failed after this message: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB'
    complains "^    others: other processes use 70.00 GiB of 79.65 GiB: pid $job of $(id -un): .* \\(70.00 GiB\\)\$"
    grep -q "GPU 3: torch.OutOfMemoryError" "$(record)/incident-1.txt"
    output=$(cat "$(record)/run.json")
    json_is 'd["state"], d["status"], d["incidents"][0]["others"][0]["pid"]' "('ended', 1, $job)"
}

@test "no memory, on a GPU that it was not given" {
    idle_gpus
    job --gpu 0 --mem 70GiB
    gpulse run -i 1 -- env CUDA_VISIBLE_DEVICES=0 "$GPULSE" sim load --mem 30GiB
    complains '^    wrong-gpu: the program used GPU 0, which it was not given$'
    complains "^    others: other processes use 70.00 GiB of 79.65 GiB: pid $job of "
}

@test "no memory, and the message has no numbers" {
    idle_gpus
    job --gpu 3 --mem 70GiB
    gpulse run -i 3 --share --mem 5GiB -- bash -c 'echo "RuntimeError: CUDA error: out of memory"; exit 1'
    complains "^    others: other processes use 70.00 GiB of 79.65 GiB: pid $job of "
}

@test "out of memory, and the job has exited when the GPU is sampled" {
    idle_gpus
    gpulse run -i 3 -- bash -c "$(sampled 9663676416 --mem 9GiB); echo 'CUDA error: out of memory'; exit 1"
    complains '^    unsized: the message does not say how much was requested; 70.18 GiB of 79.65 GiB were free, so it was one large request, or '
    output=$(cat "$(record)/run.json")
    json_is 'd["incidents"][0]["numbers"]["self"]' 9663676416
}

@test "a failure that is none in the end" {
    idle_gpus
    gpulse run -- echo "CUDA error: out of memory, a smaller batch is tried"
    status_is 0
    complains '^gpulse: it printed a failure, and continued$'
}

@test "run again when there was no memory" {
    idle_gpus
    gpulse run --retries 2 -- bash -c 'echo x >>tries; [ "$(wc -l <tries)" -eq 3 ] || { echo "CUDA error: out of memory"; exit 7; }'
    status_is 0
    complains '^gpulse: retry 2 of 2$'
    rm tries
    gpulse run --retries 2 -- bash -c 'echo x >>tries; exit 7'
    status_is 7
    complains '^gpulse: not tried again, as it did not run out of GPU memory; to retry after any failure: --on failure$'
    [ "$(wc -l <tries)" -eq 1 ]
    gpulse run --retries 2 --on failure -- bash -c 'echo x >>tries; exit 7'
    status_is 7
    [ "$(wc -l <tries)" -eq 4 ]
    [[ $stderr != *'tried again'* ]]
    gpulse run --retries 2 --no-watch -- true
    fails 2 '--retries needs to watch the output; .*'
}

@test "its time is over" {
    idle_gpus
    gpulse run --timeout 300ms -- sleep 1000
    status_is 124
    complains '^gpulse: the time limit is reached: the command is asked to stop, and killed if it has not in 10 s$'
}

@test "more memory than it may have" {
    idle_gpus
    gpulse run --max-gpu-mem 4GiB --over stop -- "$GPULSE" sim load --mem 5GiB
    status_is 1
    complains '^gpulse: the job uses 5120 MiB of GPU 3, more than the 4096 MiB of --max-gpu-mem; stopping it$'
    gpulse run --max-gpu-mem 4GiB --over kill -- "$GPULSE" sim load --mem 5GiB
    status_is 137
    in_background --max-gpu-mem 4GiB -- "$GPULSE" sim load --mem 5GiB
    until_true grep -q 'of --max-gpu-mem' run.err
    end_load
    status_is 0
    complains 'more than the 4096 MiB of --max-gpu-mem$'
}

@test "a peak between two samples, known from the driver's accounting" {
    idle_gpus
    gpulse run -- bash -c "$(sampled 5368709120 --mem 5GiB --spike 20GiB)"
    complains '; GPU 3: peak 5120 MiB \(sampled\), '
    output=$(cat "$(record)/run.json")
    json_is 'd["gpus"][0]["memory_peak"], d["gpus"][0]["memory_peak_source"]' "(5368709120, 'sampled')"
    GPULSE_SIM_COUNT=count gpulse run -q --no-record -- true
    [ "$(grep -h Accounting count*)" = "nvmlDeviceGetAccountingMode 4" ] # and nothing more
    python3 -c 'import json; m = json.load(open("m.json")); m["devices"][3]["answers"]["AccountingMode"] = "Enabled"; json.dump(m, open("m.json", "w"))'
    rm -r home
    gpulse run -- bash -c "$(sampled 5368709120 --mem 5GiB --spike 20GiB)"
    complains "; GPU 3: peak 25600 MiB \\(from the driver's accounting\\), "
    output=$(cat "$(record)/run.json")
    json_is 'd["gpus"][0]["memory_peak"], d["gpus"][0]["memory_peak_source"]' "(26843545600, 'accounting')"
    # too short for any look
    gpulse run -- "$GPULSE" sim load --mem 5GiB --for 100ms
    complains "; GPU 3: peak 5120 MiB \\(from the driver's accounting\\)"
    # each try has its own, also where the next one follows at once
    gpulse run --retries 1 --on failure -- bash -c 'echo >>tries
        exec "$0" sim load --for 100ms --mem $((8 - $(wc -l <tries)))GiB --gpu $(($(wc -l <tries) - 1))' "$GPULSE"
    complains "; GPU 3: peak 7168 MiB \\(from the driver's accounting\\)"
}

@test "a reserved GPU that is idle" {
    idle_gpus
    in_background --idle-warn 500ms -- "$GPULSE" sim load --mem 5GiB --util 0
    until_true grep -q 'has been idle' run.err
    end_load
    complains '^gpulse: GPU 3 has been idle for [0-9]+ s, while this job holds 5120 MiB on it$'
}

@test "the record" {
    idle_gpus
    gpulse run --name first -- bash -c "$(sampled 5368709120 --mem 5GiB)"
    output=$(cat "$(record)/run.json")
    json_is 'd["schema"], d["name"], d["state"], d["status"], d["gpus"][0]["memory_peak"]' \
        "('gpulse.run/1', 'first', 'ended', 0, 5368709120)"
    [ "$(head -1 "$(record)/samples.csv")" = time_s,gpu,utilization_percent,memory_used_bytes,power_w,energy_j,job_memory_bytes,job_cpu_percent,job_rss_bytes,job_steps,job_step_time_s ]
    grep -q '^[0-9.]*,3,[0-9]*,[0-9]*,[0-9.]*,[0-9]*,5368709120,' "$(record)/samples.csv"
    gpulse run --no-record -- true
    [ "$(record | wc -l)" -eq 1 ]
    gpulse run --dir kept/here -- true
    [ -f kept/here/run.json ]
    gpulse run --dir /dev/null/x -- true
    fails 1 'cannot create the directory /dev/null/x: .*'
    XDG_STATE_HOME=/dev/null gpulse run -- true # the job does not need it
    status_is 0
    complains '^gpulse: no record is kept: cannot create the directory .*; --dir names another place$'
    unset XDG_STATE_HOME
    HOME='' gpulse run -- true
    status_is 0
    complains '^gpulse: no record is kept: there is no home directory of your own \(HOME\); --dir names another place$'
}

@test "old records make room" {
    idle_gpus
    local n
    for n in $(seq 100 220); do
        mkdir -p "home/gpulse/runs/20200101-000$n-99999999"
    done
    mkdir home/gpulse/runs/mine "home/gpulse/runs/20190101-000000-$$" # that process lives
    touch -d '2 hours ago' home/gpulse/runs/*
    gpulse run -- true
    [ "$(ls home/gpulse/runs | grep -c ^20200101)" -eq 100 ]
    [ -d home/gpulse/runs/mine ]
    [ -d "home/gpulse/runs/20190101-000000-$$" ]
}

@test "records of jobs that run on another machine stay" {
    idle_gpus
    local n
    for n in $(seq 100 220); do
        mkdir -p "home/gpulse/runs/20200101-000$n-99999999"
    done
    cd home/gpulse/runs
    mkdir -p 20190101-00000{1,2,3,4}-99999999 20190101-000005-99999999/1-train # where the home is shared
    echo '{"state": "running"}' | tee 20190101-00000{1,2}-99999999/run.json >20190101-000005-99999999/1-train/run.json
    echo '{"state": "ended"}' | tee 20190101-00000{3,4}-99999999/run.json >/dev/null
    touch -d '2 hours ago' ./*/run.json ./*
    touch 20190101-00000{1,3}-99999999/samples.csv 20190101-000005-99999999/1-train/samples.csv
    touch -d '2 hours ago' ./* ./*/1-train # only files in them have changed
    cd "$OLDPWD"
    gpulse run -- true
    [ "$(ls home/gpulse/runs | grep -c ^20200101)" -eq 100 ]
    [ "$(ls home/gpulse/runs | grep ^2019)" = "$(printf '20190101-00000%s-99999999\n' 1 5)" ] # the third has ended
}

@test "an allocator option that this PyTorch knows" {
    idle_gpus
    mkdir -p venv/bin venv/lib/python3.12/site-packages/torch
    printf '#!%s/venv/bin/python\n' "$PWD" >venv/bin/torchrun
    printf '#!/bin/sh\nshift\nexec "$@"\n' >venv/bin/python # runs its second argument
    chmod +x venv/bin/*
    torch() {
        echo "__version__ = '$1'" >venv/lib/python3.12/site-packages/torch/version.py
    }
    torch 2.4.1+cu121
    gpulse run -q --torch-expandable -- venv/bin/python x printenv PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF
    [ "$output" = expandable_segments:True ]
    torch 2.10.0
    gpulse run -q --torch-expandable -- venv/bin/python x printenv PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF
    [ "${#lines[@]}" -eq 2 ]
    PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64 gpulse run -q --torch-expandable -- venv/bin/torchrun printenv PYTORCH_CUDA_ALLOC_CONF
    [ "$output" = max_split_size_mb:64,expandable_segments:True ]
    torch 2.0.1
    gpulse run -q --torch-expandable -- venv/bin/python x printenv PYTORCH_CUDA_ALLOC_CONF
    status_is 1
    complains "^gpulse: expandable_segments:True is not set: PyTorch 2.0 of 'venv/bin/python' would fail with it; it needs 2.1 or newer$"
    gpulse run -q --torch-expandable -- printenv PYTORCH_CUDA_ALLOC_CONF
    complains "^gpulse: expandable_segments:True is not set: no PyTorch found next to 'printenv'$"
}

@test "another known error at the end: what it means, and the command that tells more" {
    idle_gpus
    local line words
    while IFS='|' read -r line words; do
        gpulse run -q -i 3 -- bash -c "echo '$line'; exit 1"
        status_is 1
        [[ $stderr == "gpulse: it failed after this message: ${line:0:60}"* ]]
        complains "$words"
        [ "$(wc -l <<<"$stderr")" -eq 3 ] || explain "more than three lines"
    done <<'LINES'
RuntimeError: CUDA error: an illegal memory access was encountered|; more: gpulse explain cuda 700$
RuntimeError: CUDA error: no kernel image is available for execution on the device|; more: gpulse explain cuda 209$
[rank1]:[E] Watchdog caught collective operation timeout: WorkNCCL| a longer timeout in init_process_group\(\); if it hangs from the start: NCCL_P2P_DISABLE=1 as a test$
LINES
    rm -r home
    # the first of several, as the others are its consequences
    gpulse run -i 3 -- bash -c 'yes "step 1" | head -20000; echo "RuntimeError: CUDA error: an illegal memory access was encountered"; echo "NCCL communicator was aborted"; exit 7'
    status_is 7
    complains '^    CUDA error 700: '
    complains_not 'aborted'
    gpulse explain "$(record)"
    says 'output-end.log:[0-9]+: .*illegal memory access'
    says 'output-end.log:[0-9]+: NCCL communicator was aborted'
    # neither of a job that succeeds, nor of unknown errors
    gpulse run -q -i 3 -- bash -c 'echo "CUDA error: an illegal memory access was encountered"'
    status_is 0
    is_quiet
    gpulse run -q -i 3 -- bash -c 'echo "ValueError: x"; exit 1'
    status_is 1
    is_quiet
}

@test "the folder of a recorded job: its failure, and its output if that was recorded" {
    idle_gpus
    gpulse run --keep-output -i 3 -- bash -c 'echo "RuntimeError: CUDA error: device-side assert triggered"; exit 1'
    status_is 1
    gpulse explain "$(record)"
    status_is 0
    says '/output.log:1: RuntimeError: CUDA error: device-side assert triggered$'
    says '^    CUDA error 710: '
    rm -r home
    job --gpu 3 --mem 70GiB
    gpulse run -i 3 --share --mem 5GiB -- "$GPULSE" sim load --mem 20GiB
    gpulse explain "$(record)"
    status_is 0
    says 's after the start, GPU 3: torch.OutOfMemoryError'
    says '^    others: other processes use 70.00 GiB of 79.65 GiB: '
    gpulse explain "$(record)" --json
    json_is 'len(d["incidents"]), d["incidents"][0]["file"].split("/")[-2]' "(1, 'runs')"
    rm -r home
    gpulse run -i 2 -- true
    gpulse explain "$(record)"
    status_is 0
    says ': the job succeeded$'
    rm -r home
    gpulse run -i 2 -- bash -c 'kill -9 $$'
    status_is 137
    complains '^gpulse: details: gpulse explain .*/runs/'
    for path in "$(record)" "$(record)/run.json"; do
        gpulse explain "$path"
        status_is 0
        says ': the job ended with status 137: killed by SIGKILL, but hardly for lack of host memory: it used little$'
        says '^      -> a user or a scheduler killed it'
    done
    rm -r home
    gpulse run -i 2 -- bash -c 'exit 3'
    gpulse explain "$(record)"
    status_is 1
    says ': the job ended with status 3$'
    gpulse run -q -i 2 -- sh -c 'exit 4'
    gpulse explain last
    status_is 1
    says "$(record | tail -1): the job ended with status 4\$"
    [ "${lines[1]}" = "    sh -c 'exit 4'" ]
    says '^    GPU 2, 0\.[0-9] s, no GPU memory seen$'
    gpulse explain last 2
    says "$(record | head -1): the job ended with status 3\$"
    gpulse explain last 3
    fails 1 'only 2 of your jobs are recorded; gpulse explain list shows them'
    gpulse explain list
    status_is 0
    says '^  N  STARTED +FOR  GPUS +END +JOB$'
    says "^  1  20[0-9-]+ [0-9:]+ +0s  2 +status 4 +sh -c 'exit 4'\$"
    says "^  2  20[0-9-]+ [0-9:]+ +0s  2 +status 3 +bash -c 'exit 3'\$"
    gpulse explain last --json
    json_is '[(j["status"], j["state"], j["command"][2]) for j in d["jobs"]]' "[(4, 'ended', 'exit 4')]"
    gpulse explain list --json
    json_is '[(r["state"], r["status"], r["command"][2]) for r in d["records"]]' "[('ended', 4, 'exit 4'), ('ended', 3, 'exit 3')]"
    echo '{' >"$(record | tail -1)/run.json" # neither counts a record that cannot be read
    gpulse explain last
    says ': the job ended with status 3$'
    gpulse explain list
    says "^  1  .* status 3 "
    touch list
    gpulse explain list
    says '^no known error in the log$'
    rm -r home list
    gpulse run -q -i 2 -- sh -c 'seq 2000; echo "ModuleNotFoundError: x"; exit 1'
    gpulse explain last
    status_is 1
    says '^    no known error in its output, which ended with \(.*/output-end.log\):$'
    [ "${lines[-1]}" = '      ModuleNotFoundError: x' ]
    [ "${lines[-10]}" = '      1992' ]
    [ "${lines[-11]}" != '      1991' ]
    [ "$(stat -c %a "$(record)/output-end.log")" = 600 ]
    rm -r home
    gpulse run -q -i 2 --keep-output -- sh -c 'echo one; exit 1'
    gpulse explain last
    says 'no known error in its output, which ended with \(.*/output.log\):$'
    [ "${lines[-1]}" = '      one' ]
    rm -r home
    gpulse run -q -i 2 -- nosuchcommand
    status_is 127
    gpulse explain last
    says ': the job ended with status 127'
    rm -r home
    gpulse run -q -i 2 -- sh -c 'cat home/gpulse/runs/*/run.json; "$0" explain last >out' "$GPULSE"
    json_is 'd["state"], d["duration_s"]' "('running', None)"
    grep -qE ': the job still runs \(gpulse run, pid [0-9]+\)$' out
    kill_run() {
        gpulse run -q -i 2 -- sh -c 'kill -9 "$(sed -n "s/^  .pid.: \([0-9]*\),/\1/p" home/gpulse/runs/*/run.json)"; sleep 10'
    }
    rm -r home
    kill_run
    gpulse explain last
    says ': gpulse run was killed, and the job ended with it$'
    # another process has its pid now
    sed -i "s/\"pid\": [0-9]*/\"pid\": $$/" home/gpulse/runs/*/run.json
    gpulse explain last
    says ': gpulse run was killed, and the job ended with it$'
    sed -i "s/\"start_ticks\": [0-9]*/\"start_ticks\": $(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)/" home/gpulse/runs/*/run.json
    gpulse explain last
    says ': the job still runs \(gpulse run, pid '
    sed -i "s/\"start_ticks\": [0-9]*/\"start_ticks\": 1/" home/gpulse/runs/*/run.json
    mkdir -p home/gpulse/runs/30000101-000000-1/1-train home/gpulse/runs/30000101-000000-1/2-eval home/gpulse/runs/30000102-000000-1
    cp home/gpulse/runs/2*/run.json home/gpulse/runs/30000101-000000-1/2-eval/
    gpulse explain last # not that of fit-batch, which has no job
    says '/30000101-000000-1/2-eval: '
    gpulse explain list
    says '^  2  .*  killed  +sh -c'
    rm -r home
    gpulse explain last
    fails 1 'no job of yours is recorded; gpulse run records jobs'
    gpulse explain list
    status_is 0
    complains 'no job of yours is recorded; gpulse run records jobs'
    mkdir other
    gpulse explain other
    fails 1 'other is a directory, but not the record of a job; give a log, or a directory that gpulse run has recorded'
}

has_samples() {
    cat home/gpulse/runs/*/samples.csv 2>/dev/null | grep -q 1073741824
}

@test "the record of a job that was told to end, and of one whose gpulse was killed" {
    idle_gpus
    start run -i 3 -- "$GPULSE" sim load --mem 1GiB
    until_true has_samples
    kill -TERM "$pid"
    finish
    status_is 0 # that of the job
    grep -qE '^gpulse: exited after .* s with status 0, after SIGTERM; GPU 3: peak 1024 MiB ' err
    gpulse explain last
    says ': the job ended with status 0, after gpulse run got SIGTERM$'
    rm -r home
    start run -i 3 --name hog -- "$GPULSE" sim load --mem 1GiB
    until_true has_samples
    for words in hog '--name hog'; do # by its name, which is not that of a process
        gpulse kill $words
        fails 3 "no process matches 'hog', but a job of gpulse run has this name: gpulse ps lists its processes on the GPUs; to end all of it, use the shell's kill: kill $pid"
    done
    gpulse kill --name hog --idle 1s
    fails 3 'no matching process on the GPUs'
    gpulse explain last
    says ': the job still runs \(gpulse run, pid '
    says '^    GPU 3, at least [1-9][0-9.]* s, memory peak 1024 MiB$'
    kill -KILL "$pid"
    finish
    gpulse explain last
    says ': gpulse run was killed, and the job ended with it$'
    says '^    GPU 3, at least [1-9][0-9.]* s, memory peak 1024 MiB$'
}

@test "records of jobs that gpulse stopped, and of others with names" {
    idle_gpus
    gpulse run -q -i 3 --max-gpu-mem 1GiB --over kill -- "$GPULSE" sim load --mem 2GiB
    gpulse explain last
    says ': gpulse run stopped it: it used more GPU memory than --max-gpu-mem$'
    says '^      -> raise --max-gpu-mem, or make it need less, for example with a smaller batch$'
    gpulse run -q -i 3 --timeout 1s --name nightly -- sleep 60
    status_is 124
    complains '^gpulse: the time limit is reached'
    gpulse explain last
    says ': gpulse run stopped it when --timeout ran out$'
    [ "${lines[1]}" = '    nightly: sleep 60' ]
    says '^      -> allow more time$'
    start run -i 3 -- "$GPULSE" sim load --mem 1GiB
    until_true has_samples
    kill -TERM "$pid"
    finish
    gpulse run -q -i 3 -- bash -c 'echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."; exit 1'
    gpulse explain list
    says '^  1  .*  out of memory  bash -c '
    says '^  2  .*  stopped        .*/gpulse sim load '
    says '^  3  .*      1s  3        timeout        nightly$'
    says '^  4  .*  max-gpu-mem  '
}

@test "a record that somebody has prepared neither blocks explain nor writes to the terminal" {
    mkdir $'rec\e[31mord'
    cd $'rec\e[31mord' || return
    local place=$PWD
    printf '{"state": "ended", "status": 3, "ended_by": "\\u001b]0;x\\u0007"}' >run.json
    printf 'first\nsecond\0tail\nthird' >output-end.log
    "$GPULSE" explain "$place" >../out || [ $? -eq 1 ]
    [ "$(grep -c $'\e' ../out)" -eq 0 ]
    grep -q '^      third$' ../out # behind the zero byte
    rm output-end.log
    ln -s /dev/zero output-end.log
    ln -s /dev/zero samples.csv
    mkfifo output.log incident-1.txt
    echo '{"state": "running", "status": 0, "incidents": [{}]}' >run.json
    "$GPULSE" explain "$place" >../out
    grep -q 'at least 0.0 s' ../out
    rm run.json
    mkfifo run.json
    gpulse explain "$place"
    status_is 1
    complains 'not the record of a job'
}

@test "steps that are counted, and what they say of the GPU" {
    local loop='for i in 1 2 3 4 5; do echo "loss 1.0, step $((10 * i)) of 50"; sleep 0.05; done'
    idle_gpus
    gpulse run -g 2 --step-match step --flops-per-step 4e19 -- bash -c "$loop"
    complains '^gpulse: [0-9.]+ steps/s \(4 steps in [0-9.]+ s\), [0-9.e+]+ TFLOP/s; no MFU: the job was not seen to use a GPU$'
    rm -r home
    loop="'$GPULSE' sim load --mem 1GiB --for 1.5s >/dev/null & $loop; wait"
    gpulse run -g 2 --step-match 'step ([0-9]+)' --flops-per-step 1e12 -- bash -c "$loop"
    status_is 0
    complains '^gpulse: [0-9.]+ steps/s \(40 steps in [0-9.]+ s\), [0-9.]+ TFLOP/s: model FLOPs utilization \(MFU\) [0-9.]+ % of 2 GPUs \(1 of them unused\) with 989\.4 TFLOP/s \(bf16, dense; --precision\); 35 to 45 % is typical'
    output=$(cat "$(record)/run.json")
    json_is 'd["pace"]["steps"], d["pace"]["flops_per_step"], d["pace"]["peak_flops"], d["pace"]["precision"]' "(40.0, 1000000000000.0, 1978800000000000.0, 'bf16')"
    json_is 'abs(d["pace"]["mfu"] - 1e12 * d["pace"]["steps_per_s"] / d["pace"]["peak_flops"]) < 1e-9' True
    json_is '0.15 < d["pace"]["seconds"] <= d["duration_s"]' True
    json_is 'd["verdicts"]' None # too short for one
    rm -r home

    gpulse run -i 3 --step-match step --flops-per-step 1e18 --precision fp8 -- bash -c "$loop"
    complains '% of 1 GPU with 1979 TFLOP/s \(fp8, dense; --precision\); this is impossible: check --flops-per-step and --precision$'
    gpulse run -i 3 --step-match step --flops-per-step 1.9e15 -- bash -c "'$GPULSE' sim load --mem 1GiB --for 1.5s >/dev/null & echo step; sleep 2; echo step; wait"
    complains ' \(1 step in 2\.[0-9] s\), .*; this is implausibly high: check --flops-per-step and --precision$'
    gpulse run -i 3 --step-match step -- bash -c "$loop"
    complains '^gpulse: [0-9.]+ steps/s \(4 steps in [0-9.]+ s\)$'
    gpulse run -q -i 3 --step-match step -- bash -c "$loop"
    is_quiet
    gpulse run -q -i 3 --step-match 'of ([0-9]+)' -- bash -c "$loop"
    complains '^gpulse: 5 lines of its output matched --step-match, but the numbers in \(…\) did not grow$'
    gpulse run -q -i 3 --step-match epoch -- bash -c "$loop"
    complains '^gpulse: 0 lines of its output matched --step-match, too few to measure its pace$'
    rm -r home
    gpulse run -i 3 -- bash -c "$loop"
    output=$(cat "$(record)/run.json")
    json_is 'd["pace"]' None

    machine h100 'm["workload"] = []; d["answers"]["Name"] = "NVIDIA X9000"'
    gpulse run -i 0 --step-match step --flops-per-step 1e12 -- bash -c "$loop"
    complains '; no MFU: the peak of NVIDIA X9000 in bf16 is unknown \(gpulse doctor gpus\)$'
}

@test "options about steps that contradict" {
    idle_gpus
    gpulse run --precision fp8 -- true
    fails 2 '--precision needs --flops-per-step N'
    gpulse run --step-match '(' -- true
    fails 2 "--step-match '\\(': .*"
    for option in --step-match --mark; do
        gpulse run --timeline trace.json $option 'step \d+' -- true
        fails 2 "$option 'step \\\\d\\+': a POSIX extended regular expression has no \\\\d; use \[0-9\]"
        gpulse run --timeline trace.json $option '[\D]' -- true
        fails 2 '.*has no \\D; use \[\^0-9\]'
        gpulse run --timeline trace.json $option 'x(?:a|b)' -- true
        fails 2 '.*has no \(\?; use \(…\), a plain group'
        gpulse run --timeline trace.json $option a $option=b -- true
        fails 2 "$option is given twice; join them: 'a\|b'"
        gpulse run -q -i 3 --timeline trace.json $option 'a\\d|b\(?|[(?]|\w\s' -- true
        status_is 0
    done
    gpulse fit-batch --until '\d' -- true {}
    fails 2 "--until '\\\\d': a POSIX extended regular expression has no .*"
    gpulse run --step-match x --flops-per-step 0 -- true
    fails 2 "--flops-per-step takes a number such as 6.1e15, not '0'"
    gpulse run --flops-per-step 1e12 --precision fp8,bf16 -- true
    fails 2 '--precision takes one of: fp32 tf32 fp16 bf16 fp8'
    gpulse run --step-match x --no-watch -- true
    fails 2 '--step-match needs to watch the output; omit --no-watch and --no-clean-after'
}
