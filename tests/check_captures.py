#!/usr/bin/env python3
"""What real machines printed is what gpulse prints: every capture of `nvidia-smi -q -x` in
data/captures becomes a simulated machine, and every metric of metric.def that the
capture contains is compared with what `gpulse query` says of that machine.

variants: asan
"""
import xml.etree.ElementTree as ET

from captures import (ABSENT, CAPTURES, METRICS, NOT_IN_PROC, NOT_PRINTED, Absent, Tally, convert, hexadecimal,
                      kilobytes_per_s, mebibytes, moment, named, number, percent, program_name, rounds_up, text,
                      watts)
from tap import main, test

# Mismatches that are right as they are: (capture, metric) and why. Each entry must occur.
ACCEPTED = {
    ("netdata_rtx-4090-driver-535", "temperature.gpu.tlimit"):
        "driver 535 has no public call for it; nvmlDeviceGetMarginTemperature came with 570",
    **{(capture, "ecc.unrepairable_memory"):
       "580.159 had the call before a public header named it, with 590: the simulated driver has it from there on"
       for capture in ("k8stestinfra_gb200", "h100-80gb-hbm3_580.159.04__load")},
    **{(capture, "module_id"): "nvidia-smi knew it before the public call, which came with 535"
       for capture in ("netdata_rtx-2080-win", "netdata_rtx-3060", "netdata_tesla-p100",
                       "telegraf_quadro-p2000-v12", "telegraf_tesla-t4")},
    **{(capture, "addressing_mode"): "nvidia-smi knew it before the public call, which came with 570"
       for capture in ("netdata_rtx-4090-driver-535", "telegraf_a100-sxm4-v12")},
    ("telegraf_a100-sxm4-v12", "count"): "the capture was cut: it says 4 GPUs and contains 1",
}

# Patterns of metrics of which the captures only ever say that there is no value, and why.
ONLY_ABSENT = named({
    r"power_profiles\..*": "nobody has asked for one",
    r"clocks\.auto_boost.*": "before Pascal only",
    r"bridge_chip\..*": "boards with several GPUs only",
    r"process\.(gpu|compute)_instance_id": "no capture shows a process inside a MIG instance",
    r"gom\..*": "Kepler only",
    r"inforom\.pwr": "Kepler only",
    r"virtualization\.(host_vgpu_mode|vgpu_heterogeneous)": "no host of vGPUs",
    r"dramEncryption\..*": "no board with it",
    r"gpu_memory\.power\.draw\.instant": "no board with it",
    r"edpp_multiplier": "the captures with it are no XML",
    r"fabric\.health\.(incorrect_configuration|partition_assigned)": "a healthy fabric without partitions",
    r"power_smoothing\..*": "needs root",
    r"ecc\.errors\..*\.(cbu|l1_cache)": "Volta only",
})

POWER, OLD_POWER, CLOCKS = "gpu_power_readings", "power_readings", "clocks_event_reasons"

# metric → (paths in the capture, of which the first that is there counts; conversion)
DEVICE = {
    "name": ("product_name", text),
    "uuid": ("uuid", text),
    "pci.bus_id": ("pci/pci_bus_id", text),
    "pci.domain": ("pci/pci_domain", hexadecimal),
    "pci.bus": ("pci/pci_bus", hexadecimal),
    "pci.device": ("pci/pci_device", hexadecimal),
    "pci.device_id": ("pci/pci_device_id", hexadecimal),
    "pci.sub_device_id": ("pci/pci_sub_system_id", hexadecimal),
    "serial": ("serial", text),
    "minor_number": ("minor_number", number),
    "brand": ("product_brand", text),
    "architecture": ("product_architecture", text),
    "vbios_version": ("vbios_version", text),
    "memory.total": ("fb_memory_usage/total", mebibytes),
    "memory.reserved": ("fb_memory_usage/reserved", mebibytes),
    "memory.used": ("fb_memory_usage/used", mebibytes),
    "memory.free": ("fb_memory_usage/free", mebibytes),
    "bar1.total": ("bar1_memory_usage/total", mebibytes),
    "bar1.used": ("bar1_memory_usage/used", mebibytes),
    "bar1.free": ("bar1_memory_usage/free", mebibytes),
    "utilization.gpu": ("utilization/gpu_util", number),
    "utilization.memory": ("utilization/memory_util", number),
    "utilization.encoder": ("utilization/encoder_util", number),
    "utilization.decoder": ("utilization/decoder_util", number),
    "utilization.jpeg": ("utilization/jpeg_util", number),
    "utilization.ofa": ("utilization/ofa_util", number),
    "pstate": ("performance_state", text),
    "temperature.gpu": ("temperature/gpu_temp", number),
    "temperature.gpu.tlimit": ("temperature/gpu_temp_tlimit", number),
    "temperature.memory": ("temperature/memory_temp", number),
    "temperature.threshold.shutdown": ("temperature/gpu_temp_max_threshold", number),
    "temperature.threshold.slowdown": ("temperature/gpu_temp_slow_threshold", number),
    "temperature.threshold.gpu_max": ("temperature/gpu_temp_max_gpu_threshold", number),
    "temperature.threshold.memory_max": ("temperature/gpu_temp_max_mem_threshold", number),
    "temperature.tlimit.shutdown": ("temperature/gpu_temp_max_tlimit_threshold", number),
    "temperature.tlimit.slowdown": ("temperature/gpu_temp_slow_tlimit_threshold", number),
    "temperature.tlimit.gpu_max": ("temperature/gpu_temp_max_gpu_tlimit_threshold", number),
    "temperature.tlimit.memory_max": ("temperature/gpu_temp_max_mem_tlimit_threshold", number),
    "fan.speed": ("fan_speed", number),
    "power.draw.average": (f"{POWER}/average_power_draw", watts),
    "power.draw.instant": (f"{POWER}/instant_power_draw", watts),
    "power.limit": (f"{POWER}/requested_power_limit {OLD_POWER}/power_limit", watts),
    "enforced.power.limit": (f"{POWER}/current_power_limit {OLD_POWER}/enforced_power_limit", watts),
    "power.default_limit": (f"{POWER}/default_power_limit {OLD_POWER}/default_power_limit", watts),
    "power.min_limit": (f"{POWER}/min_power_limit {OLD_POWER}/min_power_limit", watts),
    "power.max_limit": (f"{POWER}/max_power_limit {OLD_POWER}/max_power_limit", watts),
    "clocks.current.graphics": ("clocks/graphics_clock", number),
    "clocks.current.sm": ("clocks/sm_clock", number),
    "clocks.current.memory": ("clocks/mem_clock", number),
    "clocks.current.video": ("clocks/video_clock", number),
    "clocks.max.graphics": ("max_clocks/graphics_clock", number),
    "clocks.max.sm": ("max_clocks/sm_clock", number),
    "clocks.max.memory": ("max_clocks/mem_clock", number),
    "clocks.max.video": ("max_clocks/video_clock", number),
    "pcie.link.gen.current": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen", number),
    "pcie.link.gen.max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen", number),
    "pcie.link.gen.gpumax": ("pci/pci_gpu_link_info/pcie_gen/max_device_link_gen", number),
    "pcie.link.width.current": ("pci/pci_gpu_link_info/link_widths/current_link_width", number),
    "pcie.link.width.max": ("pci/pci_gpu_link_info/link_widths/max_link_width", number),
    "pcie.throughput.tx": ("pci/tx_util", kilobytes_per_s),
    "pcie.throughput.rx": ("pci/rx_util", kilobytes_per_s),
    "ecc.mode.current": ("ecc_mode/current_ecc", text),
    "ecc.mode.pending": ("ecc_mode/pending_ecc", text),
    "persistence_mode": ("persistence_mode", text),
    "compute_mode": ("compute_mode", text),
    "mig.mode.current": ("mig_mode/current_mig", text),
    "mig.mode.pending": ("mig_mode/pending_mig", text),
    "gpu_recovery_action": ("gpu_recovery_action", text),
    "reset.required": ("gpu_reset_status/reset_required", text),
    "reset.drain_and_reset_recommended": ("gpu_reset_status/drain_and_reset_recommended", text),
    "pci.baseClass": ("pci/pci_base_class", hexadecimal),
    "pci.subClass": ("pci/pci_sub_class", hexadecimal),
    "board.id": ("board_id", text),
    "board.multi_gpu": ("multigpu_board", text),
    "board.part_number": ("board_part_number", text),
    "pdi": ("pdi", text),
    "module_id": ("platformInfo/module_id gpu_module_id", number),
    "inforom.img": ("inforom_version/img_version", text),
    "inforom.oem": ("inforom_version/oem_object", text),
    "inforom.ecc": ("inforom_version/ecc_object", text),
    "inforom.pwr": ("inforom_version/pwr_object", text),
    "bbx.flush.time": ("inforom_bbx_flush/latest_timestamp", moment),
    "bbx.flush.duration": ("inforom_bbx_flush/latest_duration", number),
    "gsp.firmware_version": ("gsp_firmware_version", text),
    "protected_memory.total": ("cc_protected_memory_usage/total", mebibytes),
    "protected_memory.used": ("cc_protected_memory_usage/used", mebibytes),
    "protected_memory.free": ("cc_protected_memory_usage/free", mebibytes),
    "encoder.stats.sessionCount": ("encoder_stats/session_count", number),
    "encoder.stats.averageFps": ("encoder_stats/average_fps", number),
    "encoder.stats.averageLatency": ("encoder_stats/average_latency", number),
    "fbc.stats.session_count": ("fbc_stats/session_count", number),
    "fbc.stats.average_fps": ("fbc_stats/average_fps", number),
    "fbc.stats.average_latency": ("fbc_stats/average_latency", number),
    "temperature.target": ("temperature/gpu_target_temperature", number),
    "temperature.target.min": ("supported_gpu_target_temp/gpu_target_temp_min", number),
    "temperature.target.max": ("supported_gpu_target_temp/gpu_target_temp_max", number),
    "power.management": ("power_readings/power_management", text),
    "edpp_multiplier": ("edpp_multiplier", percent),
    "module.power.draw.average": ("module_power_readings/average_power_draw", watts),
    "module.power.draw.instant": ("module_power_readings/instant_power_draw", watts),
    "module.power.limit": ("module_power_readings/requested_power_limit", watts),
    "module.enforced.power.limit": ("module_power_readings/current_power_limit", watts),
    "module.power.default_limit": ("module_power_readings/default_power_limit", watts),
    "module.power.min_limit": ("module_power_readings/min_power_limit", watts),
    "module.power.max_limit": ("module_power_readings/max_power_limit", watts),
    "gpu_memory.power.draw.average": ("gpu_memory_power_readings/average_power_draw", watts),
    "gpu_memory.power.draw.instant": ("gpu_memory_power_readings/instant_power_draw", watts),
    "power_profiles.requested": ("power_profiles/power_profile_requested_profiles", text),
    "power_profiles.enforced": ("power_profiles/power_profile_enforced_profiles", text),
    "clocks.applications.graphics": ("applications_clocks/graphics_clock", number),
    "clocks.applications.memory": ("applications_clocks/mem_clock", number),
    "clocks.default_applications.graphics": ("default_applications_clocks/graphics_clock", number),
    "clocks.default_applications.memory": ("default_applications_clocks/mem_clock", number),
    "clocks.max_customer_boost.graphics": ("max_customer_boost_clocks/graphics_clock", number),
    "clocks.auto_boost": ("clock_policy/auto_boost", text),
    "clocks.auto_boost_default": ("clock_policy/auto_boost_default", text),
    "clocks_event_reasons_counters.sw_power_cap": ("clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap", number),
    "clocks_event_reasons_counters.sync_boost": ("clocks_event_reasons_counters/clocks_event_reasons_counters_sync_boost", number),
    "clocks_event_reasons_counters.sw_thermal_slowdown": ("clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown", number),
    "clocks_event_reasons_counters.hw_thermal_slowdown": ("clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown", number),
    "clocks_event_reasons_counters.hw_power_brake_slowdown": ("clocks_event_reasons_counters/clocks_event_reasons_counters_hw_power_brake", number),
    "pcie.replay_counter": ("pci/replay_counter", number),
    "pcie.replay_rollover_counter": ("pci/replay_rollover_counter", number),
    "pcie.atomics.outbound": ("pci/atomic_caps_outbound", text),
    "pcie.atomics.inbound": ("pci/atomic_caps_inbound", text),
    "bridge_chip.type": ("pci/pci_bridge_chip/bridge_chip_type", text),
    "bridge_chip.firmware": ("pci/pci_bridge_chip/bridge_chip_fw", text),
    "ecc.errors.uncorrected.volatile.sram.parity": ("ecc_errors/volatile/sram_uncorrectable_parity", number),
    "ecc.errors.uncorrected.volatile.sram.secded": ("ecc_errors/volatile/sram_uncorrectable_secded", number),
    "ecc.errors.uncorrected.aggregate.sram.parity": ("ecc_errors/aggregate/sram_uncorrectable_parity", number),
    "ecc.errors.uncorrected.aggregate.sram.secded": ("ecc_errors/aggregate/sram_uncorrectable_secded", number),
    "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded": ("ecc_errors/aggregate/sram_threshold_exceeded", text),
    "ecc.errors.uncorrected.aggregate.sram.l2": ("ecc_errors/aggregate_uncorrectable_sram_sources/sram_l2", number),
    "ecc.errors.uncorrected.aggregate.sram.sm": ("ecc_errors/aggregate_uncorrectable_sram_sources/sram_sm", number),
    "ecc.errors.uncorrected.aggregate.sram.mcu": ("ecc_errors/aggregate_uncorrectable_sram_sources/sram_microcontroller", number),
    "ecc.errors.uncorrected.aggregate.sram.pcie": ("ecc_errors/aggregate_uncorrectable_sram_sources/sram_pcie", number),
    "ecc.errors.uncorrected.aggregate.sram.other": ("ecc_errors/aggregate_uncorrectable_sram_sources/sram_other", number),
    "ecc.channel_repair_pending": ("ecc_errors/channel_repair_pending", text),
    "ecc.tpc_repair_pending": ("ecc_errors/tpc_repair_pending", text),
    "ecc.unrepairable_memory": ("ecc_errors/unrepairable_memory", text),
    "retired_pages.single_bit_ecc.count": ("retired_pages/multiple_single_bit_retirement/retired_count", number),
    "retired_pages.double_bit.count": ("retired_pages/double_bit_retirement/retired_count", number),
    "retired_pages.pending": ("retired_pages/pending_retirement", text),
    "remapped_rows.correctable": ("remapped_rows/remapped_row_corr", number),
    "remapped_rows.correctable_inactive": ("remapped_rows/remapped_row_corr_inactive", number),
    "remapped_rows.uncorrectable": ("remapped_rows/remapped_row_unc", number),
    "remapped_rows.uncorrectable_inactive": ("remapped_rows/remapped_row_unc_inactive", number),
    "remapped_rows.pending": ("remapped_rows/remapped_row_pending", text),
    "remapped_rows.failure": ("remapped_rows/remapped_row_failure", text),
    "remapped_rows.histogram.max": ("remapped_rows/row_remapper_histogram/row_remapper_histogram_max", number),
    "remapped_rows.histogram.high": ("remapped_rows/row_remapper_histogram/row_remapper_histogram_high", number),
    "remapped_rows.histogram.partial": ("remapped_rows/row_remapper_histogram/row_remapper_histogram_partial", number),
    "remapped_rows.histogram.low": ("remapped_rows/row_remapper_histogram/row_remapper_histogram_low", number),
    "remapped_rows.histogram.none": ("remapped_rows/row_remapper_histogram/row_remapper_histogram_none", number),
    "display_attached": ("display_attached", text),
    "display_active": ("display_active", text),
    "accounting.mode": ("accounting_mode", text),
    "accounting.buffer_size": ("accounting_mode_buffer_size", number),
    "driver_model.current": ("driver_model/current_dm", text),
    "gom.current": ("gpu_operation_mode/current_gom", text),
    "dramEncryption.mode.current": ("dram_encryption_mode/current_dram_encryption", text),
    "driver_model.pending": ("driver_model/pending_dm", text),
    "gom.pending": ("gpu_operation_mode/pending_gom", text),
    "dramEncryption.mode.pending": ("dram_encryption_mode/pending_dram_encryption", text),
    "addressing_mode": ("addressing_mode", text),
    "capabilities.egm": ("capabilities/egm", text),
    "virtualization.mode": ("gpu_virtualization_mode/virtualization_mode", text),
    "virtualization.host_vgpu_mode": ("gpu_virtualization_mode/host_vgpu_mode", text),
    "virtualization.vgpu_heterogeneous": ("gpu_virtualization_mode/vgpu_heterogeneous_mode", text),
    "c2c.mode": ("c2c_mode", text),
    "fabric.state": ("fabric/state", text),
    "fabric.status": ("fabric/status", text),
    "fabric.cliqueId": ("fabric/cliqueId", number),
    "fabric.clusterUuid": ("fabric/clusterUuid", text),
    "fabric.health.summary": ("fabric/health/summary", text),
    "fabric.health.bandwidth": ("fabric/health/bandwidth", text),
    "fabric.health.route_recovery_in_progress": ("fabric/health/route_recovery_in_progress", text),
    "fabric.health.route_unhealthy": ("fabric/health/route_unhealthy", text),
    "fabric.health.access_timeout_recovery": ("fabric/health/access_timeout_recovery", text),
    "fabric.health.incorrect_configuration": ("fabric/health/incorrect_configuration", text),
    "fabric.health.partition_assigned": ("fabric/health/partition_assigned", text),
    "platform.chassis_serial_number": ("platformInfo/chassis_serial_number", text),
    "platform.slot_number": ("platformInfo/slot_number", number),
    "platform.tray_index": ("platformInfo/tray_index", number),
    "platform.host_id": ("platformInfo/host_id", number),
    "platform.peer_type": ("platformInfo/peer_type", text),
    "platform.module_id": ("platformInfo/module_id", number),
    "platform.gpu_fabric_guid": ("platformInfo/gpu_fabric_guid", text),
}

# Groups that may be one word, such as "N/A", and what their metrics begin with.
GROUPS = (("remapped_rows", "remapped_rows."), ("power_smoothing", "power_smoothing."))

# Location of memory errors → elements of newer and of older captures (below single_bit or double_bit).
PLACES = {
    "device_memory": ("dram", "device_memory"),
    "dram": ("dram", "device_memory"),
    "register_file": (None, "register_file"),
    "l1_cache": (None, "l1_cache"),
    "l2_cache": (None, "l2_cache"),
    "texture_memory": (None, "texture_memory"),
    "texture_shm": (None, "texture_shm"),
    "cbu": (None, "cbu"),
    "sram": ("sram", None),
}

# Bit of clocks_event_reasons.active → ending of the element; the metrics end alike.
REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clocks_setting",
}

ECC = {
    f"ecc.errors.{kind}.{counter}.total": (kind, counter)
    for kind in ("corrected", "uncorrected") for counter in ("volatile", "aggregate")
}

ECC_PLACES = {
    f"ecc.errors.{kind}.{counter}.{place}": (kind, counter, place)
    for kind in ("corrected", "uncorrected") for counter in ("volatile", "aggregate") for place in PLACES
}

SMOOTHING = {name for name in METRICS if name.startswith("power_smoothing.")} - set(NOT_PRINTED)

# What is worked out by a function of its own, below.
WORKED_OUT = {"index", "display_mode", "power.draw", f"{CLOCKS}.active", *(f"{CLOCKS}.{e}" for e in REASONS.values()),
              *ECC, *ECC_PLACES, *SMOOTHING, "mig.index", "mig.gpu_instance_id", "mig.compute_instance_id"}
HOST = {"driver_version", "cuda_version", "count"}
PROCESS = {"pid", "process.type", "process_name", "process.path", "process.command", "used_gpu_memory",
           "process.gpu_instance_id", "process.compute_instance_id"}
MIG_MEMORY = [m for m in DEVICE if m.startswith(("memory.", "bar1."))]
MIG_SHARED = {
    "mig.multiprocessors": "multiprocessor_count",
    "mig.copy_engines": "copy_engine_count",
    "mig.encoders": "encoder_count",
    "mig.decoders": "decoder_count",
    "mig.ofa": "ofa_count",
    "mig.jpeg": "jpg_count",
}


class Capture:
    def __init__(self, path):
        self.path = path
        self.name = path.stem.removeprefix("qx__")
        self.log = ET.parse(path).getroot()
        self.gpus = self.log.findall("gpu")
        self.rounds_up = rounds_up(self.log.findtext("driver_version"))


def texts(node, paths):
    """The trimmed texts at those of the paths that exist."""
    return [t.strip() for p in paths.split() if (t := node.findtext(p)) is not None]


def table_values(node, metrics, capture):
    for metric in metrics:
        paths, conversion = DEVICE[metric]
        found = texts(node, paths)
        if found:
            yield metric, convert(found[0], conversion, capture)


def power_draw(gpu, capture):
    """The driver's one power reading is the average where there is one, else the moment's."""
    found = texts(gpu, f"{OLD_POWER}/power_draw {POWER}/power_draw {POWER}/average_power_draw "
                       f"{POWER}/instant_power_draw")
    present = [t for t in found if t not in ABSENT]
    if found:
        yield "power.draw", convert((present or found)[0], watts, capture)


def clock_reasons(gpu):
    group = next((g for g in map(gpu.find, (CLOCKS, "clocks_throttle_reasons")) if g is not None), None)
    if group is None:
        return
    if not len(group):
        reason = Absent(ABSENT[group.text.strip()])
        yield from ((m, reason) for m in WORKED_OUT if m.startswith(CLOCKS))
        return
    active = {e.tag.split("_reason_", 1)[1]: e.text.strip() for e in group}
    mask = sum(bit for bit, ending in REASONS.items() if active.get(ending) == "Active")
    yield f"{CLOCKS}.active", mask
    for ending in REASONS.values():
        if ending in active:
            yield f"{CLOCKS}.{ending}", active[ending]


def ecc_total(gpu, kind, counter):
    """Older captures have a total, newer ones its parts; None if there is neither."""
    old = {"corrected": "single_bit", "uncorrected": "double_bit"}[kind]
    places = {"corrected": "sram_correctable dram_correctable",
              "uncorrected": "sram_uncorrectable sram_uncorrectable_parity "
                             "sram_uncorrectable_secded dram_uncorrectable"}[kind]
    base = f"ecc_errors/{counter}"
    found = texts(gpu, f"{base}/{old}/total") or texts(gpu, " ".join(f"{base}/{p}" for p in places.split()))
    if not found:
        return None
    absent = [t for t in found if t in ABSENT]
    return Absent(ABSENT[absent[0]]) if absent else sum(map(int, found))


def ecc_place(gpu, kind, counter, place):
    """The errors at one place; newer captures split those of the chip's memories in two."""
    new, old = PLACES[place]
    ending = {"corrected": "correctable", "uncorrected": "uncorrectable"}[kind]
    bits = {"corrected": "single_bit", "uncorrected": "double_bit"}[kind]
    base = f"ecc_errors/{counter}"
    paths = [f"{base}/{bits}/{old}"] if old else []
    if new:
        paths += [f"{base}/{new}_{ending}{part}" for part in ("", "_parity", "_secded")]
    found = texts(gpu, " ".join(paths))
    absent = [t for t in found if t in ABSENT]
    return Absent(ABSENT[absent[0]]) if absent else sum(map(int, found)) if found else None


def group_absent(gpu, capture):
    """A group that is one word, such as "N/A", says it of every metric in it."""
    for group, prefix in GROUPS:
        word = gpu.findtext(group)
        if word is None or not word.strip():
            continue
        for metric in METRICS:
            if metric.startswith(prefix) and metric not in NOT_PRINTED:
                yield metric, Absent(ABSENT[word.strip()])


def expected_of_gpu(gpu, index, capture):
    yield "index", index
    yield from group_absent(gpu, capture)
    # Since R580 nvidia-smi says display_attached instead; the driver's answer is the same.
    mode = (gpu.findtext("display_mode") or "").strip()
    if mode in ("Enabled", "Disabled"):
        yield "display_mode", mode
    for metric, (kind, counter, place) in ECC_PLACES.items():
        errors = ecc_place(gpu, kind, counter, place)
        if errors is not None:
            yield metric, errors
    yield from table_values(gpu, DEVICE, capture)
    yield from power_draw(gpu, capture)
    yield from clock_reasons(gpu)
    for metric, (kind, counter) in ECC.items():
        total = ecc_total(gpu, kind, counter)
        if total is not None:
            yield metric, total


def expected_of_mig(mig, index, capture):
    yield "index", index
    yield "mig.index", int(mig.findtext("index"))
    yield "mig.gpu_instance_id", int(mig.findtext("gpu_instance_id"))
    yield "mig.compute_instance_id", int(mig.findtext("compute_instance_id"))
    yield from table_values(mig, MIG_MEMORY, capture)
    for metric, element in MIG_SHARED.items():
        if (count := mig.findtext(f"device_attributes/shared/{element}")) is not None:
            yield metric, int(count)
    if (errors := mig.findtext("ecc_error_count/volatile_count/sram_uncorrectable")) is not None:
        yield "ecc.errors.uncorrected.volatile.sram", convert(errors.strip(), number, capture)


def expected_of_process(process, capture):
    name = process.findtext("process_name").strip()
    yield "pid", int(process.findtext("pid"))
    yield "process.type", process.findtext("type").strip()
    yield "process_name", program_name(name) or NOT_IN_PROC
    yield "process.path", name
    yield "process.command", name or NOT_IN_PROC
    yield "used_gpu_memory", convert(process.findtext("used_memory").strip(), mebibytes, capture)
    for metric, path in (("process.gpu_instance_id", "gpu_instance_id"),
                         ("process.compute_instance_id", "compute_instance_id")):
        if (t := process.findtext(path)) is not None:
            yield metric, convert(t.strip(), number, capture)


def expected_of_host(capture):
    if (version := capture.log.findtext("driver_version")) is not None:
        yield "driver_version", version.strip()
    if (cuda := capture.log.findtext("cuda_version")) is not None:
        yield "cuda_version", convert(cuda.strip(), text, capture)
    if (count := capture.log.findtext("attached_gpus")) is not None:
        yield "count", int(count)


# ---- comparing ----

tally = Tally(ACCEPTED)


def compare(result, query):
    capture = result.capture
    rows = query("--mig")["gpus"]
    result.rows("host", [list(expected_of_host(capture))], query("--host")["hosts"])
    result.rows("gpu", [list(expected_of_gpu(g, i, capture)) for i, g in enumerate(capture.gpus)],
                [r for r in rows if r["mig.gpu_instance_id"] is None])
    result.rows("mig", [list(expected_of_mig(m, i, capture)) for i, g in enumerate(capture.gpus)
                        for m in g.findall("mig_devices/mig_device")],
                [r for r in rows if r["mig.gpu_instance_id"] is not None])
    result.rows("process", [list(expected_of_process(p, capture)) for g in capture.gpus
                            for p in sorted(g.findall("processes/process_info"),
                                            key=lambda p: int(p.findtext("pid")))],
                query("--processes", "--mig")["processes"])


def add_captures():
    for path in sorted(CAPTURES.glob("qx__*.xml")):
        def of_capture(capture=Capture(path)):
            tally.check(capture, compare)
        of_capture.__name__ = f"capture {path.stem.removeprefix('qx__')}"
        test(of_capture)


add_captures()


@test
def there_are_captures():
    tally.print_totals()
    assert tally.totals["captures"] >= 18, tally.totals


@test
def every_metric_is_compared_or_explained():
    tally.every_metric(set(METRICS), {*DEVICE, *WORKED_OUT, *MIG_SHARED, *HOST, *PROCESS, *NOT_PRINTED}, NOT_PRINTED,
                       ONLY_ABSENT)


@test
def every_accepted_mismatch_occurs():
    tally.every_accepted_mismatch_occurs()


main()
