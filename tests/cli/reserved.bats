# Reservations of gpulse run in all views: status, ps, mem, query, top, and their JSON.
# variants: asan

load helpers

# holds EXPRESSION: Python's, about the JSON output d.
holds() {
    python3 -c 'import json, sys, time, calendar
d = json.loads(sys.argv[1])
sys.exit(not eval(sys.argv[2]))' "$output" "$1" || explain "not true: $1"
}


# The training of mia has GPUs 0 to 3, and GPU 6, on which nothing runs.
with_idle() {
    machine h100 "m['host']['leases'][0]['gpus'].append(6)"
}

@test "status names who has reserved a GPU without processes" {
    with_idle
    gpulse --sim ./m.json status --no-header
    status_is 0
    says '^\[6\] .* 0 / 81559 MiB \| reserved by mia \(llama-8b\)$'
    says '^\[7\] .* 0 / 81559 MiB \|$'
    says '^\[0\] .* \| mia\([0-9]+MiB\)$'
    gpulse --sim ./m.json status --no-header --no-processes
    says_not reserved
}

@test "a long command is cut in status, and whole in JSON" {
    machine h100 "l = m['host']['leases'][0]; l['gpus'].append(6); l['name'] = ''; l['command'] = 'python train.py --config ' + 'x' * 60"
    gpulse --sim ./m.json status --no-header -i 6
    says 'reserved by mia \(python train\.py --[^ ]*…\)$'
    gpulse --sim ./m.json status --json -i 6
    holds 'd["gpus"][0]["reservation"]["name"] == "python train.py --config " + "x" * 60'
    holds 'd["gpus"][0]["reservation"]["user"] == "mia" and d["gpus"][0]["reservation"]["since"][10] == "T"'
    gpulse --sim ./m.json status --json -i 7
    holds '"reservation" not in d["gpus"][0]'
}

@test "query: the fields, and why there are none" {
    with_idle
    gpulse --sim ./m.json query index,reservation.user,reservation.name -i 5,6 -f csv --no-header
    says '^5,\[N/A\],\[N/A\]$'
    says '^6,mia,llama-8b$'
    gpulse --sim ./m.json query reservation.user,reservation.since -i 5,6 -f json
    holds 'd["gpus"][0]["reservation.user"] is None and d["gpus"][0]["reasons"]["reservation.user"] == "not reserved"'
    holds 'd["gpus"][1]["reservation.user"] == "mia" and d["gpus"][1]["reservation.since"][10] == "T"'
}

@test "jobs that share a GPU are all named, in order, with the earliest time" {
    machine h100 "m['host']['leases'].append({'user': 'jon', 'pid': 4190001, 'gpus': [0], 'age_s': 90000, 'name': 'eval', 'command': 'x', 'bytes': 1 << 30}); m['host']['leases'][0]['bytes'] = 1 << 33"
    gpulse --sim ./m.json query reservation.user,reservation.name,reservation.since -i 0 -f json
    holds 'd["gpus"][0]["reservation.user"] == "jon, mia" and d["gpus"][0]["reservation.name"] == "eval, llama-8b"'
    holds 'time.time() - calendar.timegm(time.strptime(d["gpus"][0]["reservation.since"][:19], "%Y-%m-%dT%H:%M:%S")) > 40000'
}

@test "ps has a line for a reserved GPU without processes" {
    with_idle
    gpulse --sim ./m.json ps
    status_is 0
    says '^4189103 +mia +- +6 .* 7h[0-9]{2}m +- +\(reserved\) llama-8b$'
    says '^4190001 +mia +48213\.0 +0 '
    gpulse --sim ./m.json ps -u jon
    says_not reserved
    gpulse --sim ./m.json ps -f csv
    says_not llama-8b$
    gpulse --sim ./m.json ps -f json
    holds '[r["gpu"] for r in d["reservations"]] == ["0", "1", "2", "3", "6"] and d["reservations"][4]["name"] == "llama-8b"'
    holds 'all(p["pid"] for p in d["processes"])'
    gpulse --sim ./m.json ps --by user
    says_not '^mia .* 5 '
}

@test "mem says it below the GPU, and in JSON" {
    with_idle
    gpulse --sim ./m.json mem -i 5,6
    status_is 0
    [ "$(grep -c 'reserved by' <<<"$output")" -eq 1 ]
    says '^       reserved by mia \(llama-8b\)$'
    gpulse --sim ./m.json mem -i 5,6 -f json
    holds 'd["gpus"][0]["reservation"] is None and d["gpus"][1]["reservation"]["name"] == "llama-8b"'
}

@test "pick says it in JSON" {
    # memory that is freed too early does not stay as it was
    MALLOC_PERTURB_=165 gpulse --sim h100x8 pick -f json
    status_is 0
    holds '[(g["reservation"] or {}).get("name") for g in d["gpus"]] == 4 * ["llama-8b"] + 4 * [None]'
}

@test "top says it in words" {
    with_idle
    gpulse --sim ./m.json top --plain -c 1
    says '^GPU 6 .*, reserved by mia, for llama-8b$'
    says_not '^GPU 5 .*reserved by'
}

@test "a job of gpulse run is shown as soon as it has its GPU, and no longer than that" {
    is_reserved() {
        gpulse --sim h100x8 status --no-header -i 7
        [[ $output == *"reserved by $(id -un) (nightly)"* ]]
    }
    is_free() {
        gpulse --sim h100x8 status --no-header -i 7
        [[ $output != *reserved* ]]
    }
    started "$GPULSE" --sim h100x8 run --name nightly --gpu-ids 7 -- sleep 1000
    until_true is_reserved
    gpulse --sim h100x8 query reservation.name -i 7 -f csv --no-header
    [ "$output" = nightly ]
    kill "$pid"
    until_true is_free
}

@test "leases are read only if a value needs them" {
    command -v strace > exists || skip "no strace"
    export ASAN_OPTIONS=detect_leaks=0 # LeakSanitizer does not work below strace
    strace -f -e trace=openat -o calls "$GPULSE" --sim h100x8 query memory.used > /dev/null || skip "no ptrace"
    [ "$(grep -c 'gpulse-simulated' calls)" -eq 0 ]
    strace -f -e trace=openat -o calls "$GPULSE" --sim h100x8 query reservation.user > /dev/null
    grep -q 'gpulse-simulated' calls
}

@test "a loop sees reservations come and go, and reads the folders only then" {
    quiet_t4
    "$GPULSE" query reservation.name -f csv --no-header -n 0.1 -o out 3>&- &
    STARTED+=("$!")
    until_true grep -q N/A out
    gpulse run --name short -- sh -c 'until grep -q short out; do sleep 0.05; done'
    status_is 0
    lines_before=$(wc -l <out)
    until_true sh -c "tail -n +$((lines_before + 2)) out | grep -q N/A"
}

@test "what does not change is not read again" {
    command -v strace >/dev/null || skip "strace is not installed"
    export ASAN_OPTIONS=detect_leaks=0 # LeakSanitizer does not work below strace
    quiet_t4
    strace -f -e trace=openat,getdents64 -o calls "$GPULSE" query reservation.name -n 0.1 -c 20 >/dev/null
    # listed at the first sample, at the second one, which begins to watch them, and after 8 seconds
    [ "$(grep -c 'getdents64' calls)" -lt 60 ]
}
