#!/usr/bin/env python3
"""GPU values without libgpulse: gpulse serve, asked in JSON-RPC. Prints a sample, then the load three times."""

import collections
import json
import os
import subprocess


class Gpulse:
    """A running gpulse serve."""

    def __init__(self, program="gpulse"):
        self.process = subprocess.Popen([program, "serve", "--stdio"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, encoding="utf-8")
        self.notes = collections.deque()  # notifications that arrived before an answer
        self.last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.communicate()  # the end of its input ends it

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise EOFError("gpulse serve has ended")
        return json.loads(line)

    def call(self, method, **params):
        self.last_id += 1
        request = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        while "id" not in (message := self.read()):
            self.notes.append(message)
        if "error" in message:
            raise RuntimeError(message["error"]["message"])
        return message["result"]

    def notifications(self):
        while True:
            yield self.notes.popleft() if self.notes else self.read()


def main():
    with Gpulse(os.environ.get("GPULSE", "gpulse")) as gpulse:
        for gpu in gpulse.call("sample", fields=["index", "name", "memory.used"])["gpus"]:
            print(f"{gpu['index']} {gpu['name']}: {gpu['memory.used'] / 2**30:.1f} GiB")
        watch = gpulse.call("watch", fields="utilization.gpu", interval=0.1)["watch"]
        for _, note in zip(range(3), gpulse.notifications()):
            gpus = note["params"]["sample"]["gpus"]
            print(*(f"{gpu['utilization.gpu']}%" for gpu in gpus))
        gpulse.call("unwatch", watch=watch)


main()
