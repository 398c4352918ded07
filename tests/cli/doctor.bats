#!/usr/bin/env bats
# gpulse doctor: its options, its output as JSON, explain, and following the log. What it says of
# machines is in tests/doctor.
# variants: asan tsan

load helpers

# root DISTRIBUTION: a machine without anything but its distribution
root() {
    mkdir -p root/etc root/var/log root/sys/bus/pci/devices
    printf 'ID=%s\nPRETTY_NAME="%s"\n' "$1" "$2" >root/etc/os-release
}

# pci ADDRESS: an H100
pci() {
    local at=root/sys/bus/pci/devices/$1
    mkdir -p "$at"
    echo 0x10de >"$at/vendor"
    echo 0x030200 >"$at/class"
    echo 0x2330 >"$at/device"
}

# says_in FILE REGEX
says_in() {
    grep -Eq -e "$2" "$1"
}

xid79='NVRM: Xid (PCI:0000:05:00): 79, pid=1, name=x, GPU has fallen off the bus.'
xid31='NVRM: Xid (PCI:0000:05:00): 31, pid=871, name=python, Ch 00000018, MMU Fault'

@test "a machine without a GPU: one sentence, what to do, and no problem" {
    root debian "Debian GNU/Linux 12 (bookworm)"
    gpulse --root root doctor
    status_is 0
    is_quiet
    says '^Debian GNU/Linux 12 \(bookworm\)'
    says '^info  hardware\.present: this machine has no GPU: Linux finds none from NVIDIA, AMD or Intel$'
    says '/sys/module: no driver of a GPU is loaded$'
    says '/dev: no device file of a GPU$'
    says '^      why       CUDA, ROCm and other programs that need a GPU fail here'
    says '^no GPU was examined: this machine has none$'
    says '^      fix       if there should be one: '
    says ' 0 warnings, 0 failed( \(-v lists all\))?$'
    says_not '^(warn|fail|skip)|Do this first'
}

@test "checks that are chosen, and words that are none" {
    root ubuntu "Ubuntu 24.04.1 LTS"
    pci 0000:05:00.0
    gpulse --root root doctor --only hardware -v
    status_is 0
    says '^ok    hardware\.present: 1 GPU: H100 '
    says_not '^[a-z]+ +(driver|cuda)\.'
    gpulse --root root doctor --only hardware.present -v
    [ "$(grep -c '^ok' <<<"$output")" -eq 1 ]
    gpulse --root root doctor --skip hardware,driver -v
    says_not '^[a-z]+ +(hardware|driver)\.'
    gpulse doctor --only ''
    fails 2 '--only: missing checks or groups; gpulse doctor --list shows them'
    gpulse doctor --only hardware,drivr
    fails 2 "--only: unknown check or group 'drivr'; gpulse doctor --list shows them"
    gpulse doctor --skip cuda.no-such
    fails 2 "--skip: unknown check or group 'cuda\.no-such'; .*"
    gpulse doctor --list
    status_is 0
    says '^driver\.nouveau +no other driver is bound to the GPUs$'
    gpulse doctor --only hardware explain xid 79
    fails 2 '--only cannot be combined with explain'
    gpulse doctor --gpu H100
    fails 2 '--gpu requires gpulse doctor advise'
    gpulse doctor frobnicate
    fails 2 "unknown argument 'frobnicate'; .*"
    gpulse --root no-such-folder doctor
    fails 2 'cannot access .*no-such-folder: No such file or directory'
}

@test "findings as JSON: status, evidence, fixes, and what they were skipped for" {
    root ubuntu "Ubuntu 24.04.1 LTS"
    pci 0000:05:00.0
    gpulse --root root doctor --json
    status_is 2
    is_quiet
    json_is 'd["schema"]' gpulse.doctor/1
    json_is 'd["machine"]["distribution"]' "Ubuntu 24.04.1 LTS"
    json_is 'd["first"]' driver.installed
    json_is '[f["status"] for f in d["findings"] if f["check"] == "driver.installed"]' "['fail']"
    json_is '[f["because"] for f in d["findings"] if f["check"] == "driver.loaded"]' "['driver.installed']"
    json_is 'all(f["evidence"] and f["fixes"] for f in d["findings"] if f["status"] == "fail")' True
    json_is 'sorted({f["status"] for f in d["findings"]} - {"ok", "info", "warn", "fail", "skip"})' '[]'
}

@test "explain: numbers and names" {
    gpulse doctor explain xid 79
    status_is 0
    says '^Xid 79: the GPU has fallen off the bus$'
    says '^      advice reboot'
    says_not '^      source'
    gpulse doctor explain 'Xid: 79'
    says '^Xid 79: the GPU has fallen off the bus$'
    gpulse doctor explain --sources sxid 20034
    says '^SXid 20034: '
    says '^      source '
    gpulse doctor explain cuda 802
    says '^CUDA error 802: .*fabric manager'
    gpulse doctor explain cuda CUDA_ERROR_NO_DEVICE
    says '^CUDA error 100: '
    gpulse doctor explain nvml 18
    says '^NVML error 18: '
    gpulse doctor explain throttle sw_power_cap
    says '^throttle reason sw_power_cap: '
    gpulse doctor explain xid 9999
    fails 1 "unknown xid '9999'; a known one is xid 79"
    gpulse doctor explain xid
    fails 2 'missing ERROR; give xid 79, .*'
    gpulse doctor explain
    fails 2 'missing ERROR; give xid 79, .*'
}

@test "explain: a line, and what is not known" {
    gpulse doctor explain 'RuntimeError: CUDA error: no kernel image is available for execution on the device'
    status_is 0
    says '^CUDA error 209: '
    gpulse doctor explain "$xid79"
    says '^      detail GPU 0000:05:00\.0, process 1 \(x\)$'
    gpulse doctor explain the weather is fine
    status_is 1
    line_count 2
    says '^unknown error; gpulse knows '
}

@test "explain: what a line has for a terminal or against UTF-8 does no harm" {
    local line=$'NVRM: Xid (PCI:0000:05:00): 149, \x1bcX\x07\xff\x9b Fatal, Link 3 (0x00400000 0x1)'
    gpulse doctor explain "$line"
    status_is 0
    says '^Xid 149: '
    says_not $'[\x01-\x08\x0b-\x1f\x7f]'
    gpulse doctor explain --json "$line"
    json_is 'd["known"][0]["id"]' xid.149
}

@test "explain: a log on standard input, each thing once" {
    {
        echo 'booting'
        for i in 1 2 3; do echo "[ $i.000000] $xid31"; done
        head -c 100000 /dev/zero | tr '\0' 'x'
        printf '\nbinary \x01\x00\xff\xfe\n'
        printf '[ 9.000000] %s' "$xid79"
    } >log
    run --separate-stderr "$GPULSE" doctor explain - <log
    status_is 0
    is_quiet
    [ "$(grep -c '^    Xid 31: ' <<<"$output")" -eq 1 ]
    [ "$(grep -c '^    Xid 79: ' <<<"$output")" -eq 1 ]
    says '^    and 2 more like it, up to line 4$'
    run --separate-stderr "$GPULSE" doctor explain --json - <log
    json_is 'd["schema"]' gpulse.explain/1
    json_is 'sorted((e["id"], e["repeats"]) for e in d["known"] + d["incidents"])' "[('xid.31', 2), ('xid.79', 0)]"
    run --separate-stderr "$GPULSE" doctor explain - </dev/null
    status_is 1
}

@test "the log is followed: as it grows, is rotated and emptied" {
    root ubuntu "Ubuntu 24.04.1 LTS"
    echo "[    1.000000] $xid79" >root/var/log/kern.log
    start --root root doctor --watch-log
    until_true says_in err '^gpulse: follows /var/log/kern\.log$'
    printf '[    2.0000' >>root/var/log/kern.log
    sleep 0.3 # a line is written in pieces
    printf '00] %s\nusb 1-1: nothing of ours\n' "$xid31" >>root/var/log/kern.log
    until_true says_in out '^Xid 31: '
    mv root/var/log/kern.log root/var/log/kern.log.1
    echo '[    3.000000] NVRM: Xid (PCI:0000:05:00): 48, DBE (double bit error) ECC Error' >root/var/log/kern.log
    until_true says_in out '^Xid 48: '
    : >root/var/log/kern.log
    sleep 0.6 # looked at twice a second, at least
    echo '[    4.000000] NVRM: Xid (PCI:0000:05:00): 13, Graphics SM Warp Exception' >>root/var/log/kern.log
    until_true says_in out '^Xid 13: '
    kill -TERM "$pid"
    finish
    status_is 130
    ! says_in out 'Xid 79|usb' || explain "what stood there before, or is not about GPUs, is told"
}

@test "a log that does not grow is looked at four times a second, not all the time" {
    root ubuntu "Ubuntu 24.04.1 LTS"
    : >root/var/log/kern.log
    start --root root doctor --watch-log
    until_true says_in err '^gpulse: follows '
    [ -r "/proc/$pid/io" ] || skip "the kernel does not count reads"
    local before after began=$EPOCHSECONDS
    before=$(awk '/^syscr/ { print $2 }' "/proc/$pid/io")
    sleep 1.5
    after=$(awk '/^syscr/ { print $2 }' "/proc/$pid/io")
    [ $((after - before)) -le $((10 * (EPOCHSECONDS - began) + 10)) ] ||
        explain "it has read $((after - before)) times"
    kill -TERM "$pid"
    finish
}

@test "the log is followed as JSON, one object a line, and nobody reads on" {
    root ubuntu "Ubuntu 24.04.1 LTS"
    : >root/var/log/kern.log
    mkfifo pipe
    "$GPULSE" --root root doctor --watch-log --json >pipe 2>err 3>&- &
    pid=$!
    STARTED+=("$pid")
    {
        until_true says_in err '^gpulse: follows '
        echo "[    2.000000] $xid31" >>root/var/log/kern.log
        read -r line
        [ "$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["id"])' "$line")" = xid.31 ]
    } <pipe
    finish # the reader is gone
    status_is 141
}

@test "no log at all" {
    root ubuntu "Ubuntu 24.04.1 LTS"
    gpulse --root root doctor --watch-log
    fails 1 "cannot read the kernel log: No such file or directory; .*"
}

@test "a full disk" {
    [ -w /dev/full ] || skip "no /dev/full"
    root ubuntu "Ubuntu 24.04.1 LTS"
    run --separate-stderr bash -c '"$GPULSE" --root root doctor >/dev/full'
    [ "$status" -ne 0 ]
    complains '^gpulse: cannot write .*No space left on device'
}

@test "lines that any user can write are said to be so" {
    local doubt='first look for this line in journalctl -k: users can write to'
    mkdir -p root/var/log root/proc/driver/nvidia root/sys/module/nvidia
    echo 580.105.08 >root/sys/module/nvidia/version
    for log in syslog messages; do
        echo 'Nov 23 02:00:02 gpu01 kernel: [   12.000000] NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus.' \
            >root/var/log/$log
        gpulse --root root doctor --only log
        says 'Xid 79'
        says "$doubt /var/log/$log, too"
        sed 's/79/31/' root/var/log/$log >root/var/log/kern.log # there only the kernel writes
        gpulse --root root doctor --only log
        says 'Xid 31'
        says_not 'Xid 79'
        says_not "$doubt"
        rm root/var/log/kern.log root/var/log/$log
    done
}
