#!/usr/bin/env bats
# gpulse doctor advise and gpus. What is advised on whole machines stands in tests/doctor.

load helpers

# root GPU DRIVER: a machine with this GPU (a PCI device id) and driver, in the folder root
root() {
    local device=root/sys/bus/pci/devices/0000:01:00.0
    rm -rf root
    mkdir -p "$device" root/sys/module/nvidia root/etc
    echo 0x10de >"$device/vendor"
    echo "0x$1" >"$device/device"
    echo 0x030000 >"$device/class"
    echo "$2" >root/sys/module/nvidia/version
    printf 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04"\n' >root/etc/os-release
}

@test "the same question has another answer on another machine" {
    root 2684 595.71.05 # RTX 4090
    gpulse doctor --root root advise torch
    status_is 0
    is_quiet
    says '^PyTorch [0-9.]+ for CUDA 13.0$'
    says 'pip install torch==[0-9.]+ torchvision --index-url https://download.pytorch.org/whl/cu130'
    says_not '^ +newer '
    root 1b80 550.54.15 # GTX 1080
    gpulse doctor --root root advise torch
    status_is 0
    says '^PyTorch [0-9.]+ for CUDA 12.6$'
    says 'has no code for GPUs of compute capability 6.1'
    says 'whl/cu126'
}

@test "what a newer driver would allow" {
    root 2684 550.54.15
    gpulse doctor --root root advise torch
    says '^ +newer +with driver 580.65.06 or newer: PyTorch [0-9.]+ for CUDA 13.0$'
    gpulse doctor --root root advise cuda
    says '^CUDA Toolkit 12.4.1$'
    says 'sudo apt install cuda-toolkit-12-4'
}

@test "advice is given for a machine that is only named" {
    for words in "rtx 4090" rtx4090 "NVIDIA GeForce RTX 4090" 8.9; do
        gpulse doctor advise torch --gpu "$words" --driver 550
        status_is 0
        says '^not this machine: commands for .*, driver 550, which implements CUDA 12.4$'
        says '^GPU: (.*, )?Ada Lovelace, compute capability 8.9$'
        says 'whl/cu126'
    done
    gpulse doctor advise driver --gpu 'K80,RTX 5090'
    status_is 1
    says '^no driver supports all of these GPUs: GPUs of compute capability 3.7 and 12.0$'
}

@test "sources are shown when they are requested" {
    gpulse doctor advise jax --gpu H100
    says_not 'source'
    gpulse doctor advise jax --gpu H100 --sources
    says '^ +source +jax release'
    gpulse doctor gpus A100 --sources
    [ "$(grep -c '^ *source  A100 datasheet' <<<"$output")" -eq 4 ] || explain "sources are missing"
}

@test "advice as JSON" {
    root 2b85 570.124.06 # RTX 5090
    gpulse doctor --root root advise torch --json
    json_is 'd["schema"]' gpulse.advice/1
    json_is 'd["subject"], d["driver"], d["compute_capabilities"]' "('torch', '570.124.06', ['12.0'])"
    json_is 'd["advice"][0]["fits"], d["advice"][0]["commands"][0]["note"]' "(True, 'with pip')"
    json_is '[f["text"] for f in d["advice"][0]["facts"] if f["about"] == "newer"]' \
        "['with driver 580.65.06 or newer: PyTorch 2.14.0 for CUDA 13.0']"
    gpulse doctor advise torch --gpu 3.0 --format json
    status_is 1
    json_is 'd["driver"], d["advice"][0]["fits"]' "(None, False)"
}

@test "what is not known is said to be" {
    gpulse doctor advise
    fails 2 'advise takes one of: torch, tensorflow, jax, cuda, driver'
    gpulse doctor advise toch
    fails 2 "unknown subject 'toch' \(did you mean 'torch'\?\); use torch, .*"
    gpulse doctor advise torch --gpu 'RTX 4091'
    fails 2 "unknown GPU model 'RTX 4091' \(did you mean 'RTX 4090'\?\); gpulse doctor gpus lists them"
    gpulse doctor advise torch --gpu RTX
    fails 2 "'RTX' is ambiguous: .* or .*"
    gpulse doctor advise torch --gpu 99.9
    fails 2 "unknown compute capability '99.9'"
    gpulse doctor advise torch --gpu ,
    fails 2 '--gpu names no model'
    for driver in x 12 -1 ''; do
        gpulse doctor advise torch --driver "$driver"
        fails 2 "'$driver' is not a driver version; use one like 550.54.15"
    done
    gpulse doctor gpus H1000
    fails 2 "unknown GPU model 'H1000'.*; gpulse doctor gpus lists all models"
}

@test "the list of all models fits a terminal" {
    gpulse doctor gpus
    status_is 0
    is_quiet
    says '^Hopper, compute capability 9.0: from CUDA 11.8 and driver 520 on$'
    says '^Kepler, compute capability 3.7: CUDA 6.5 to 11.8, driver 340 to 470$'
    [ "$(python3 -c 'import sys; print(max(map(len, sys.stdin.read().split("\n"))))' <<<"$output")" \
        -le 80 ] || explain "a line is too long"
    gpulse doctor gpus --json
    json_is 'd["schema"], len(d["models"])' "('gpulse.models/1', 106)"
}

@test "models are found by parts of their names, and one is told in detail" {
    gpulse doctor gpus h100
    status_is 0
    says '^NVIDIA H100 SXM5 +80 +3352 +67.0 +495 +989 +1979 +- +700$'
    says '^NVIDIA H100 NVL'
    says_not 'A100'
    gpulse doctor gpus gtx 1080 # not the 1080 Ti
    says '^GeForce GTX 1080$'
    says '^  BF16 +no  \(requires compute capability 8.0\)$'
    says '^  FP16 +\?  rate unknown$'
    gpulse doctor gpus 'NVIDIA H100 80GB HBM3' # as its driver calls it
    says '^  FP8 +1979 TFLOP/s$'
    says '^  FP4 +no '
    gpulse doctor gpus 'rtx 4090' --json
    json_is 'd["models"][0]["tflops"]["fp16_fp32"], d["models"][0]["tflops"]["fp4"]' '(165.2, None)'
}

@test "whether one version works: yes, no and what instead, unknown" {
    gpulse doctor advise torch==2.8 --gpu 'RTX 5090' --driver 560
    status_is 1
    says '^no: PyTorch 2.8 does not work with GPUs of compute capability 12.0 and driver 560$'
    says '^      why    Driver 560 is too old for these GPUs, which need [0-9]+ or newer; PyTorch 2.8.0 for CUDA 12.8 needs 570 or newer\.$'
    says '^      run    gpulse doctor advise driver --gpu "RTX 5090"   # find the right driver$'
    says_not 'pip install'
    says '^GPU: RTX 5090, Blackwell, compute capability 12.0$'
    gpulse doctor advise 'pytorch 2.8' --gpu 'RTX 5090' --driver 580
    status_is 0
    gpulse doctor advise torch --gpu 'RTX 5090' --driver 560
    status_is 1
    says '^      run    gpulse doctor advise driver --gpu "RTX 5090"   # find the right driver$'
    gpulse doctor advise torch 2.8 --gpu 'RTX 5090' --driver 580
    status_is 0
    says '^yes: PyTorch 2.8.0 for CUDA 12.8 works with GPUs of compute capability 12.0 and driver 580$'
    says_not 'conda' # which cannot be told the version of a wheel
    gpulse doctor advise torch==2.7 --gpu 'GTX 1080,RTX 5090' --driver 580
    status_is 1
    gpulse doctor advise torch==2.5 --gpu 'RTX 5090' --driver 580
    says '^      why    PyTorch 2.5.1 for CUDA 12.4 has no code for GPUs of compute capability 12.0\.$'
    says '^      or     PyTorch .* works: gpulse doctor advise torch --gpu .* --driver [0-9.]+ shows how to install it$'
    gpulse doctor advise jax==99 --gpu H100
    status_is 1
    says "^JAX 99 is not in gpulse's tables$"
    gpulse doctor advise torch==2.8 --gpu 'RTX 5090' --driver 560 --json
    json_is 'd["advice"][0]["fits"]' False
    gpulse doctor advise torch==2.8+cu128 --gpu H100
    fails 2 "'2.8\+cu128' is not a version; use one like torch==2.8"
    gpulse doctor advise driver==580
    fails 2 'only torch, tensorflow and jax take a version'
    gpulse doctor advise torch 2.8 2.9
    fails 2 'advise takes one of torch, tensorflow, jax, cuda, driver, optionally with a version, as in torch==2.8'
}

@test "a simulated machine is asked, whether or not it has files" {
    gpulse --sim t4 doctor advise torch
    status_is 0
    says 'driver 595\.91\.07'
    says '^GPU: Turing, compute capability 7\.5$'
    gpulse --sim h100x2 doctor advise torch==2.8
    status_is 0
    says '^Ubuntu 24\.04.*, driver 580\.105\.08'
    says '^2 GPUs: GH100 \[H100 SXM5 80GB\], compute capability 9\.0$'
    says '^yes: PyTorch 2\.8\.0 for CUDA 12\.8 works with GPUs of compute capability 9\.0'
    gpulse --sim p100 doctor advise torch==2.8
    status_is 1
    says '^      why    PyTorch 2\.8\.0 for CUDA 12\.6 needs driver 525\.60\.13 or newer\.$'
}

@test "one truth about the driver: in the answer, in the reason and in what follows" {
    gpulse doctor advise torch==2.8 --gpu h100
    says '^yes: PyTorch 2.8.0 for CUDA 12.8 works with .* 9.0, with driver 525.60.13 or newer$'
    says_not 'any driver'
    gpulse doctor advise torch==2.8 --gpu h100 --driver 515.43.04
    says '^      why    Driver 515.43.04 is too old for these GPUs, which need [0-9]+ or newer; PyTorch 2.8.0 for CUDA 12.8 needs 525.60.13 or newer\.$'
    says '^      run    gpulse doctor advise driver --gpu h100 '
    says_not 'pip install'
    gpulse doctor advise torch==2.8 --gpu 'RTX 4090' --driver 520
    says 'gpulse doctor advise torch --gpu "RTX 4090" --driver 520 shows how to install it$'
}
