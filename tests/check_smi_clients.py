#!/usr/bin/env python3
"""The programs of the field that run nvidia-smi, with gpulse in its place: a link of that name, first
on PATH, and a simulated machine. Each test gives the command line of one program and reads the answer
as that program does; the expectations come from the machine.

variants: release
"""
import csv
import io
import json
import os
import re
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from tap import GPULSE, good, gpulse, main, run, test

FOLDER = tempfile.TemporaryDirectory()
LINK = Path(FOLDER.name) / "bin/nvidia-smi"
LINK.parent.mkdir()
LINK.symlink_to(Path(GPULSE).resolve())
(Path(FOLDER.name) / "root").mkdir()


def environment(machine):
    return dict(os.environ, PATH=f"{LINK.parent}:{os.environ['PATH']}", GPULSE_SIM=machine, GPULSE_SIM_STILL="1",
                GPULSE_SIM_STATE=FOLDER.name, GPULSE_ROOT=f"{FOLDER.name}/root", TZ="UTC")


def smi(machine, *words):
    """Runs nvidia-smi; the result has returncode, stdout and stderr."""
    return run("nvidia-smi", *words, env=environment(machine))


def answer(machine, *words):
    return good(smi(machine, *words))


def truth(machine, fields, *words):
    """What the machine is, said by gpulse itself."""
    env = environment(machine)
    return json.loads(good(gpulse("query", fields, "-f", "json", *words, env=env)))


def gpus(machine, fields):
    return truth(machine, fields)["gpus"]


def stream(machine, enough, *words):
    """What a program hears on a pipe until it has enough (a function of the text, whole lines), and stops
    nvidia-smi."""
    process = subprocess.Popen(["nvidia-smi", *words], env=environment(machine), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    heard, more = b"", True
    while more and not enough(heard[:heard.rfind(b"\n") + 1].decode()):
        more = os.read(process.stdout.fileno(), 1 << 16)
        heard += more
    process.send_signal(signal.SIGTERM)
    heard += process.stdout.read()
    process.wait()
    return heard.decode()


def mib(size):
    return -(-size // (1 << 20))


MANY = ("h100x8", "t4", "rtx3060", "l40s")


# ---- libraries and tools of machine learning ----

@test
def gputil():
    """Splits at line ends, takes lines minus one for the number of GPUs, and int() of the index."""
    fields = "index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial," \
             "display_active,display_mode,temperature.gpu"
    for machine in MANY:
        lines = answer(machine, f"--query-gpu={fields}", "--format=csv,noheader,nounits").split("\n")
        count = len(lines) - 1
        expected = gpus(machine, "index,uuid,memory.total,temperature.gpu")
        assert count == len(expected) and lines[-1] == "", lines
        for line, gpu in zip(lines, expected):
            values = line.split(", ")
            assert len(values) == 12, line
            assert int(values[0]) == gpu["index"] and values[1] == gpu["uuid"]
            assert float(values[3]) == mib(gpu["memory.total"])
            assert float(values[11]) == gpu["temperature.gpu"]


@test
def torch_collect_env():
    for machine in MANY:
        result = smi(machine)
        assert result.returncode == 0 and result.stderr == ""
        driver = re.search(r"Driver Version: (.*?) ", result.stdout).group(1)
        assert driver == truth(machine, "driver_version", "--host")["hosts"][0]["driver_version"]
        names = re.sub(r" \(UUID: .+?\)", "", answer(machine, "-L"))
        assert names.splitlines() == [f"GPU {g['index']}: {g['name']}" for g in gpus(machine, "index,name")]
    assert "GPU0" in answer("h100x8", "topo", "-m")


@test
def accelerate():
    for machine in MANY:
        lines = answer(machine, "--query-gpu=count,name", "--format=csv,noheader").strip().split("\n")
        assert [line.split(",")[1].strip() for line in lines] == [g["name"] for g in gpus(machine, "name")]
        assert int(lines[0].split(",")[0]) == len(lines)
    # a field that does not exist must be an error: it goes on to ask torch
    assert smi("h100x8", "--query-gpu=compute_capability", "--format=csv,noheader").returncode != 0


@test
def pytorch_lightning():
    fields = "utilization.gpu,memory.used,memory.free,utilization.memory,fan.speed,temperature.gpu,temperature.memory"
    expected = gpus("h100x8", "utilization.gpu,memory.free,temperature.memory")[3]
    line = answer("h100x8", f"--query-gpu={fields}", "--format=csv,nounits,noheader", "--id=3").strip()

    def number(text):
        try:
            return float(text)
        except ValueError:
            return 0.0

    values = [number(text) for text in line.split(", ")]
    assert values[0] == expected["utilization.gpu"] and values[2] == mib(expected["memory.free"])
    assert values[6] == expected["temperature.memory"]


@test
def jax():
    assert answer("h100x8", "--query-gpu=name", "--format=csv,noheader").count("\n") == 8
    total = answer("h100x8", "--query-gpu=memory.total", "--format=csv,noheader,nounits", "--id=0")
    assert int(total) == mib(gpus("h100x8", "memory.total")[0]["memory.total"])
    assert answer("h100x8", "--query-gpu=compute_cap", "--format=csv,noheader").split() == ["9.0"] * 8


@test
def deepspeed():
    assert len(answer("h100x8", "--list-gpus").splitlines()) == 8


@test
def codecarbon_and_canhazgpu_ask_for_help_without_a_gpu():
    env = dict(environment("h100"), GPULSE_SIM="", GPULSE_NVML="/nonexistent/libnvidia-ml.so.1")
    for words in (("--help",), ("--help-query-gpu",)):
        assert run("nvidia-smi", *words, env=env).returncode == 0


@test
def ollama_and_cog():
    found = re.findall(r"CUDA Version: [0-9]*\.[0-9]*", answer("h100x8"))
    assert found == [f"CUDA Version: {truth('h100x8', 'cuda_version', '--host')['hosts'][0]['cuda_version']}"]
    for line in answer("h100x8", "--query-gpu=compute_cap", "--format=csv,noheader").splitlines():
        assert re.fullmatch(r"\d+\.\d+", line)


@test
def nvgpu():
    """Line 2 has the CUDA version; from line 8 on, four lines a GPU, memory in the third cell."""
    lines = answer("rtx3060x2").splitlines()
    assert "CUDA Version: " in lines[2]
    listed = re.findall(r"GPU ([0-9]+): (.+?) \(UUID: ([^)]+)\)", answer("rtx3060x2", "-L"))
    expected = gpus("rtx3060x2", "index,name,uuid,memory.used,memory.total")
    assert [(int(i), n, u) for i, n, u in listed] == [(g["index"], g["name"], g["uuid"]) for g in expected]
    for i, gpu in enumerate(expected):
        used, total = (int(part.replace("MiB", "").strip()) for part in lines[9 + 4 * i].split("|")[2].split("/"))
        assert (used, total) == (mib(gpu["memory.used"]), mib(gpu["memory.total"]))


@test
def uv_and_ramalama_and_genv():
    driver = answer("h100x8", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()[0].strip()
    assert driver == truth("h100x8", "driver_version", "--host")["hosts"][0]["driver_version"]
    rows = [line.split(", ") for line in answer("h100x8", "--query-gpu=index,uuid", "--format=csv,noheader").splitlines()]
    assert rows == [[str(g["index"]), g["uuid"]] for g in gpus("h100x8", "index,uuid")]
    for line in answer("h100x8", "--query-compute-apps=gpu_uuid,pid,used_gpu_memory",
                       "--format=csv,noheader,nounits").splitlines():
        uuid, pid, memory = line.split(", ")
        assert uuid.startswith("GPU-") and int(pid) > 0 and int(memory) >= 0


@test
def determined():
    assert answer("a100-mig", "--query-gpu=mig.mode.current", "--format=csv,noheader").startswith("Enabled")
    instances = re.findall(r"(MIG \S+).+\(UUID.+(MIG.+)\)", answer("a100-mig", "-L"))
    assert instances and all(re.fullmatch(r"MIG \d+g\.\d+gb", name) for name, _ in instances), instances
    rows = list(csv.reader(io.StringIO(answer("h100x8", "--query-gpu=index,name,uuid", "--format=csv,noheader",
                                              "--id=0,3"))))
    assert [row[0] for row in rows] == ["0", "3"] and all(len(row) == 3 for row in rows)


@test
def gpu_burn_reads_temperatures_from_the_log():
    """sscanf(line, "GPU Current Temp : %d C"), a line per GPU in the order of their indices."""
    text = stream("h100x8", lambda text: text.count("GPU Current Temp") >= 8, "-l", "5", "-q", "-d", "TEMPERATURE")
    found = [int(t) for t in re.findall(r"GPU Current Temp\s*:\s*(\d+) C", text)]
    expected = [g["temperature.gpu"] for g in gpus("h100x8", "temperature.gpu")]
    # a busy machine may stop it only behind its next report
    assert found and found == expected * (len(found) // len(expected)), found


@test
def toptop_asks_by_the_old_name_of_the_event_reasons():
    line = answer("t4", "--query-gpu=name,utilization.gpu,utilization.memory,memory.used,memory.total,temperature.gpu,"
                        "power.draw,power.limit,clocks_throttle_reasons.active", "--format=csv,noheader,nounits").strip()
    assert re.fullmatch(r"0x[0-9A-F]{16}", line.split(", ")[8]), line


@test
def dstack_and_all_smi():
    for line in answer("h100x8", "--query-gpu=name,memory.total,uuid,driver_version",
                       "--format=csv,noheader,nounits").splitlines():
        name, total, uuid, driver = line.split(", ")
        assert int(total) > 0 and uuid.startswith("GPU-") and driver[0].isdigit() and name


# ---- monitoring agents ----

def document(machine, *words):
    return answer(machine, "-q", "-x", *words)


@test
def telegraf():
    """The last word of the DOCTYPE chooses the structure; "N/A" and the deprecated are skipped."""
    for machine, version in (("h100x8", "v13"), ("t4", "v13"), ("t4,driver=535", "v12"), ("t4,driver=515", "v11")):
        text = document(machine)
        assert f'SYSTEM "nvsmi_device_{version}.dtd">' in text.splitlines()[1], machine
        root = ET.fromstring(text)
        expected = gpus(machine, "uuid,memory.total,temperature.gpu,pcie.link.width.current")
        found = root.findall("gpu")
        assert len(found) == len(expected)
        for gpu, g in zip(found, expected):
            assert gpu.findtext("uuid") == g["uuid"]
            assert int(gpu.findtext("temperature/gpu_temp").split(" ")[0]) == g["temperature.gpu"]
            assert int(gpu.findtext("fb_memory_usage/total").split(" ")[0]) >= g["memory.total"] >> 20
            width = gpu.findtext("pci/pci_gpu_link_info/link_widths/current_link_width")
            assert int(width.removesuffix("x")) == g["pcie.link.width.current"]


@test
def netdata_in_a_loop():
    """Cuts documents at lines that are exactly the two tags."""
    lines = stream("rtx3060x2", lambda text: text.count("</nvidia_smi_log>") >= 2, "-q", "-x", "-l", "1").split("\n")
    documents, inside = [], None
    for line in lines:
        if line == "<nvidia_smi_log>":
            inside = []
        if inside is not None:
            inside.append(line)
        if line == "</nvidia_smi_log>":
            documents.append("\n".join(inside))
            inside = None
    assert len(documents) >= 2, len(documents)
    for text in documents:
        gpu = ET.fromstring(text).findall("gpu")
        assert len(gpu) == 2
        readings = gpu[0].find("gpu_power_readings")
        power = [readings.findtext(tag) for tag in ("power_draw", "average_power_draw", "instant_power_draw")]
        assert any(p and re.fullmatch(r"\d+\.\d+ W", p) for p in power), power


@test
def nvidia_gpu_exporter():
    """Asks for all fields that the help names; the command fails as a whole on a bad one."""
    fields = re.findall(r"\n\s*\n^\"([^\"]+)\"", answer("h100x8", "--help-query-gpu"), re.M)
    assert len(fields) > 200, len(fields)
    rows = list(csv.reader(io.StringIO(answer("h100x8", f"--query-gpu={','.join(fields)}", "--format=csv"))))
    assert len(rows) == 9 and all(len(row) == len(fields) for row in rows)
    for field, header in zip(fields, rows[0]):
        assert re.fullmatch(re.escape(field) + r"( \[[^\]]+\])?", header.strip()), (field, header)
    version = dict(line.split(":", 1) for line in answer("h100x8", "--version").splitlines())
    assert [key.strip() for key in version] == ["NVIDIA-SMI version", "NVML version", "DRIVER version", "CUDA Version"]


@test
def ceems_and_gpustat_unraid_by_long_and_old_options():
    assert len(ET.fromstring(answer("h100x8", "--query", "--xml-format")).findall("gpu")) == 8
    found = re.findall(r"GPU\s(\d):\s(.*)\s\(UUID:\s(GPU-[0-9a-f-]+)\)", answer("h100x8", "-L"))
    assert len(found) == 8
    one = ET.fromstring(document("h100x8", "-g", found[2][2]))
    assert [gpu.findtext("uuid") for gpu in one.findall("gpu")] == [found[2][2]]


@test
def gnome_vitals_and_i3status_rust_send_a_comma_at_the_end():
    fields = "name,fan.speed,temperature.gpu,temperature.memory,memory.total,memory.used,memory.reserved,memory.free," \
             "utilization.gpu,utilization.memory,utilization.encoder,utilization.decoder,clocks.gr,clocks.mem," \
             "clocks.video,power.draw.instant,power.draw.average,pcie.link.gen.gpucurrent,pcie.link.width.current,"
    lines = stream("rtx3060x2", lambda text: text.count("\n") >= 4, f"--query-gpu={fields}",
                   "--format=csv,noheader,nounits", "-l", "1").splitlines()
    assert len(lines) >= 4 and all(len(line.split(", ")) == 19 for line in lines), lines
    line = stream("rtx3060x2", lambda text: "\n" in text, "-l", "1", "-i", "1",
                  "--query-gpu=name,memory.total,utilization.gpu,memory.used,"
                  "temperature.gpu,fan.speed,clocks.current.graphics,power.draw,",
                  "--format=csv,noheader,nounits").splitlines()[0]
    values = line.split(", ")
    assert len(values) == 8 and int(values[1]) and float(values[7]) >= 0, line


@test
def py3status_swaps_the_options():
    names = re.findall(r'^"([^"]+)"', answer("t4", "--help-query-gpu"), re.M)
    assert "memory.used" in names
    assert int(answer("t4", "--format=csv,noheader,nounits", "--query-gpu=memory.used")) >= 0


def kde_machine(text):
    """ksystemstats: a line that begins with "GPU " begins a GPU, and what follows the first 8 characters is
    its address; labels by their exact indentation."""
    found, section = [], None
    for line in text.splitlines():
        if line.startswith("GPU "):
            found.append({"address": line[8:]})
        elif line.startswith("    Product Name"):
            found[-1]["name"] = line.split(":", 1)[1].strip()
        elif re.match(r"    \S", line):
            section = line.strip()
        elif line.startswith("        Total") and section == "FB Memory Usage":
            found[-1]["total"] = int(line.split(":", 1)[1].split()[0])
        elif line.startswith("        Graphics") and section == "Max Clocks":
            found[-1]["max"] = int(line.split(":", 1)[1].split()[0])
    return found


@test
def kde_ksystemstats():
    expected = gpus("rtx3060x2", "name,pci.bus_id,memory.total,clocks.max.graphics")
    assert kde_machine(answer("rtx3060x2", "--query")) == [
        {"address": g["pci.bus_id"][4:], "name": g["name"], "total": mib(g["memory.total"]),
         "max": g["clocks.max.graphics"]} for g in expected]
    lines = stream("rtx3060x2", lambda text: len(re.findall("^[^#]", text, re.M)) >= 4,
                   "dmon", "-d", "1", "-s", "pucm").splitlines()
    header = next(line for line in lines if line.startswith("#")).lstrip("# ").split()
    assert {"gpu", "pwr", "gtemp", "sm", "enc", "dec", "fb", "bar1", "mclk", "pclk"} <= set(header), header
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert len(rows) >= 4 and all(len(row) == len(header) for row in rows), rows


@test
def kde_process_list():
    for line in answer("rtx3060x2", "--query-gpu=pci.bus_id,index,memory.total",
                       "--format=csv,noheader,nounits").splitlines():
        address, index, total = line.split(", ")
        assert re.fullmatch(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0", address) and int(index) >= 0 and int(total) > 0
    lines = stream("rtx3060x2", lambda text: text.count("\n") >= 2, "pmon", "-s", "mu").splitlines()
    header = lines[0].lstrip("# ").split()
    assert header[:5] == ["gpu", "pid", "type", "fb", "ccpm"], header


@test
def imbue_and_gpud():
    rows = answer("h100x8", "--query-gpu=index,ecc.errors.uncorrected.volatile.total,ecc.mode.current,ecc.mode.pending",
                  "--format=csv,noheader,nounits").splitlines()
    assert [row.split(", ") for row in rows] == [[str(i), "0", "Enabled", "Enabled"] for i in range(8)]
    errors = [line for line in answer("h100x8", "nvlink", "-e").splitlines() if "Errors" in line]
    assert errors and all(re.search(r"Errors: \d+$", line) for line in errors)
    status = answer("h100x8", "nvlink", "--status")
    assert len([line for line in status.splitlines() if "GPU" in line and "UUID" in line]) == 8
    assert "<inactive>" not in status
    assert any("Version" in line for line in answer("h100x8", "-q").splitlines())


# ---- schedulers and scripts ----

@test
def gpu_operator_asks_for_the_version_without_touching_gpus():
    assert smi("h100x8", "--version").returncode == 0
    assert smi("h100x8").returncode == 0


@test
def azure_health_checks():
    assert answer("h100x8", "--list-gpus").count("\n") == 8
    assert "Retired Pages" in answer("h100x8", "-q", "-d", "PAGE_RETIREMENT")
    rows = answer("h100x8", "--query-remapped-rows=remapped_rows.pending,remapped_rows.failure,"
                            "remapped_rows.uncorrectable", "--format=csv,noheader").splitlines()
    assert rows == ["No, No, 0"] * 8, rows
    assert re.fullmatch(r"\d+\.\d+\.\d+", answer("h100x8", "--id=0", "--query-gpu=driver_version",
                                                 "--format=csv,noheader").strip())
    active = answer("h100x8", "--query-gpu=clocks_event_reasons.active", "--format=csv,noheader")
    assert all(re.fullmatch(r"0x[0-9A-F]{16}", line) for line in active.splitlines())


@test
def jobstats_and_slurm_gpu_guard():
    bus_id = gpus("h100x8", "pci.bus_id")[5]["pci.bus_id"]
    uuid = answer("h100x8", "--query-gpu=uuid", "--format=noheader,csv", "-i", bus_id).strip()
    assert uuid == gpus("h100x8", "uuid")[5]["uuid"]
    for line in answer("h100x8", "--query-compute-apps=pid,gpu_uuid", "--format=csv,noheader").splitlines():
        pid, uuid = re.split(r"[, ]+", line)
        assert int(pid) > 0 and uuid.startswith("GPU-")


@test
def gcm_takes_the_second_word_from_the_third_line_on():
    lines = answer("h100x8", "pmon", "-c", "1").splitlines()[2:]
    assert lines and all(re.fullmatch(r"\d+|-", line.split()[1]) for line in lines)


@test
def by_eye_and_grep():
    log = answer("h100x8", "-q")
    assert sum("UUID" in line and "ClusterUUID" not in line for line in log.splitlines()) == 8
    assert not [line for line in log.splitlines() if re.search("correctable", line, re.I) and "0" not in line
                and ":" in line and "N/A" not in line]
    assert answer("h100x8", "-q", "-d", "CLOCK").count("    Max Clocks") == 8
    assert answer("h100x8", "-q", "-d", "PERFORMANCE").count("Performance State") == 8
    assert answer("h100x8", "--query-compute-apps=pid", "--format=csv").splitlines()[0] == "pid"
    assert "OK" in answer("h100x8", "topo", "-p2p", "r")


main()
