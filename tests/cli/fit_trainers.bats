# gpulse fit-batch on trainers that hang, leak, preallocate, or cannot print.
# variants: asan

load helpers

# train.py WHAT BATCH: 400 MiB and 100 MiB for each sample of the batch, and one fault.
trainers() {
    idle_gpus
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    unset XLA_PYTHON_CLIENT_PREALLOCATE TF_FORCE_GPU_ALLOW_GROWTH
    cat >train.py <<PYTHON
import os
import subprocess
import sys
import threading

what, batch = sys.argv[1], int(sys.argv[2])
mib, more = 400 + 100 * batch, []
print("batch", batch, flush=True)
if what == "deadlock" and batch >= 32:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
if what == "spin" and batch >= 32: # beside a context that computes nothing
    subprocess.Popen(["$GPULSE", "sim", "load", "--mem", "400MiB", "--util", "0"])
    while True:
        pass
if what == "leak":
    more = ["--grow", "50MiB"]
if what == "python": # KeyboardInterrupt ends it by SIGINT
    subprocess.run(["$GPULSE", "sim", "load", "--mem", f"{mib}MiB"])
if what == "jax" and os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") not in ("0", "false", "False"):
    mib = 60000
if what == "tensorflow" and os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH") != "true":
    mib = 80000
if what == "greedy":
    mib = 80000
os.execv("$GPULSE", ["$GPULSE", "sim", "load", "--mem", f"{mib}MiB", *more])
PYTHON
}

# fit WHAT ARG…: the search for that trainer
fit() {
    local what=$1
    shift
    gpulse fit-batch "$@" -- python3 train.py "$what" {}
}

@test "a size that hangs does not cost the answer" {
    trainers
    fit deadlock --steady 300ms --hang-timeout 5s --multiple 16 --max 32
    status_is 6
    says '^batch 16: the largest that ran; a larger size hung$'
    says '^    2  batch 32 +hung '
    says '^    3  batch 16 +ok .*\(long run\)$'
    complains '^gpulse: trial with batch 32: hung, 0.00 GiB: stopped after 5.0 s without output, CPU use or a change in GPU memory '
    complains '^gpulse: batch 16: the largest that ran; a larger size hung; see the log '
    nothing_is_left
    # it is tried again the next time: it may have been chance
    fit deadlock --steady 300ms --hang-timeout 5s --multiple 16 --max 32 -f json
    status_is 6
    line_count 1
    complains '^gpulse: reusing 1 earlier trial '
    json_is 'd["batch"], d["end"], d["certain"], [t["verdict"] for t in d["trials"]]' "(16, 'hung', False, ['ok', 'hung', 'ok'])"
}

@test "a first trial that hangs" {
    trainers
    fit deadlock --min 32 --hang-timeout 1s
    status_is 1
    says '^no batch size: no size ran: the trials hung$'
    complains '^gpulse: no size ran: the trials hung; see the logs, '
    nothing_is_left
}

@test "one that waits busily is stopped at its time limit" {
    trainers
    fit spin --min 32 --steady 300ms --trial-timeout 1s
    status_is 1
    complains '^gpulse: trial with batch 32: hung, 0.[0-9]+ GiB: stopped at its time limit of 1.0 s, without using a GPU '
    fit none --max 1 --until 'never' --trial-timeout 3s
    status_is 1
    complains 'stopped at its time limit of 3.0 s, before the --until line '
    nothing_is_left
}

@test "memory that grows is reported, and the long run is stopped early" {
    trainers
    fit leak --steady 2s --max 1 --confirm 1h # not one that takes an hour
    status_is 6
    says '^batch 1: fits at first, but its GPU memory keeps growing$'
    says '^  memory grows by [0-9.]+ MiB/min; full in about [0-9]+ (min|h)$'
    says '^    2  batch 1 +grows .*\(long run\)$'
    says_not 'fits$'
    complains '^gpulse: batch 1: fits at first, but its GPU memory keeps growing, by [0-9.]+ MiB/min; full in about [0-9]+ (min|h); look for tensors '
    nothing_is_left
    fit leak --steady 300ms --max 1 --confirm 1h -f json
    status_is 6
    line_count 1
    json_is 'd["end"], d["certain"], d["growth"] > 0, d["full_in"] > 0, d["trials"][-1]["growth"] == d["growth"]' "('grows', False, True, True, True)"
    fit leak --steady 300ms --max 1 --confirm 1h -q
    status_is 6
    [ "$output" = 1 ]
}

@test "interrupted, a size whose memory grows is not said to fit" {
    trainers
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" fit-batch --steady 2s --max 1 --confirm full -- \
        sh -c "echo {}; exec '$GPULSE' sim load --mem 1GiB --grow 50MiB" >fit.out 2>fit.err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true grep -q '^gpulse: trial with batch 1: grows, ' fit.err
    kill -INT "$pid"
    finish
    grep -q '^gpulse: interrupted; no size has fitted yet$' fit.err || grep -q '^gpulse: batch 1: fits at first' fit.err
    [ ! -s fit.out ] || grep -q 'grows' fit.out
    nothing_is_left
}

@test "interrupted, the best so far is said" {
    trainers
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" fit-batch --steady 300ms --max 4 --confirm full -- \
        python3 train.py python {} >fit.out 2>fit.err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true grep -q '^gpulse: batch 4 runs to its end, to check whether its memory grows$' fit.err
    until_true eval '[ "$("$GPULSE" query memory.used -i 3 -f csv --no-header)" != 0 ]'
    kill -INT "$pid"
    finish
    status_is 130
    grep -q '^gpulse: interrupted; the largest size that fitted so far is 4$' fit.err
    nothing_is_left
}

@test "JAX and TensorFlow allocate memory on demand in trials" {
    trainers
    fit jax --steady 300ms --max 16 --confirm no
    status_is 0
    says '^  fixed: 0.39 GiB .*; per sample: 100.0 MiB'
    fit tensorflow --steady 300ms --max 16 --confirm no
    status_is 0
    says '^  fixed: 0.39 GiB .*; per sample: 100.0 MiB'
}

@test "memory that is taken in advance is no measure" {
    trainers
    export XLA_PYTHON_CLIENT_PREALLOCATE=true
    fit jax --steady 300ms
    status_is 1
    complains '^gpulse: XLA_PYTHON_CLIENT_PREALLOCATE=true is already set and stays so: JAX preallocates GPU memory, '
    complains '^gpulse: the program takes the same large share of GPU memory at every batch size, .*XLA_PYTHON_CLIENT_PREALLOCATE=false'
    unset XLA_PYTHON_CLIENT_PREALLOCATE
    # GiB more than the margin allows, at every size
    fit greedy --steady 300ms -f json
    status_is 1
    json_is 'd["batch"], d["end"], [t["batch"] for t in d["trials"]]' "(0, 'preallocates', [1, 4, 16, 64])"
    nothing_is_left
}

@test "a log that cannot be written is not the trainer's fault" {
    trainers
    mkdir full
    ln -s /dev/full full/trial-1-batch-1.log
    fit none --dir full
    status_is 1
    complains '^gpulse: output of the command is lost: No space left on device$'
    complains '^gpulse: cannot write the output of the trials to full/trial-1-batch-1.log; free some space there, or choose another directory with --dir$'
    complains_not '141|failed'
    mkdir -p nowhere/trial-1-batch-1.log
    fit none --dir nowhere
    status_is 1
    complains '^gpulse: cannot write the output of the trials to nowhere/trial-1-batch-1.log: Is a directory; choose another directory with --dir$'
    nothing_is_left
}

@test "a log in a folder where another user has prepared it" {
    [ "$(id -u)" -eq 0 ] || skip "needs root, to give a file to another user"
    trainers
    mkdir -m 1777 shared
    : >shared/trial-1-batch-1.log
    chown 12345 shared/trial-1-batch-1.log
    fit none --dir shared
    status_is 1
    complains '^gpulse: cannot write the output of the trials to shared/trial-1-batch-1.log: .*(12345|other user|another user)'
}

@test "the reason for the end of a search is in the document, too" {
    trainers
    gpulse fit-batch -f json -- sh -c 'exit 3 # {}'
    status_is 1
    json_is 'd["batch"], d["end"], d["trials"][0]["verdict"]' "(0, 'crashed', 'crash')"
    complains '^gpulse: the trial with batch 1 failed with status 3, but not for lack of GPU memory; no size has fitted yet; see '
}

@test "processes that trials leave are no news" {
    trainers
    gpulse fit-batch --steady 300ms --max 4 --confirm no -- sh -c "sleep 100{} & exec '$GPULSE' sim load --mem 1{}GiB"
    status_is 0
    complains_not 'left behind'
}
