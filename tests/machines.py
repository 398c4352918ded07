"""For tests/check_*.py: simulated machines made from captures of nvidia-smi's commands, and the /sys
that belongs to them."""
import json
import os
import re
from pathlib import Path

from captures import CAPTURES


def machine_of(folder, base, gpus, lists, topology=None, driver=None, **answers):
    """A machine of `gpus` GPUs with these lists, made from the first one of a built-in machine."""
    machine = json.loads((Path(os.environ["GPULSE_BUILD"]) / f"sim/machines/{base}.json").read_text())
    model = machine["devices"][0]
    model["lists"] = lists
    model["answers"].update(answers)
    machine["devices"] = []
    for i in range(gpus):
        device = json.loads(json.dumps(model))
        device["uuid"] = f"GPU-{i:08x}{model['uuid'][12:]}"
        device["pci"]["bus_id"] = f"00000000:{i + 1:02X}:00.0"
        machine["devices"].append(device)
    machine["workload"] = []
    machine["topology"] = topology or {}
    if driver:
        machine["driver"]["version"] = driver
    path = f"{folder}/m.json"
    Path(path).write_text(json.dumps(machine))
    return path


# ---- nvidia-smi topo -m and -mp ----

def matrix_of(name):
    """(names of the columns, connections, CPU affinity, NUMA affinity, names of the cards) of a
    matrix; rows that a capture lacks are worked out from the others."""
    text = (CAPTURES / name).read_text().split("topo -m\n")[-1].replace("\x1b[4m", "").replace("\x1b[0m", "")
    head = next(line for line in text.splitlines() if "CPU Affinity" in line)
    names = [n.strip() for n in re.split(r"\t|  +", head.strip())]
    column = names.index("CPU Affinity")
    ends = names[:column]
    rows = {}
    for line in text.splitlines():
        row = [c.strip() for c in re.split(r"\t| +(?=\S)", line.replace(" X ", "X"))]
        if row[0] in ends and row[0] not in rows:
            rows[row[0]] = row[1:] + [""] * 3
    cells = [[rows[a][b] if a in rows else rows[name][i] if (name := ends[b]) in rows else None
              for b in range(column)] for i, a in enumerate(ends)]
    gpus = [rows[n] for n in ends if n.startswith("GPU")]
    cards = re.findall(r"^  NIC\d+: (\S+)", text, re.M)
    cards += [f"mlx5_{i}" for i in range(len(cards), column - len(gpus))]
    return ends, cells, [row[column] for row in gpus], [row[column + 1] for row in gpus], cards


def links_of(cells):
    """(NVLinks, connections by the XOR of the indices) of a matrix of GPUs: so machines have them."""
    by_xor = {}
    for a, row in enumerate(cells):
        for b, cell in enumerate(row):
            assert by_xor.setdefault(a ^ b, cell) == cell, f"{a} {b}: {cell}"
    links = []
    for xor in range(1, len(cells)):
        count = int(by_xor[xor][2:]) if by_xor[xor].startswith("NV") else 0
        if count >= 12:  # over a switch: all to all
            return [{"repeat": count, "remote_type": 2, "remote": "00000000:F0:00.0"}], by_xor
        if count:
            links.append({"repeat": count, "peer": xor})
    return links or "NOT_SUPPORTED", by_xor


def groups_of(cells, levels):
    """The number of the group of each site: those that are within one of these levels of another."""
    groups = list(range(len(cells)))
    for a, row in enumerate(cells):
        for b, cell in enumerate(row):
            if cell in levels and groups[a] != groups[b]:
                old, new = max(groups[a], groups[b]), min(groups[a], groups[b])
                groups = [new if g == old else g for g in groups]
    return groups


def make_sysfs(root, cells, cards, gpus):
    """The /sys of a machine whose sites are this near to each other. GPUs have the addresses that
    machine_of() gives them."""
    same_switch = groups_of(cells, ("PIX",))
    same_port = groups_of(cells, ("PIX", "PXB"))
    same_complex = groups_of(cells, ("PIX", "PXB", "PHB"))
    same_node = groups_of(cells, ("PIX", "PXB", "PHB", "NODE"))
    os.makedirs(f"{root}/sys/bus/pci/devices")
    os.makedirs(f"{root}/sys/class/infiniband")
    for i in range(len(cells)):
        bus = i + 1 if i < gpus else 0x80 + i
        place = (f"pci0000:{same_complex[i]:02x}/0000:{same_complex[i]:02x}:{same_port[i] % 32:02x}.0/"
                 f"0000:{same_port[i]:02x}:1f.0/0000:{same_switch[i]:02x}:1e.0/0000:{same_switch[i]:02x}:1d.0/"
                 f"0000:{i:02x}:1c.0/0000:{bus:02x}:00.0")
        os.makedirs(f"{root}/sys/devices/{place}")
        Path(f"{root}/sys/devices/{place}/numa_node").write_text(f"{same_node[i]}\n")
        os.symlink(f"../../../devices/{place}", f"{root}/sys/bus/pci/devices/0000:{bus:02x}:00.0")
        if i >= gpus:
            os.makedirs(f"{root}/sys/class/infiniband/{cards[i - gpus]}")
            os.symlink(f"../../../devices/{place}", f"{root}/sys/class/infiniband/{cards[i - gpus]}/device")
