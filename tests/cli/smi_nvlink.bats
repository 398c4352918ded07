#!/usr/bin/env bats
# gpulse smi nvlink: options, counters, errors. The captures: check_smi_nvlink.py.
# variants: asan

load helpers

nvlink() {
    gpulse smi nvlink --sim-still --root "$BATS_TEST_TMPDIR" "$@"
}

@test "nvlink -s of one link and of one GPU" {
    nvlink --sim h100x8 -s -l 3 -i 2
    status_is 0
    [ "$output" = "GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-00000002-0000-0000-0000-000000000002)
$(printf '\t Link 3: 26.562 GB/s')" ]
}

@test "nvlink -s of links of which some are down" {
    machine a100 'd["lists"]["nvlinks"] = [{"speed_mbps": 25781}, {"state": 0}, {"speed_mbps": 25000}]'
    nvlink --sim ./m.json --status
    status_is 0
    [ "${lines[1]}" = "$(printf '\t Link 0: 25.781 GB/s')" ]
    [ "${lines[2]}" = "$(printf '\t Link 1: <inactive>')" ]
    [ "${lines[3]}" = "$(printf '\t Link 2: 25 GB/s')" ]
    nvlink --sim ./m.json -p
    [ "${#lines[@]}" -eq 3 ]
}

@test "nvlink -s where all links are down: the word depends on the driver" {
    machine a100 'd["lists"]["nvlinks"] = [{"repeat": 12, "state": 0}]'
    nvlink --sim ./m.json -s
    status_is 0
    [ "${lines[1]}" = "NVML: Unable to retrieve Nvlink information as all links are inActive" ]
    nvlink --sim ./m.json,driver=535 -s
    [ "${lines[1]}" = "NVML: Unable to retrieve NVLink information as all links are inActive" ]
}

@test "nvlink -e has other counters with NVLink 5" {
    nvlink --sim h100x1 -e -l 0
    status_is 0
    [ "${#lines[@]}" -eq 4 ]
    [ "${lines[3]}" = "$(printf '\t Link 0: CRC Errors: 0')" ]
    nvlink --sim b200 -i 0 -e -l 0
    status_is 0
    [ "${lines[2]}" = "$(printf '\t Link 0: Tx bytes: 940312212480')" ]
    [ "${lines[16]}" = "$(printf '\t Link 0: Effective BER: 1e-15')" ]
    [ "${lines[19]}" = "$(printf '\t Link 0: FEC Errors - 0: 36140749276')" ]
    [ "${#lines[@]}" -eq 35 ]
}

@test "nvlink -gt d and -gt r" {
    nvlink --sim h100x1 -gt d -l 17
    status_is 0
    [ "${lines[1]}" = "$(printf '\t Link 17: Data Tx: 918273645 KiB')" ]
    [ "${lines[2]}" = "$(printf '\t Link 17: Data Rx: 918371546 KiB')" ]
    nvlink --sim h100x1 --getthroughput=r -l 17
    [ "${lines[1]}" = "$(printf '\t Link 17: Raw Tx: 975665747 KiB')" ]
    nvlink --sim b200 -i 0 -gt r -l 0
    [ "${lines[1]}" = "$(printf '\t Link 0: Raw Tx: N/A')" ]
}

@test "nvlink of a GPU without links, and in MIG mode" {
    nvlink --sim t4 -e
    status_is 0
    [ "${lines[1]}" = "Device does not have or support Nvlink" ]
    nvlink --sim a100-mig -e
    [ "${lines[1]}" = "Nvlink queries are not supported for Devices in MIG mode" ]
}

@test "nvlink refuses unknown options" {
    nvlink --sim h100x1
    status_is 0
    [ "${lines[0]}" = "nvidia-smi nvlink [options]" ]
    nvlink --sim h100x1 -s -e
    status_is 2
    nvlink --sim h100x1 -gt x
    status_is 2
    [ "$output" = 'Option "x" is invalid for "-gt".' ]
    nvlink --sim h100x1 -s -l x
    status_is 2
    nvlink --sim h100x1 -s -l 99
    status_is 2
    [ "$output" = 'Option "99" is invalid for "-l".' ]
    nvlink --sim h100x1 -gt
    status_is 2
    [ "$output" = 'Option "-gt" is missing its value.' ]
    nvlink --sim h100x1 -s -i 7
    status_is 6
    [ "$output" = "No devices were found" ]
}

@test "nvlink: a link of a GPU that has none to show is no wrong link" {
    nvlink --sim h100-mig -s -l 0
    status_is 0
    [ "${lines[1]}" = "Nvlink queries are not supported for Devices in MIG mode" ]
}

@test "nvlink: the counters of older drivers" {
    local words
    for words in "-g 0" "-sc 0bz" -gc "-r 0"; do
        # shellcheck disable=SC2086
        nvlink --sim h100x1 $words
        status_is 3
        [ "${lines[0]}" = "NVLink utilization counters are not supported." ]
    done
}

@test "nvlink -h lists every option" {
    nvlink -h
    status_is 0
    [[ "$output" = *" -R, --remotelinkinfo "*" -gt, --getthroughput=WHAT "* ]]
}
