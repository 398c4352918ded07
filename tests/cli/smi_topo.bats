#!/usr/bin/env bats
# gpulse smi topo: options, single answers, errors. The matrices: check_smi_topo.py.
# variants: asan

load helpers

topo() {
    gpulse smi topo --sim-still --root "$BATS_TEST_TMPDIR" "$@"
}

@test "topo -c names the GPUs near to a processor" {
    topo --sim h100x8 -c 60
    status_is 0
    [ "$output" = "The GPUs that have an affinity with CPU 60 are:
4, 5, 6, 7" ]
    topo --sim h100x8 --cpu=51
    [ "${lines[1]}" = "0, 1, 2, 3" ]
    topo --sim h100x8 -c 104
    status_is 0
    [ "$output" = "No GPUs were found to have an affinity with CPU 104." ]
}

@test "topo -n names the GPUs at exactly that distance" {
    topo --sim h100x8 -n 5 -i 0
    status_is 0
    [ "$output" = "Device 0 is connected by way of an SMP interconnect link between NUMA nodes to device(s): 4, 5, 6, 7" ]
    topo --sim h100x8 -n 4 -i 1
    [ "$output" = "Device 1 is connected by way of an on-CPU interconnect link between PCIe host bridges to device(s): 0, 2, 3" ]
    topo --sim h100x8 -n 1 -i 0
    [ "$output" = "Device 0 is not connected to other devices by way of a single PCIe switch." ]
}

@test "topo -p shows the path between two GPUs" {
    topo --sim h100x8 -p -i 0,1
    status_is 0
    [ "$output" = "Device 0 is connected to device 1 by way of an on-CPU interconnect link between PCIe host bridges." ]
    topo --sim h100x8 --gpu_path -i 0,7
    [ "$output" = "Device 0 is connected to device 7 by way of an SMP interconnect link between NUMA nodes." ]
}

@test "topo -p of a GPU that is lost" {
    fault h100x2 --gpu 1 lost
    topo --sim h100x2 -p -i 0,1
    status_is 15
    [ "$output" = "Device 0 is connected to device 1 by way of N/A." ]
}

@test "topo -C, -M and -gnid show NUMA nodes, also together" {
    topo --sim h100x8 -C -M -gnid -i 5
    status_is 0
    [ "$output" = "NUMA IDs of closest CPU: 1
NUMA IDs of closest memory: 1
N/A" ]
    topo --sim gb200 -M -i 0
    [ "$output" = "NUMA IDs of closest memory: 0" ]
}

@test "topo -p2p takes several letters: all must be OK" {
    machine h100 'm["topology"] = {"levels": ["PIX"], "p2p": "CNS"}; m["devices"] = m["devices"][:2]; m["workload"] = []
for d in m["devices"]: d["lists"]["nvlinks"] = "NOT_SUPPORTED"'
    topo --sim ./m.json -p2p rw
    status_is 0
    [ "${lines[1]}" = $' GPU0\tX\tCNS\t' ]
    topo --sim h100x2 -p2p rwnap
    [ "${lines[1]}" = $' GPU0\tX\tOK\t' ]
}

@test "topo refuses options that cannot be combined" {
    local words
    local options words
    while IFS='|' read -r options words; do
        # shellcheck disable=SC2086
        topo --sim h100x8 $options
        status_is 2
        [[ "$output" = "$words"* ]] || explain "$options"
    done <<'EOF'
-m -mp|Invalid combination of input arguments.
-m -c 1|Invalid combination of input arguments.
-p -i 0|Path command line flag must be used in conjection with the -i argument which must be two
-p|Path command line flag must be used in conjection with the -i argument which must be two
-p -i 0,0|Path command line flag must be used in conjection with the -i argument which must be two
-n 2|Nearest GPUs argument must be used in conjunction with the -i argument which must be a single
-n 2 -i 0,1|Nearest GPUs argument must be used in conjunction with the -i argument which must be a single
-n 2 -i 0-1|Nearest GPUs argument must be used in conjunction with the -i argument which must be a single
-C|NUMA ID of nearest CPU must be used in conjunction with the -i argument which must be a single
-M|NUMA ID of nearest memory must be used in conjunction with the -i argument which must be a single
-gnid|GPU NUMA ID command must be used in conjunction with the -i argument which must be a single
EOF
}

@test "topo refuses values that it does not know" {
    topo --sim h100x2 -n 6 -i 0
    status_is 255
    [ "$output" = "Failed to display the nearest GPUs" ]
    topo --sim h100x2 -p2p x
    status_is 2
    [ "$output" = "Invalid p2p capability index specified at the command-line" ]
    topo --sim h100x2 -c one
    status_is 2
    [ "$output" = 'Option "one" is invalid for "-c".' ]
    topo --sim h100x2 -z
    status_is 2
    [ "$output" = 'Option "-z" is not recognized.' ]
}

@test "topo -i of a GPU that is not there" {
    topo --sim h100x2 -p -i 0,9
    status_is 6
    [ "$output" = "No devices were found" ]
}

@test "topo -h lists every option" {
    topo -h
    status_is 0
    [[ "$output" = *" -mp, --matrix_pci "*" -n, --nearest_gpus=N "* ]]
}

@test "the cards of this machine are not those of a simulated one" {
    gpulse smi topo -m --sim h100x1
    status_is 0
    [[ "$output" != *NIC0* ]]
}

@test "topo -m with a GPU that is lost: a row for each GPU, all columns there" {
    fault h100x3 --gpu 1 lost
    topo --sim h100x3 -m
    status_is 15
    [ "${lines[2]}" = "$(printf 'GPU1\tN/A\t X \tN/A\t\t\t\tN/A')" ]
    [ "${lines[1]}" = "$(printf 'GPU0\t X \tN/A\tNV18\t0-51\t0\t\tN/A')" ]
}
