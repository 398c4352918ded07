# gpulse run --pipeline: steps one after the other, each on GPUs of its own. Real processes on
# simulated GPUs.
# variants: asan

load helpers

steps() {
    cat >steps.ini
}

@test "train, test, evaluate: what went wrong is said, and it goes on where it failed" {
    idle_gpus
    cat >train.sh <<END
#!/bin/sh
[ -n "\$GPU_FIXED" ] || unset CUDA_VISIBLE_DEVICES # it chooses its GPU itself
setsid "$GPULSE" sim load --mem 9GiB 3>&- >worker.out 2>&1 & # a data loader that stays behind
"$GPULSE" sim load --mem 8GiB --for 1500ms
END
    cat >eval.sh <<END
#!/bin/sh
[ -e fixed ] || exec "$GPULSE" sim load --mem 200GiB
echo evaluated
END
    chmod +x train.sh eval.sh
    steps <<'END'
[pipeline]
name = im2elevation

[train]
command = ./train.sh
ids = 2

[test]
command = echo "tested with $BATCH" &&
    echo on $CUDA_VISIBLE_DEVICES
env = BATCH=1
ids = 2

[eval]
command = ./eval.sh
ids = 2
END
    gpulse run --pipeline steps.ini
    status_is 1
    # memory on GPU 0, where 2 was asked for
    complains '^gpulse: process [0-9]+ of this job uses GPU 0 \([0-9]+ MiB\), and was given 2: CUDA_VISIBLE_DEVICES was taken from its environment'
    # leftovers between the steps
    complains '^gpulse: ended 1 process that it left behind$'
    is_gone "$(awk '{ print $2 }' worker.out)"
    says '^tested with 1$'
    says '^on 2$'
    # no memory at the evaluation
    complains '^    impossible: it asked for 200.00 GiB at once'
    complains '^  train +ok '
    complains '^  eval +failed '
    # the report says it again, behind the step
    grep -A1 '^  eval *failed ' <<<"$stderr" | grep -q '^    impossible: it asked for 200.00 GiB at once'
    touch fixed
    gpulse run --pipeline steps.ini
    status_is 0
    complains '^gpulse: continuing: train, test succeeded before \(--restart runs all steps again\)$'
    [ "$output" = evaluated ]
    complains '^  train +done before$'
    grep -q '^  eval  *ok ' home/gpulse/runs/*/report.txt
    # all is done: from the beginning
    gpulse run --pipeline steps.ini --dry-run
    says '^train: gpulse run --id=2 -- ./train.sh$'
    gpulse run -q --pipeline steps.ini --from test
    [ "${lines[2]}" = evaluated ]
}

@test "a step that was changed is done again" {
    idle_gpus
    steps <<<$'[a]\ncommand = echo one\n[b]\ncommand = false'
    gpulse run -q --pipeline steps.ini
    status_is 1
    steps <<<$'[a]\ncommand = echo two\n[b]\ncommand = true'
    gpulse run -q --pipeline steps.ini
    status_is 0
    [ "$output" = two ]
    gpulse run -q --pipeline steps.ini --restart
    status_is 0
}

@test "files that are not right" {
    steps <<<$'[a]\nfolder = .'
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini: \[a\] has no command'
    steps <<<$'[a]\ncommand = true\nmemory = 3'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: a step has no 'memory'"
    steps <<<$'command = true'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:1: a \[step\] must come before 'command'"
    steps <<<$'[a]\nwhat'
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini:2: neither \[step\] nor name = value'
    steps <<<"$(printf '[a]\ncommand = %0300d' 1)"
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini:2: this line is too long; .*'
    steps <<<$'[a]\ncommand = cd x ; python train.py'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:2: a ';' behind a blank begins a remark here; write it without the blank: .*"
    steps <<<$'[a]\ncommand = echo one\ncommand = echo two'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: there is a command already in 'a'"
    steps <<<$'[a]\ncommand = true\nshare = maybe'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: yes or no is wanted, not 'maybe'"
    : >steps.ini
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini: there is no \[step\] in it'
    gpulse run --pipeline nowhere.ini
    fails 1 "cannot read 'nowhere.ini': No such file or directory"
    steps <<<$'[a]\ncommand = true'
    gpulse run --pipeline steps.ini --from b
    fails 2 "there is no step 'b' in .*/steps.ini"
    gpulse run --pipeline steps.ini -- true
    fails 2 'with --pipeline the commands and their options stand in its file; beside it go --gpu-ids, .*'
    gpulse run --pipeline steps.ini --timeout 3s
    fails 2 'with --pipeline the commands and their options stand in its file; .*'
    gpulse run --from a -- true
    fails 2 '--from and --restart are for --pipeline'
}

@test "what a later step asks for is found wrong before the first one runs" {
    idle_gpus
    steps <<<$'[a]\ncommand = touch begun\n[b]\ncommand = true\nmem = lots'
    gpulse run --pipeline steps.ini
    status_is 2
    complains "lots"
    complains '.*/steps.ini: step b cannot run as it stands; none was started'
    [ ! -e begun ]
    # a folder may be made by the step before
    steps <<<$'[a]\ncommand = mkdir out\n[b]\ncommand = touch here\nfolder = out'
    gpulse run --pipeline steps.ini
    status_is 0
    [ -e out/here ]
}

@test "a command's words are checked without running it" {
    idle_gpus
    gpulse run --dry-run -- touch begun
    status_is 0
    [ ! -e begun ]
    gpulse run --dry-run --mem lots -- touch begun
    status_is 2
}

@test "steps that were passed over are not done" {
    idle_gpus
    steps <<<$'[a]\ncommand = echo one\n[b]\ncommand = echo two'
    gpulse run -q --pipeline steps.ini --from b
    [ "$output" = two ]
    gpulse run -q --pipeline steps.ini
    [ "$output" = "one
two" ]
}

@test "steps on several GPUs" {
    idle_gpus
    steps <<<$'[two]\ncommand = echo $CUDA_VISIBLE_DEVICES\ngpus = 2\n[these]\ncommand = echo $CUDA_VISIBLE_DEVICES\ngpu-ids = 0,1'
    gpulse run -q --pipeline steps.ini
    [ "$output" = "2,3
0,1" ]
}

@test "who ends it ends all of it" {
    idle_gpus
    steps <<<$'[a]\ncommand = trap "exit 0" TERM; echo >ready; while :; do sleep 0.05; done\n[b]\ncommand = touch never'
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" run --pipeline steps.ini >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true test -e ready
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 143 ]
    [ ! -e never ]
}

@test "what ends it ends its step" {
    idle_gpus
    steps <<<$'[a]\ncommand = echo $$ >pid; exec sleep 1000\n[b]\ncommand = touch never'
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" run --pipeline steps.ini >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true test -s pid
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 143 ]
    is_gone "$(cat pid)"
    [ ! -e never ]
    rm pid
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" run --pipeline steps.ini >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true test -s pid
    kill -KILL "$pid"
    until_true is_gone "$(cat pid)"
    until_true eval '[ -z "$("$GPULSE" queue)" ]' # who supervised it goes after it
}
