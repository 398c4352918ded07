# gpulse explain: why a program found no memory, from its log.
# variants: asan

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    cat >train.log <<'END'
Epoch 1: loss 0.7
W tensorflow/core/common_runtime/bfc_allocator.cc:275] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.10GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 290.00 MiB. GPU 0 has a total capacity of 93.00 GiB of which 134.94 MiB is free. Process 118636 has 71.62 GiB memory in use. Including non-PyTorch memory, this process has 21.24 GiB memory in use. Of the allocated memory 19.85 GiB is allocated by PyTorch, and 731.17 MiB is reserved by PyTorch but unallocated.
END
}

@test "a log" {
    gpulse explain train.log
    status_is 0
    [ "${lines[0]%%CUDA*}" = "train.log:3: torch.OutOfMemoryError: " ]
    [ "${lines[1]}" = "    others: other processes use 71.62 GiB of 93.00 GiB: pid 118636 (71.62 GiB)" ]
    says '^      -> wait for them'
    [ "${#lines[@]}" -eq 3 ]
}

@test "standard input, several logs, and lines that are no failure" {
    gpulse explain --all - <train.log
    says '^\(stdin\):2: W tensorflow'
    says '^    no failure: TensorFlow continues$'
    echo "all is well, with CUDA and memory" >good.log
    gpulse explain good.log
    status_is 1
    [ "$output" = "no known error in the log" ]
    gpulse explain good.log train.log
    says '^train.log:3: '
}

@test "the same again and again, and escape sequences" {
    yes 'RuntimeError: CUDA error: out of memory' | head -20000 >flood.log
    printf 'a \033]0;title\007 CUDA error: out of memory\n' >>flood.log
    gpulse explain flood.log nowhere.log
    status_is 1
    [ "${lines[1]}" = "    and 19999 more like it, up to line 20000" ]
    says '^flood.log:20001: a \\x1b\]0;title\\x07 CUDA error: out of memory$'
    gpulse explain -f json flood.log
    json_is '[i["repeats"] for i in d["incidents"]]' '[19999, 0]'
}

@test "json" {
    gpulse explain -f json train.log
    json_is '(d["schema"], [(i["id"], i["file"], i["line"], [c["cause"] for c in i["causes"]]) for i in d["incidents"]])' \
        "('gpulse.explain/1', [('torch_oom', 'train.log', 3, ['others'])])"
    json_is 'd["incidents"][0]["numbers"]["tried"], d["incidents"][0]["others"][0]["pid"]' '(304087040, 118636)'
}

@test "what cannot be read" {
    gpulse explain
    fails 2 'missing ERROR; give xid 79, .*, a line in quotes, a log, last for your last gpulse run, list for all of them, or - for standard input'
    gpulse explain 79
    fails 2 '79 of what\? try xid 79, cuda 79, nvml 79, exit 79 or last 79'
    gpulse explain nowhere.log
    fails 1 'cannot open nowhere.log: No such file or directory'
    gpulse explain pynvml.NVMLError_LibraryNotFound # not the name of a log
    says '^NVML: the Python module pynvml '
    gpulse doctor explain nowhere.log
    fails 1 'cannot open nowhere.log: No such file or directory'
    gpulse explain .
    fails 1 '. is a directory, but not the record of a job; give a log, or a directory that gpulse run has recorded'
    head -c 300000 /dev/urandom >noise
    gpulse explain noise
    status_is 1
    printf '\xff\xfe CUDA error: out of memory \xff\n' >bytes
    gpulse explain -f json bytes
    json_is '"CUDA error: out of memory" in d["incidents"][0]["text"]' True
    gpulse explain bytes
    status_is 0
}

@test "a code, a line, a log: in both commands" {
    local command words
    for words in 'xid 79' 'throttle sw_power_cap' 'RuntimeError: CUDA error: no kernel image is available for execution on the device'; do
        gpulse doctor explain "$words"
        status_is 0
        local from_doctor=$output
        gpulse explain "$words"
        status_is 0
        [ "$output" = "$from_doctor" ]
    done
    gpulse explain xid 79 --json
    json_is 'd["known"][0]["id"]' xid.79
    gpulse explain the weather is fine
    status_is 1
    says '^unknown error; gpulse knows '
    for command in explain 'doctor explain'; do
        # shellcheck disable=SC2086 # two words
        gpulse $command train.log
        status_is 0
        says 'other processes use 71.62 GiB of 93.00 GiB: pid 118636'
        # shellcheck disable=SC2086
        run --separate-stderr "$GPULSE" $command - <train.log
        status_is 0
        says 'other processes use 71.62 GiB of 93.00 GiB: pid 118636'
    done
}

@test "a log is searched for every known error, each once, and for none of gpulse's own lines" {
    {
        cat train.log
        echo 'RuntimeError: CUDA error: device-side assert triggered'
        echo 'gpulse: torch.OutOfMemoryError: CUDA out of memory'
        echo 'gpulse: RuntimeError: CUDA error: no kernel image is available for execution on the device'
        echo 'RuntimeError: CUDA error: device-side assert triggered'
    } >job.log
    gpulse explain job.log
    status_is 0
    says '^job.log:3: torch.OutOfMemoryError: '
    says '^job.log:4: RuntimeError: CUDA error: device-side assert triggered$'
    says '^    and 1 more like it, up to line 7$'
    says '^    CUDA error 710: '
    says_not 'no kernel image|job.log:5'
    local text=$output
    gpulse doctor explain job.log
    [ "$output" = "$text" ]
    gpulse explain job.log --json
    json_is '[(e["id"], e["line_number"], e["repeats"]) for e in d["known"]], len(d["incidents"])' "([('cuda.710', 4, 1)], 1)"
}

@test "exit statuses, and what shells print for them" {
    for words in 'exit 137' 'exit status 137' 137 Killed killed; do
        gpulse explain $words
        status_is 0
        says '^exit status 137: killed by SIGKILL$'
        says '^      maybe  the kernel did it because host memory ran out; '
        says 'journalctl -k'
    done
    gpulse explain 139
    says '^exit status 139: killed by SIGSEGV'
    gpulse explain 143
    says '^exit status 143: killed by SIGTERM'
    gpulse explain 124
    says '^exit status 124: a time limit ran out'
    gpulse explain - <<<Killed
    status_is 0
    says '^    exit status 137: killed by SIGKILL'
    gpulse explain - <<<'Killed by death'
    status_is 1
    gpulse explain status 137
    status_is 0
    for words in SIGKILL sigkill 'signal 9' 'signal kill' 'signal SIGKILL'; do
        gpulse explain $words
        status_is 0
        says '^exit status 137: killed by SIGKILL'
    done
    for words in SIGUSR1 signal:10 signal10; do
        gpulse explain $words
        says '^exit status 138: killed by SIGUSR1$'
    done
    gpulse explain status 1
    fails 1 "unknown exit '1'; a known one is exit 137; a program chooses such a status itself, and its output says why"
    for words in sigmoid 'status 404' 'Status: 404'; do
        gpulse explain $words
        status_is 1
        says '^unknown error; '
    done
    gpulse explain signal 99
    fails 1 "unknown signal '99'; a known one is signal 9"
    gpulse explain signal
    status_is 2
    gpulse explain last 0
    fails 2 'last 0: last 1 is the newest job, last 2 the one before'
    gpulse explain list 3
    fails 2 "list takes no argument '3'; for one job: last N"
    gpulse explain oom
    status_is 0
    says '^PyTorch: an allocation of memory failed'
    says '^exit status 137: '
    gpulse explain 700
    status_is 2
    gpulse explain exit 3
    fails 1 "unknown exit '3'; a known one is exit 137; a program chooses such a status itself, and its output says why"
}

@test "in a terminal of 80 columns, the text is wrapped and a cut line says so" {
    sed 's/unallocated\./unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation./' train.log >long.log
    COLUMNS=80 gpulse explain long.log
    status_is 0
    [ "$(wc -L <<<"$output")" -le 80 ]
    says '…$'
    says '^long.log:3: torch.OutOfMemoryError: CUDA out of memory\.'
    says '^    '
    gpulse explain long.log
    says '^long.log:3: .*…$'
}

@test "what NVIDIA recommends, in plain words" {
    gpulse explain xid 79
    says '^      NVIDIA recommends RESTART_BM: reboot the machine$'
}

@test "a line as it was pasted, and what is said of one that is not known" {
    gpulse explain '-bash: nvidia-ctk: command not found'
    status_is 0
    says '^shell: no such command of NVIDIA Container Toolkit is in the PATH'
    says '^      maybe  NVIDIA Container Toolkit is not installed on this machine; or '
    gpulse explain '-- Some line of CMake that nobody knows'
    status_is 1
    says '^unknown error; it may be about compiling CUDA programs$'
    says '^      first  '
    gpulse explain --json 'docker: something new went wrong'
    status_is 1
    json_is 'd["first"]["family"], d["known"]' "('container', [])"
}

@test "the machine is looked at, unless it is not wanted" {
    mkdir -p root/etc root/proc/sys/kernel root/sys/bus/pci/devices/0000:01:00.0 root/usr/bin
    echo 'PRETTY_NAME="Ubuntu 24.04.1 LTS"' >root/etc/os-release
    for file in vendor:0x10de device:0x2684 class:0x030000; do
        echo "${file#*:}" >"root/sys/bus/pci/devices/0000:01:00.0/${file%%:*}"
    done
    local line='NVIDIA-SMI has failed because it could not communicate: couldn'"'"'t communicate with the NVIDIA driver'
    gpulse --root root explain "$line"
    status_is 0
    says '^      here   driver\.[a-z]*: '
    gpulse --root root explain - <<<"$line"
    says '^      here   driver\.[a-z]*: '
    gpulse --root root explain --json "$line"
    json_is '{h["status"] for h in d["known"][0]["here"]} & {"fail"}' "{'fail'}"
    gpulse --root root explain --no-look "$line"
    says_not ' here '
    gpulse --root root doctor explain --no-look --json "$line"
    json_is 'd["known"][0]["here"]' None
}

@test "how much is known" {
    gpulse explain --stats
    status_is 0
    says '^container +[0-9]+ +Docker'
    gpulse doctor explain --stats --json
    json_is 'sum(f["entries"] for f in d["families"]) == d["entries"] > 380' True
    gpulse explain --stats nothing
    fails 2 "--stats takes no argument 'nothing'"
    gpulse doctor --stats
    fails 2 '--stats requires gpulse doctor explain'
}

# a machine of which nothing is known but a GPU and its driver
known_gpu() {
    mkdir -p root/etc root/proc/self root/sys/bus/pci/devices/0000:01:00.0 root/sys/module/nvidia
    printf 'PATH=/usr/bin\0' >root/proc/self/environ
    echo 'PRETTY_NAME="Ubuntu 24.04.1 LTS"' >root/etc/os-release
    for file in vendor:0x10de device:0x2684 class:0x030000; do
        echo "${file#*:}" >"root/sys/bus/pci/devices/0000:01:00.0/${file%%:*}"
    done
    echo 580.95.05 >root/sys/module/nvidia/version
}

# torch_in FOLDER
torch_in() {
    mkdir -p "$1/lib/python3.11/site-packages/torch" "$1/lib/python3.11/site-packages/torch-2.7.1+cu128.dist-info"
    echo "home = /usr/bin" >"$1/pyvenv.cfg"
    printf "__version__ = '2.7.1+cu128'\ncuda = '12.8'\n" >"$1/lib/python3.11/site-packages/torch/version.py"
}

@test "what is no problem by itself may be why a line was printed" {
    local line='==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters'
    known_gpu
    mkdir -p root/usr/bin root/proc/driver/nvidia
    echo 'RmProfilingAdminOnly: 1' >root/proc/driver/nvidia/params
    gpulse --root root explain "$line"
    says '^      here   none of the usual reasons was found on this machine: 1 check passed '
    echo >root/usr/bin/ncu
    gpulse --root root explain "$line"
    says '^      here   no warning on this machine: 1 check passed \(gpulse doctor --root DIR --only driver\.params -v\); what may matter:$'
    says '^             driver\.params: only root may profile: Nsight Compute is denied to other users$'
    says 'NVreg_RestrictProfilingToAdminUsers=0'
    says_not 'no reason found|usual reasons'
}

@test "a note that a line makes the cause hides no failure of the other checks" {
    local line='NCCL WARN NCCL cannot be captured in a graph' site=root/home/ada/venv/lib/python3.11/site-packages
    known_gpu
    cp -r root/sys/bus/pci/devices/0000:01:00.0 root/sys/bus/pci/devices/0000:02:00.0
    echo 440.33.01 >root/sys/module/nvidia/version
    torch_in root/home/ada/venv
    rm -r "$site/torch-2.7.1+cu128.dist-info"
    printf "__version__ = '2.2.0+cu118'\ncuda = '11.8'\n" >$site/torch/version.py
    for package in torch:2.2.0+cu118 nvidia_nccl_cu11:2.19.3 vllm:0.3.2+cu118; do
        mkdir -p "$site/${package%:*}-${package#*:}.dist-info"
    done
    mkdir -p root/usr/local/cuda-12.4/bin
    touch root/usr/local/cuda-12.4/bin/nvcc
    echo '{"cuda": {"name": "CUDA SDK", "version": "12.4.0"}}' >root/usr/local/cuda-12.4/version.json
    gpulse --root root explain "$line"
    says '^      then   python\.others: vLLM in /home/ada/venv cannot use several GPUs with CUDA graphs'
    says '^      then   cuda\.driver_floor: '
}

@test "what a problem follows from is named in its place, if one remedy is for both" {
    local line='RuntimeError: No CUDA GPUs are available'
    known_gpu
    rm -r root/sys/module/nvidia
    gpulse --root root explain "$line"
    says '^      here   driver\.installed: no NVIDIA driver is installed for '
    says '^             install branch [0-9]* of the driver'
    says_not 'driver\.loaded'
    says_not '^      doctor '
    gpulse --root root explain --json "$line"
    json_is '[h["because"] for h in d["known"][0]["here"] if h["check"] in ("driver.installed", "driver.loaded")]' \
        "[None, 'driver.installed']"
}

@test "where the line's checks find nothing, the first problem of the machine is named" {
    mkdir -p none/sys/bus/pci/devices
    gpulse --root none explain 'docker: something new went wrong'
    status_is 1
    says '^      first  '
    says_not '^      doctor '
    gpulse --root none explain --json 'docker: something new went wrong'
    json_is 'd["doctor"]' None
    known_gpu
    rm -r root/sys/module/nvidia
    gpulse --root root explain 'docker: something new went wrong'
    status_is 1
    says '^      doctor driver\.installed: no NVIDIA driver is installed for '
    says '^             install branch [0-9]* of the driver'
    gpulse --root root explain --json 'docker: something new went wrong'
    json_is 'd["doctor"]["check"], d["doctor"]["status"]' "('driver.installed', 'fail')"
    gpulse --root root explain --no-look 'docker: something new went wrong'
    says_not '^      doctor '
    gpulse --root root explain "NVRM: API mismatch: the client has the version 570.86.15, but"
    says '^      here   none of the usual reasons was found on this machine: '
    says '^      doctor driver\.installed: '
    printf '%s\n' "NVRM: API mismatch: the client has the version 570.86.15, but" "Xid 13" \
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]]." >log
    gpulse --root root explain log
    says '^      doctor driver\.installed: '
    [ "$(grep -c '^      doctor ' <<<"$output")" -eq 1 ]
    gpulse --root root explain --json log
    json_is 'd["doctor"]["check"]' driver.installed
}

@test "the number of an Xid in a sentence" {
    gpulse explain --no-look "the job died with Xid 48, Double Bit ECC Error"
    says '^Xid 48: '
    gpulse explain --no-look "FATAL: Xid = 48 of a binary log; xid 48; Xid 4800; maXid 48"
    status_is 1
}

@test "a log without known errors: the first problem of the machine" {
    known_gpu
    rm -r root/sys/module/nvidia
    echo "all is lost" >log
    gpulse --root root explain log
    status_is 1
    says '^no known error in the log$'
    says '^      doctor driver\.installed: '
    gpulse --root root explain --json log
    json_is 'd["doctor"]["check"], d["known"]' "('driver.installed', [])"
    gpulse --root root explain --no-look log
    says_not '^      doctor '
}

@test "no reason among its checks: only where it was really looked for" {
    local line='CUDA error: no kernel image is available for execution on the device'
    mkdir -p empty
    gpulse --root empty explain "$line"
    says '^      here   not looked for on this machine: its GPUs are unknown, as /sys/bus/pci/devices cannot be read$'
    mkdir -p none/sys/bus/pci/devices
    gpulse --root none explain "$line"
    says '^      here   not looked for on this machine: this machine has no GPU$'
    known_gpu
    gpulse --root root explain "$line"
    says '^      here   unknown on this machine: 2 checks passed, but 1 had nothing to look at or could not look \(gpulse doctor --root DIR --only '
    says '^             python\.torch: no Python environment has PyTorch; looked in /home, /root, .*; --python names another place$'
    says_not 'no reason found|usual reasons'
    gpulse --root root explain --json "$line"
    json_is 'sorted(h["empty"] for h in d["known"][0]["here"])' '[False, False, True]'
    torch_in root/scratch/venv
    gpulse --root root explain --python /scratch/venv "$line"
    says '^      here   none of the usual reasons was found on this machine: 3 checks passed \(gpulse doctor --root DIR --only '
    torch_in root/home/ada/anything
    gpulse --root root doctor explain "$line"
    says '^      here   none of the usual reasons was found on this machine: 3 checks passed \(gpulse doctor --root DIR --only '
    gpulse doctor --python /scratch/venv gpus
    fails 2 '--python cannot be combined with gpus'
}
