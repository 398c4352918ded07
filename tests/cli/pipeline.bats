# gpulse run --pipeline: steps one after another or side by side, each on GPUs of its own. Real processes on
# simulated GPUs.
# variants: asan

load helpers

steps() {
    cat >steps.ini
}

@test "train, test, evaluate: a failure is reported, and the next run restarts from the failed step" {
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
    complains '^gpulse: process [0-9]+ of this job uses GPU 0 \([0-9]+ MiB\), but the job has reserved GPU 2: CUDA_VISIBLE_DEVICES was removed from its environment'
    # leftovers between the steps
    complains '^gpulse: terminated 1 leftover process$'
    is_gone "$(awk '{ print $2 }' worker.out)"
    says '^tested with 1$'
    says '^on 2$'
    # no memory at the evaluation
    complains '^    impossible: the program requested 200.00 GiB at once'
    complains '^  train +ok '
    complains '^  eval +failed '
    # the report says it again, behind the step
    grep -A1 '^  eval *failed ' <<<"$stderr" | grep -q '^    impossible: the program requested 200.00 GiB at once'
    touch fixed
    gpulse run --pipeline steps.ini
    status_is 0
    complains '^gpulse: continuing: train, test succeeded before \(--restart runs all steps again\)$'
    [ "$output" = evaluated ]
    complains '^  train +done before$'
    grep -q '^  eval  *ok ' home/gpulse/runs/*/report.txt
    # all is done: from the beginning
    gpulse run --pipeline steps.ini --dry-run
    says '^train: gpulse run --id=2 -- sh -c ./train.sh$'
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

@test "in the queue, a step has the names of its pipeline and its own" {
    idle_gpus
    steps <<<$'[first]\ncommand = $GPULSE queue\nids = 2'
    gpulse run -q --pipeline steps.ini
    says '^running .* 2 .* steps.ini: first$'
    steps <<<$'[pipeline]\nname = nightly\n[first]\ncommand = $GPULSE queue\nids = 2\ntimeout = 1h'
    gpulse run -q --pipeline steps.ini
    says '^running .* 2 .*  (60m|59m|1h[0-9m]*)  nightly: first$'
}

@test "files that are not right" {
    steps <<<$'[a]\nfolder = .'
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini: \[a\] has no command'
    steps <<<$'[a]\ncommand = true\nmax-tmep = 3'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: unknown option of a step 'max-tmep' \(did you mean 'max-temp'\?\)"
    steps <<<$'command = true'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:1: expected a \[step\] before 'command'"
    steps <<<$'[a]\nwhat'
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini:2: expected \[step\] or name = value'
    steps <<<"$(printf '[a]\ncommand = %0300d' 1)"
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini:2: the line is too long; .*'
    steps <<<$'[a]\ncommand = cd x ; python train.py'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:2: ';' after a blank begins a comment; remove the blank before it: .*"
    steps <<<$'[a]\ncommand = echo one\ncommand = echo two'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: a second command in 'a'"
    steps <<<$'[a]\ncommand = true\nshare = maybe'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: expected yes or no, got 'maybe'"
    : >steps.ini
    gpulse run --pipeline steps.ini
    fails 2 '.*/steps.ini: no \[step\] section'
    gpulse run --pipeline nowhere.ini
    fails 1 "cannot read 'nowhere.ini': No such file or directory"
    steps <<<$'[a]\ncommand = true'
    gpulse run --pipeline steps.ini --from b
    fails 2 "no step 'b' in .*/steps.ini"
    gpulse run --pipeline steps.ini -- true
    fails 2 'with --pipeline, commands and their options belong in the pipeline file; only --gpu-ids, .*'
    gpulse run --pipeline steps.ini --timeout 3s
    fails 2 'with --pipeline, commands and their options belong in the pipeline file; .*'
    gpulse run --from a -- true
    fails 2 '--from and --restart need --pipeline'
}

@test "errors in the request of a later step are found before the first one runs" {
    idle_gpus
    steps <<<$'[a]\ncommand = touch begun\n[b]\ncommand = true\nmem = lots'
    gpulse run --pipeline steps.ini
    status_is 2
    complains "lots"
    complains '.*/steps.ini: step b cannot run as written; no step was started'
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

@test "a signal stops all of it" {
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

@test "a hangup that is ignored, as by nohup, ends nothing" {
    idle_gpus
    steps <<<$'[a]\ncommand = echo >ready; until [ -e go ]; do sleep 0.05; done\n[b]\ncommand = touch done'
    env --ignore-signal=HUP "$GPULSE" run --pipeline steps.ini >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true test -e ready
    kill -HUP "$pid"
    touch go
    wait "$pid"
    [ -e done ]
}

@test "started where the ends of children are ignored" {
    idle_gpus
    steps <<<$'[a]\ncommand = exit 3'
    run timeout -k 1 60 env --ignore-signal=CHLD "$GPULSE" run --pipeline steps.ini
    [ "$status" -eq 3 ]
}

@test "an option that is off takes no place of another one" {
    idle_gpus
    steps <<<$'[size]\nfresh = no\nmem = 2000GiB\nfit-batch = ./train.sh {}'
    gpulse run --pipeline steps.ini --dry-run
    status_is 78
}

@test "killing it kills its step" {
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

# meet MINE OTHER: in a step, waits until the other one runs, too. A limit that only steps one after
# the other meet.
write_meet() {
    cat >meet.sh <<'END'
touch "$1.here"
i=0
until [ -e "$2.here" ]; do
    i=$((i + 1))
    [ "$i" -lt 3000 ] || exit 1
    sleep 0.01
done
echo "$1 on $CUDA_VISIBLE_DEVICES"
END
}

@test "side by side, on GPUs of the command line" {
    idle_gpus
    write_meet
    steps <<'END'
[prepare]
command = echo prepared

[a]
after = prepare
command = sh meet.sh a b

[b]
after = prepare
command = sh meet.sh b a

[join]
command = echo joined
END
    gpulse run --pipeline steps.ini --gpu-ids 1,3 --dir rec
    status_is 0
    # each has one of the two, and its name before its lines
    says '^a\| a on [13]$'
    says '^b\| b on [13]$'
    [ "$(grep -o 'on [13]' <<<"$output" | sort -u | wc -l)" -eq 2 ]
    # one that runs by itself prints as it would without gpulse
    [ "${lines[0]}" = prepared ]
    [ "${lines[-1]}" = joined ]
    # what each printed stays, for its owner alone
    grep -q '^a on [13]$' rec/2-a/output.log
    [ "$(cat rec/4-join/output.log)" = joined ]
    [ "$(stat -c %a rec/2-a/output.log)" = 600 ]
    grep -q '^  join  *ok ' rec/report.txt
    # exact GPUs of a step and a choice for all exclude each other
    steps <<<$'[a]\ncommand = true\ngpu-ids = 0,1'
    gpulse run --pipeline steps.ini --gpu-ids 1,3
    fails 2 'step a has its own gpu-ids; use gpus = N there, to choose from --gpu-ids 1,3'
    # more GPUs than there are to choose among is found before the first step
    steps <<<$'[a]\ncommand = touch begun\n[b]\ncommand = true\ngpus = 3'
    gpulse run --pipeline steps.ini --gpu-ids 1,3
    status_is 78
    complains 'steps.ini: step b cannot run as written; no step was started'
    [ ! -e begun ]
}

@test "what would run side by side" {
    idle_gpus
    steps <<'END'
[a]
command = true
[b]
after =
command = true
[c]
after = a
command = true
END
    gpulse run --pipeline steps.ini --dry-run --gpu-ids 1,3
    status_is 0
    line_count 6
    [ "${lines[0]}" = "a: gpulse run -- sh -c true" ]
    [[ ${lines[1]} =~ ^'    at once, now on GPU '[13]'; can run in parallel with b; chooses from GPUs 1,3'$ ]]
    [ "${lines[2]}" = "b: gpulse run -- sh -c true" ]
    [[ ${lines[3]} =~ ^'    at once, now on GPU '[13]'; can run in parallel with a, c; chooses from GPUs 1,3'$ ]]
    [ "${lines[5]}" = "    after a; can run in parallel with b; chooses from GPUs 1,3" ]
    # not the same one
    [ "$(grep -o 'on GPU .' <<<"$output" | sort -u | wc -l)" -eq 2 ]
    gpulse run --pipeline steps.ini --dry-run --gpu-ids 1
    says '^    at once, waits for the GPUs of the steps above; can run in parallel with a, c; chooses from GPUs 1$'
    # what is copied does the same
    steps <<<$'[a]\ncommand = echo x > out.txt && cat out.txt\n[b]\ncommand = A=1 ./b.sh\n[c]\ncommand = ./c.sh --lr=1'
    gpulse run --pipeline steps.ini --dry-run
    says "^a: gpulse run -- sh -c 'echo x > out\.txt && cat out\.txt'$"
    says "^b: gpulse run -- sh -c 'A=1 \./b\.sh'$"
    says "^c: gpulse run -- sh -c '\./c\.sh --lr=1'$"
    # nothing raw reaches the terminal
    printf '[a]\ncommand = printf \033[31mred\nenv = A=1\n' >steps.ini
    gpulse run --pipeline steps.ini --dry-run
    says '\\x1b\[31mred'
    [[ $output != *$'\033'* ]]
}

@test "a step fails: what comes after it is not started, the others finish" {
    idle_gpus
    write_meet
    cat >bad.sh <<'END'
sh meet.sh bad good
exit 3
END
    cat >good.sh <<'END'
sh meet.sh good bad
touch good.done
END
    steps <<'END'
[bad]
command = sh bad.sh
[good]
after =
command = sh good.sh
[next]
after = bad
command = touch next.done
[last]
command = touch last.done
[of-good]
after = good
command = touch of-good.done
END
    gpulse run --pipeline steps.ini
    status_is 3
    [ -e good.done ]
    [ -e of-good.done ]
    [ ! -e next.done ]
    [ ! -e last.done ]
    complains '^  bad +failed .* status 3$'
    complains '^  good +ok '
    complains '^  next +not started: bad failed$'
    complains '^  last +not started: bad failed$'
    complains '^  of-good +ok '
    gpulse explain last # the step that failed, although another ended later
    says '-bad: the job ended with status 3$'
    gpulse explain last 2
    says ': the job succeeded$'
    # what succeeded beside it is not run again
    rm good.done of-good.done
    printf 'exit 0\n' >bad.sh
    gpulse run --pipeline steps.ini
    status_is 0
    complains '^gpulse: continuing: good, of-good succeeded before '
    [ ! -e good.done ]
    [ -e last.done ]
}

@test "the batch size that one step finds is used by the next" {
    idle_gpus
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    cat >train.sh <<END
exec "$GPULSE" sim load --mem \$((400 + 100 * \$1))MiB
END
    steps <<'END'
[size]
fit-batch = sh train.sh {}
max = 4
steady = 300ms
ids = 2
[train]
command = echo "training with {batch}, {batch:size}, ${batch} {x}"
[export]
after = train
command = false
END
    gpulse run --pipeline steps.ini --dir rec
    status_is 1
    says '^training with 4, 4,  \{x\}$'
    complains '^  size +ok .* batch 4$'
    grep -Eq '"batch": ?4[,}]' rec/1-size/fit.json
    ls rec/1-size/trial-*.log
    # it is known when the pipeline continues, or begins with a later step
    sed -i 's/false/echo exported {batch:size}/' steps.ini
    gpulse run -q --pipeline steps.ini
    [ "$output" = "exported 4" ]
    gpulse run -q --pipeline steps.ini --from train
    says '^training with 4, 4, '
    # one that changed is not
    sed -i 's/max = 4/max = 3/' steps.ini
    gpulse run --pipeline steps.ini --from train
    fails 2 'step train needs the batch size of size, which is unknown; start with --from size'
    gpulse run -q --pipeline steps.ini
    says '^training with 3, 3, '
}

@test "killed in the middle, it continues there" {
    idle_gpus
    cat >two.sh <<'END'
[ -e fixed ] || { echo $$ >pid.tmp; mv pid.tmp pid; exec sleep 1000; }
echo two
END
    steps <<'END'
[one]
command = echo one
[two]
command = sh two.sh
[three]
command = echo three
END
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" run --pipeline steps.ini --dir rec >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true test -s pid
    # a second one is refused, and says who runs
    gpulse run --pipeline steps.ini
    fails 69 ".*/steps.ini is already running, as process $pid; wait until it has finished"
    kill -KILL "$pid"
    until_true is_gone "$(cat pid)"
    # the record says how far it came
    grep -q '^  one  *ok ' rec/report.txt
    grep -q '^  two  *running$' rec/report.txt
    grep -q '^  three  *not run$' rec/report.txt
    touch fixed
    gpulse run --pipeline steps.ini --dir rec
    status_is 0
    complains '^gpulse: continuing: one succeeded before '
    [ "$output" = "two
three" ]
    [ "$(cat rec/1-one/output.log)" = one ] # of the earlier run
    gpulse run -q --pipeline steps.ini --restart
    [ "${lines[0]}" = one ]
}

@test "files with steps that do not fit together" {
    idle_gpus
    steps <<<$'[a]\nafter = b\ncommand = true\n[b]\nafter = a, x'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:5: no such step: 'x'"
    steps <<<$'[a]\ncommand = true\nafter = b\n[b]\ncommand = true'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: these steps wait for each other: 'a, b'"
    steps <<<$'[a]\ncommand = true\ngpus = 0,1'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:3: gpus takes a number, not GPU ids; use 'gpu-ids = 0,1'"
    steps <<<$'[a]\ncommand = touch begun\n[b]\ncommand = train\n    --bs {batch}'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:5: \{batch\} needs exactly one fit-batch step before it; with several use \{batch:NAME\}, in 'b'"
    [ ! -e begun ]
    steps <<<$'[a]\nfit-batch = train {}\n[b]\nafter =\nfit-batch = train {}\n[c]\ncommand = train {batch}'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:7: \{batch\} needs exactly one fit-batch step before it; with several .*"
    steps <<<$'[a]\ncommand = true\n[c]\ncommand = train {batch:a}'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini:4: not a fit-batch step that it runs after: 'a'"
    steps <<<$'[a]\nfit-batch = train'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini: \[a\] needs \{\} in its command in place of the batch size"
    steps <<<$'[a]\ncommand = true\nmax = 3'
    gpulse run --pipeline steps.ini
    fails 2 ".*/steps.ini: \[a\] has options that a command does not support"
    printf '[\033[31ma]\ncommand = true\n' >steps.ini
    gpulse run --pipeline steps.ini
    status_is 2
    complains "invalid step name; use up to 63 letters, digits and"
    [[ $stderr != *$'\033'* ]]
    mkdir folder
    gpulse run --pipeline folder
    fails 2 "'folder' is a directory; --pipeline needs a file"
}

@test "output that is kept and labelled" {
    idle_gpus
    gpulse run -q --keep-output --label me --dir rec -- sh -c 'echo one; printf two; echo three >&2'
    says '^me\| one$'
    says '^me\| two$'
    [ "$stderr" = 'me| three' ]
    grep -q one rec/output.log
    grep -q two rec/output.log
    grep -q three rec/output.log
    [ -c /dev/full ] || skip "no /dev/full"
    rm rec/output.log
    ln -s /dev/full rec/output.log
    gpulse run -q --keep-output --dir rec -- sh -c 'echo one; echo two; exit 7'
    status_is 7
    [ "$output" = "one
two" ]
    complains "^gpulse: its output is not recorded: .*No space left on device"
    gpulse run --keep-output --no-record -- true
    fails 2 '--no-record and --keep-output cannot be combined'
    gpulse run --label x --no-watch -- true
    fails 2 '--label needs to watch the output; .*'
}

@test "a line without an end is not held back" {
    idle_gpus
    cat >ask.sh <<'END'
printf 'sure? '
i=0
until [ -e answer ]; do
    i=$((i + 1))
    [ "$i" -lt 3000 ] || exit 1
    echo busy >&2
    sleep 0.01
done
echo yes
END
    "$GPULSE" run -q --label me -- sh ask.sh >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true grep -q '^me| sure? ' out
    touch answer
    wait "$pid"
    [ "$(cat out)" = "me| sure? yes" ]
}

@test "Ctrl-C stops steps that run in parallel" {
    idle_gpus
    cat >wait.sh <<'END'
echo $$ >"$1.tmp"
mv "$1.tmp" "$1.pid"
exec sleep 1000
END
    steps <<'END'
[one]
command = echo one
[a]
after = one
command = sh wait.sh a
[b]
after = one
command = sh wait.sh b
END
    setsid env --default-signal=INT,QUIT,TERM "$GPULSE" run --pipeline steps.ini >out 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    until_true test -s a.pid -a -s b.pid
    kill -INT -- "-$pid" # as the keyboard does
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ]
    is_gone "$(cat a.pid)"
    is_gone "$(cat b.pid)"
    grep -q '^  one  *ok ' err
    grep -q '^  a  *failed ' err
    rm -f ./*.pid
    printf 'true\n' >wait.sh
    gpulse run --pipeline steps.ini
    status_is 0
    complains '^gpulse: continuing: one succeeded before '
}
