#!/usr/bin/env python3
"""`gpulse smi conf-compute` against what real nvidia-smi printed of a confidential machine.

variants: asan
"""
import json
import os
import re
import tempfile
from pathlib import Path

from captures import CAPTURES
from tap import good, gpulse, main, test


@test
def a_confidential_machine_comes_out_as_it_was_captured():
    text = (CAPTURES / "conf-compute__h100-azure_595.71.05.txt").read_text()
    parts = re.split(r"^\$ nvidia-smi (.*)\n", text, flags=re.M)
    machine = json.loads((Path(os.environ["GPULSE_BUILD"]) / "sim/machines/h100.json").read_text())
    machine["system"].update(cc_cpu=4, cc_gpus=1, cc_environment=2, cc_feature=1, cc_ready=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.json"
        path.write_text(json.dumps(machine))
        env = dict(os.environ, GPULSE_SIM_STATE=folder)
        for words, captured in zip(parts[1::2], parts[2::2]):
            printed = good(gpulse("smi", *words.split(), "--sim", f"{path},driver=595", "--root", folder, env=env))
            assert printed == captured, f"{words}\n{printed}"
    print(f"# {len(parts) // 2} commands, {text.count(chr(10)) - len(parts) // 2} lines equal")


main()
