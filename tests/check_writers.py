#!/usr/bin/env python3
"""What the formats promise, on real output: the schemas of docs/schema.md, XML and OpenMetrics read
by parsers that gpulse did not write, and every format telling the same.

variants: asan
"""
import functools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tap import GPULSE, Skip, good, gpulse, main, run, side_by_side, test

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("h100x8", "a100-mig", "p100", "rtx2080-win", "gb200", "t4")
SCOPES = {"gpus": ("--mig",), "processes": ("--processes",), "hosts": ("--host",)}

# The lists of a GPU, with the element of a row in XML, and the labels of a row in OpenMetrics.
LISTS = {"supported_clocks": ("clock", {"memory_mhz", "graphics_mhz"}),
         "retired_pages": ("page", {"address"}), "accounted_apps": ("app", {"pid"}),
         "fans": ("fan", {"fan"}), "encoder_sessions": ("session", {"session"}),
         "fbc_sessions": ("capture", {"session"}), "links": ("link", {"link"}),
         "peers": ("peer", {"peer"}), "mig_profiles": ("profile", {"profile"}),
         "samples": ("series", {"kind"}), "gpu_instances": ("instance", {"gpu_instance"}),
         "compute_instances": ("part", {"gpu_instance", "compute_instance"}),
         "compute_profiles": ("form", {"gpu_instance", "profile"})}
LIST_MACHINES = ("h100x2", "a100-mig", "p100", "t4", "rtx3060")
XML_ELEMENTS = {"gpus": "gpu", "processes": "process", "hosts": "host"}

# What a name's beginning repeats, and the base unit of the catalogue's with its factor.
OM_SCOPES = XML_ELEMENTS
OM_UNITS = {"bytes": ("bytes", 1), "percent": ("ratio", 0.01), "°C": ("celsius", 1),
            "W": ("watts", 1), "MHz": ("hertz", 1e6), "J": ("joules", 1),
            "bytes/s": ("bytes_per_second", 1), "us": ("seconds", 1e-6), "ms": ("seconds", 1e-3),
            "s": ("seconds", 1), "W/s": ("watts_per_second", 1), "bitmask": ("", 1)}

# What was told so far of the machines as they are.
TOLD = {}

SCRATCH = tempfile.mkdtemp(prefix="gpulse-writers-")
os.environ["GPULSE_SIM_STATE"] = SCRATCH


def query(machine, fields, *words, timeout="5m"):
    """The output; 6 is the status when a GPU does not answer. An empty /proc, so that two runs of a
    machine that stands still tell the same: once is enough."""
    key = (machine, fields, *words, timeout)
    if key not in TOLD:
        TOLD[key] = ask(machine, fields, *words, timeout=timeout)
    return TOLD[key]


def queries(*cases):
    """All of them, in their order."""
    return side_by_side(query, cases)


def ask(machine, fields, *words, timeout):
    result = gpulse("--sim", machine, "--sim-still", "--root", SCRATCH, "--timeout", timeout,
                    "query", fields, *words)
    assert result.returncode in (0, 6), result.stderr
    return result.stdout


# What differs from one sample to the next, even if the machine stands still.
MOVING = ("process.idle", "process.last_active")
MOVING_FAMILIES = ("gpulse_process_idle", "gpulse_process_last_active")


def sick_machine(machine="h100x8"):
    """Eight GPUs, one lost, one without an answer, one that refuses a value."""
    for words in (["--gpu", "1", "lost"], ["--gpu", "2", "hang=60s:nvmlDeviceGetTemperature"],
                  ["--gpu", "3", "deny"]):
        good(gpulse("sim", "fault", "-m", machine, *words))
    forget(machine)


def well_again(machine="h100x8"):
    good(gpulse("sim", "fault", "-m", machine, "clear"))
    forget(machine)


def forget(machine):
    for key in [key for key in TOLD if key[0] == machine]:
        del TOLD[key]


@functools.cache
def python_with(module):
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and run(python, "-c", f"import {module}").returncode == 0:
            return python
    raise Skip(f"no Python with {module}")


def told_by(judge, text, *words):
    """Gives a text to another program."""
    result = subprocess.run([*judge, *words], input=text, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


# ---- JSON and NDJSON ----

VALIDATE = """
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
def first_error(text):
    for error in validator.iter_errors(json.loads(text)):
        return f"invalid: {error.json_path}: {error.message[:300]}"
json.dump([first_error(text) for text in json.load(sys.stdin)], sys.stdout)
"""


def errors_of(schema, texts):
    """For each text what is wrong with it, None where nothing is."""
    errors = json.loads(told_by([python_with("jsonschema"), "-c", VALIDATE, str(ROOT / "data/schema" / schema)],
                                json.dumps(texts)))
    assert len(errors) == len(texts), errors
    return errors


def validate(schema, texts):
    for error in errors_of(schema, texts):
        assert error is None, error


def outputs(format_name, *more):
    """Everything of every machine, and of a sick one."""
    well = queries(*((machine, "*", "-f", format_name, *scope, *more)
                     for scope in SCOPES.values() for machine in MACHINES))
    sick_machine()
    sick = side_by_side(lambda scope: query("h100x8", "*", "-f", format_name, *scope, *more, timeout="2"),
                        [(scope,) for scope in SCOPES.values()])
    well_again()
    return [*well, *sick]


def lists(format_name):
    """Every list of the machines that have them, with its name and that of the machine."""
    cases = [(rows, machine) for rows in LISTS for machine in LIST_MACHINES]
    texts = queries(*((machine, "*", "-f", format_name, "--rows", rows) for rows, machine in cases))
    return [(*case, text) for case, text in zip(cases, texts)]


def check_reasons(row):
    """null has a reason, and what has a reason is null or old."""
    reasons = row.get("reasons", {})
    for key, value in row.items():
        if key != "driver":
            assert value is not None or reasons[key], (key, row)
    for key, reason in reasons.items():
        assert key in row, key
        assert row[key] is None or reason.startswith("stale"), (key, row[key], reason)


@test
def json_follows_its_schema():
    texts = [*outputs("json", "--units"), query("t4", "*", "-f", "json")]
    texts += [text for _, _, text in lists("json")]
    texts.append(query("h100x2", "index,memory.used:GiB", "-f", "json", "-n", "0.1", "-c", "3"))
    validate("gpulse.query-1.json", texts)
    for text in texts[:-1]:
        document = json.loads(text)
        for key in (*SCOPES, *LISTS):
            for row in document.get(key, []):
                check_reasons(row)


@test
def rows_of_everything_say_which_gpu_they_belong_to():
    """The first fields of a row, in every format whose rows stand alone."""
    for rows, machine in (("processes", "h100x8"), ("links", "h100x2"), ("fans", "rtx3060")):
        uuids = {row["index"]: row["uuid"] for row in
                 json.loads(query(machine, "index,uuid", "-f", "json"))["gpus"]}
        words = ("--rows", rows, "-f")
        told = [list(row.items())[:2] for row in
                json.loads(query(machine, "*", *words, "json"))[rows]]
        told += [[(key, row[key]) for key in ("index", "uuid")] for row in
                 map(json.loads, query(machine, "*", *words, "ndjson").splitlines())]
        told += [[(field.tag, field.text) for field in row[:2]]
                 for row in ElementTree.fromstring(query(machine, "*", *words, "xml"))[0]]
        head, *lines = query(machine, "*", *words, "csv").splitlines()
        told += [list(zip(head.split(","), line.split(",")[:2])) for line in lines]
        assert len(told) >= 4, (rows, told)
        for (index, number), (uuid, text) in told:
            assert (index, uuid) == ("index", "uuid"), told
            assert uuids[int(number)] == text, told


@test
def ndjson_follows_its_schema():
    texts = [*outputs("ndjson", "--units"), query("t4", "*", "-f", "ndjson")]
    lines = [line for text in texts for line in text.splitlines()]
    validate("gpulse.query.row-1.json", lines)
    for line in lines:
        check_reasons(json.loads(line))


@test
def events_follow_their_schema():
    with subprocess.Popen([GPULSE, "--sim", "h100x2", "events", "-f", "ndjson", "-c", "4", "-n", "0.2",
                           "--kind", "all"], stdout=subprocess.PIPE, text=True) as events:
        lines = [events.stdout.readline()]
        good(gpulse("sim", "fault", "-m", "h100x2", "--gpu", "1", "xid=94:1/0", "xid=4711",
                    "set=PerformanceState=P8"))
        lines += [events.stdout.readline() for _ in range(3)]
        good(gpulse("sim", "fault", "-m", "h100x2", "--gpu", "0", "set=CurrPcieLinkWidth=8"))
        lines += events.stdout.readlines()
    well_again()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == ["start", "xid", "xid", "pstate", "pcie"], lines
    validate("gpulse.event-1.json", lines)


def shown(machine, *options):
    """What gpulse set shows; a part of it where a GPU is sick."""
    result = gpulse("--sim", machine, "set", *options)
    assert result.returncode in (0, 6), result.stderr
    return result.stdout


@test
def settings_follow_their_schemas():
    machines = [*MACHINES, "a100-mig", "laptop-asleep"]
    good(gpulse("--sim", "rtx4090", "set", "power-limit=300.5", "gpu-clock-offset=-150",
                "fan-speed=60"))
    sick_machine("b200")  # has no host, so nobody knows a lost GPU's UUID
    try:
        sick = ["b200", "--timeout", "0.5"]
        show = [(*machine, "--show", "-f", "json") for machine in [*((name,) for name in machines), sick]]
        save = [(*machine, "--save", "-") for machine in [*((name,) for name in MACHINES), sick]]
        told = side_by_side(shown, [show[-1], save[-1], *show[:-1], *save[:-1]])
        texts = [*told[2:len(show) + 1], told[0]]
        saved = [*told[len(show) + 1:], told[1]]
        validate("gpulse.controls-1.json", texts)
        assert any(gpu["uuid"] is None for gpu in json.loads(texts[-1])["gpus"]), texts[-1]
        validate("gpulse.settings-1.json", saved)
    finally:
        well_again("b200")
        good(gpulse("sim", "reset", "-m", "rtx4090"))
    error, = errors_of("gpulse.controls-1.json", [texts[0].replace('"min": ', '"min": "1", "x": ')])
    assert error and error.startswith("invalid: $"), f"a text is taken as a limit: {error}"


@test
def the_schemas_refuse_what_is_not_promised():
    document = json.loads(query("t4", "index", "-f", "json"))
    changes = [{"schema": "gpulse.query/2"}, {"time": 5}, {"gpus": [{"index": [1]}]},
               {"gpus": [{"in dex": 1}]}, {"gpus": [{"index": None, "reasons": {}}]},
               {"processes": []}]
    errors = errors_of("gpulse.query-1.json", [json.dumps({**document, **change}) for change in changes])
    for change, error in zip(changes, errors, strict=True):
        assert error and error.startswith("invalid: $"), f"accepted: {change}: {error}"


@test
def ndjson_tells_what_json_tells():
    for format_name in ("json", "ndjson"):
        queries(*((machine, "*", "-f", format_name, *scope) for machine in MACHINES
                  for scope in SCOPES.values()))
    for machine in MACHINES:
        for key, scope in SCOPES.items():
            rows = json.loads(query(machine, "*", "-f", "json", *scope))[key]
            lines = query(machine, "*", "-f", "ndjson", *scope).splitlines()
            for row, line in zip(rows, lines, strict=True):
                flat = json.loads(line)
                for word in ("schema", "time", "host", "driver"):
                    del flat[word]
                if key == "hosts":
                    assert flat.pop("timestamp") > row.pop("timestamp")
                for name in MOVING:
                    assert (name in flat) == (name in row)
                    flat.pop(name, None)
                    row.pop(name, None)
                assert flat == row, (machine, flat, row)


# ---- XML ----

def xml_value(element):
    text = element.text or ""
    return int(text, 16) if text.startswith("0x") else text


@test
def xml_tells_what_json_tells():
    for machine in MACHINES:
        for key, scope in (("gpus", ("--mig",)), ("processes", ("--processes",))):
            texts = queries(*((machine, "*", "-f", name, *scope, "--units") for name in ("json", "xml")))
            document = json.loads(texts[0])
            root = ElementTree.fromstring(texts[1])
            assert (root.tag, root.get("schema")) == ("gpulse", "gpulse.query.xml/1")
            sample, = root
            assert sample.get("driver") == document["driver"] and sample.get("time")
            assert sample.get("host") == document["host"]
            for row, element in zip(document[key], sample, strict=True):
                assert element.tag == XML_ELEMENTS[key]
                reasons = row.pop("reasons", {})
                for (name, value), field in zip(row.items(), element, strict=True):
                    assert field.tag == name
                    if name in MOVING and value is not None:
                        continue
                    assert field.get("reason") == reasons.get(name), name
                    assert field.get("unit") == document["units"].get(name), name
                    if value is None:
                        assert field.text is None, name
                    elif isinstance(value, str):
                        assert (field.text or "") == value, name
                    else:
                        assert math.isclose(float(xml_value(field)), value), name


@test
def rows_of_a_list_are_called_as_the_list_is():
    for (rows, machine, text), (_, _, as_json) in zip(lists("xml"), lists("json"), strict=True):
        sample, = ElementTree.fromstring(text)
        assert len(sample) == len(json.loads(as_json)[rows]), (rows, machine)
        assert {row.tag for row in sample} <= {LISTS[rows][0]}, (rows, [row.tag for row in sample])


@test
def xml_is_well_formed_for_libxml2():
    if not shutil.which("xmllint"):
        raise Skip("no xmllint")
    texts = [*outputs("xml"), query("h100x2", "name,memory.used:GiB,memory.used", "-f", "xml", "-n",
                                    "0.1", "-c", "3")]
    for text in texts:
        told_by(["xmllint", "--noout", "-"], text)
    loop = ElementTree.fromstring(texts[-1])
    assert [len(sample) for sample in loop] == [2, 2, 2]
    assert [f.get("unit") for f in loop[0][0]] == [None, "GiB", None]


# ---- OpenMetrics ----

OM_SAMPLE = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)'
                       r'(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})?'
                       r' (-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)')
OM_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')


class Family:
    def __init__(self, kind):
        self.kind = kind
        self.unit = ""
        self.help = None
        self.samples = {}  # labels as a sorted tuple -> number


def om_labels(text):
    found, end = {}, 0
    while end < len(text):
        match = OM_LABEL.match(text, end)
        assert match, text
        assert match.group(1) not in found, f"a label twice: {text}"
        found[match.group(1)] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]),
                                       match.group(2))
        end = match.end()
    assert not text.endswith(","), text
    return found


def om_parse(text):
    """A strict reader of the part of OpenMetrics 1.0 that gpulse writes."""
    assert text.endswith("\n# EOF\n") or text == "# EOF\n", text[-200:]
    lines = text[:-len("# EOF\n")].splitlines()
    families, name, family = {}, None, None
    for line in lines:
        if match := re.fullmatch(r"# TYPE ([a-zA-Z_][a-zA-Z0-9_]*) (gauge|counter)", line):
            name = match.group(1)
            assert name not in families, f"{name} stands in two places"
            family = families[name] = Family(match.group(2))
        elif match := re.fullmatch(r"# UNIT (\S+) ([a-z_]+)", line):
            assert match.group(1) == name and not family.unit and family.help is None, line
            family.unit = match.group(2)
            assert name.endswith("_" + family.unit), line
        elif match := re.fullmatch(r'# HELP (\S+) ((?:[^"\\\n]|\\[\\"n])+)', line):
            assert match.group(1) == name and family.help is None and not family.samples, line
            family.help = match.group(2)
        else:
            match = OM_SAMPLE.fullmatch(line)
            assert match, f"neither a sample nor about a family: {line}"
            assert match.group(1) == name + {"counter": "_total"}.get(family.kind, ""), line
            labels = tuple(sorted(om_labels(match.group(2) or "").items()))
            assert labels not in family.samples, f"a series twice: {line}"
            family.samples[labels] = float(match.group(3))
            assert family.kind != "counter" or family.samples[labels] >= 0, line
    return families


@test
def the_strict_reader_is_strict():
    head = "# TYPE a_bytes gauge\n# UNIT a_bytes bytes\n# HELP a_bytes what\n"
    well = head + 'a_bytes{x="1"} 5\n# EOF\n'
    assert om_parse(well)["a_bytes"].samples == {(("x", "1"),): 5.0}
    for wrong in (well[:-1], well + "\n", head + "a_bytes 5\na_bytes 6\n# EOF\n",
                  head + "b_bytes 5\n# EOF\n", head + 'a_bytes{x="1",x="2"} 5\n# EOF\n',
                  head + 'a_bytes{x="a\\b"} 5\n# EOF\n', head + "a_bytes nan\n# EOF\n",
                  head + "a_bytes 5 \n# EOF\n", head + head + "# EOF\n",
                  head.replace("UNIT a_bytes bytes", "UNIT a_bytes watts") + "# EOF\n",
                  head.replace("gauge", "counter") + "a_bytes 5\n# EOF\n"):
        try:
            om_parse(wrong)
        except AssertionError:
            continue
        raise AssertionError(f"accepted: {wrong}")


def om_family(key, name, unit, families):
    """The family of a field, and the factor of its base unit."""
    scope = OM_SCOPES[key]
    stem = re.sub(f"^{scope}[._]", "", name)
    stem = f"gpulse_{scope}_" + re.sub("[^A-Za-z0-9]", "_", stem)
    base, factor = OM_UNITS[unit] if unit else ("", 1)
    full = stem + (f"_{base}" if base else "")
    if full not in families and stem.removesuffix("_total") + full[len(stem):] in families:
        return stem.removesuffix("_total") + full[len(stem):], factor
    return full, factor


def check_against_json(machine, key, scope):
    """Every number of JSON is there in its base unit, every text as an _info, and nothing else."""
    document = json.loads(query(machine, "*", "-f", "json", *scope, "--units"))
    families = om_parse(query(machine, "*", "-f", "openmetrics", *scope))
    expected = {name: [] for name in families}
    for row in document[key]:
        reasons = row.pop("reasons", {})
        for name, value in row.items():
            if name in ("status", "timestamp", *MOVING):
                continue  # are numbers here, and tested apart
            if name == "status.text" or (key != "gpus" and name in ("index", "uuid")):
                continue  # left out: see the states, and the labels
            full, factor = om_family(key, name, document["units"].get(name), families)
            if full not in families:
                full += "_info"
            if name not in reasons:
                expected[full].append(1 if isinstance(value, str) else value * factor)
    for name, numbers in expected.items():
        if name in ("gpulse_gpu_status", "gpulse_host_timestamp_seconds") or name.startswith(MOVING_FAMILIES):
            continue
        found = list(families[name].samples.values())
        assert len(found) == len(numbers), (machine, name, found, numbers)
        for a, b in zip(found, numbers):
            assert math.isclose(a, b, rel_tol=1e-12), (machine, name, a, b)


@test
def openmetrics_tells_what_json_tells():
    queries(*((machine, "*", "-f", *words) for machine in MACHINES for scope in SCOPES.values()
              for words in (("json", *scope, "--units"), ("openmetrics", *scope))))
    for machine in MACHINES:
        for key, scope in SCOPES.items():
            check_against_json(machine, key, scope)


@test
def openmetrics_leaves_out_what_is_not_known():
    sick_machine()
    families = om_parse(query("h100x8", "temperature.gpu,status,uuid", "-f", "openmetrics", timeout="2"))
    well_again()
    gpus = {dict(labels)["gpu"] for labels in families["gpulse_gpu_temperature_gpu_celsius"].samples}
    assert {"0", "4", "5", "6", "7"} <= gpus and "1" not in gpus and "2" not in gpus, gpus
    states = {(dict(labels)["gpu"], dict(labels)["status"])
              for labels, value in families["gpulse_gpu_status"].samples.items() if value == 1}
    assert ("0", "ok") in states and ("1", "lost") in states and ("2", "timeout") in states, states
    assert len(states) == 8, states


@test
def openmetrics_labels_name_who_is_meant():
    families = om_parse(query("a100-mig", "memory.used", "-f", "openmetrics", "--mig"))
    rows = [dict(labels) for labels in families["gpulse_gpu_memory_used_bytes"].samples]
    assert all(row["gpu"] and row["uuid"] and row["name"] for row in rows), rows
    assert [row.get("mig_index") for row in rows] == [None, "0", "1", "2", "3"], rows
    assert {row["pci_bus_id"] for row in rows} == {"00000000:01:00.0"}, rows
    assert [row.get("gpu_uuid") for row in rows] == [None] + 4 * [rows[0]["uuid"]], rows
    assert rows[1]["gpu_instance_id"] and rows[1]["uuid"] != rows[0]["uuid"], rows
    families = om_parse(query("h100x8", "used_gpu_memory,process.command", "-f", "openmetrics",
                              "--processes"))
    rows = [dict(labels) for labels in families["gpulse_process_used_gpu_memory_bytes"].samples]
    assert all(row["pid"] and row["gpu"] and row["uuid"] and row["process_name"] for row in rows)
    assert not any("process_command" in row for row in rows), rows  # it may hold secrets
    assert all("process_command" in dict(labels)
               for labels in families["gpulse_process_command_info"].samples)


@test
def the_page_about_the_formats_knows_every_list():
    page = (ROOT / "docs/schema.md").read_text().partition("\n| `--rows` |")[2].partition("\n\n")[0]
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert {rows: (word, set(re.findall(r"\w+", labels))) for rows, word, labels in table} == LISTS


@test
def openmetrics_labels_the_rows_of_lists():
    for rows, _, told in lists("openmetrics"):
        noun, labels = LISTS[rows]
        for name, family in om_parse(told).items():
            assert name.startswith(f"gpulse_{noun}_"), name
            for series in family.samples:
                found = {label for label, _ in series}
                assert {"gpu", "uuid"} | labels <= found, (name, series)
                # a text that is a label of its rows anyway has no second one
                text = name.endswith("_info") and name != "gpulse_series_kind_info"
                assert len(found - labels) == 2 + text, series
    families = om_parse(query("h100x2", "state,tx", "-f", "openmetrics", "--rows", "links"))
    assert {dict(series)["links_state"] for series in families["gpulse_link_state_info"].samples
            } == {"Active"}
    assert families["gpulse_link_tx_bytes"].kind == "counter"


@test
def words_of_a_status_are_no_series():
    sick_machine()
    text = query("h100x8", "status,status.text", "-f", "openmetrics", timeout="2")
    well_again()
    assert "status_text" not in text and 'status="lost"} 1' in text, text


@test
def a_loop_in_openmetrics_is_a_row_of_expositions():
    text = query("h100x2", "timestamp,temperature.gpu", "-f", "openmetrics", "-n", "0.1", "-c", "3")
    parts = [part + "# EOF\n" for part in text.split("# EOF\n")[:-1]]
    assert len(parts) == 3 and "".join(parts) == text
    times = [om_parse(part)["gpulse_host_timestamp_seconds"].samples[()] for part in parts]
    assert times == sorted(set(times)), times


JUDGE = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as new
from prometheus_client.parser import text_string_to_metric_families as old
def read(text):
    seen = {}
    for family in new(text):
        for s in family.samples:
            seen[json.dumps([s.name, sorted(s.labels.items())])] = s.value
    for family in old(text):
        for s in family.samples:
            assert seen[json.dumps([s.name, sorted(s.labels.items())])] == s.value, s
    return seen
json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
"""


@test
def openmetrics_is_read_by_the_prometheus_client():
    texts = outputs("openmetrics")
    theirs = json.loads(told_by([python_with("prometheus_client"), "-c", JUDGE], json.dumps(texts)))
    for text, told in zip(texts, theirs, strict=True):
        ours = {}
        for name, family in om_parse(text).items():
            for labels, value in family.samples.items():
                full = name + ("_total" if family.kind == "counter" else "")
                ours[json.dumps([full, [list(pair) for pair in labels]])] = value
        assert told == ours


@test
def names_from_outside_break_no_format():
    machine = json.loads((Path(os.environ.get("GPULSE_BUILD", "build")) /
                          "sim/machines/t4.json").read_text())
    name = "a<b>&\"c'\\n\\ ]]> \u2028\ufffe\x1b[31m 幅"
    machine["devices"][0]["answers"]["Name"] = name
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(machine, file)
        file.flush()
        told = json.loads(query(file.name, "name", "-f", "json"))["gpus"][0]["name"]
        root = ElementTree.fromstring(query(file.name, "name", "-f", "xml"))
        labels, = om_parse(query(file.name, "name", "-f", "openmetrics"))[
            "gpulse_gpu_name_info"].samples
    assert "\x1b" not in told and "a<b>&\"c'\\n\\ ]]>" in told, told
    assert root[0][0][0].text == told.replace("\ufffe", "\ufffd"), root[0][0][0].text
    assert dict(labels)["name"] == told, labels


try:
    main()
finally:
    shutil.rmtree(SCRATCH, ignore_errors=True)
