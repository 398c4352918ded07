# gpulse smi dmon, pmon, encodersessions, fbcsessions: options, errors, exit codes. What they print is
# compared with real captures in tests/check_smi_monitor.py.
# variants: asan

load helpers

# smi MACHINE ARG…: one that stands still
smi() {
    local machine=$1
    shift
    gpulse smi "$@" --sim "$machine" --sim-still
}

# columns: the words of the first header line
columns() {
    tr -s ' ' <<<"${lines[0]}" | sed 's/ $//'
}

# words_match: every row has as many words as there are columns
words_match() {
    awk '/^#/ { n = n ? n : NF - ($1 == "#"); next } NF != n { exit 1 }' <<<"$output" ||
        explain "rows and columns differ"
}

@test "power, utilization and clocks of every GPU, once a second" {
    smi h100x2 dmon -c 1
    status_is 0
    is_quiet
    line_count 4
    [ "$(columns)" = "# gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk" ]
    [ "${lines[2]}" = "    0    640     67     67     97     53      0      0      0      0   2619   1890 " ]
    words_match
}

@test "a line is there as soon as it is printed" {
    start smi dmon -d 600 --sim t4
    until_true grep -q '^    0 ' out
    kill -TERM "$pid"
    finish
    [ "$status" -eq 143 ]
    [ "$(wc -l <out)" -eq 3 ]
    [ ! -s err ]
}

@test "groups are in the order of their letters, each once" {
    smi t4 dmon -s tcpt -c 1
    [ "$(columns)" = "# gpu rxpci txpci mclk pclk pwr gtemp mtemp" ]
    words_match
    smi t4 dmon --select=pucvmet --count=1
    [ "$(columns)" = "# gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk pviol tviol fb bar1 ccpm sbecc dbecc pci rxpci txpci" ]
    words_match
    smi t4 pmon -s mu -c 1
    [ "$(columns)" = "# gpu pid type fb ccpm sm mem enc dec jpg ofa command" ]
    smi t4 pmon -s m -c 1
    [ "$(columns)" = "# gpu pid type fb ccpm command" ]
}

@test "older drivers have fewer and narrower columns" {
    smi t4,driver=515 dmon -s um -c 1
    [ "${lines[0]}" = "# gpu    sm   mem   enc   dec    fb  bar1" ]
    smi t4,driver=525 dmon -c 1
    [ "${lines[0]}" = "# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk" ]
    smi t4,driver=535 pmon -c 1
    [ "${lines[0]}" = "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command " ]
}

@test "date and time" {
    smi t4 dmon -s c -c 1 -o DT
    [ "${lines[0]}" = "#Date        Time         gpu   mclk   pclk " ]
    [ "${lines[1]}" = "#YYYYMMDD    HH:MM:SS     Idx    MHz    MHz " ]
    says '^ 2[0-9]{7}    [0-9]{2}:[0-9]{2}:[0-9]{2}       0   [ 0-9]{4}   [ 0-9]{4} $'
    smi t4 dmon -s c -c 1 --options T
    [ "${lines[0]}" = "#Time        gpu   mclk   pclk " ]
    says '^ [0-9]{2}:[0-9]{2}:[0-9]{2}      0 '
    smi t4 pmon -c 1 -o D
    says '^#Date         gpu         pid   type '
    says '^ 2[0-9]{7}       0 '
    words_match
}

@test "csv, without lines of the header" {
    smi h100x2 dmon -s pc -c 1 --format csv
    [ "${lines[0]}" = "#gpu, pwr, gtemp, mtemp, mclk, pclk" ]
    [ "${lines[1]}" = "#Idx, W, C, C, MHz, MHz" ]
    [ "${lines[2]}" = " 0, 640, 67, 67, 2619, 1890" ]
    line_count 4
    smi h100x2 dmon -s c -c 1 --format=csv,nounit,noheader
    [ "$output" = $' 0, 2619, 1890\n 1, 2619, 1890' ]
    smi h100x2 dmon -s c -c 1 --format noheader
    [ "${lines[0]}" = "# Idx    MHz    MHz " ]
    smi t4 dmon -s c -c 1 -o DT --format csv,nounit
    [ "${lines[0]}" = "#Date, Time, gpu, mclk, pclk" ]
    says '^ 2[0-9]{7}, [0-9]{2}:[0-9]{2}:[0-9]{2}, 0, [0-9]+, [0-9]+$'
}

@test "GPM columns after the others" {
    smi h100 dmon -i 0 -s c -c 1 --gpm-metrics=2,20,61 --gpm-options d
    [ "${lines[0]}" = "# gpu   mclk   pclk     smutil      pcitx      nvltx " ]
    [ "${lines[1]}" = "# Idx    MHz    MHz      GPM:%  GPM:MiB/s  GPM:MiB/s " ]
    says '^    0   2619   1890         90 {1,10}[0-9]+     184300 $'
    smi t4 dmon -c 1 -s c --gpm-metrics 2 --format csv,noheader,nounit
    says '^ 0, [0-9]+, [0-9]+, -$'
    # numbers without a name have empty columns
    smi h100 dmon -i 0 -s c -c 1 --gpm-metrics=2,8,0
    [ "${lines[0]}" = "# gpu   mclk   pclk     smutil       id=8       id=0 " ]
    [ "${lines[1]}" = "# Idx    MHz    MHz      GPM:%      GPM:%        GPM " ]
    says '^    0   2619   1890         90          -          - $'
}

@test "the GPUs that are asked for" {
    smi h100x4 dmon -i 3,1 -c 1
    [ "$(awk '!/^#/ { print $1 }' <<<"$output" | xargs)" = "1 3" ]
    smi h100x4 pmon --id=2 -c 1
    [ "$(awk '!/^#/ { print $1 }' <<<"$output")" = 2 ]
    smi h100x4 dmon -i 7 -c 1
    status_is 6
    [ "$output" = "No devices were found" ]
    is_quiet
}

@test "into a file" {
    smi t4 dmon -c 1 -f log
    status_is 0
    [ -z "$output" ]
    [ "$(wc -l <log)" -eq 3 ]
    smi t4 dmon -c 1 --filename=no/such/place
    status_is 255
    [ "$output" = "Failed to create the log file no/such/place" ]
    [ "$stderr" = "gpulse: No such file or directory" ]
}

@test "a GPU that is lost or hangs has a row without values" {
    fault h100x2 -g 0 lost
    gpulse smi dmon -s pucvmet -c 1 --sim h100x2
    status_is 15
    is_quiet
    says '^    0( +-)+ $'
    says '^    1 +[0-9]+ '
    words_match
    fault h100x2 -g 0 clear
    fault h100x2 -g 0 hang=1h:nvmlDeviceGetPowerUsage
    gpulse smi dmon -c 1 --sim h100x2 --timeout 2s
    status_is 0
    says '^    0( +-)+ $'
    gpulse smi pmon -c 1 --sim h100x2 --timeout 2s
    says '^    1 +[0-9]+ +C( +[0-9-]+){6} +\S'
}

@test "a GPU that stops answering has one row, whatever it ran" {
    machine t4 'd["processes"] = [{"pid": p, "type": "C", "memory_bytes": 1 << 20} for p in (7, 8, 9)]; del m["workload"]'
    start smi pmon -s m -o T -d 2 --timeout 3s --sim ./m.json
    until_true grep -q ' 9 ' out
    fault ./m.json hang=1h:nvmlDeviceGetComputeRunningProcesses
    until_true grep -Eq '^ *[0-9:]+ +0 +-( +-)+ +$' out
    kill -INT "$pid"
    finish
    [ -z "$(awk '$3 == "-" { print $1 }' out | uniq -d)" ]
    fault ./m.json clear
}

@test "a partitioned GPU reports no utilization, and its processes are listed" {
    smi h100-mig dmon -c 1
    says '^    0 +[0-9]+ +[0-9]+ +[0-9]+( +-){6} +[0-9]+ +[0-9]+ $'
    smi h100-mig pmon -c 1
    status_is 0
    says '^    0 +[0-9]+ +C( +-){6}    [a-z]'
}

@test "processes: their types, their order, and a row for a GPU without any" {
    machine t4 'd["processes"] = [{"pid": p, "type": t, "memory_bytes": 1 << 20, "name": "/bin/x" + t}
        for p, t in ((9, "M"), (30, "G"), (4, "C+G"))]; del m["workload"]
d["answers"].update(ProcessUtilization=0, GraphicsRunningProcesses=0, MPSComputeRunningProcesses=0)'
    smi ./m.json pmon -s m -c 1 --root "$BATS_TEST_TMPDIR"
    [ "$(awk '!/^#/ { print $2 $3 $6 }' <<<"$output" | xargs)" = "4C+GxC+G 9M+CxM 30GxG" ]
    machine t4 'd["processes"] = []; del m["workload"]'
    smi ./m.json pmon -c 1
    [ "${lines[2]}" = "    0          -     -      -      -      -      -      -      -    -              " ]
}

@test "refused if no GPU reports the use by processes" {
    fault t4 error=NOT_SUPPORTED:nvmlDeviceGetProcess
    smi t4 pmon -c 1
    status_is 255
    is_quiet
    [ "$output" = $'Not supported on the device(s)\nFailed to process command line' ]
    smi t4 pmon -s m -c 1
    status_is 0
    line_count 3
}

@test "sessions of the encoder and of screen capture" {
    machine t4 'd["lists"] = {
        "encoder_sessions": [{"id": 7, "pid": 12, "codec": c, "width": 1920, "height": 1080, "fps": 60,
                              "latency_us": 1500} for c in (0, 1, 2)],
        "fbc_sessions": [{"id": 3, "pid": 12, "display": 0, "type": 1, "flags": f, "max_width": 4096,
                          "max_height": 2160, "width": 1920, "height": 1080, "fps": 30, "latency_us": 99}
                         for f in (0, 7, 16)]}'
    smi ./m.json encodersessions -c 1
    status_is 0
    [ "${lines[2]}" = "    0       7         12   H.264    1920    1080      60        1500" ]
    [ "$(awk '!/^#/ { print $4 }' <<<"$output" | xargs)" = "H.264 H.265 AV1" ]
    smi ./m.json fbcsessions -c 1
    status_is 0
    [ "${lines[2]}" = "    0         3        12         0     ToSys  Disabled    Disabled      Blocking    4096    2160  1920  1080        30            99" ]
    [ "$(awk '!/^#/ { print $6, $7, $8 }' <<<"$output" | xargs)" = "Disabled Disabled Blocking Enabled Enabled Non-blocking Disabled Disabled Timeout" ]
}

@test "only printed values are read" {
    GPULSE_SIM_COUNT=$BATS_TEST_TMPDIR/calls smi t4 dmon -s p -c 1
    grep -q nvmlDeviceGetPowerUsage calls
    run ! grep -Eq 'Processes|Utilization|Clock|Throughput|Ecc' calls
}

@test "help" {
    local command
    for command in dmon pmon encodersessions fbcsessions; do
        gpulse smi "$command" -h
        status_is 0
        is_quiet
        [ "${lines[0]}" = "nvidia-smi $command [options]" ]
        says '^    -c, --count=N +stop after N samples$'
        says_not '.{101}'
    done
    gpulse smi pmon --help
    says '^        u  sm mem enc dec jpg ofa$'
    says_not 'gpm'
    gpulse smi fbcsessions --help
    says_not '--select'
}

# refused STATUS MESSAGE ARG…
refused() {
    local expected=$1 message=$2
    shift 2
    gpulse smi "$@" --sim t4
    status_is "$expected"
    is_quiet
    [ "${lines[0]}" = "$message" ] || explain "expected: $message"
}

# explained MESSAGE ARG…: the message, then the help; like nvidia-smi, with status 0
explained() {
    refused 0 "$@"
    says '^nvidia-smi .mon \[options\]$'
    says ' -s, --select='
}

# as driver 580.159.04 says it
@test "invalid arguments" {
    local line="Failed to process command line "
    refused 255 "Failed to find any metric to display" dmon -s px
    [ "${lines[1]}" = "$line" ]
    refused 255 "Failed to find any metric to display" pmon -s p
    refused 255 "Error in parsing options" dmon -o X
    [ "${lines[1]}" = "$line" ]
    refused 255 "json is not a recognized format option" dmon --format csv,json
    [ "${lines[1]}" = "Error parsing format options" ]
    [ "${lines[2]}" = "$line" ]
    refused 255 "Metric value too high: 999" dmon --gpm-metrics 2,999
    [ "${lines[1]}" = "Could not parse GPM metrics" ]
    refused 255 "Found offending character: x" dmon --gpm-metrics 2,x
    refused 255 "More than 32 metrics cannot be shown" dmon --gpm-metrics "$(seq -s, 33)"
    explained "Collection delay/interval should be between 1 second and 600 seconds" dmon -d 0
    explained "Collection delay/interval should be between 1 second and 600 seconds" dmon -d 601
    explained "Collection delay/interval should be between 1 second and 10 seconds" pmon -d 11
    explained "Collection delay/interval should be between 1 second and 10 seconds" pmon -d 1.5
    explained "Invalid value for number of samples to be displayed" dmon -c many
    explained "Invalid value for number of samples to be displayed" pmon -c 0
    explained "nvidia-smi dmon [options]" dmon --gpm-options m
    explained 'Option "-q" is not recognized.' dmon -q
    explained 'Option "-c1" is not recognized.' dmon -c1
    explained 'Option "-s" is missing its value.' pmon -s
    explained 'Option "--format" is not recognized.' pmon --format csv
    refused 2 'Option "-s" is not recognized.' fbcsessions -s p
}
