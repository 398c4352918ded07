"""For tests/check_captures*.py: what a real nvidia-smi printed against what gpulse says of the
machine that `gpulse sim import` makes of it."""
import json
import os
import re
import tempfile
from collections import Counter, namedtuple
from pathlib import Path

from tap import good, gpulse

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
CAPTURES = ROOT / "data/captures"
MIB = 1 << 20

Metric = namedtuple("Metric", "scope type unit origin name aliases")


def read_metrics():
    """The rows of metric.def by name."""
    # the lists of a GPU are compared by check_lists.py
    rows = re.findall(r'^METRIC\(\w+, (HOST|DEVICE|PROCESS), (\w+), (\w+), \w+, (\w+), "([^"]+)", "([^"]*)"',
                      (ROOT / "src/model/metric.def").read_text(), re.M)
    assert len(rows) > 100, "metric.def was not understood"
    return {row[4]: Metric(*row[:5], row[5].split()) for row in rows}


METRICS = read_metrics()


def named(reasons):
    """{pattern of metrics: why} by the metrics themselves."""
    return {name: why for name in METRICS for pattern, why in reasons.items() if re.fullmatch(pattern, name)}


# Metrics that nvidia-smi -q prints in no form, and why. All others must be compared.
NOT_PRINTED = named({
    r"timestamp": "the moment of our own sample",
    r"process\.(idle|last_active)": "what gpulse has seen itself",
    r"reservation\..*": "gpulse's own",
    r"status|status\.text|mig\.gpu_uuid": "our own",
    r"host\.(cpu|load|memory|swap)\..*|host\.uptime": "from /proc",
    r"process\.(user|cpu|rss|start_time|ppid|state|threads|container|container_name|origin|suspended|ns_pid|session|cwd)": "from /proc",
    r"kmd_version|pcie\.link\.gen\.hostmax": "from the kernel of this machine",
    r"host\.name|nvml_version|excluded_gpus|compute_cap|clocks_event_reasons\.supported|mig\.profile|process\.utilization\..*|"
    r"conf_compute\..*|cores|irq|numa_node|memory_bus_width|hostname|power\.source|ecc\.mode\.default|"
    r"gsp\.mode\..*|inforom\.checksum_validation|c2c\.link.*|mig\.mode\.resetless|"
    r"pcie\.(errors\..*|l0_to_recovery_counter)|vgpu_.*|energy\.consumption|"
    r"power_smoothing\.(delayed|soc|primary|secondary|min_primary|window).*|"
    r"power_smoothing\..*(secondary_power_floor|primary_floor.*)": "nvidia-smi -q does not print it",
    r"bbx\.time_run|gpu\.base\..*": "with driver 610, of which there is no XML",
    r"(utilization\.(gpu|memory)|power\.draw)\.(peak|mean)": "over the time between two samples",
    r"throttle\..*|gpm\..*|process\.(power|energy)": "over the time between two samples",
    r"nvlink\..*|affinity\..*": "nvidia-smi -q does not print it; check_lists.py",
    r"memory\.(processes|unattributed)": "worked out from what is compared",
})

# What nvidia-smi prints in place of a value, and the reason that gpulse gives for its absence.
ABSENT = {
    "": "not supported",
    "N/A": "not supported",
    "[N/A]": "not supported",
    "[Not Supported]": "not supported",
    "Not available in WDDM driver model": "not supported",
    "Requested functionality has been deprecated": "not supported",
    "[Requested functionality has been deprecated]": "not supported",
    "Insufficient Permissions": "no permission",
    "[Insufficient Permissions]": "no permission",
    "[GPU is lost]": "GPU is lost",
    "[Function Not Found]": "not supported",
}


class Absent:
    def __init__(self, reason):
        self.reason = reason

    def __repr__(self):
        return f"null ({self.reason})"


class Mebibytes:
    """A size that nvidia-smi rounded to whole MiB: down before R570, up since. The captures say so
    themselves: the parts of the memory add up to less, or to more, than the total."""

    def __init__(self, mib, rounds_up):
        self.mib = mib
        self.rounds_up = rounds_up

    def matches(self, size):
        return isinstance(size, int) and (-(-size // MIB) if self.rounds_up else size // MIB) == self.mib

    def __repr__(self):
        return f"{self.mib} MiB"


def rounds_up(driver_version):
    return int((driver_version or "0").split(".")[0]) >= 570


# ---- conversions: text of the capture → value of gpulse ----

def text(t, _):
    return t


def number(t, _):
    """"53", "51 %", "345 MHz", "33 C", "16x": the leading whole number."""
    return int(re.match(r"-?\d+", t).group())


def watts(t, _):
    return float(re.fullmatch(r"(\d+\.\d+) W", t).group(1))


def kilobytes_per_s(t, _):
    return 1000.0 * number(t, None)


def mebibytes(t, capture):
    return Mebibytes(int(re.fullmatch(r"(\d+) MiB", t).group(1)), capture.rounds_up)


def hexadecimal(t, _):
    return "0x" + t.upper()


def moment(t, _):
    """The time of a machine somewhere, taken as UTC."""
    return t.replace("/", "-").replace(" ", "T") + "+00:00"


def percent(t, _):
    return float(t.removesuffix("%").strip())


# Unit of a metric → what nvidia-smi prints behind the number, and what to multiply it with.
PRINTED_UNITS = {
    "NONE": {"": 1, "x": 1, "bank(s)": 1},
    "PERCENT": {"": 1, "%": 1},
    "CELSIUS": {"": 1, "C": 1},
    "WATT": {"": 1, "W": 1},
    "MHZ": {"": 1, "MHz": 1},
    "BYTES_PER_S": {"KB/s": 1000},
    "US": {"": 1, "us": 1},
    "MS": {"ms": 1},
    "SECOND": {"s": 1},
    "WATT_PER_S": {"W/s": 1},
}


def by_unit(metric):
    """The conversion of a printed value that follows from type and unit of its metric."""
    row = METRICS[metric]
    if row.unit == "BYTES":
        return mebibytes
    if row.unit == "MASK":
        return lambda t, _: int(t, 16)
    if row.type == "TEXT":
        return text

    def scaled(t, _):
        digits, unit = re.fullmatch(r"(-?[\d.]+) ?(.*)", t).groups()
        assert unit in PRINTED_UNITS.get(row.unit, {}), f"{metric} in {row.unit}: printed as '{t}'"
        return (float if row.type == "REAL" else int)(digits) * PRINTED_UNITS[row.unit][unit]
    return scaled


def convert(t, conversion, capture):
    return Absent(ABSENT[t]) if t in ABSENT else conversion(t, capture)


def program_name(command):
    """The first word without its path; a Windows path may hold blanks."""
    return command.rsplit("\\", 1)[1] if "\\" in command else command.split(" ")[0].rsplit("/", 1)[-1]


NOT_IN_PROC = Absent("not in /proc: it has exited, is hidden, or runs in another pid namespace")


# ---- comparing ----


def is_same(expected, row, metric):
    value = row.get(metric)
    if isinstance(expected, Absent):
        return value is None and row.get("reasons", {}).get(metric) == expected.reason
    if isinstance(expected, Mebibytes):
        return expected.matches(value)
    if isinstance(expected, float):
        return value is not None and abs(value - expected) < 1e-6
    return value == expected and type(value) is type(expected)


class Tally:
    """What a check has compared so far. Accepted mismatches are (capture, metric) and why."""

    def __init__(self, accepted):
        self.accepted = accepted
        self.used = set()
        self.compared = Counter()  # metric → comparisons with a value
        self.compared_absent = Counter()
        self.totals = Counter()

    def check(self, capture, compare):
        """compare(comparison, query) of one capture: query(*words) gives the JSON of `gpulse query`."""
        with tempfile.TemporaryDirectory() as folder:
            result = Comparison(self, capture)
            compare(result, machine_query(capture.path, folder))
        print(f"# {capture.name}: {result.count} values compared, {len(result.mismatches)} mismatches, "
              f"{result.accepted} accepted")
        self.totals.update(captures=1, values=result.count, mismatches=len(result.mismatches),
                           accepted=result.accepted)
        assert not result.mismatches, "\n".join(["", *result.mismatches])

    def print_totals(self):
        t = self.totals
        print(f"# total: {t['captures']} captures, {t['values']} values compared, "
              f"{t['mismatches']} mismatches, {t['accepted']} accepted")

    def every_metric(self, names, known, not_in_captures, only_absent):
        """Each of the names must have been compared, or be explained."""
        assert not names - known, f"neither compared nor explained: {sorted(names - known)}"
        assert not known - names, f"not in metric.def: {sorted(known - names)}"
        both = set(not_in_captures) & {*self.compared, *self.compared_absent}
        assert not both, f"explained away, but compared: {sorted(both)}"
        never = names - set(not_in_captures) - set(self.compared) \
            - (set(only_absent) & set(self.compared_absent))
        assert not never, f"no capture gave a value to compare: {sorted(never)}"
        assert not set(only_absent) & set(self.compared), \
            f"a capture gives a value now: strike {sorted(set(only_absent) & set(self.compared))} from the list"

    def every_accepted_mismatch_occurs(self):
        unused = set(self.accepted) - self.used
        assert not unused, f"no longer needed: {sorted(unused)}"
        assert all(self.accepted.values()), "a reason is missing"
        for (capture, metric), reason in self.accepted.items():
            print(f"# accepted: {capture}: {metric}: {reason}")


class Comparison:
    def __init__(self, tally, capture):
        self.tally = tally
        self.capture = capture
        self.count = 0
        self.mismatches = []
        self.accepted = 0

    def rows(self, what, expected_rows, rows):
        assert len(expected_rows) == len(rows), \
            f"{len(expected_rows)} {what} captured, {len(rows)} printed"
        for i, (expected, row) in enumerate(zip(expected_rows, rows)):
            for metric, value in expected:
                self.value(f"{what} {i}", metric, value, row)

    def value(self, where, metric, expected, row):
        tally = self.tally
        self.count += 1
        (tally.compared_absent if isinstance(expected, Absent) else tally.compared)[metric] += 1
        if is_same(expected, row, metric):
            return
        if (self.capture.name, metric) in tally.accepted:
            tally.used.add((self.capture.name, metric))
            self.accepted += 1
            return
        reason = row.get("reasons", {}).get(metric)
        self.mismatches.append(f"{where}: {metric}: captured {expected!r}, "
                               f"printed {row.get(metric)!r}{f' ({reason})' if reason else ''}")


def machine_query(capture_path, folder):
    """Imports a capture; the result asks the machine for everything: query("--host")["hosts"]."""
    machine = f"{folder}/m.json"
    good(gpulse("sim", "import", capture_path, "-o", machine))
    # An empty root: the captured pids must not meet processes of this machine.
    os.mkdir(f"{folder}/root")
    env = dict(os.environ, GPULSE_SIM_STATE=folder, TZ="UTC")
    common = ("--sim", machine, "--sim-still", "--root", f"{folder}/root", "--timeout", "60", "query", "*",
              "-f", "json")
    return lambda *more: json.loads(good(gpulse(*common, *more, env=env)))
