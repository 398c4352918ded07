#!/usr/bin/env python3
"""The lists of a GPU as real machines printed them: what gpulse prints of a machine made from a
capture must be the same.

variants: asan
"""
import json
import os
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from machines import links_of, machine_of, matrix_of
from tap import good, gpulse, main, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
CAPTURES = ROOT / "data/captures"


def number(text):
    return int(re.match(r"-?\d+", text.strip()).group())


def rows_of(machine, kind, folder, fields="index,*"):
    env = dict(os.environ, GPULSE_SIM_STATE=folder)
    return json.loads(good(gpulse("--sim", machine, "--sim-still", "--timeout", "60", "query", fields,
                                  "--rows", kind, "-f", "json", env=env)))[kind]


# ---- captures of nvidia-smi -q -x ----

def clocks_of(gpu):
    group = gpu.find("supported_clocks")
    if group is None or not len(group):
        return None
    return [(number(memory.findtext("value")), number(graphics.text))
            for memory in group.findall("supported_mem_clock")
            for graphics in memory.findall("supported_graphics_clock")]


def compare_clocks(path):
    with tempfile.TemporaryDirectory() as folder:
        machine = f"{folder}/m.json"
        good(gpulse("sim", "import", path, "-o", machine))
        rows = rows_of(machine, "supported_clocks", folder)
    pairs = 0
    for index, gpu in enumerate(ET.parse(path).getroot().findall("gpu")):
        printed = [(r["supported_clocks.memory"], r["supported_clocks.graphics"])
                   for r in rows if r["index"] == index]
        captured = clocks_of(gpu)
        assert printed == (captured or [(None, None)]), f"GPU {index}: {printed}"
        pairs += len(captured or [])
    return pairs


@test
def supported_clocks_of_all_captures():
    total = 0
    for path in sorted(CAPTURES.glob("qx__*.xml")):
        if not re.search(r"nvsmi_device_v1[123]\.dtd", path.read_text(errors="replace")[:2000]):
            continue
        pairs = compare_clocks(path)
        print(f"# {path.stem.removeprefix('qx__')}: {pairs} pairs of clocks")
        total += pairs
    assert total > 5000, total


# ---- sections of nvidia-smi -q ----

SAMPLES = {"Power Samples": "power", "GPU Utilization Samples": "gpu", "Memory Utilization Samples": "memory",
           "ENC Utilization Samples": "encoder", "DEC Utilization Samples": "decoder",
           "SM Clock Samples": "sm_clock", "Memory Clock Samples": "memory_clock"}
# A driver's clock went back: the duration is none.
NO_DURATION = "18446744073709.22"


def samples_of(lines):
    """{kind: [printed number of Duration, Number of Samples, Max, Min, Avg]}"""
    found, kind = {}, None
    for line in lines:
        label, colon, value = (part.strip() for part in line.partition(" : "))
        kind = kind if colon else SAMPLES.get(label)
        if colon and kind:
            found.setdefault(kind, []).append(value.split()[0])
    return found


@test
def samples_as_printed():
    total = 0
    for name in ("q-d-UTILIZATION__x4_cuda10.2", "q-d-POWER__gpu180W_595.71.05", "q-d-CLOCK__gtx10xx_455.45.01"):
        lines = (CAPTURES / f"{name}.txt").read_text().split("    (...)")[0].splitlines()
        if "UTILIZATION" in name:
            lines = lines[:-1]  # the second GPU, which is elided
        captured = samples_of(lines)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "c.txt").write_text("\n".join(lines) + "\n")
            good(gpulse("sim", "import", f"{folder}/c.txt", "-o", f"{folder}/m.json"))
            rows = {r["samples.kind"]: r for r in rows_of(f"{folder}/m.json", "samples", folder)}
        assert len(rows) == 10 and captured.keys() <= rows.keys(), (name, captured.keys())
        for kind, row in rows.items():
            printed = [row[f"samples.{what}"] for what in ("duration", "count", "max", "min", "average")]
            if kind not in captured:
                assert printed == [None] * 5, (name, row)
                continue
            expected = [float(number) for number in captured[kind]]
            if captured[kind][0] == NO_DURATION:
                expected[0] = printed[0]
            assert all(abs(a - b) < 1e-6 for a, b in zip(printed, expected, strict=True)), (name, row, expected)
            total += 1
    assert total == 7, total


# ---- nvidia-smi nvlink, topo, --query-* ----

def status_blocks(name):
    """The lines behind each "GPU n: …" of nvidia-smi nvlink -s."""
    text = (CAPTURES / name).read_text().split("# nvidia-smi topo")[0]
    return [[line.strip() for line in block.splitlines()[1:] if line.strip()]
            for block in re.split(r"^(?=GPU \d+: )", text, flags=re.M)[1:]]


def status_lines(rows):
    """What nvidia-smi nvlink -s would print of our rows for a GPU."""
    if rows and rows[0]["links.number"] is None:
        assert rows[0]["reasons"]["links.state"] == "not reported in MIG mode", rows
        return ["Nvlink queries are not supported for Devices in MIG mode"]
    if not rows:
        return ["Device does not have or support Nvlink"]
    if all(r["links.state"] == "Inactive" for r in rows):
        return ["NVML: Unable to retrieve Nvlink information as all links are inActive"]
    return [f"Link {r['links.number']}: " + ("<inactive>" if r["links.state"] == "Inactive" else
                                             f"{r['links.speed'] / 1e9:.3f}".rstrip("0").rstrip(".") + " GB/s")
            for r in rows]


def links_of_block(lines, mig):
    """The links of a machine of which nvidia-smi prints these lines."""
    speeds = [re.search(r"[\d.]+(?= GB/s)|<inactive>", line) for line in lines]
    if speeds[0] or mig:
        return [{"state": 0} if s == "<inactive>" else
                {"speed_mbps": round(1000 * float(s)), "version": 6, "remote_type": 2, "remote": "00000000:F0:00.0"}
                for s in ([m.group() for m in speeds] if speeds[0] else ["26.562"] * 18)]
    return [{"state": 0}] if "inactive" in lines[0].lower() else "NOT_SUPPORTED"


def compare_status(name):
    blocks = status_blocks(name)
    mig = "MIG mode" in blocks[0][0]
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_of(folder, "a100-mig" if mig else "h100", len(blocks),
                             {"nvlinks": links_of_block(blocks[0], mig)})
        rows = rows_of(machine, "links", folder, "index,links.number,links.state,links.speed")
    for i, captured in enumerate(blocks):
        printed = status_lines([r for r in rows if r["index"] == i])
        assert printed == captured, f"{name}: GPU {i}: {printed}"
    print(f"# {name}: {sum(map(len, blocks))} lines of {len(blocks)} GPUs")


@test
def nvlink_status():
    # the one left out was typed by hand; see check_smi_nvlink.py
    names = sorted(p.name for p in CAPTURES.glob("nvlink-s*") if "azure-nhc_bad" not in p.name)
    assert len(names) >= 7, names
    for name in names:
        compare_status(name)


def compare_matrix(name):
    _, cells, cpus, nodes, _ = matrix_of(name)
    cells = [row[:len(cpus)] for row in cells[:len(cpus)]]
    links, by_xor = links_of(cells)
    levels = ["SYS" if by_xor[x].startswith("NV") else by_xor[x] for x in range(1, len(cells))] or ["SYS"]
    topology = {"levels": levels, "nodes": list(dict.fromkeys(nodes))}
    if all(cpus):
        topology["cpus"] = list(dict.fromkeys(cpus))
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_of(folder, "h100", len(cells), {"nvlinks": links}, topology)
        rows = rows_of(machine, "peers", folder, "index,peers.number,peers.connection")
        gpus = rows_of(machine, "gpus", folder, "affinity.cpu,affinity.memory")
    printed = [["X"] * len(cells) for _ in cells]
    for r in rows:
        printed[r["index"]][r["peers.number"]] = r["peers.connection"]
    assert printed == cells, f"{name}: {printed}"
    assert [g["affinity.memory"] for g in gpus] == nodes, gpus
    if all(cpus):
        assert [g["affinity.cpu"] for g in gpus] == cpus, gpus
    print(f"# {name}: {len(cells)} GPUs, {len(rows)} pairs")


@test
def topology_matrices():
    for name in ("nvlink-s+topo-m__rtx-3090_x2-nv4.txt", "topo-m__4xA100-nv4-3nic_cgroup-limited.txt",
                 "topo-m__8xH-cc9.0_535.161.08_8nic_partial.txt", "topo-m__h100-80gb-hbm3_590.48.01.txt",
                 "topo-mp__8gpu-6nic.txt"):
        compare_matrix(name)


def p2p_of(gpus, links, p2p):
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_of(folder, "h100", gpus, {"nvlinks": links}, {"levels": ["SYS"], "p2p": p2p})
        return {(r["index"], r["peers.number"]): r["peers.p2p.read"]
                for r in rows_of(machine, "peers", folder, "index,peers.*")}


@test
def p2p_matrices():
    text = (CAPTURES / "topo-p2p-r__h100x8_ml-engineering.txt").read_text()
    for part in text.split("$ nvidia-smi topo -p2p r")[1:]:
        rows = [line.split()[1:] for line in part.splitlines() if re.match(r" GPU\d", line)]
        captured = {(a, b): cell for a, row in enumerate(rows) for b, cell in enumerate(row) if a != b}
        switch = [{"repeat": 18, "remote_type": 2, "remote": "00000000:F0:00.0"}]
        printed = p2p_of(len(rows), switch if len(rows) == 8 else "NOT_SUPPORTED", captured[0, 1])
        assert printed == captured, printed


@test
def accounted_apps():
    lines = (CAPTURES / "query-accounted-apps__l40s_595.80__load.txt").read_text().splitlines()
    captured = [line.split(", ")[5:] for line in lines[1:]]
    apps = [{"pid": number(pid), "gpu_utilization": number(gpu), "memory_utilization": number(mem),
             "max_memory": number(most) << 20, "time_ms": number(time), "running": int(number(time) == 0)}
            for pid, gpu, mem, most, time in captured]
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(machine_of(folder, "t4", 1, {"accounted_apps": apps}, AccountingMode="Enabled"),
                       "accounted_apps", folder, "pid,gpu_util,mem_util,max_memory_usage:MiB,time,running")
    prefix = "accounted_apps."
    printed = [[str(r[prefix + "pid"]), f"{r[prefix + 'gpu_utilization']} %", f"{r[prefix + 'mem_utilization']} %",
                f"{r[prefix + 'max_memory_usage:MiB']} MiB", f"{r[prefix + 'time']} ms"] for r in rows]
    assert printed == captured, printed
    assert [r[prefix + "running"] for r in rows] == ["No", "No", "No", "Yes", "Yes"], rows


@test
def retired_pages():
    """Where pages are not retired nvidia-smi prints N/A, a row for each cause; a T4 has none of them."""
    lines = (CAPTURES / "query-retired-pages__h100-80gb-hbm3_590.48.01__idle.txt").read_text().splitlines()
    assert [line.split(", ")[5:7] for line in lines[1:]] == [["[N/A]", "[N/A]"]] * 2
    with tempfile.TemporaryDirectory() as folder:
        for capture, rows in (("k8stestinfra_h100", 8), ("k8stestinfra_t4", 0)):
            machine = f"{folder}/{capture}.json"
            good(gpulse("sim", "import", CAPTURES / f"qx__{capture}.xml", "-o", machine))
            printed = rows_of(machine, "retired_pages", folder)
            assert len(printed) == rows, printed
            assert all(r["retired_pages.address"] is None for r in printed)


main()
