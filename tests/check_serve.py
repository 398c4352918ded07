#!/usr/bin/env python3
"""gpulse serve: its answers against those of the commands, its notifications, and clients that are wrong, hostile or
slow.
"""
import fcntl
import json
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import termios
from pathlib import Path

from served import ENV, SOURCE, STATE, schemas, server, told
from tap import GPULSE, Skip, good, main, run, test

LINE_MAX = 1 << 16
BATCH_MAX = 64


def queried(*words):
    return json.loads(good(run(GPULSE, *words, "-f", "json", env=ENV)))


# ---- answers ----

@test
def version_and_metrics():
    with server() as s:
        version = s.call("version")
        assert version["schema"] == "gpulse.serve/1" and version["version"].count(".") == 2
        for method in version["methods"]:
            assert f"`{method}`" in (SOURCE / "docs/schema.md").read_text(), method
        fields = s.call("metrics")["fields"]
        assert fields == queried("query", "--list")["fields"] and len(fields) > 200
        assert s.end() == []


@test
def samples_have_the_values_of_query():
    gpus, processes, links = "index,name,memory.used:GiB,fan.speed,uuid", "pid,used_gpu_memory", "links.number,links.state"
    with server() as s:
        sample = s.call("sample", fields=f"{gpus},{processes},{links},driver_version")
        assert sample["schema"] == "gpulse.sample/1" and sample["partial"] is False
        assert sample["gpus"] == queried("query", gpus)["gpus"] and len(sample["gpus"]) == 8
        assert sample["gpus"][0]["fan.speed"] is None and sample["gpus"][0]["reasons"]["fan.speed"] == "not supported"
        assert sample["processes"] == queried("query", "index,uuid," + processes, "--processes")["processes"]
        assert sample["links"] == queried("query", "index,uuid," + links, "--rows", "links")["links"] != []
        assert sample["hosts"] == queried("query", "driver_version", "--host")["hosts"]
        for key in ("host", "driver"):
            assert sample[key] == queried("query", "index")[key]
        usual = s.call("sample")
        assert list(usual["gpus"][0])[:3] == ["index", "name", "uuid"] and "processes" not in usual
        assert [g["index"] for g in s.call("sample", fields=["index", "name"], gpus=[1, "3-4"])["gpus"]] == [1, 3, 4]
        assert s.call("sample", fields=None, gpus=None) | {"time": 0} == usual | {"time": 0}


@test
def mig_instances_and_gpus_of_the_command_line():
    with server("-i", "0", GPULSE_SIM="h100-mig") as s:
        assert len(s.call("sample", fields="index")["gpus"]) == 1
        rows = s.call("sample", fields="index,mig.profile", mig=True)["gpus"]
        assert [r["mig.profile"] for r in rows][1] == "3g.40gb" and len(rows) == 5, rows
    with server("-i", "2") as s:
        assert [g["index"] for g in s.call("sample", fields="index")["gpus"]] == [2]
        assert [g["index"] for g in s.call("sample", fields="index", gpus=5)["gpus"]] == [5]


@test
def processes_are_those_of_ps():
    with server() as s:
        found = s.call("processes", gpus="0-3")
        wanted = queried("ps", "-i", "0-3")
        assert found.pop("partial") is False and found["schema"] == "gpulse.ps/1" and len(found["processes"]) == 4
        for document in (found, wanted):
            del document["time"]
            for row in document["processes"]:
                assert row.pop("cpu") > 0 and row.pop("time") > 0  # these change
                row["start"] = row["start"][:-8]  # computed from ages: may differ by 10 ms
        assert found == wanted, (found, wanted)


@test
def rates_are_known_at_once():
    with server() as s:
        for _ in range(2):
            rows = s.call("sample", fields="pcie.throughput.tx,process.cpu")
            assert None not in [g["pcie.throughput.tx"] for g in rows["gpus"]], rows
            assert None not in [p["process.cpu"] for p in rows["processes"]], rows


# ---- notifications ----

@test
def watches():
    with server() as s:
        first = s.call("watch", fields="index", interval=0.01, gpus="1")
        second = s.call("watch", fields="memory.used", interval=0.02)
        assert first == {"watch": 1} and second == {"watch": 2}
        seen = {1: 0, 2: 0}
        while min(seen.values()) < 3:
            note = s.note()
            assert note["jsonrpc"] == "2.0" and note["method"] == "sample" and "id" not in note
            rows = note["params"]["sample"]["gpus"]
            assert rows == [{"index": 1}] if note["params"]["watch"] == 1 else len(rows) == 8
            seen[note["params"]["watch"]] += 1
        assert s.call("unwatch", watch=1) == {"watch": 1}
        s.notes.clear()
        assert {s.note()["params"]["watch"] for _ in range(5)} == {2}
        assert s.ask("unwatch", {"watch": 1})["error"]["message"] == "there is no watch 1"
        assert s.call("unwatch", watch=2) == {"watch": 2}
        assert s.end() == []


@test
def at_most_16_watches():
    with server() as s:
        for _ in range(16):
            s.call("watch", fields="index", interval=86400)
        assert s.ask("watch", {})["error"]["data"]["kind"] == "busy"
        s.call("unwatch", watch=7)
        assert s.call("watch", interval=86400) == {"watch": 17}


@test
def events_while_requests_are_answered():
    with tempfile.TemporaryDirectory(dir=STATE) as state, server(GPULSE_SIM="h100x2", GPULSE_SIM_STATE=state) as s:
        watch = s.call("events", kinds=["health", "state"], interval=0.1)["watch"]
        note = s.note()
        assert note["method"] == "event" and note["params"]["watch"] == watch and note["params"]["event"]["kind"] == "start"
        assert s.ask("events")["error"]["data"]["kind"] == "busy"
        good(run(GPULSE, "sim", "fault", "-m", "h100x2", "--gpu", "1", "xid=13", env=dict(ENV, GPULSE_SIM_STATE=state)))
        while (event := s.note()["params"]["event"])["kind"] != "xid":
            pass
        assert (event["schema"], event["gpu"], event["xid"], event["origin"]) == ("gpulse.event/1", 1, 13, "driver")
        assert len(s.call("sample")["gpus"]) == 2
        # ends the stream, and begins another one
        s.write(b'{"jsonrpc":"2.0","id":"u","method":"unwatch","params":{"watch":%d}}\n'
                b'{"jsonrpc":"2.0","id":"e","method":"events"}\n' % watch)
        assert s.answer() == {"jsonrpc": "2.0", "id": "u", "result": {"watch": watch}}
        assert s.answer()["result"] == {"watch": watch + 1}
        s.notes.clear()
        assert s.note()["params"]["event"]["kind"] == "start"
        # one that is ended before it has begun
        s.write(b'{"jsonrpc":"2.0","id":1,"method":"unwatch","params":{"watch":%d}}\n'
                b'{"jsonrpc":"2.0","id":2,"method":"events"}\n'
                b'{"jsonrpc":"2.0","id":3,"method":"unwatch","params":{"watch":%d}}\n' % (watch + 1, watch + 2))
        assert [s.answer()["id"] for _ in range(3)] == [1, 2, 3]
        s.notes.clear()
        assert s.call("version") and not s.notes
        assert s.end() == []


# ---- GPUs and drivers that fail ----

@test
def a_gpu_that_hangs_delays_nothing_else():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", "2", "hang=10m", env=dict(ENV, GPULSE_SIM_STATE=state)))
        with server(GPULSE_SIM_STATE=state) as s:
            for _ in range(3):
                sample = s.call("sample", fields="memory.used", timeout=0.3)
                values = [g["memory.used"] for g in sample["gpus"]]
                assert sample["partial"] and values[2] is None and None not in values[:2] + values[3:], values
                assert sample["gpus"][2]["reasons"]["memory.used"].startswith("no answer in time")
            watch = s.call("watch", fields="memory.used", timeout=0.3, interval=0.05)["watch"]
            assert all(s.note()["params"]["sample"]["partial"] for _ in range(3))
            s.call("unwatch", watch=watch)
            assert None not in [g["memory.used"] for g in s.call("sample", fields="memory.used", gpus="3-7")["gpus"]]
            # more sessions wait for it than there is room for, and are not in the way when it responds
            for i in range(10):
                assert s.call("sample", fields="memory.used", timeout=0.1 + i / 100)["partial"]
            good(run(GPULSE, "sim", "fault", "-m", "h100x8", "clear", env=dict(ENV, GPULSE_SIM_STATE=state)))
            for i in range(10):
                assert not s.call("sample", fields="temperature.gpu", timeout=3 + i / 100)["partial"]
            assert s.call("version")
            s.end()


@test
def without_a_driver():
    with server(GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so") as s:
        for method in ("sample", "processes", "watch", "events"):
            error = s.ask(method)["error"]
            assert (error["code"], error["data"]["kind"]) == (-32000, "driver") and "/does/not/exist.so" in error["message"]
        assert s.call("version") and s.call("metrics")


@test
def an_unused_session_is_closed():
    with server() as s:
        s.call("sample")
        tasks = Path(f"/proc/{s.process.pid}/task")
        assert len(list(tasks.iterdir())) > 1
        while len(list(tasks.iterdir())) > 1:
            signal.sigtimedwait([], 0.05)
        assert len(s.call("sample")["gpus"]) == 8


# ---- wrong requests ----

def request(method, params=None, **more):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is None else {"params": params}) | more)


WRONG = [
    ("x", -32700, "not JSON"),
    ("{", -32700, "not JSON"),
    ('{"jsonrpc":"2.0","id":1,"id":2,"method":"version"}', -32700, "duplicate"),
    ('"text"', -32600, "must be an object"),
    ("17", -32600, "must be an object"),
    ("[]", -32600, "1 to 64"),
    ("[1]", -32600, "must be an object"),
    ("[" + ",".join([request("version")] * (BATCH_MAX + 1)) + "]", -32600, "1 to 64"),
    ('{"id":1,"method":"version"}', -32600, "jsonrpc"),
    ('{"jsonrpc":"1.0","id":1,"method":"version"}', -32600, "jsonrpc"),
    ('{"jsonrpc":"2.0","id":1}', -32600, "method"),
    ('{"jsonrpc":"2.0","id":{},"method":"version"}', -32600, '"id"'),
    ('{"jsonrpc":"2.0","id":2.5,"method":"version"}', -32600, '"id"'),
    ('{"jsonrpc":"2.0","method":1,"params":"bar"}', -32600, "method"),
    ('{"method":"version"}', -32600, "jsonrpc"),
    ('[{"foo":"boo"}]', -32600, "jsonrpc"),
    (request("version", []), -32602, '"params" must be an object'),
    (request("sampel"), -32601, "did you mean 'sample'?"),
    (request("sample", {"field": "index"}), -32602, "did you mean 'fields'?"),
    (request("unwatch", {"fields": "index"}), -32602, "unwatch has no parameter 'fields'"),
    (request("sample", {"fields": "memory.usd"}), -32602, "memory.used"),
    (request("sample", {"fields": ""}), -32602, "'fields' takes a text"),
    (request("sample", {"fields": []}), -32602, "'fields' takes a text"),
    (request("sample", {"fields": [["index"]]}), -32602, "'fields' takes a text"),
    (request("sample", {"fields": 1.5}), -32602, "'fields' takes a text"),
    (request("sample", {"gpus": -1}), -32602, "'gpus' takes a text"),
    (request("sample", {"gpus": "9"}), -32000, "9"),
    (request("sample", {"timeout": 0}), -32602, "'timeout' takes a number of seconds from 0.001 to 3600"),
    (request("sample", {"timeout": "1s"}), -32602, "'timeout'"),
    (request("sample", {"mig": 1}), -32602, "true or false"),
    (request("watch", {"interval": 1e300}), -32602, "'interval'"),
    (request("events", {"kinds": "xit"}), -32602, "xid"),
    (request("unwatch"), -32602, "unwatch needs 'watch'"),
    (request("unwatch", {"watch": "1"}), -32602, "whole number"),
    (request("unwatch", {"watch": 0}), -32602, "no watch 0"),
    (request("unwatch", {"watch": -1}), -32602, "whole number"),
    (request("x\x1b[2J\u202e" + "é" * 200), -32601, "\\x1b"),
    (" " * LINE_MAX + request("version"), -32600, "65536 bytes"),
]


def id_of(line, code):
    """Of the request on this line, if it can be understood that far."""
    request = None if code == -32700 or len(line) > LINE_MAX else json.loads(line)
    number = request.get("id") if isinstance(request, dict) else None
    return number if isinstance(number, (int, str)) else None


@test
def wrong_requests_are_explained():
    answers = told("\n".join(line for line, _, _ in WRONG).encode() + b"\n")
    assert len(answers) == len(WRONG), answers
    for (line, code, text), answer in zip(WRONG, answers):
        answer = answer[0] if isinstance(answer, list) else answer
        error = answer["error"]
        assert error["code"] == code and text in error["message"] and "result" not in answer, (line[:200], answer)
        assert error["data"]["kind"] == ("no-device" if code == -32000 else "usage"), answer
        assert answer["id"] == id_of(line, code), (line[:200], answer)


@test
def notifications_and_batches():
    lines = [
        '{"jsonrpc":"2.0","method":"version"}',
        '{"jsonrpc":"2.0","method":"nothing"}',
        "", "  \t\r",
        '[{"jsonrpc":"2.0","method":"version"}]',
        "[" + request("version", id="a") + "," + request("nothing", id="b") + ',{"jsonrpc":"2.0","method":"version"},3]',
        request("version", id=None) + "\r",
        request("version", id="last"),  # its line has no end
    ]
    batch, null, last = told("\n".join(lines).encode())
    assert [a["id"] for a in batch] == ["a", "b", None] and "result" in batch[0] and "error" in batch[1], batch
    assert null["id"] is None and "result" in null and last["id"] == "last"


@test
def hostile_input():
    rng = random.Random(int(os.environ.get("GPULSE_TEST_SEED", "25")))
    seeds = [line.encode() for line, _, _ in WRONG if len(line) < 400] + [request("metrics").encode()]
    lines = [b"[" * 30000, b'{"a":' * 10000, b"\xff\xfe\x00", b'"\xc3\x28"', b"\x00" * 100, b'{"jsonrpc":"2.0","id":1e999}',
             request("version", id="x" * 60000).encode(), b"a" * (3 * LINE_MAX)]
    for _ in range(300):
        line = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(line))
            line[at:at + rng.randint(0, 3)] = bytes(rng.choice(b'{}[]",:0e\\\x00\xffa') for _ in range(rng.randint(0, 3)))
            line = line or bytearray(b"x")
        lines.append(bytes(line).replace(b"\n", b" "))
    answers = told(b"\n".join(lines) + b"\n" + request("version", id="alive").encode())
    assert answers[-1]["id"] == "alive" and "result" in answers[-1]
    blank = sum(not line.strip(b" \t\r") for line in lines)
    assert len(lines) - blank - 40 <= len(answers) - 1 <= len(lines), (len(lines), len(answers))  # some have lost their id


# ---- slow clients, ends ----

def resident(pid):
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def unread(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


@test
def a_client_that_does_not_read():
    with server() as s:
        s.write(request("watch", {"fields": "*", "interval": 0.01}).encode() + b"\n")
        while unread(s.process.stdout) == 0:
            assert s.process.poll() is None
        asked = [request("metrics", id=i).encode() for i in range(100)]
        s.write(b"\n".join(asked) + b"\n")
        memory = [resident(s.process.pid)]
        signal.sigtimedwait([], 3)  # 300 intervals
        memory.append(resident(s.process.pid))
        assert memory[1] < memory[0] + (16 << 10), f"{memory} KiB"
        assert s.answer()["result"] == {"watch": 1}
        assert [s.answer()["id"] for _ in asked] == list(range(100))
        s.call("unwatch", watch=1)


@test
def ends_with_its_input_or_its_reader():
    with server() as s:
        s.call("watch", fields="index", interval=0.01)
        s.call("events")
        s.end()
    with server() as s:
        s.call("version")
        s.process.stdout.close()  # while nothing is asked
        s.process.wait()
        s.process.stdout = open(os.devnull, "rb")


@test
def says_how_it_is_used():
    r = run(GPULSE, "serve")
    assert r.returncode == 2 and "--stdio" in r.stderr and not r.stdout, r
    r = run(GPULSE, "serve", "--stdio", "x")
    assert r.returncode == 2 and "'x'" in r.stderr, r


# ---- other clients ----

@test
def messages_match_their_schema():
    found = schemas()
    if not found:
        raise Skip("no jsonschema")
    jsonschema, texts = found
    validator = jsonschema.Draft202012Validator(texts["serve"])
    lines = [request(m) for m in ("version", "metrics", "sample", "processes", "nothing")]
    lines += [request("sample", {"fields": "*", "mig": True}), "[" + request("version") + "]", "x"]
    messages = told("\n".join(lines).encode())
    assert len(messages) == len(lines)
    with server() as s:
        s.call("watch", interval=0.05)
        messages.append(s.note())
        s.call("events")
        while (message := s.note())["method"] != "event":
            pass
        messages.append(message)
    jsonschema.Draft202012Validator(texts["event"]).validate(message["params"]["event"])
    for message in messages:
        validator.validate(message)
    for wrong in ({"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}):
        assert not validator.is_valid(wrong), wrong


def example(*command):
    text = good(run(*command, env=dict(ENV, GPULSE=str(Path(GPULSE).resolve())))).splitlines()
    used = good(run(GPULSE, "query", "memory.used:GiB", "-f", "csv", "--no-header", env=ENV)).split()
    assert text[:8] == [f"{i} NVIDIA H100 80GB HBM3: {gib} GiB" for i, gib in enumerate(used)], text
    assert len(text) == 11 and all(line.count("%") == 8 for line in text[8:]), text


@test
def the_client_in_python():
    example(sys.executable, SOURCE / "examples/python/serve.py")


@test
def the_client_in_node():
    if not shutil.which("node"):
        raise Skip("no node")
    example("node", SOURCE / "examples/node/serve.js")


@test
def the_clients_are_short():
    for name in ("python/serve.py", "node/serve.js"):
        assert len((SOURCE / "examples" / name).read_text().splitlines()) <= 60, name


try:
    main()
finally:
    shutil.rmtree(STATE)
