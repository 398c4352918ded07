#!/usr/bin/env python3
"""gpulse doctor on the machines of tests/doctor: each must be told exactly what stands beside it.

tests/doctor/README.md says how they are described.  variants: asan; slices: 4
"""
import concurrent.futures
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tap import in_slice

HERE = Path(__file__).resolve().parent / "doctor"
PROGRAM = Path(os.environ.get("GPULSE", HERE.parent.parent / "build" / "gpulse")).with_name("examine")
WRITE = os.environ.get("GPULSE_GOLDEN") == "write"
NOBODY = 65534
EXAMINERS = []  # processes
of_thread = threading.local()

# What a distribution's own commands begin with; none of another one may be proposed.
MANAGERS = {
    "Debian": "apt dpkg apt-mark update-initramfs", "Ubuntu": "apt dpkg apt-mark update-initramfs "
    "ubuntu-drivers prime-select update-secureboot-policy",
    "Fedora": "dnf akmods dracut kmodgenca rpm", "RHEL": "dnf dracut rpm", "Arch": "pacman mkinitcpio",
    "openSUSE": "zypper dracut rpm prime-select", "Amazon Linux": "dnf yum dracut rpm",
    "Gentoo": "emerge dracut", "Void": "xbps-install xbps-reconfigure dracut",
}
DERIVED = {"Arch": "CachyOS|Manjaro|EndeavourOS|Groovy Arcade", "Ubuntu": "Pop!_OS|Linux Mint|Peppermint|elementary OS", "Debian": "Endless OS|Kali|LMDE|Devuan", "Fedora": "Nobara", "Void": "void,", "openSUSE": "SUSE Linux Enterprise"}
ALL_MANAGERS = {word for words in MANAGERS.values() for word in words.split()} | {"yum"}


def ldcache(lines):
    """What ldconfig writes, of "NAME PATH" lines: libraries for x86_64."""
    entries, strings = b"", b""
    for words in (line.encode().split(b" ") for line in lines):
        at = [48 + 24 * len(lines) + len(strings), 0]
        strings += words[0] + b"\0"
        at[1] = 48 + 24 * len(lines) + len(strings)
        strings += words[1] + b"\0"
        entries += struct.pack("<iIIIQ", 0x303, *at, 0, 0)
    head = struct.pack("<20sIIB19x", b"glibc-ld.so.cache1.1", len(lines), len(strings), 2)
    return head + entries + strings


def repeated(lines):
    """The lines, with those of the form "NUMBER times LINE" as often as that."""
    for line in lines:
        times, word, rest = line.partition(" times ")
        yield from [rest] * int(times) if word and times.isdigit() else [line]


def exported(lines, last_boot):
    """A journal in systemd's export format, of lines "SECONDS WHO: TEXT" since boot.

    Boots are numbered from 1, but the last has the number that is given, unless that is 0.

    WHO is "kernel", "kmsg" for a program that writes to /dev/kmsg, a service "ollama.service", started
    for the second time "ollama.service/2", systemd itself "init.scope", a program of a user's
    "obs@1000", or of a service that runs as one "x.service@1000"; "boot" begins the next boot.
    """
    boot, number = 1, 0
    last = lines.count("boot") + 1 if last_boot else 0
    for line in repeated(lines):
        if line == "boot":
            boot += 1
            continue
        number += 1
        stamp, who, text = re.fullmatch(r"([\d.]+) (\S+): (.*)", line).groups()
        us = int(float(stamp) * 1e6)
        name, _, user = who.partition("@")
        service, _, start = who.partition("/")
        fields = {
            "__REALTIME_TIMESTAMP": 1764000000000000 + boot * 10 ** 12 + us + number, "_BOOT_ID": f"{last_boot if boot == last else boot:032x}",
            "__MONOTONIC_TIMESTAMP": us + number, "_MACHINE_ID": "0" * 31 + "1", "_HOSTNAME": "box", "MESSAGE": text,
        }
        if who in ("kernel", "kmsg"):
            fields |= {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": int(who == "kmsg"),
                       "SYSLOG_IDENTIFIER": who, "_SOURCE_MONOTONIC_TIMESTAMP": us}
        elif user and not name.endswith(".service"):
            fields |= {"_TRANSPORT": "journal", "SYSLOG_FACILITY": 0, "_UID": user, "_PID": 900, "SYSLOG_IDENTIFIER": name, "_SYSTEMD_UNIT": f"user@{user}.service"}
        else:
            is_init = service == "init.scope"
            service = service.partition("@")[0]
            fields |= {"_UID": user or 0, "_PID": 1 if is_init else 700, "_SYSTEMD_UNIT": service,
                       "SYSLOG_IDENTIFIER": "systemd" if is_init else service.partition(".")[0],
                       "_SYSTEMD_INVOCATION_ID": f"{int(start or 1):032x}"}
        unit = re.search(r"\S+\.service", text)
        if who == "init.scope" and unit:
            fields["UNIT"] = unit[0].rstrip(":")
        fields["_COMM"] = fields["SYSLOG_IDENTIFIER"]
        yield "".join(f"{key}={value}\n" for key, value in fields.items()) + "\n"


def write_journal(path, lines, last_boot):
    """As systemd itself writes it."""
    program = shutil.which("systemd-journal-remote", path="/usr/lib/systemd:/lib/systemd")
    if not program:
        sys.exit("systemd-journal-remote is missing: scripts/setup.sh check")
    subprocess.run([program, "-o", path, "-"], input="".join(exported(lines, last_boot)).encode(), check=True,
                   stderr=subprocess.DEVNULL)
    path.chmod(0o644)


class Machine:
    def __init__(self, path):
        self.args, self.user, self.entries = [], False, []
        self.needs_root = False
        self.simulated = ""
        self.cause, self.cures = "", []
        self.read(path)

    def read(self, path):
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        if lines[-1] == "":
            lines.pop()
        entry = None
        for number, line in enumerate(lines, 1):
            if line.startswith("=== "):
                name, _, kind = line[4:].partition(" ")
                entry = (name, kind, [])
                self.entries.append(entry)
            elif entry:
                entry[2].append(line)
            elif line.startswith("include "):
                self.read(HERE / "parts" / f"{line[8:]}.root")
            elif line.startswith("args "):
                self.args += line[5:].split()
            elif line.startswith("gpus "):
                self.add_gpus(*line.split()[1:])
            elif line.startswith("cause "):
                self.cause = line[6:]
            elif line.startswith("cure "):
                self.cures.append(line[5:])
            elif line.startswith("sim "):
                self.simulated = line[4:]
            elif line in ("user", "root"):
                self.user |= line == "user"
                self.needs_root |= line == "root"
            elif line and not line.startswith("#"):
                sys.exit(f"{path}:{number}: what is '{line}'?")

    def add_gpus(self, count, vendor, device, driver):
        """So many, each of another model."""
        for number in range(int(count)):
            domain, bus = divmod(number + 1, 256)
            path = f"/sys/bus/pci/devices/{domain:04x}:{bus:02x}:00.0"
            model = f"{int(device, 16) + number:#06x}"
            for name, text in (("vendor", vendor), ("device", model), ("class", "0x030200")):
                self.entries.append((f"{path}/{name}", "", [text]))
            self.entries.append((f"{path}/driver", f"-> ../../../bus/pci/drivers/{driver}", []))

    def last_boot(self):
        """The boot of /proc/sys/kernel/random/boot_id; 0: it is one of those that are numbered."""
        ids = [lines[0] for name, _, lines in self.entries if name == "/proc/sys/kernel/random/boot_id" and lines]
        number = int(ids[-1].replace("-", ""), 16) if ids else 0
        return number if number > 999 else 0

    def build(self, root):
        modes = []
        for name, kind, lines in self.entries:
            path = Path(root + name)
            word, _, rest = kind.partition(" ")
            if word == "mode":
                modes.append((path, int(rest, 8)))
                continue
            if word in ("owner", "group"):
                os.chown(path, *((int(rest), -1) if word == "owner" else (-1, int(rest))))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or path.is_file():  # what an included part has
                path.unlink()
            text = "\n".join(lines)
            data = (text + "\n" if lines else "").encode(errors="surrogateescape")
            if word == "->":
                path.symlink_to(rest)
            elif word == "dir":
                path.mkdir(exist_ok=True)
            elif word == "fifo":
                os.mkfifo(path)
            elif word == "zeros":
                with path.open("wb") as file:
                    file.truncate(int(rest))
            elif word == "hex":
                path.write_bytes(bytes.fromhex(rest))
            elif word == "bytes":
                size, *patches = rest.split()
                data = bytearray(int(size))
                for place, _, digits in (patch.partition("=") for patch in patches):
                    new = bytes.fromhex(digits)
                    data[int(place, 16):int(place, 16) + len(new)] = new
                path.write_bytes(data)
            elif word == "ldcache":
                path.write_bytes(ldcache(lines))
            elif word == "journal":
                write_journal(path, lines, self.last_boot())
            elif word == "env":
                path.write_bytes(b"".join(line.encode() + b"\0" for line in lines))
            elif word == "no-newline":
                path.write_bytes(text.encode(errors="surrogateescape"))
            elif word == "from":
                path.write_bytes((HERE / rest).read_bytes())
            elif word:
                sys.exit(f"{name}: what is '{word}'?")
            else:
                path.write_bytes(data)
        for path, mode in reversed(modes):
            path.chmod(mode)
        return modes


def open_parents(path):
    """Lets another user through to the root: temporary folders are for their owner alone.

    Those that the caller had before the tests stay as they are.
    """
    temporary, home = Path(tempfile.gettempdir()), Path(os.environ.get("HOME", "/"))
    is_of_tests = temporary == home / "tmp" and os.environ.get("XDG_RUNTIME_DIR") == f"{home}/run"
    callers = home.parent if is_of_tests else temporary
    for parent in path.parents:
        if parent == callers:
            break
        mode = parent.stat().st_mode
        if not mode & 0o001 and parent.stat().st_uid == os.getuid():
            parent.chmod(mode & 0o7777 | 0o011)


class Examiner:
    """gpulse doctor for one machine after the other: see tests/examine."""

    def __init__(self):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        EXAMINERS.append(self.process)

    def examine(self, machine, root):
        output, env = f"{root}.out", []
        if machine.simulated:
            os.makedirs(f"{root}.state", mode=0o700, exist_ok=True)
            env = [f"GPULSE_SIM={machine.simulated}", "GPULSE_SIM_STILL=1", "GPULSE_SIM_TIMEOUT=5m",
                   f"GPULSE_SIM_STATE={root}.state"]
        user = NOBODY if machine.user and os.getuid() == 0 else 0
        self.process.stdin.write("\t".join([output, str(user), *env, "--", "--root", root, *machine.args]) + "\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline()
        return timeless(Path(output).read_text(encoding="utf-8", errors="replace")) + f"exit {status}"


def timeless(text):
    """Without the date of the tables, what is said of it once they are old, and where the copy is."""
    text = re.sub(r" --root DIR(?= explain)| --sim NAME(?= explain)", "", text)
    text = re.sub(r"\nThese commands are for the (?:simulated machine|machine whose\s+files\s+are\s+in\s+\S+),\s+not"
                  r"\s+for\s+this\s+one\.\n", "", text)
    date = (HERE.parent.parent / "data" / "tables" / "DATE").read_text(encoding="ascii").strip()
    text = re.sub(rf"^tables of {date}, built in: \d+ days old.*\n", "", text, flags=re.M)
    return text.replace(f"tables of {date}", "tables of DATE")


def said_of(path):
    """What is said of a machine; None: only root can build it."""
    machine = Machine(path)
    if machine.needs_root and os.getuid() != 0:
        return None
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/root"
        os.mkdir(root)
        open_parents(Path(root))
        modes = machine.build(root)
        if not hasattr(of_thread, "examiner"):
            of_thread.examiner = Examiner()
        said = of_thread.examiner.examine(machine, root)
        if modes:
            subprocess.run(["chmod", "-R", "u+rwX", root], check=False)
    return said


def first_cause(text):
    """The id of the check to begin with ("none"), and the commands of its finding."""
    found = re.search(r"^Fix this first: .* \((\S+)\)$", text, re.M)
    if not found:
        return "none", []
    finding = re.search(rf"^(?:fail|warn)  {re.escape(found[1])}: .*\n((?: .*\n)*)", text, re.M)
    fixes = re.search(r"^ {6}fix +(.*\n(?: {16}.*\n)*)", finding[1], re.M)
    lines = fixes[1].splitlines() if fixes else []
    return found[1], [line.strip().split("   #")[0] for line in lines]


def misjudged(machine, text):
    """What differs from the expectation that stands with the machine; "": nothing."""
    cause, commands = first_cause(text)
    if machine.cause in ("", cause) and [c for c in commands if c in machine.cures] == machine.cures:
        return ""
    return f"expected {machine.cause}: {machine.cures}, not {cause}: {commands}"


def foreign_words(text):
    """Commands of other distributions than the one in the first line."""
    first = text.split("\n", 1)[0]
    own = set()
    for name, words in MANAGERS.items():
        if name in first:
            own = set(words.split())
    for family, others in DERIVED.items():
        if re.search(others, first):
            own = set(MANAGERS[family].split())
    if re.search(r"Red Hat|Rocky|AlmaLinux|CentOS|Oracle", first):
        own = set(MANAGERS["RHEL"].split())
    if re.search(r"(CentOS|Red Hat).* 7\b", first):
        own = set("yum dracut rpm".split())
    typed = re.findall(r"^ {6}(?:fix|run|) +(.*)", text, re.M)
    return sorted({word for line in typed for word in re.findall(r"(?<![/\w.-])[\w-]+", line.split("   #")[0])
                   if word in ALL_MANAGERS - own})


def main():
    """GPULSE_TEST=TEXT: only the machines whose names contain it."""
    paths = in_slice([path for path in sorted(HERE.glob("*.root")) if os.environ.get("GPULSE_TEST", "") in path.stem])
    print(f"1..{2 * len(paths)}")
    number, bad = 0, 0
    pool = concurrent.futures.ThreadPoolExecutor(1 if "GPULSE_SLICE" in os.environ else os.cpu_count())
    for path, said in zip(paths, pool.map(said_of, paths)):
        golden = path.with_suffix(".txt")
        if said is None:
            for _ in range(2):
                number += 1
                print(f"ok {number} - {path.stem} # SKIP it needs root")
            continue
        if WRITE:
            golden.write_text(said, encoding="utf-8")
        expected = golden.read_text(encoding="utf-8") if golden.exists() else ""
        foreign = foreign_words(said)
        wrong = misjudged(Machine(path), said)
        for is_well, words in ((said == expected and not wrong, "is told what is wrong"),
                               (not foreign, "is told no command of another distribution")):
            number += 1
            bad += not is_well
            print(f"{'ok' if is_well else 'not ok'} {number} - {path.stem} {words}")
        if said != expected:
            print("\n".join(f"# {line}" for line in said.splitlines()))
        if wrong:
            print(f"# {wrong}")
        if foreign:
            print(f"# {' '.join(foreign)}")
    for process in EXAMINERS:  # so that their CPU time is known
        process.communicate()
    sys.exit(bad > 0)


main()
