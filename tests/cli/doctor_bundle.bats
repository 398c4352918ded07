# gpulse doctor --bundle: what is in it, what is not, and how it is written.
# variants: asan

load helpers

# a machine with names and numbers in many places
room() {
    mkdir -p root/etc root/proc/self root/proc/sys/kernel root/proc/driver/nvidia/gpus/0000:53:00.0 \
        root/var/log root/etc/modprobe.d root/home/alice
    printf 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n' >root/etc/os-release
    echo gpu01 >root/proc/sys/kernel/hostname
    printf 'root:x:0:0::/root:/bin/bash\nalice:x:1000:1000:Alice:/home/alice:/bin/bash\nbob:x:1001:1001::/home/bob:/bin/sh\n' \
        >root/etc/passwd
    printf '%s\0' USER=alice HOME=/home/alice CUDA_HOME=/home/alice/cuda SECRET_THING=hunter2 \
        NCCL_SOCKET_IFNAME=eth0 NVIDIA_API_KEY=hunter3 >root/proc/self/environ
    echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Fri' >root/proc/driver/nvidia/version
    printf 'Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-b6c3f00d-1234-5678-9abc-def012345678\nBus Location: 0000:53:00.0\n' \
        >root/proc/driver/nvidia/gpus/0000:53:00.0/information
    printf 'options nvidia NVreg_EnableMSI=1 # by alice on gpu01.example.org, 10.1.2.3, 52:54:00:12:34:56\n' \
        >root/etc/modprobe.d/nvidia.conf
    cat >root/var/log/kern.log <<'LOG'
Nov 23 02:00:00 gpu01 kernel: [   10.000000] NVRM: GPU at PCI:0000:53:00: GPU-b6c3f00d-1234-5678-9abc-def012345678
Nov 23 02:00:01 gpu01 kernel: [   11.000000] NVRM: GPU Board Serial Number: 1324523007214
Nov 23 02:00:02 gpu01 kernel: [   12.000000] NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
LOG
}

# bundle FILE ARG…: writes one of the room and unpacks it into the folder b
bundle() {
    gpulse --sim h100x2 --root root doctor --bundle "$@"
    [ "$status" -le 2 ] || explain "doctor failed"
    rm -rf b
    mkdir b
    if [[ $1 = *zst ]]; then
        python3 - "$1" <<'PYTHON' || tar --zstd -xf "$1" -C b
import ctypes, ctypes.util, sys, tarfile, io
z = ctypes.CDLL("libzstd.so.1")
data = open(sys.argv[1], "rb").read()
out = ctypes.create_string_buffer(64 << 20)
z.ZSTD_decompress.restype = ctypes.c_size_t
n = z.ZSTD_decompress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)))
tarfile.open(fileobj=io.BytesIO(out.raw[:n])).extractall("b")
PYTHON
    else
        tar -xzf "$1" -C b
    fi
    b=b/gpulse-doctor
}

hides() {
    ! grep -rIFi -e "$1" b || explain "the bundle has: $1"
}

@test "a bundle has report, machine, log, files and contents" {
    room
    bundle report.tar.gz
    [ "$(stat -c %a report.tar.gz)" = 600 ]
    complains '^gpulse: wrote report\.tar\.gz \([0-9]+ files\); read it before you publish it$'
    says '^Ubuntu 24\.04\.1 LTS'
    [ "$(tar -tzf report.tar.gz | head -1)" = gpulse-doctor/contents.txt ]
    grep -q 'health.driver' $b/report.txt
    [ "$(json 'd["schema"]' $b/report.json)" = gpulse.doctor/1 ]
    [ "$(json 'd["host"]' $b/report.json)" = HOST ]
    grep -q 'Xid (PCI:0000:53:00): 79' $b/kernel-log.txt
    grep -q 'CUDA_HOME=/home/USER/cuda' $b/environment.txt
    [ "$(cat $b/files/etc/modprobe.d/nvidia.conf)" = 'options nvidia NVreg_EnableMSI=1' ]
    grep -q '580\.105\.08' $b/files/proc/driver/nvidia/version
    grep -q 'files/proc/driver/nvidia/gpus/0000:53:00.0/information' $b/contents.txt
    grep -q 'packages.txt: no dpkg or pacman database' $b/contents.txt
}

@test "what goes in, what does not, and what was taken out is listed, on stderr and in the bundle" {
    room
    bundle report.tar.gz
    complains '^Files:$'
    complains '^  report\.txt \([1-9][0-9]* bytes\)$'
    complains '^  environment\.txt \([1-9][0-9]* bytes\)$'
    complains '^Not included:$'
    complains '^  packages\.txt: no dpkg or pacman database'
    complains '^Removed:$'
    complains '^  [1-9][0-9]* × UUIDs$'
    complains '^  1 × comments in settings$'
    complains '^  5 × environment variables'
    is_quiet_about_names
    diff <(sed -n '/^Files:/,/^gpulse/p' <<<"$stderr" | grep -v ^gpulse | grep -v contents.txt) \
        <(sed -n '/^Files:/,$p' $b/contents.txt)
}

is_quiet_about_names() {
    for name in alice bob hunter2 hunter3 gpu01; do
        ! grep -Fi "$name" <<<"$stderr" || explain "the list has: $name"
    done
}

@test "a terminal is asked before a bundle is written" {
    needs_terminal
    room
    run script -qec "'$GPULSE' --root root doctor --bundle x.tar.gz" /dev/null <<<n
    status_is 1
    [[ $output == *"report.txt ("*"Write this to x.tar.gz? [y/N]"*"no bundle was written"* ]] || explain "no question"
    [ ! -e x.tar.gz ]
    run script -qec "'$GPULSE' --root root doctor --bundle x.tar.gz" /dev/null <<<y
    [[ $output == *"wrote x.tar.gz"* ]] || explain "not written"
    [ -s x.tar.gz ]
    rm x.tar.gz
    run script -qec "'$GPULSE' --root root doctor --bundle x.tar.gz --yes" /dev/null <<<n
    [[ $output != *"[y/N]"* ]] || explain "asked in spite of --yes"
    [ -s x.tar.gz ]
    gpulse --root root doctor --yes explain 79
    fails 2 '--yes cannot be combined with explain'
}

@test "an empty file is not in a bundle, and the list says so" {
    room
    : >root/etc/modprobe.d/nvidia.conf
    echo '# nothing else' >root/etc/ld.so.conf
    mkdir -p root/var/lib/dpkg
    printf 'Package: cuda-of-acme\nStatus: install ok installed\nVersion: 1\n\n' >root/var/lib/dpkg/status
    sed -i /Xid/d root/var/log/kern.log
    bundle report.tar.gz
    for file in packages.txt kernel-log.txt files/etc/modprobe.d/nvidia.conf files/etc/ld.so.conf; do
        [ ! -e $b/$file ] || explain "$file is there"
    done
    complains '^  packages\.txt: no package of a driver or of CUDA is installed$'
    complains '^  kernel-log\.txt: the log has no lines about GPUs since boot$'
    complains '^  files/etc/modprobe\.d/nvidia\.conf: it is empty$'
    complains '^  files/etc/ld\.so\.conf: nothing in it may be published$'
    complains '^  1 × packages$'
    [ -z "$(find b -type f -empty)" ]
}

@test "of a folder with many files the list says how many are left out" {
    room
    for i in $(seq 200); do
        echo 'options nvidia NVreg_EnableMSI=1' >"root/etc/modprobe.d/nvidia-$i.conf"
        mkdir -p "root/proc/driver/nvidia/gpus/0000:$(printf %02x "$i"):00.0"
        echo 'Model: NVIDIA H100' >"root/proc/driver/nvidia/gpus/0000:$(printf %02x "$i"):00.0/information"
    done
    bundle report.tar.gz
    complains '^  files/etc/modprobe\.d: 137 more files; only the first 64 were read$'
    complains '^  files/proc/driver/nvidia/gpus: 136 more files; only the first 64 were read$'
    [ "$(find b -path '*modprobe.d/*' | wc -l)" -eq 64 ]
    [ "$(find b -name information | wc -l)" -eq 64 ]
    grep -q '137 more files' $b/contents.txt
}

@test "no name, number or address is in a bundle" {
    room
    "$GPULSE" --sim h100x2 query uuid,serial -f csv | sed 1d | tr ',' '\n' >secrets
    printf '%s\n' gpu01 alice bob hunter2 hunter3 b6c3f00d-1234 1324523007214 10.1.2.3 52:54:00:12:34:56 \
        example.org >>secrets
    bundle report.tar.gz
    while read -r secret; do
        case $secret in
        '' | 0 | '[N/A]' | GPU-0000000*) ;; # the simulated machine's own are made up already
        *) hides "$secret" ;;
        esac
    done <secrets
}

@test "numbers of the driver's own are hidden in the report and in the machine" {
    machine h100 '
for n, d in enumerate(m["devices"]):
    d["uuid"] = "GPU-deadbeef-0000-1111-2222-33334444555%d" % n
    d["answers"]["Serial"] = "165042300777%d" % n
'
    mkdir root
    gpulse --sim ./m.json --root root doctor --bundle x.tar.gz
    mkdir b
    tar -xzf x.tar.gz -C b
    gpulse --sim ./m.json query uuid,serial -f csv
    says 'GPU-deadbeef-0000-1111-2222-333344445550, ?1650423007770'
    hides deadbeef
    hides 165042300777
}

@test "the machine in a bundle can be simulated" {
    room
    bundle report.tgz
    gpulse --sim "./$b/machine.json" query index,name -f csv
    status_is 0
    says '^1, ?NVIDIA H100 80GB HBM3'
}

@test "a bundle with zstd" {
    room
    bundle report.tar.zst
    [ "$(head -c 4 report.tar.zst | od -An -tx1 | tr -d ' ')" = 28b52ffd ]
    grep -q 'health.driver' $b/report.txt
}

@test "a GPU that hangs is in the report, and nobody waits for its machine file" {
    room
    fault h100x2 --gpu 1 hang=1h
    bundle report.tar.gz --timeout 2
    [ ! -e $b/machine.json ]
    grep -q 'machine.json: a GPU does not respond' $b/contents.txt
    grep -q 'GPU 1: no response in time' $b/report.txt
}

@test "a bundle of files without a driver" {
    room
    gpulse --root root doctor --bundle x.tar.gz
    [ "$status" -le 2 ]
    tar -xzOf x.tar.gz gpulse-doctor/contents.txt | grep -q 'machine.json: the driver was not queried'
}

@test "what cannot be a bundle" {
    room
    gpulse --root root doctor --bundle report.zip
    fails 2 "--bundle 'report\.zip': the name must end in \.tar\.gz or \.tar\.zst"
    gpulse --root root doctor --bundle no/where.tar.gz
    status_is 1
    complains "cannot write 'no/where\.tar\.gz': No such file or directory"
    mkdir folder.tar.gz
    gpulse --root root doctor --bundle folder.tar.gz
    status_is 1
    complains "cannot write 'folder\.tar\.gz': not a regular file"
}

@test "an old file stays when a new one cannot be written, and is replaced as a whole" {
    room
    echo old >report.tar.gz
    (
        ulimit -f 1
        trap '' XFSZ
        run --separate-stderr "$GPULSE" --root root --sim h100x8 doctor --bundle report.tar.gz
        [ "$status" -ne 0 ]
        complains "cannot write 'report\.tar\.gz': File too large"
    )
    [ "$(cat report.tar.gz)" = old ]
    [ "$(ls report.tar.gz*)" = report.tar.gz ]
    bundle report.tar.gz
    tar -tzf report.tar.gz | grep -q report.txt
}
