#!/usr/bin/env python3
"""What real machines printed is what gpulse prints, for captures that are not XML: the text of
`nvidia-smi -q` (drivers 455 to 610), the CSV of `--query-gpu` and the process lists of
`--query-compute-apps`. As in check_captures.py, every metric that a capture contains is compared.

variants: asan
"""
import re
import tempfile
from collections import namedtuple
from pathlib import Path

from captures import (ABSENT, CAPTURES, METRICS, NOT_IN_PROC, NOT_PRINTED, Absent, Tally, by_unit, convert, named,
                      number, program_name, rounds_up, text)
from tap import main, test

# Mismatches that are right as they are: (capture, metric) and why. Each entry must occur.
ACCEPTED = {
    ("q-d-UTILIZATION__x4_cuda10.2", "count"): "the excerpt has one of its four GPUs",
    ("q__tesla-t4_530.30.02", "module_id"): "nvidia-smi knew it before the public call, which came with 535",
    **{(f"q__h100-80gb-hbm3_580.159.04__{state}", "ecc.unrepairable_memory"):
       "580.159 had the call before a public header named it, with 590: the simulated driver has it from there on"
       for state in ("idle", "load")},
}

# Lines at the end of a capture that are its publisher's, not nvidia-smi's: how many, and why.
LEFT_OUT = {
    "q-d-UTILIZATION__x4_cuda10.2": (2, "the second GPU is elided: (...)"),
    "query-gpu__h100_alias-headers_ml-engineering": (2, "GPUs are elided: [...]"),
}


CLOCKS = "Clocks Event Reasons|Clocks Throttle Reasons"
POWER = "GPU Power Readings"
CEILING = f"{POWER}/GPU Ceiling Power Limit"
LINK = "PCI/GPU Link Info"
SOURCES = "ECC Errors/Aggregate Uncorrectable SRAM Sources"

# metric → labels under which -q prints it, of which the first that is there counts
DEVICE = {
    "name": "Product Name",
    "uuid": "GPU UUID",
    "pci.bus_id": "PCI/Bus Id",
    "pci.domain": "PCI/Domain",
    "pci.bus": "PCI/Bus",
    "pci.device": "PCI/Device",
    "pci.device_id": "PCI/Device Id",
    "pci.sub_device_id": "PCI/Sub System Id",
    "serial": "Serial Number",
    "minor_number": "Minor Number",
    "brand": "Product Brand",
    "architecture": "Product Architecture",
    "vbios_version": "VBIOS Version",
    "memory.total": "FB Memory Usage/Total",
    "memory.reserved": "FB Memory Usage/Reserved",
    "memory.used": "FB Memory Usage/Used",
    "memory.free": "FB Memory Usage/Free",
    "bar1.total": "BAR1 Memory Usage/Total",
    "bar1.used": "BAR1 Memory Usage/Used",
    "bar1.free": "BAR1 Memory Usage/Free",
    "utilization.gpu": "Utilization/GPU|Utilization/Gpu",
    "utilization.memory": "Utilization/Memory",
    "utilization.encoder": "Utilization/Encoder",
    "utilization.decoder": "Utilization/Decoder",
    "utilization.jpeg": "Utilization/JPEG",
    "utilization.ofa": "Utilization/OFA",
    "pstate": "Performance State",
    "temperature.gpu": "Temperature/GPU Current Temp",
    "temperature.gpu.tlimit": "Temperature/GPU T.Limit Temp|Temperature/GPU Current T.Limit Temp",
    "temperature.memory": "Temperature/Memory Current Temp",
    "temperature.threshold.shutdown": "Temperature/GPU Shutdown Temp",
    "temperature.threshold.slowdown": "Temperature/GPU Slowdown Temp",
    "temperature.threshold.gpu_max": "Temperature/GPU Max Operating Temp",
    "temperature.threshold.memory_max": "Temperature/Memory Max Operating Temp",
    "temperature.tlimit.shutdown": "Temperature/GPU Shutdown T.Limit Temp",
    "temperature.tlimit.slowdown": "Temperature/GPU Slowdown T.Limit Temp",
    "temperature.tlimit.gpu_max": "Temperature/GPU Max Operating T.Limit Temp",
    "temperature.tlimit.memory_max": "Temperature/Memory Max Operating T.Limit Temp",
    "fan.speed": "Fan Speed",
    "power.draw.average": f"{POWER}/Average Power Draw",
    "power.draw.instant": f"{POWER}/Instantaneous Power Draw",
    "power.limit": f"{POWER}/Requested Power Limit|{CEILING}/Requested Power Limit|Power Readings/Power Limit",
    "enforced.power.limit":
        f"{POWER}/Current Power Limit|{CEILING}/Current Power Limit|Power Readings/Enforced Power Limit",
    "power.default_limit":
        f"{POWER}/Default Power Limit|{CEILING}/Default Power Limit|Power Readings/Default Power Limit",
    "power.min_limit": f"{POWER}/Min Power Limit|Power Readings/Min Power Limit",
    "power.max_limit": f"{POWER}/Max Power Limit|Power Readings/Max Power Limit",
    "clocks.current.graphics": "Clocks/Graphics",
    "clocks.current.sm": "Clocks/SM",
    "clocks.current.memory": "Clocks/Memory",
    "clocks.current.video": "Clocks/Video",
    "clocks.max.graphics": "Max Clocks/Graphics",
    "clocks.max.sm": "Max Clocks/SM",
    "clocks.max.memory": "Max Clocks/Memory",
    "clocks.max.video": "Max Clocks/Video",
    "pcie.link.gen.current": f"{LINK}/PCIe Generation/Current",
    "pcie.link.gen.max": f"{LINK}/PCIe Generation/Max",
    "pcie.link.gen.gpumax": f"{LINK}/PCIe Generation/Device Max",
    "pcie.link.width.current": f"{LINK}/Link Width/Current",
    "pcie.link.width.max": f"{LINK}/Link Width/Max",
    "pcie.throughput.tx": "PCI/Tx Throughput",
    "pcie.throughput.rx": "PCI/Rx Throughput",
    "ecc.mode.current": "ECC Mode/Current",
    "ecc.mode.pending": "ECC Mode/Pending",
    "persistence_mode": "Persistence Mode",
    "compute_mode": "Compute Mode",
    "mig.mode.current": "MIG Mode/Current",
    "mig.mode.pending": "MIG Mode/Pending",
    "gpu_recovery_action": "GPU Recovery Action",
    "reset.required": "GPU Reset Status/Reset Required",
    "reset.drain_and_reset_recommended": "GPU Reset Status/Drain and Reset Recommended",
    "pci.baseClass": "PCI/Base Classcode",
    "pci.subClass": "PCI/Sub Classcode",
    "board.id": "Board ID",
    "board.multi_gpu": "MultiGPU Board",
    "board.part_number": "Board Part Number",
    "pdi": "GPU PDI",
    "module_id": "Module ID|Platform Info/Module Id",
    "inforom.img": "Inforom Version/Image Version",
    "inforom.oem": "Inforom Version/OEM Object",
    "inforom.ecc": "Inforom Version/ECC Object",
    "inforom.pwr": "Inforom Version/Power Management Object",
    "bbx.flush.time": "Inforom BBX Object Flush/Latest Timestamp",
    "bbx.flush.duration": "Inforom BBX Object Flush/Latest Duration",
    "bbx.time_run": "Inforom Time Data/Time Run",
    "gsp.firmware_version": "GSP Firmware Version",
    "protected_memory.total": "Conf Compute Protected Memory Usage/Total",
    "protected_memory.used": "Conf Compute Protected Memory Usage/Used",
    "protected_memory.free": "Conf Compute Protected Memory Usage/Free",
    "encoder.stats.sessionCount": "Encoder Stats/Active Sessions",
    "encoder.stats.averageFps": "Encoder Stats/Average FPS",
    "encoder.stats.averageLatency": "Encoder Stats/Average Latency",
    "fbc.stats.session_count": "FBC Stats/Active Sessions",
    "fbc.stats.average_fps": "FBC Stats/Average FPS",
    "fbc.stats.average_latency": "FBC Stats/Average Latency",
    "temperature.target": "Temperature/GPU Target Temperature|Temperature/GPU Target Temperature Specification",
    "power.management": "Power Readings/Power Management",
    "edpp_multiplier": "EDPp Multiplier",
    "module.power.draw.average": "Module Power Readings/Average Power Draw",
    "module.power.draw.instant": "Module Power Readings/Instantaneous Power Draw",
    "module.power.limit": "Module Power Readings/Requested Power Limit",
    "module.enforced.power.limit": "Module Power Readings/Current Power Limit",
    "module.power.default_limit": "Module Power Readings/Default Power Limit",
    "module.power.min_limit": "Module Power Readings/Min Power Limit",
    "module.power.max_limit": "Module Power Readings/Max Power Limit",
    "gpu_memory.power.draw.average": "GPU Memory Power Readings/Average Power Draw",
    "gpu_memory.power.draw.instant": "GPU Memory Power Readings/Instantaneous Power Draw",
    "gpu.base.current": f"{POWER}/GPU Base Power/Current Base Power",
    "gpu.base.requested": f"{POWER}/GPU Base Power/Requested Base Power",
    "gpu.base.default": f"{POWER}/GPU Base Power/Default Base Power",
    "power_profiles.requested": "Workload Power Profiles/Requested Profiles",
    "power_profiles.enforced": "Workload Power Profiles/Enforced Profiles",
    "clocks.applications.graphics": "Applications Clocks/Graphics",
    "clocks.applications.memory": "Applications Clocks/Memory",
    "clocks.default_applications.graphics": "Default Applications Clocks/Graphics",
    "clocks.default_applications.memory": "Default Applications Clocks/Memory",
    "clocks.max_customer_boost.graphics": "Max Customer Boost Clocks/Graphics",
    "clocks.auto_boost": "Clock Policy/Auto Boost",
    "clocks.auto_boost_default": "Clock Policy/Auto Boost Default",
    "clocks_event_reasons_counters.sw_power_cap": "Clocks Event Reasons Counters/SW Power Capping",
    "clocks_event_reasons_counters.sync_boost": "Clocks Event Reasons Counters/Sync Boost",
    "clocks_event_reasons_counters.sw_thermal_slowdown": "Clocks Event Reasons Counters/SW Thermal Slowdown",
    "clocks_event_reasons_counters.hw_thermal_slowdown": "Clocks Event Reasons Counters/HW Thermal Slowdown",
    "clocks_event_reasons_counters.hw_power_brake_slowdown": "Clocks Event Reasons Counters/HW Power Braking",
    "pcie.replay_counter": "PCI/Replays Since Reset",
    "pcie.replay_rollover_counter": "PCI/Replay Number Rollovers",
    "pcie.atomics.outbound": "PCI/Atomic Caps Outbound",
    "pcie.atomics.inbound": "PCI/Atomic Caps Inbound",
    "bridge_chip.type": "PCI/Bridge Chip/Type",
    "bridge_chip.firmware": "PCI/Bridge Chip/Firmware",
    "ecc.errors.uncorrected.volatile.sram.parity": "ECC Errors/Volatile/SRAM Uncorrectable Parity",
    "ecc.errors.uncorrected.volatile.sram.secded": "ECC Errors/Volatile/SRAM Uncorrectable SEC-DED",
    "ecc.errors.uncorrected.aggregate.sram.parity": "ECC Errors/Aggregate/SRAM Uncorrectable Parity",
    "ecc.errors.uncorrected.aggregate.sram.secded": "ECC Errors/Aggregate/SRAM Uncorrectable SEC-DED",
    "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": "ECC Errors/Aggregate/SRAM Threshold Exceeded",
    "ecc.errors.uncorrected.aggregate.sram.l2": f"{SOURCES}/SRAM L2",
    "ecc.errors.uncorrected.aggregate.sram.sm": f"{SOURCES}/SRAM SM",
    "ecc.errors.uncorrected.aggregate.sram.mcu": f"{SOURCES}/SRAM Microcontroller",
    "ecc.errors.uncorrected.aggregate.sram.pcie": f"{SOURCES}/SRAM PCIE",
    "ecc.errors.uncorrected.aggregate.sram.other": f"{SOURCES}/SRAM Other",
    "ecc.channel_repair_pending": "ECC Errors/Channel Repair Pending",
    "ecc.tpc_repair_pending": "ECC Errors/TPC Repair Pending",
    "ecc.unrepairable_memory": "ECC Errors/Unrepairable Memory",
    "retired_pages.single_bit_ecc.count": "Retired Pages/Single Bit ECC",
    "retired_pages.double_bit.count": "Retired Pages/Double Bit ECC",
    "retired_pages.pending": "Retired Pages/Pending Page Blacklist",
    "remapped_rows.correctable": "Remapped Rows/Correctable Error|Remapped Rows",
    "remapped_rows.correctable_inactive": "Remapped Rows/Inactive Correctable Error|Remapped Rows",
    "remapped_rows.uncorrectable": "Remapped Rows/Uncorrectable Error|Remapped Rows",
    "remapped_rows.uncorrectable_inactive": "Remapped Rows/Inactive Uncorrectable Error|Remapped Rows",
    "remapped_rows.pending": "Remapped Rows/Pending|Remapped Rows",
    "remapped_rows.failure": "Remapped Rows/Remapping Failure Occurred|Remapped Rows",
    **{f"remapped_rows.histogram.{level.lower()}":
       f"Remapped Rows/Bank Remap Availability Histogram/{level}|Remapped Rows"
       for level in ("Max", "High", "Partial", "Low", "None")},
    "display_attached": "Display Attached",
    "display_active": "Display Active",
    "accounting.mode": "Accounting Mode",
    "accounting.buffer_size": "Accounting Mode Buffer Size",
    "driver_model.current": "Driver Model/Current",
    "driver_model.pending": "Driver Model/Pending",
    "gom.current": "GPU Operation Mode/Current",
    "gom.pending": "GPU Operation Mode/Pending",
    "addressing_mode": "Addressing Mode",
    "capabilities.egm": "Capabilities/EGM",
    "dramEncryption.mode.current": "DRAM Encryption Mode/Current",
    "dramEncryption.mode.pending": "DRAM Encryption Mode/Pending",
    "virtualization.mode": "GPU Virtualization Mode/Virtualization Mode",
    "virtualization.host_vgpu_mode": "GPU Virtualization Mode/Host VGPU Mode",
    "virtualization.vgpu_heterogeneous": "GPU Virtualization Mode/vGPU Heterogeneous Mode",
    "c2c.mode": "GPU C2C Mode",
    "fabric.state": "Fabric/State",
    "fabric.status": "Fabric/Status",
    "fabric.cliqueId": "Fabric/CliqueId",
    "fabric.clusterUuid": "Fabric/ClusterUUID",
    "fabric.health.summary": "Fabric/Health/Summary",
    "fabric.health.bandwidth": "Fabric/Health/Bandwidth",
    "fabric.health.route_recovery_in_progress": "Fabric/Health/Route Recovery in progress",
    "fabric.health.route_unhealthy": "Fabric/Health/Route Unhealthy",
    "fabric.health.access_timeout_recovery": "Fabric/Health/Access Timeout Recovery",
    "fabric.health.incorrect_configuration": "Fabric/Health/Incorrect Configuration",
    "fabric.health.partition_assigned": "Fabric/Health/Partition Assigned",
    "platform.chassis_serial_number": "Platform Info/Chassis Serial Number",
    "platform.slot_number": "Platform Info/Slot Number",
    "platform.tray_index": "Platform Info/Tray Index",
    "platform.host_id": "Platform Info/Host ID",
    "platform.peer_type": "Platform Info/Peer Type",
    "platform.module_id": "Platform Info/Module Id",
    "platform.gpu_fabric_guid": "Platform Info/GPU Fabric GUID",
    **{metric: "Power Smoothing" for metric in METRICS
       if metric.startswith("power_smoothing.") and metric not in NOT_PRINTED},
}

MIG = {
    "mig.index": "Index",
    "mig.gpu_instance_id": "GPU Instance ID",
    "mig.compute_instance_id": "Compute Instance ID",
    "mig.multiprocessors": "Device Attributes/Shared/Multiprocessor count",
    "mig.copy_engines": "Device Attributes/Shared/Copy Engine count",
    "mig.encoders": "Device Attributes/Shared/Encoder count",
    "mig.decoders": "Device Attributes/Shared/Decoder count",
    "mig.ofa": "Device Attributes/Shared/OFA count",
    "mig.jpeg": "Device Attributes/Shared/JPG count",
    "ecc.errors.uncorrected.volatile.sram": "ECC Errors/Volatile/SRAM Uncorrectable",
    "memory.total": "Shared FB Memory Usage/Total",
    "memory.reserved": "Shared FB Memory Usage/Reserved",
    "memory.used": "Shared FB Memory Usage/Used",
    "memory.free": "Shared FB Memory Usage/Free",
    "bar1.total": "Shared BAR1 Memory/Total",
    "bar1.used": "Shared BAR1 Memory/Used",
    "bar1.free": "Shared BAR1 Memory/Free",
}

# Bit of clocks_event_reasons.active → ending of the metric, label
REASONS = {
    0x001: ("gpu_idle", "Idle"),
    0x002: ("applications_clocks_setting", "Applications Clocks Setting"),
    0x004: ("sw_power_cap", "SW Power Cap"),
    0x008: ("hw_slowdown", "HW Slowdown"),
    0x010: ("sync_boost", "Sync Boost"),
    0x020: ("sw_thermal_slowdown", "SW Thermal Slowdown"),
    0x040: ("hw_thermal_slowdown", "HW Slowdown/HW Thermal Slowdown"),
    0x080: ("hw_power_brake_slowdown", "HW Slowdown/HW Power Brake Slowdown"),
    0x100: ("display_clocks_setting", "Display Clock Setting"),
}

# Place of memory errors → labels; these GPUs count at two places.
PLACES = {"device_memory": "DRAM", "dram": "DRAM", "sram": "SRAM"}

# metric → labels whose numbers add up to it
ECC = {
    f"ecc.errors.{kind.lower()}ed.{counter.lower()}.total":
        [f"ECC Errors/{counter}/{place} {kind}able{which}" for place, which in
         (("SRAM", ""), ("SRAM", " Parity"), ("SRAM", " SEC-DED"), ("DRAM", ""))]
    for kind in ("Correct", "Uncorrect") for counter in ("Volatile", "Aggregate")
}
ECC.update({
    total.replace(".total", f".{place}"): [label for label in labels if f"/{group} " in label]
    for total, labels in ECC.items() for place, group in PLACES.items()
})

WORKED_OUT = {"index", "power.draw", "display_mode", "clocks_event_reasons.active", *ECC,
              *(f"clocks_event_reasons.{ending}" for ending, _ in REASONS.values())}
HOST = {"driver_version": "Driver Version", "cuda_version": "CUDA Version", "count": "Attached GPUs"}
PROCESS = {"pid", "process.type", "process_name", "process.path", "process.command", "used_gpu_memory",
           "process.gpu_instance_id", "process.compute_instance_id"}

# Metrics that a log does not have, and why. All others must be compared.
NOT_IN_LOGS = {
    **{metric: reason for metric, reason in NOT_PRINTED.items() if metric not in DEVICE},
    **named({
        r"ecc\.errors\..*\.(register_file|l._cache|texture_.*|cbu)": "before Turing",
        r"temperature\.target\.(min|max)": "only in the XML",
    }),
}

# Metrics of which these captures only ever say that there is no value, and why.
ONLY_ABSENT = named({
    r"power_profiles\..*": "nobody has asked for one",
    r"clocks\.auto_boost.*": "before Pascal only",
    r"bridge_chip\..*": "boards with several GPUs only",
    r"reset\.drain_and_reset_recommended": "no driver that tells",
    r"bbx\..*|gpu\.base\..*|inforom\.pwr": "no board with it",
    r"module\..*|gpu_memory\.power\.draw\.instant|platform\.(?!module_id).*": "no board with it",
    r"dramEncryption\..*|pcie\.atomics\.inbound|temperature\.threshold\.memory_max": "no board with it",
    r"gom\..*": "Kepler only",
    r"fabric\.health\..*": "no fabric",
    r"virtualization\.(host_vgpu_mode|vgpu_heterogeneous)": "no host of vGPUs",
    r"power_smoothing\..*": "no board with it",
})

# Since R580 nvidia-smi says this of display_mode without asking the driver, which still answers.
NOT_ASKED = "Requested functionality has been deprecated"

shortened = tempfile.TemporaryDirectory()


def whole_lines(path):
    """Path and lines of a capture, of a copy if the publisher's own lines are left out."""
    lines = path.read_text().splitlines()
    if path.stem in LEFT_OUT:
        del lines[-LEFT_OUT[path.stem][0]:]
        path = Path(shortened.name) / path.name
        path.write_text("\n".join(lines) + "\n")
    return path, lines


# ---- nvidia-smi -q ----

class Log:
    """What -q printed, each value under its labels: {"PCI/Bus Id": "00000000:00:08.0"}."""

    def __init__(self, path):
        self.name = path.stem
        self.path, lines = whole_lines(path)
        self.host, self.gpus = {}, []
        labels = []
        for line in lines:
            blanks = len(line) - len(line.lstrip())
            label, colon, value = (part.strip() for part in line.partition(" : "))
            if re.match(r"GPU [0-9A-F]+:", line):
                self.gpus.append(Gpu(line.split()[1]))
            elif self.gpus and label:
                labels[blanks // 4 - 1:] = [label]
                self.gpus[-1].take("/".join(labels), value if colon else None)
            elif colon:
                self.host[label] = value.partition(" [")[0]
        self.rounds_up = rounds_up(self.host.get("Driver Version", "1"))


class Gpu:
    def __init__(self, bus_id):
        self.values = {"PCI/Bus Id": bus_id}
        self.migs, self.processes = [], []

    def take(self, label, value):
        if label == "MIG Device":
            self.migs.append({})
        if label == "Processes/GPU instance ID":
            self.processes.append({})
        group, _, rest = label.partition("/")
        where = {"MIG Device": self.migs, "Processes": self.processes}.get(group)
        if value is not None:
            (where[-1] if where else self.values).setdefault(rest if where else label, value)


def table_values(values, table, capture):
    for metric, labels in table.items():
        found = [values[label] for label in labels.split("|") if label in values]
        if found:
            yield metric, convert(found[0], by_unit(metric), capture)


def power_draw(values, capture):
    """The driver's one power reading is the average where there is one, else the moment's."""
    found = [values[label] for label in ("Power Readings/Power Draw", f"{POWER}/Average Power Draw",
                                         f"{POWER}/Instantaneous Power Draw") if label in values]
    if found:
        present = [t for t in found if t not in ABSENT]
        yield "power.draw", convert((present or found)[0], by_unit("power.draw"), capture)


def clock_reasons(values):
    mask, some = 0, False
    for bit, (ending, label) in REASONS.items():
        found = [values[f"{group}/{label}"] for group in CLOCKS.split("|") if f"{group}/{label}" in values]
        if found:
            some = True
            mask |= bit if found[0] == "Active" else 0
            yield f"clocks_event_reasons.{ending}", found[0]
    if some:
        yield "clocks_event_reasons.active", mask


def ecc_totals(values):
    for metric, places in ECC.items():
        found = [values[place] for place in places if place in values]
        if found:
            absent = [t for t in found if t in ABSENT]
            yield metric, Absent(ABSENT[absent[0]]) if absent else sum(map(int, found))


def expected_of_gpu(gpu, index, log):
    yield "index", index
    if (mode := gpu.values.get("Display Mode", NOT_ASKED)) != NOT_ASKED:
        yield "display_mode", mode
    yield from table_values(gpu.values, DEVICE, log)
    yield from power_draw(gpu.values, log)
    yield from clock_reasons(gpu.values)
    yield from ecc_totals(gpu.values)


def expected_of_process(process, log):
    name = process["Process ID/Name"]
    yield "pid", int(process["Process ID"])
    yield "process.type", process["Process ID/Type"]
    yield "process_name", program_name(name) or NOT_IN_PROC
    yield "process.path", name or NOT_IN_PROC
    yield "process.command", name or NOT_IN_PROC
    yield "used_gpu_memory", convert(process["Process ID/Used GPU Memory"], by_unit("used_gpu_memory"), log)
    yield "process.gpu_instance_id", convert(process["GPU instance ID"], number, log)
    yield "process.compute_instance_id", convert(process["Compute instance ID"], number, log)


def compare_log(result, query):
    log = result.capture
    rows = query("--mig")["gpus"]
    result.rows("host", [list(table_values(log.host, HOST, log))], query("--host")["hosts"])
    result.rows("gpu", [list(expected_of_gpu(gpu, i, log)) for i, gpu in enumerate(log.gpus)],
                [row for row in rows if row["mig.gpu_instance_id"] is None])
    result.rows("mig", [[("index", i), *table_values(mig, MIG, log)] for i, gpu in enumerate(log.gpus)
                        for mig in gpu.migs],
                [row for row in rows if row["mig.gpu_instance_id"] is not None])
    result.rows("process", [list(expected_of_process(process, log)) for gpu in log.gpus
                            for process in sorted(gpu.processes, key=lambda p: int(p["Process ID"]))],
                query("--processes", "--mig")["processes"])


# ---- nvidia-smi --query-gpu ----

# Metrics with a name of nvidia-smi's that are no field of --query-gpu, and why.
NOT_IN_CSV = {
    "timestamp": "the moment of our own sample",
    "pcie.link.gen.hostmax": "from the kernel of this machine",
    "display_mode": "since R580 nvidia-smi calls it deprecated without asking the driver, which still answers",
}

# What a field prints where -q prints N/A, as gpulse does.
SAME_AS_ABSENT = {("platform.gpu_fabric_guid", "0x0000000000000000")}

METRIC_OF_FIELD = {name: metric for metric, row in METRICS.items() for name in (*row.aliases, metric)
                   if row.origin == "SMI"}
other_columns = set()


class Csv:
    def __init__(self, path):
        self.name = path.stem
        self.path, lines = whole_lines(path)
        while not re.match(r"[a-z_.]+, ", lines[0]):
            del lines[0]
        self.fields = [re.sub(r" \[.*", "", column) for column in lines[0].split(", ")]
        self.gpus = [dict(zip(self.fields, line.split(", "), strict=True)) for line in lines[1:]]
        self.rounds_up = rounds_up(self.gpus[0].get("driver_version", "1"))


def expected_of_fields(gpu, scope, capture):
    for field, t in gpu.items():
        metric = METRIC_OF_FIELD.get(field)
        if metric is None:
            other_columns.add(field)
        elif METRICS[metric].scope == scope and metric not in NOT_IN_CSV:
            t = "N/A" if (metric, t) in SAME_AS_ABSENT else t
            yield metric, convert(t, by_unit(metric), capture)


def compare_csv(result, query):
    capture = result.capture
    result.rows("host", [list(expected_of_fields(capture.gpus[0], "HOST", capture))], query("--host")["hosts"])
    result.rows("gpu", [list(expected_of_fields(gpu, "DEVICE", capture)) for gpu in capture.gpus], query()["gpus"])


# ---- nvidia-smi --query-compute-apps ----

Apps = namedtuple("Apps", "name path rows rounds_up")


def compare_apps(result, query):
    """The list was taken in the second in which -q printed the machine."""
    capture = result.capture
    printed = {row["pid"]: row for row in query("--processes")["processes"] if row["process.type"] != "G"}
    pids = {int(row["pid"]) for row in capture.rows}
    assert pids == set(printed), f"captured {sorted(pids)}, printed {sorted(printed)}"
    for row in capture.rows:
        pid, name = int(row["pid"]), row["process_name"]
        result.value(f"pid {pid}", "process_name", program_name(name), printed[pid])
        result.value(f"pid {pid}", "process.path", name, printed[pid])
        result.value(f"pid {pid}", "process.command", name, printed[pid])
        result.value(f"pid {pid}", "used_gpu_memory",
                     convert(row["used_gpu_memory"], by_unit("used_gpu_memory"), capture), printed[pid])


# ---- all of them ----

logs, csvs, apps = Tally(ACCEPTED), Tally({}), Tally({})


def add(tally, compare, captures):
    for capture in captures:
        def of_capture(capture=capture):
            tally.check(capture, compare)
        of_capture.__name__ = f"capture {capture.name}"
        test(of_capture)


def read_apps(path):
    table = Csv(path) if len(path.read_text().splitlines()) > 1 else None
    log = Log(path.with_name(path.name.replace("query-compute-apps", "q")))
    return Apps(path.stem, log.path, table.gpus if table else [], log.rounds_up)


add(logs, compare_log, [Log(path) for path in sorted([*CAPTURES.glob("q__*.txt"), *CAPTURES.glob("q-d-*.txt")])])
add(csvs, compare_csv, [Csv(path) for path in sorted(CAPTURES.glob("query-gpu__*.txt"))])
add(apps, compare_apps, [read_apps(path) for path in sorted(CAPTURES.glob("query-compute-apps__*.txt"))])


@test
def there_are_captures():
    for tally, least in ((logs, 20), (csvs, 15), (apps, 10)):
        tally.print_totals()
        assert tally.totals["captures"] >= least, tally.totals
    for name, (count, reason) in LEFT_OUT.items():
        print(f"# left out: {name}: its last {count} lines: {reason}")


@test
def every_metric_of_a_log_is_compared_or_explained():
    logs.every_metric(set(METRICS), {*DEVICE, *MIG, *WORKED_OUT, *HOST, *PROCESS, *NOT_IN_LOGS}, NOT_IN_LOGS,
                      ONLY_ABSENT)


@test
def every_metric_of_a_query_is_compared_or_explained():
    names = {metric for metric, row in METRICS.items() if row.origin == "SMI" and row.scope != "PROCESS"}
    never = names - {*csvs.compared, *csvs.compared_absent, *NOT_IN_CSV}
    assert not never, f"neither compared nor explained: {sorted(never)}"
    print(f"# compared, but never with a value: {sorted(set(csvs.compared_absent) - set(csvs.compared))}")
    assert not other_columns, f"columns that are no metric: {sorted(other_columns)}"


@test
def every_accepted_mismatch_occurs():
    logs.every_accepted_mismatch_occurs()


main()
