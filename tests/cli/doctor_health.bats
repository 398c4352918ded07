# gpulse doctor on simulated GPUs: each finding of health, provoked; and quiet if there is none.
# variants: asan

load helpers

# a machine without anything but its distribution; the GPUs come from the simulated driver
room() {
    mkdir -p root/etc root/proc/self root/sys/module/nvidia
    printf 'ID=%s\nPRETTY_NAME="%s"\n' "${1:-ubuntu}" "${2:-Ubuntu 24.04.1 LTS}" >root/etc/os-release
    echo 580.105.08 >root/sys/module/nvidia/version
}

# pci ADDRESS CLASS [DRIVER]: a function of NVIDIA's
pci() {
    local at=root/sys/bus/pci/devices/$1
    mkdir -p "$at"
    echo 0x10de >"$at/vendor"
    echo "$2" >"$at/class"
    echo 0x2330 >"$at/device"
    [ -z "${3-}" ] || ln -s "../../../bus/pci/drivers/$3" "$at/driver"
}

# health [ARG…]: of the machine h100x4, or of $GPULSE_SIM
health() {
    GPULSE_SIM=${GPULSE_SIM:-h100x4} gpulse --root root doctor --only health,nccl "$@"
}

# finds VERDICT CHECK SUMMARY: this finding, and no other
finds() {
    says "^$1 +$2: $3\$"
    [ "$(grep -Ec '^(warn|fail|info|skip) ' <<<"$output")" -eq 1 ] || explain "there are more findings"
    case $1 in
    fail) status_is 2 ;;
    warn) status_is 1 ;;
    *) status_is 0 ;;
    esac
}

# provoke FAULT VERDICT CHECK SUMMARY FIX: what a fault of GPU 1 leads to
provoke() {
    # shellcheck disable=SC2086 # several faults are words
    fault h100x4 --gpu 1 $1
    health
    fault h100x4 clear
    finds "$2" "$3" "$4"
    says "$5"
}

reset='^ {6}(fix   | {6}).*sudo nvidia-smi --gpu-reset -i 1'
replace="^      fix +have the machine's maintainer run NVIDIA's field diagnostic and replace the board"
reboot='^      fix +the reboot ends [34] processes on the GPUs, which should finish first \(gpulse ps, gpulse queue\)$'
cool='^      fix +check fans, dust, airflow'
supply='^      fix +check the power cables'
fabric='^      fix +systemctl status nvidia-fabricmanager'

@test "the built-in machines pass all checks" {
    room
    local machine
    for machine in $("$GPULSE" sim list | awk 'NR > 1 { print $1 }') h100x8 l40sx2; do
        [ "$machine" = sick ] && continue
        GPULSE_SIM=$machine health
        status_is 0
        says_not '^(warn|fail|skip)'
        is_quiet
    done
}

@test "memory that is broken" {
    room
    provoke set=RemappedRows.failure=1 fail health.remap \
        'GPU 1: a faulty memory row could not be remapped' "$replace"
    says '^      evidence  GPU 1 \(00000000:64:00\.0, NVIDIA H100 80GB HBM3\): remapped_rows\.failure is Yes$'
    provoke set=RemappedRows.uncorrectable=512 fail health.remap 'GPU 1: so many memory rows .*' "$replace"
    provoke set=RemappedRows.pending=1 warn health.remap \
        'GPU 1: a faulty memory row is waiting to be remapped' "$reset"
    provoke set=TotalEccErrors.uncorrected.volatile=2 fail health.ecc \
        'GPU 1: the memory had an uncorrectable error' "$reset"
    says 'ecc\.errors\.uncorrected\.volatile\.total is 2$'
    provoke set=SramEccErrorStatus.threshold_exceeded=1 fail health.sram \
        'GPU 1: the on-chip memories had too many errors' "$replace"
    provoke 'set=SramEccErrorStatus.aggregate_parity=3 set=SramEccErrorStatus.aggregate_secded=2' \
        warn health.sram 'GPU 1: the on-chip memories had several uncorrectable errors' "$replace"
    provoke error=CORRUPTED_INFOROM:nvmlDeviceValidateInforom warn health.inforom \
        "GPU 1: the board's InfoROM is damaged" "^      fix +have the board's manufacturer restore it"
}

@test "retired pages of older GPUs" {
    room
    # 29: for single-bit errors, 30: for double-bit errors, 31: pending
    fault p100 set=31=1
    GPULSE_SIM=p100 health --skip health.persistence
    finds warn health.retired 'GPU 0: a faulty memory page is not retired yet'
    fault p100 set=29=50 set=30=13
    GPULSE_SIM=p100 health --skip health.persistence
    finds fail health.retired 'GPU 0: no more memory pages can be retired'
    says 'retired_pages\.single_bit_ecc\.count is 50, retired_pages\.double_bit\.count is 13$'
    fault p100 clear
    fault p100 set=30=16
    GPULSE_SIM=p100 health --skip health.persistence
    finds warn health.retired 'GPU 0: many memory pages were retired for double-bit errors'
}

@test "what the driver asks for" {
    room
    provoke set=230=1 fail health.recovery 'GPU 1: the driver requests a reset of the GPU' "$reset"
    provoke set=230=2 fail health.recovery 'GPU 1: the driver requests a reboot of the machine' \
        "$reboot"
    says '^ {16}sudo reboot$'
    provoke set=230=3 fail health.recovery 'GPU 1: the driver requests that all work between GPUs stop' \
        '^      fix +start no new work on it'
    provoke set=230=4 fail health.recovery \
        "GPU 1: the driver requests a reset once the GPU's work has finished" "$reset"
}

@test "heat and power" {
    room
    provoke set=CurrentClocksEventReasons=72 fail health.throttle \
        'GPU 1: the hardware throttles the GPU because of heat' "$cool"
    provoke set=CurrentClocksEventReasons=136 fail health.throttle \
        'GPU 1: the hardware throttles the GPU because of the power supply' "$supply"
    provoke set=CurrentClocksEventReasons=8 warn health.throttle \
        'GPU 1: the hardware throttles the GPU, because of heat or power' "$supply"
    provoke set=CurrentClocksEventReasons=32 warn health.throttle \
        'GPU 1: the driver throttles the GPU because of heat' "$cool"
    fault h100x4 --gpu 1 set=CurrentClocksEventReasons=4 # the power limit: as it should be under load
    health
    status_is 0
    says_not throttle
    fault h100x4 clear
    provoke set=PowerManagementLimit=300000 info health.power \
        'GPU 1: the power limit is below the default' \
        '^      fix +sudo gpulse set power-limit=default -i 1'
    says 'power\.limit is 300\.00 W, power\.default_limit is 700\.00 W$'
    machine h100 'm["devices"][1]["answers"]["PowerSource"] = 2'
    GPULSE_SIM=./m.json health
    finds warn health.power 'GPU 1: the power supply is insufficient'
}

@test "temperatures" {
    room
    machine t4 'd["answers"]["Temperature"] = 96; m["workload"] = []'
    GPULSE_SIM=./m.json GPULSE_SIM_STILL=1 gpulse query temperature.gpu,temperature.threshold.slowdown -f csv
    local now slow
    now=$(sed -n 2p <<<"$output" | cut -d, -f1)
    slow=$(sed -n 2p <<<"$output" | cut -d, -f2)
    [ "$now" -ge "$slow" ] || explain "the simulated T4 is not hot"
    GPULSE_SIM=./m.json GPULSE_SIM_STILL=1 health
    says '^fail +health\.temperature: GPU 0: at the temperature where the hardware slows down$'
    says 'temperature\.gpu is 96 °C, temperature\.threshold\.slowdown is [0-9]+ °C$'
}

@test "modes that keep programs off, or wait for a reset" {
    room
    provoke set=ComputeMode=Prohibited fail health.compute_mode \
        'GPU 1: the compute mode blocks CUDA programs' 'sudo gpulse set compute-mode=default -i 1'
    provoke set=ComputeMode=Exclusive_Process info health.compute_mode \
        'GPU 1: the compute mode allows only one process at a time' compute-mode=default
    provoke set=EccMode.pending=Disabled warn health.ecc 'GPU 1: a pending ECC mode change needs a reset' "$reset"
    provoke set=MigMode.pending=Enabled warn health.mig 'GPU 1: a pending MIG mode change needs a reset' "$reset"
    provoke 'set=MigMode.current=Enabled set=MigMode.pending=Enabled' fail health.mig \
        'GPU 1: MIG mode is on without an instance, so CUDA finds no device' \
        '^      fix +sudo gpulse set mig-mode=off -i 1'
    provoke set=PersistenceMode=Disabled info health.persistence 'GPU 1: persistence mode is off' \
        'sudo gpulse set persistence-mode=on -i 1'
    mkdir -p root/usr/lib/systemd/system
    : >root/usr/lib/systemd/system/nvidia-persistenced.service
    provoke set=PersistenceMode=Disabled info health.persistence 'GPU 1: persistence mode is off' \
        'sudo systemctl enable --now nvidia-persistenced'
}

@test "instances that the kernel module knows of" {
    room
    mkdir -p root/proc/driver/nvidia/capabilities/gpu1/mig/gi1
    provoke 'set=MigMode.current=Enabled set=MigMode.pending=Enabled' fail health.mig \
        'GPU 1: GPU instances without compute instances, so CUDA finds no device' \
        '^      fix +sudo nvidia-smi mig -cci -i 1'
    mkdir root/proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0
    fault h100x4 --gpu 1 set=MigMode.current=Enabled set=MigMode.pending=Enabled
    health
    status_is 0
    says_not health.mig
}

@test "several GPUs with the same trouble are one finding" {
    room
    fault h100x8 set=RemappedRows.pending=1
    GPULSE_SIM=h100x8 health
    finds warn health.remap 'GPUs 0-7: a faulty memory row is waiting to be remapped'
    says 'gpu-reset -i 0,1,2,3,4,5,6,7'
    fault h100x8 clear
    fault h100x8 --gpu 0 set=RemappedRows.pending=1
    fault h100x8 --gpu 1 set=RemappedRows.pending=1
    fault h100x8 --gpu 5 set=RemappedRows.pending=1
    GPULSE_SIM=h100x8 health
    finds warn health.remap 'GPUs 0, 1 and 5: a faulty memory row .*'
}

@test "the fabric" {
    room
    provoke set=GpuFabricInfo.state=1 fail health.fabric 'GPU 1: not part of the NVLink fabric yet' "$fabric"
    says 'fabric\.state is Not Started'
    provoke set=GpuFabricInfo.health_summary=2 fail health.fabric \
        'GPU 1: the connection to the NVLink fabric is not healthy' "$fabric"
    provoke set=GpuFabricInfo.health_summary=3 warn health.fabric \
        'GPU 1: the NVLink fabric does not provide its full bandwidth' "$fabric"
}

@test "the fabric manager: missing, stopped, of another version, well" {
    room
    pci 0000:07:00.0 0x068000
    health
    finds_first='^fail +health\.fabricmanager: the fabric manager is not installed$'
    says "$finds_first"
    says "^      fix +sudo apt install 'nvidia-fabricmanager-580=580\.105\.08\*'"
    says 'sudo systemctl enable --now nvidia-fabricmanager$'
    says '^skip +because health\.fabricmanager failed: health\.fabric health\.nvlink$'
    status_is 2

    mkdir -p root/usr/bin root/var/lib/dpkg root/var/log root/proc/1 root/proc/77
    : >root/usr/bin/nv-fabricmanager
    echo systemd >root/proc/1/comm
    printf '[x] all is well\n[x] detected number of NVSwitches don'\''t match with any supported system topology, aborting fabric manager\n[x] bye\n' \
        >root/var/log/fabricmanager.log
    health
    says '^fail +health\.fabricmanager: the fabric manager is installed but not running$'
    says "/var/log/fabricmanager\.log: \[x\] detected number of NVSwitches don't match"
    says '^      fix +sudo systemctl enable --now nvidia-fabricmanager$'

    printf 'Package: nvidia-fabricmanager-580\nStatus: install ok installed\nVersion: 580.95.05-1\n\n' \
        >root/var/lib/dpkg/status
    health
    says '^fail +health\.fabricmanager: the fabric manager and the driver have different versions$'
    says '/var/lib/dpkg/status: nvidia-fabricmanager 580\.95\.05-1'

    sed -i 's/580.95.05-1/580.105.08-1/' root/var/lib/dpkg/status
    echo nv-fabricmanage >root/proc/77/comm # the kernel keeps 15 bytes
    health -v
    says "^ok +health\.fabricmanager: the fabric manager runs, in the driver's version$"
    status_is 0
}

@test "the fabric manager's package on other distributions" {
    room rocky 'Rocky Linux 9.4'
    pci 0000:07:00.0 0x068000
    health
    says "^      fix +sudo dnf install 'nvidia-fabric-manager-580\.105\.08\*'"
    room arch 'Arch Linux'
    health
    says_not 'apt|dnf|zypper'
    says "^      fix +install the fabric manager, in exactly the driver's version, 580\.105\.08:"
}

@test "NVLinks that are down" {
    room
    machine h100 '
for link in m["devices"][2]["lists"]["nvlinks"][:1]:
    link["state"] = 0
'
    GPULSE_SIM=./m.json health
    finds warn health.nvlink 'GPU 2: not all NVLinks are up'
    says 'nvlink\.active is 13, nvlink\.count is 18$'
}

@test "a GPU that is lost, refused or broken" {
    room
    provoke lost fail health.lost 'GPU 1: lost: the driver cannot reach it' "$reboot"
    provoke deny warn health.lost 'GPU 1: not accessible to this user' Insufficient
    provoke error=UNKNOWN fail health.lost 'GPU 1: the driver reports only an error' dmesg
    provoke error=RESET_REQUIRED fail health.lost 'GPU 1: the driver reports only an error' "$reset"
}

@test "a GPU that hangs costs only itself" {
    room
    fault h100x4 --gpu 1 hang=1h
    fault h100x4 --gpu 2 set=RemappedRows.pending=1
    health --timeout 2 -v
    says '^fail +health\.lost: GPU 1: no response in time$'
    says '^warn +health\.remap: GPU 2: '
    says '^ok +health\.ecc: .* \(GPUs 0, 2 and 3; the others do not respond\)$'
    fault h100x4 clear
    fault h100x4 hang=1h:nvmlInit
    health
    says '^fail +health\.driver: the driver does not respond$'
    says 'did not start within 2\.0 s \(nvmlInit\)'
}

@test "what the driver does not report has not passed" {
    room
    fault h100x4 deny:nvmlDeviceGetRemappedRows
    health
    finds skip health.remap 'GPUs 0-3: the driver does not report the values this check needs'
    says 'remapped_rows\.failure is denied'
}

@test "no driver: why, and what is skipped for it" {
    room
    pci 0000:53:00.0 0x030200 nvidia
    GPULSE_NVML=/nonexistent GPULSE_SIM='' gpulse --root root doctor --only health
    says_not health # below another root than / no driver is asked
    fault h100x4 unloaded
    health
    says '^fail +health\.driver: the driver does not respond$'
    says '^      evidence  NVML: the NVIDIA kernel module is not loaded'
    says '^skip +because health\.driver failed: .*health\.lost health\.recovery'
}

@test "fewer GPUs than the kernel module drives" {
    room
    local n
    for n in 53 64 75 86 97; do
        pci "0000:$n:00.0" 0x030200 nvidia
    done
    health
    finds fail health.count 'the driver started only 4 of 5 GPUs'
    says '/sys/bus/pci/devices/0000:97:00\.0: bound to nvidia'
}

@test "memory that nobody has" {
    room
    fault h100x4 --gpu 1 hidden
    health
    finds warn health.unattributed 'GPU 1: no process that the driver lists accounts for [0-9.]+ GiB of used GPU memory'
    says "$reset"
    fake_process root 4711 1000 python train.py
    mkdir -p root/dev root/proc/4711/fd
    ln -s /dev/nvidia1 root/proc/4711/fd/3
    health
    says 'health\.unattributed: GPU 1: '
    says '/proc/4711: has the GPU open'
}

@test "in a container a command for the host is called so" {
    room
    : >root/.dockerenv
    provoke set=RemappedRows.pending=1 warn health.remap 'GPU 1: .*' \
        '^      fix +on the host, outside this container:$'
}

@test "GPUs that cannot read each other's memory" {
    room
    machine rtx4090 'm["devices"].append(json.loads(json.dumps(d).replace(d["uuid"], d["uuid"][:-1] + "f").replace("84:00", "85:00"))); m["topology"] = {"p2p": "CNS", "levels": ["PHB"] * 4, "cpus": ["0-7"], "nodes": ["0"]}'
    GPULSE_SIM=./m.json health
    says "^info +nccl\.p2p: 1 of 1 pairs of GPUs cannot read each other's memory directly"
    says 'peers\.p2p\.read to GPU 1 is CNS: the chipset does not support it'
    status_is 0
}

@test "InfiniBand" {
    room
    mkdir -p root/sys/class/infiniband/mlx5_0/ports/1
    echo '2: INIT' >root/sys/class/infiniband/mlx5_0/ports/1/state
    echo InfiniBand >root/sys/class/infiniband/mlx5_0/ports/1/link_layer
    health
    finds warn nccl.rdma 'port 1 of the InfiniBand adapter mlx5_0 is waiting for a subnet manager'
    echo '4: ACTIVE' >root/sys/class/infiniband/mlx5_0/ports/1/state
    health
    finds info nccl.rdma "the network adapters cannot access GPU memory: nvidia-peermem is not loaded"
    says 'sudo modprobe nvidia-peermem'
    mkdir root/sys/module/nvidia_peermem
    health
    status_is 0
    says_not nccl
}

@test "an Xid of the log that the driver has got over" {
    room
    pci 0000:64:00.0 0x030200 nvidia
    mkdir -p root/var/log
    echo '[  100.000000] NVRM: Xid (PCI:0000:64:00): 48, pid=4711, name=python3, DBE (double bit error) ECC Error' \
        >root/var/log/kern.log
    GPULSE_SIM=h100x4 gpulse --root root doctor --only log
    finds warn log.xid 'Xid 48 of GPU 1, process 4711 \(python3\): uncorrectable \(double-bit\) memory error'
    says '^      why       The driver reports that the GPU needs no action now: it has been reset since\.$'
    fault h100x4 --gpu 1 set=230=1
    GPULSE_SIM=h100x4 gpulse --root root doctor --only log
    fault h100x4 clear
    finds fail log.xid 'Xid 48 of GPU 1, .*'
    says '^ +sudo nvidia-smi --gpu-reset -i 0000:64:00\.0'
}
