#!/usr/bin/env bats
# gpulse smi conf-compute, c2c, vgpu. The capture: check_smi_platform.py.
# variants: asan

load helpers

smi() {
    gpulse smi "$@" --sim-still --root "$BATS_TEST_TMPDIR"
}

@test "conf-compute: one line for each thing" {
    machine h100 'm["system"].update(cc_cpu=2, cc_environment=2, cc_feature=1, cc_dev_tools=1, cc_multi_gpu=1)'
    smi conf-compute -f --sim ./m.json
    status_is 0
    [ "$output" = "CC status: ON" ]
    smi conf-compute -e -d -gc -gg -mgm -grs --sim ./m.json
    status_is 0
    [ "$output" = "Multi-GPU Mode: Protected PCIe
CPU CC capabilities: INTEL TDX
GPU CC capabilities: CC Capable

Confidential Compute GPUs Ready state: not-ready

CC Environment: PRODUCTION
DevTools Mode: ON" ]
    smi conf-compute --get-cc-feature --sim h100x1
    [ "$output" = "CC status: OFF" ]
}

@test "conf-compute: a driver without it, and options that cannot be combined" {
    smi conf-compute -f --sim t4,driver=470
    status_is 3
    smi conf-compute --sim h100x1 # the common options ask for nothing
    status_is 0
    [ "${lines[0]}" = "nvidia-smi conf-compute [options]" ]
    smi conf-compute -q -f --sim h100x1
    status_is 2
    smi conf-compute -x --sim h100x1
    status_is 2
    [ "$output" = 'Option "-x" is not recognized.' ]
}

@test "c2c -s: the links to the processor" {
    machine gb200 'm["devices"] = m["devices"][:1]; m.pop("workload", None)
d["fields"] = {"170": 3, "171": 1, "171/1": 1, "171/2": 0, "172": 44712}'
    smi c2c -s --sim ./m.json
    status_is 0
    [ "${lines[0]}" = "GPU 0: NVIDIA GB200 (UUID: GPU-00000000-0000-0000-0000-000000000000)" ]
    [ "${lines[1]}" = "$(printf '\t C2C Link 0: 44.712 GB/s')" ]
    [ "${lines[2]}" = "$(printf '\t C2C Link 1: 44.712 GB/s')" ]
    [ "${lines[3]}" = "$(printf '\t C2C Link 2: <inactive>')" ]
    [ "${#lines[@]}" -eq 4 ]
    smi c2c -s --sim t4
    status_is 3
    [ "$output" = "No Devices support C2C." ]
    smi c2c --sim t4
    status_is 0
    [ "${lines[0]}" = "nvidia-smi c2c [options]" ]
}

@test "vgpu: where no GPU is divided among guests, and where one is" {
    smi vgpu --sim t4
    status_is 0
    [ "$output" = "No supported devices in vGPU mode" ]
    machine t4 'd["answers"]["VirtualizationMode"] = "Host VGPU"'
    smi vgpu -q --sim ./m.json
    status_is 3
    [ "$output" = "gpulse: GPU 0 is divided among guests (Host VGPU); NVIDIA's own nvidia-smi can show them." ]
}

@test "their help" {
    local command
    for command in conf-compute c2c vgpu; do
        gpulse smi $command -h
        status_is 0
        [[ "$output" = "nvidia-smi $command [options]"*"-h, --help"* ]]
    done
}

@test "clocks: what it would do has no public call" {
    local words
    for words in --sync-boost-list "-i 0 --sync-boost-add" "--sync-boost-remove 0"; do
        # shellcheck disable=SC2086
        smi clocks --sim h100x2 $words
        status_is 3
        [ "${lines[0]}" = "Synchronized boost groups are not supported." ]
    done
    smi clocks --sim h100x2
    status_is 0
    [ "${lines[0]}" = "nvidia-smi clocks [options]" ]
    smi clocks -h
    status_is 0
    [[ "$output" = *" --sync-boost-remove=GROUP "* ]]
}
