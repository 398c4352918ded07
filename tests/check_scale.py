#!/usr/bin/env python3
"""The largest machine that anybody may have: 128 GPUs of 8 MIG instances each, and 65,536 processes; and
one GPU with all of these.

variants: asan release
"""
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

from tap import good, gpulse, main, test

GPUS, INSTANCES, PROCESSES = 128, 8, 65536


def device(gpu, processes, instances):
    return {
        "uuid": f"GPU-00000000-0000-0000-0000-{gpu:012d}",
        "pci": {"bus_id": f"{gpu // 32:08X}:{gpu % 32 + 1:02X}:00.0", "device_id": "0x20B210DE",
                "subsystem_id": "0x147F10DE"},
        "answers": {"Name": "NVIDIA A100-SXM4-80GB", "Temperature": 40,
                    "UtilizationRates": {"gpu": 50, "memory": 20},
                    "MigMode": {"current": int(instances > 0), "pending": int(instances > 0)},
                    "MaxMigDeviceCount": instances,
                    "MemoryInfo": {"total": 85899345920, "reserved": 0, "used": 0, "free": 85899345920}},
        "processes": processes,
        "mig": [{"gpu_instance": i + 7, "compute_instance": 0, "uuid": f"MIG-{gpu:08d}-0000-0000-0000-{i:012d}",
                 "answers": {"Name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
                             "MemoryInfo": {"total": 10 << 30, "reserved": 0, "used": 0, "free": 10 << 30}}}
                for i in range(instances)],
    }


def process(number, instance=None):
    p = {"pid": 1 + number, "type": "C", "memory_bytes": 4096 * (1 + number), "name": f"job{number}"}
    if instance is not None:
        p |= {"gpu_instance": instance + 7, "compute_instance": 0}
    return p


class Machine:
    def __init__(self, devices):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        (path / "root").mkdir()
        self.machine = path / "m.json"
        self.machine.write_text(json.dumps({
            "gpulse_machine": 1, "source": "the largest machine",
            "driver": {"version": "580.105.08", "nvml": "13.580.105.08", "cuda": 13000}, "devices": devices}))
        self.env = dict(os.environ, GPULSE_SIM_STATE=self.folder.name)

    def query(self, *words):
        out = good(gpulse("--sim", self.machine, "--sim-still", "--root", f"{self.folder.name}/root", "--timeout", "100",
                          "query", *words, "-f", "csv", "--no-header", env=self.env, timeout=600))
        return [line.split(",") for line in out.splitlines()]


@test
def many_gpus_with_instances_and_processes():
    each = PROCESSES // GPUS
    machine = Machine([device(g, [process(g * each + i, i % INSTANCES) for i in range(each)], INSTANCES)
                       for g in range(GPUS)])
    rows = machine.query("index,mig.index,uuid,memory.processes", "--mig")
    assert len(rows) == GPUS * (1 + INSTANCES), len(rows)
    assert len({row[2] for row in rows}) == len(rows)
    whole = sum(int(row[3]) for row in rows if row[1] == "[N/A]")
    parts = sum(int(row[3]) for row in rows if row[1] != "[N/A]")
    assert whole == parts == 4096 * PROCESSES * (PROCESSES + 1) // 2, (whole, parts)
    rows = machine.query("index,mig.index,pid,used_gpu_memory", "--processes", "--mig")
    assert len(rows) == PROCESSES, len(rows)
    assert {(int(row[2]), int(row[3])) for row in rows} == {(1 + n, 4096 * (1 + n)) for n in range(PROCESSES)}
    assert set(Counter((row[0], row[1]) for row in rows).values()) == {each // INSTANCES}


@test
def all_processes_on_one_gpu():
    machine = Machine([device(0, [process(i) for i in range(PROCESSES)], 0)])
    rows = machine.query("pid,used_gpu_memory", "--processes")
    assert {(int(row[0]), int(row[1])) for row in rows} == {(1 + n, 4096 * (1 + n)) for n in range(PROCESSES)}


main()
