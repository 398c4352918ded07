# What happened between two samples: rates, peaks, GPM, energy, memory accounts.
# variants: asan

load helpers

@test "a single sample has rates: it takes a first sample for them itself" {
    gpulse --sim h100x8 query 'throttle.sw_power_cap,pcie.throughput.tx,gpm.sm.active' -i 0 -f json
    status_is 0
    json_is 'all(d["gpus"][0][k] > 0 for k in ("throttle.sw_power_cap", "pcie.throughput.tx", "gpm.sm.active"))' True
}

@test "what comes before a counter in the first reading does not count for its rate" {
    fault h100x1 --gpu 0 slow=600ms:nvmlDeviceGetBrand
    gpulse --sim h100x1 query brand,throttle.sw_power_cap -f csv --no-header
    awk -F, -v n="${output##*,}" 'BEGIN { exit !(n > 90) }'
}

@test "without rates one sample is one sample" {
    export GPULSE_SIM_COUNT=$BATS_TEST_TMPDIR/count
    gpulse --sim h100x1 query utilization.gpu
    [ "$(grep -c . "$GPULSE_SIM_COUNT")" -gt 0 ]
    grep -qx "nvmlDeviceGetUtilizationRates 1" "$GPULSE_SIM_COUNT"
    run ! grep -q "Gpm\|GetSamples\|PcieThroughput\|FieldValues" "$GPULSE_SIM_COUNT"
}

@test "GPM needs a Hopper" {
    gpulse --sim t4 query 'gpm.sm.active' -f json
    json_is 'd["gpus"][0]["gpm.sm.active"], d["gpus"][0]["reasons"]["gpm.sm.active"]' \
        "(None, 'not supported')"
}

@test "GPM that is forbidden says so, and the rest is there" {
    fault h100x1 --gpu 0 deny:nvmlGpmSampleGet
    gpulse --sim h100x1 query index,gpm.sm.active -f csv --no-header
    [ "$output" = "0,[Insufficient Permissions]" ]
}

@test "GPM that is no number is an error, not a number" {
    fault h100x1 --gpu 0 absurd:nvmlGpmSampleGet
    gpulse --sim h100x1 query gpm.sm.active -f csv --no-header
    [ "$output" = "[Unknown Error]" ]
}

@test "PCIe is counted where there are counters, and measured where not" {
    export GPULSE_SIM_COUNT=$BATS_TEST_TMPDIR/count
    gpulse --sim h100x1 query pcie.throughput.tx,pcie.throughput.rx
    run ! grep -q PcieThroughput "$GPULSE_SIM_COUNT"
    gpulse --sim t4 query pcie.throughput.tx --sim-still -f csv --no-header
    grep -q "nvmlDeviceGetPcieThroughput [12]$" "$GPULSE_SIM_COUNT"
    awk -v n="$output" 'BEGIN { exit !(n > 0) }'
}

@test "energy grows, and the processes share it" {
    gpulse --sim h100x1 query energy.consumption -n 0.3 -c 2 -f csv --no-header
    awk -v a="${lines[0]}" -v b="${lines[1]}" 'BEGIN { exit !(b > a) }'
    gpulse --sim h100x1 query process.energy,process.power --processes -n 0.3 -c 2 -f csv --no-header
    awk -F, -v a="${lines[0]}" -v b="${lines[1]}" \
        'BEGIN { split(a, x); split(b, y); exit !(y[1] > x[1] && x[1] > 0 && x[2] > 100) }'
}

@test "memory that no process accounts for" {
    gpulse --sim h100x1 --sim-still query memory.used,memory.processes,memory.unattributed -f csv --no-header
    IFS=, read -r used processes rest <<<"$output"
    [ "$rest" -eq $((used - processes)) ]
    [ "$processes" -gt 0 ]
}

@test "the memory of a GPU's instances counts for the GPU" {
    gpulse --sim a100-mig --sim-still query index,mig.index,memory.processes --mig -f csv --no-header
    [ "$(awk -F, '$2 == "[N/A]" { print $3 }' <<<"$output")" -eq \
      "$(awk -F, '$2 != "[N/A]" { sum += $3 } END { printf "%.0f", sum }' <<<"$output")" ]
}

@test "who may not list processes gets no account" {
    fault h100x1 --gpu 0 deny:nvmlDeviceGetComputeRunningProcesses
    gpulse --sim h100x1 query memory.unattributed -f json
    json_is 'd["gpus"][0]["reasons"]["memory.unattributed"]' "no permission"
}

@test "a driver without samples still reports peaks" {
    fault t4 --gpu 0 error=NOT_FOUND:nvmlDeviceGetSamples
    gpulse --sim t4 --sim-still query utilization.gpu,utilization.gpu.peak -f csv --no-header
    [ "$output" = "38,38" ]
}
