# gpulse mem: where the memory of the GPUs is, and what a model would need of it. Real processes on
# simulated GPUs.
# variants: asan

load helpers

# h100s N: so many GPUs of 79.65 GiB on which nothing runs.
h100s() {
    machine h100 'm["workload"] = []; m["devices"] = m["devices"][:'"$1"']'
    export GPULSE_SIM=$PWD/m.json GPULSE_SIM_STILL=1
}

# The row of a GPU or process by its beginning, with single blanks.
row() {
    local found
    found=$(grep -E -- "^ *$1 " <<<"$output" | tr -s ' ' | sed 's/^ //; s/ $//')
    [ "$found" = "$2" ] || explain "the row is '$found', expected '$2'"
}

@test "mem: a row per GPU, and the processes that use its memory" {
    h100s 2
    job --gpu 1 --mem 20GiB
    gpulse mem
    status_is 0
    is_quiet
    says '^  GPU  NAME \(MiB\) +TOTAL +RESERVED +USED +FREE +PROCESSES +UNATTRIBUTED$'
    row 0 '0 NVIDIA H100 80GB HBM3 81559 480 0 81079 0 0'
    row 1 '1 NVIDIA H100 80GB HBM3 81559 480 20480 60599 20480 0'
    says "^ +$job  .* 20480  python load --gpu 1"
    says_not context
    line_count 4
    gpulse mem -i 0
    line_count 2
    gpulse mem -i 7
    fails 3 "no GPU matches '7'; .*"
}

@test "mem: no more than a context" {
    quiet_t4
    job --mem 599MiB
    local small=$job
    job --mem 601MiB
    local large=$job
    gpulse mem
    status_is 0
    says "^ +$small  .* 599  context  "
    says "^ +$large  .* 601           python load"
    says '^context: holds about as much as a CUDA context alone, 0\.3 to 1 GiB per process and GPU$'
    gpulse mem -f json
    json_is '{p["pid"]: p["context"] for p in d["gpus"][0]["processes"]} == {'"$small: True, $large: False}" True
    json_is '[p["memory"] >> 20 for p in d["gpus"][0]["processes"]]' '[601, 599]'
}

@test "mem: graphics have no CUDA context" {
    machine t4 'm["workload"] = [{"gpus": [0], "memory_bytes": 100 << 20, "type": t, "pid": 4190001 + i, "name": t} for i, t in enumerate(("C", "G", "C+G"))]'
    GPULSE_SIM=$PWD/m.json gpulse mem -f json
    status_is 0
    json_is 'sorted((p["type"], p["context"]) for p in d["gpus"][0]["processes"])' \
        "[('C', True), ('C+G', True), ('G', False)]"
}

@test "mem: the same numbers as ps --explain" {
    local machine
    for machine in h100x8 rtx4090 a100-mig t4; do
        export GPULSE_SIM=$machine GPULSE_SIM_STILL=1
        gpulse ps --explain -f json
        local expected
        expected=$(json '[[g[k] for k in ("gpu", "total", "used", "reserved", "free", "processes", "unattributed", "verdict", "text")] for g in d["gpus"]]')
        gpulse mem -f json
        status_is 0
        json_is 'd["schema"]' gpulse.mem/1
        json_is '[[g[k] for k in ("gpu", "total", "used", "reserved", "free", "held", "unattributed", "verdict", "text")] for g in d["gpus"]]' "$expected"
    done
    json_is 'len(d["gpus"])' 1
}

@test "mem: MIG instances with their GPU" {
    export GPULSE_SIM=a100-mig GPULSE_SIM_STILL=1
    gpulse mem
    status_is 0
    says '^ +0  NVIDIA A100-SXM4-80GB +81920 '
    says '^  0:0  4190001 '
    says '^  0:2  4190002 '
    says '^  0:1  MIG 1g.20gb +19968 +0 +13 +19955$'
    line_count 8
    gpulse mem -f json
    json_is '[p["instance"] for p in d["gpus"][0]["processes"]]' '[0, 2]'
}

@test "mem: memory that is not attributed has a reason" {
    quiet_t4
    mkdir -p root/dev root/etc
    ln -s /proc root/proc
    : >root/dev/nvidia0
    cp /etc/passwd root/etc/passwd
    export GPULSE_ROOT=$PWD/root
    job --mem 5GiB --workers 1
    until_true eval '[ "$(pgrep -c -P "$job")" -eq 1 ]'
    STARTED+=("$(pgrep -P "$job")")
    kill -KILL "$job"
    until_true eval '"$GPULSE" query memory.unattributed --no-header -f csv | grep -q 5368709120'
    gpulse mem
    status_is 0
    row 0 '0 Tesla T4 15360 448 5120 9792 0 5120'
    says '^       Left over from a job that has exited\. To free it: gpulse reclaim -i 0$'
    gpulse mem -f json
    json_is 'd["gpus"][0]["verdict"], d["gpus"][0]["unattributed"], d["gpus"][0]["processes"]' \
        "('leftovers', 5368709120, [])"
}

@test "mem: GPUs that do not respond" {
    h100s 2
    fault "$GPULSE_SIM" --gpu 1 lost
    gpulse mem --timeout 2m
    status_is 6
    row 0 '0 NVIDIA H100 80GB HBM3 81559 480 0 81079 0 0'
    says '^ +1  .* - +- +- +- +- +-$'
    says '^       .*lost'
    complains '^gpulse: GPU 1: '
    gpulse mem --params 1B --timeout 2m
    status_is 6
    says '^  GPU  NAME                   ROOM-GiB  FREE-GiB  NEEDED  FITS$'
    says '^    0  NVIDIA H100 80GB HBM3 .*  fits now, '
    says '^ +1 .* - +- +-  .*lost'
    gpulse mem --params 1B --timeout 2m -f json
    status_is 6
    json_is '[(p["fits"], p["needed"], p["free"]) for p in d["places"]]' \
        "[('now', 1, 85018017792), ('unknown', None, None)]"
}

@test "mem: an estimate, every term with its formula" {
    h100s 1
    gpulse mem --params 7B --batch 4 --seq 2048 --layers 32 --hidden 4096 --vocab 32000 --heads 32
    status_is 0
    is_quiet
    says '^Estimate, not a measurement: a model of 7B parameters in bf16, trained with adamw:$'
    says '^  weights +13\.04 GiB  = 7000000000 parameters x 2 B$'
    says '^  master weights +26\.08 GiB  = 7000000000 parameters x 4 B \(.*mixed precision\)$'
    says '^  gradients +26\.08 GiB  = 7000000000 parameters x 4 B '
    says '^  optimizer state +52\.15 GiB  = 7000000000 parameters x 8 B '
    says '^  activations +34\.00 GiB  = batch 4 x seq 2048 x hidden 4096 x layers 32 x 34 B \(Korthikanti'
    says '^  attention +80\.00 GiB  = batch 4 x heads 32 x seq 2048\^2 x layers 32 x 5 B '
    says '^  logits +0\.98 GiB  = batch 4 x seq 2048 x vocab 32000 x 4 B '
    says '^  context +0\.50 GiB  = .*0\.3 to 1 GiB'
    says '^  total +232\.82 GiB  including 117\.35 GiB for the parameters, 18 bytes each$'
    says_not '^Not counted'
    gpulse mem --params 7B
    says '^Not counted: activations; add --batch, --seq, --layers and --hidden$'
    says '^Not counted: logits; '
    says '^  total +117\.85 GiB '
    gpulse mem --params 7B -f json
    json_is 'd["schema"]' gpulse.mem/1
    json_is 'd["estimate"]["states"]' 126000000000
    json_is 'd["estimate"]["total"] - d["estimate"]["states"]' 536870912
    json_is 'd["estimate"]["not_counted"]' "['activations', 'logits']"
}

@test "mem: inference, and other types of numbers" {
    h100s 1
    gpulse mem --params 7B --dtype fp16 --inference -f json
    json_is 'd["estimate"]["states"]' 14000000000
    json_is 'd["estimate"]["optimizer"]' None
    gpulse mem --params 350M --dtype int4 --inference -f json
    json_is 'd["estimate"]["states"]' 175000000
    gpulse mem --params 1.3e9 --dtype fp32 --optimizer adamw8bit -f json
    json_is 'd["estimate"]["states"]' 13000000000
    gpulse mem --params 6738415616 --dtype fp16 --inference --batch 1 --seq 4096 --layers 32 --hidden 4096
    says '^  KV cache +2\.00 GiB  = 2 x batch 1 x seq 4096 x hidden 4096 x layers 32 x 2 B '
    says_not 'gradients  '
}

@test "mem: fits now, would fit, is too big" {
    h100s 2
    job --gpu 0 --mem 60GiB
    gpulse mem --params 2B
    status_is 0
    says '^ +0 .* 79\.18 +19\.18 +1  would fit if the GPU were empty; 14\.85 GiB short now$'
    says '^ +1 .* 79\.18 +79\.18 +1  fits now, leaves 45\.15 GiB$'
    gpulse mem --params 70B
    says '^ +1 .* 79\.18 +79\.18 +15  too big by 1094\.79 GiB$'
    says '^NEEDED: .*weights, gradients and optimizer state split evenly .*ZeRO-3, FSDP'
    gpulse mem --params 2B -f json
    json_is '[(p["gpu"], p["fits"], p["needed"]) for p in d["places"]]' \
        "[(0, 'if empty', 1), (1, 'now', 1)]"
    gpulse mem --params 1000 --batch 1000 --seq 100000 --layers 100 --hidden 10000 -f json
    json_is '[(p["fits"], p["needed"]) for p in d["places"]]' "[('no', None), ('no', None)]"
    gpulse mem --params 2B -i 1 -f json
    json_is '[p["gpu"] for p in d["places"]]' '[1]'
}

@test "mem: only the instances of a GPU in MIG mode can run programs" {
    export GPULSE_SIM=a100-mig GPULSE_SIM_STILL=1
    gpulse mem --params 1B -f json
    status_is 0
    json_is '[(p["instance"], p["fits"], p["needed"]) for p in d["places"]]' \
        "[(None, 'divided', None), (0, 'if empty', 1), (1, 'now', 1), (2, 'if empty', 1), (3, 'now', 1)]"
    gpulse mem --params 7B -f json
    json_is '{(p["fits"], p["needed"]) for p in d["places"][1:]}' "{('no', None)}"
}

@test "mem: an estimate needs no GPU" {
    export GPULSE_NVML=/nonexistent
    gpulse mem --params 7B
    status_is 0
    is_quiet
    says '^  total +117\.85 GiB '
    says '^No GPU to compare with: cannot load /nonexistent: .*'
    gpulse mem --params 7B -f json
    status_is 0
    json_is 'd["estimate"]["states"], d["places"], d["driver"]' '(126000000000, [], None)'
    json_is 'd["reason"].startswith("cannot load"), bool(d["host"]), bool(d["time"])' \
        '(True, True, True)'
    gpulse mem --params 7B -i 0 # asked for, and not there
    status_is 4
    [ -z "$output" ]
    gpulse mem
    status_is 4
    unset GPULSE_NVML
    gpulse --sim no-such mem --params 7B
    fails 2 "unknown simulated machine 'no-such'; .*"
}

@test "mem: wrong usage says what and how to mend it" {
    export GPULSE_SIM=t4
    local value
    for value in 8x7B 7G 0 -1 7e-3 '' nan; do
        gpulse mem "--params=$value"
        fails 2 "bad value '$value' for --params; expected a number of parameters, such as 7B, 350M or 1\.3e9"
    done
    gpulse mem --dtype fp16
    fails 2 '--dtype needs a model; give its size, for example --params 7B'
    gpulse mem --heads 8
    fails 2 '--heads needs a model; .*'
    gpulse mem --inference
    fails 2 '--inference needs a model; .*'
    gpulse mem --params 7B --dtype fp99
    fails 2 "bad value 'fp99' for --dtype.* fp32 tf32 bf16 fp16 int8 int4"
    gpulse mem --params 7B --dtype fp16,bf16
    fails 2 '--dtype takes one of: .*'
    gpulse mem --params 7B --optimizer sgd,adam
    fails 2 '--optimizer takes one of: .*'
    gpulse mem --params 7B --inference --optimizer adam
    fails 2 '--optimizer and --inference cannot be combined'
    gpulse mem --params 7B --dtype int8
    fails 2 'int8 weights cannot be trained; add --inference, .*'
    gpulse mem --params 7B --batch 4 --seq 100 --layers 3
    fails 2 '--layers needs --hidden: .*'
    gpulse mem --params 7B --batch 4
    fails 2 '--batch needs --seq: .*'
    gpulse mem --params 7B --vocab 32000
    fails 2 '--vocab needs --batch: .*'
    gpulse mem --params 7B --batch 4 --seq 100
    fails 2 '--batch and --seq count only with --layers and --hidden .*'
    gpulse mem --params 7B --batch 0
    status_is 2
    gpulse mem --params 7B --batch 4000000000 --seq 1 --vocab 1
    fails 2 '--batch takes at most 1000000000'
    gpulse mem --params 7B --batch 1000000000 --seq 1000000000 --vocab 1000000000
    fails 2 'such a model needs more than 8 EiB; .*'
    gpulse mem --params 8e18
    fails 2 'such a model needs more than 8 EiB; .*'
    gpulse mem 7B
    fails 2 "mem takes no arguments, got '7B'; .*"
    gpulse mem -f table,json
    fails 2 '--format takes one of: table json'
}

@test "mem: the numbers are printed even if the search for holders fails" {
    export GPULSE_SIM=t4 GPULSE_SIM_STILL=1
    mkdir empty
    gpulse --root "$PWD/empty" mem
    status_is 1
    says '^ +0  Tesla T4 +15360 +448 '
    complains '^gpulse: /proc cannot be read$'
    gpulse --root "$PWD/empty" mem -f json
    status_is 1
    json_is '[(g["verdict"], g["text"], g["total"] >> 20) for g in d["gpus"]]' "[(None, None, 15360)]"
}
