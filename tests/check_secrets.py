#!/usr/bin/env python3
"""What a bundle of gpulse doctor must not contain: secrets of all kinds are planted in everything that it
reads, in several spellings, and searched in what it writes, in these and other spellings.

variants: release
"""
import base64
import os
import random
import re
import resource
import shutil
import string
import subprocess
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import quote

from tap import BUILD, Skip, main, run, test

GPULSE = os.environ.get("GPULSE", f"{BUILD}/gpulse")
SOURCE = Path(__file__).resolve().parent.parent
USERS = ["alicia", "roberto", "mxyzptlk"]
HOSTS = ["dgx-vesuvio", "zeus7"]

# ---- the kinds: each makes another one at every call ----

dice = random.Random(7)
LETTERS, DIGITS, HEX = string.ascii_letters, string.digits, "0123456789abcdef"
SYLLABLES = ["zor", "quv", "mab", "tik", "lun", "fex", "gri", "wop", "dax", "hym", "pel", "vok"]


def chars(alphabet, count):
    return "".join(dice.choice(alphabet) for _ in range(count))


def name(parts=3):
    return "".join(dice.choice(SYLLABLES) for _ in range(parts))


def token():
    begin, length = dice.choice([("ghp_", 36), ("gho_", 36), ("github_pat_", 40), ("glpat-", 20), ("hf_", 34), ("sk-proj-", 40),
                                 ("xoxb-", 40), ("AKIA", 16), ("nvapi-", 40), ("AIzaSy", 33), ("npm_", 36), ("pypi-", 40),
                                 ("dckr_pat_", 27), ("ya29.", 60), ("SG.", 60), ("hvs.", 90), ("dop_v1_", 64), ("wandb_", 40),
                                 ("sk_live_", 24), ("", 40), ("eyJhbGciOi", 80)])
    return begin + chars(LETTERS + DIGITS, length)


def password():
    return dice.choice([lambda: name(4), lambda: name(2) + chars(DIGITS, 4), lambda: f"{name(2)}-{name(2)}_{chars(DIGITS, 2)}",
                        lambda: chars(LETTERS + DIGITS, 9), lambda: f"{name(2)}.{name(2)}"])()


KINDS = {
    "token": token,
    "password": password,
    "key": lambda: chars(LETTERS + DIGITS + "/+", 64),
    "hex": lambda: chars(HEX, 40),
    "base64": lambda: base64.b64encode(dice.randbytes(33)).decode(),
    "person": lambda: f"{name(2)}.{name(3)}",
    "host": lambda: f"{name(2)}{dice.randrange(99)}.{name(2)}.{dice.choice(['internal', 'example.net', 'corp'])}",
    "mail": lambda: f"{name(2)}+{name(1)}@{name(3)}.example",
    "ipv4": lambda: f"{dice.choice([10, 172, 192, 203])}.{dice.randrange(20, 250)}.{dice.randrange(20, 250)}.{dice.randrange(20, 250)}",
    "ipv6": lambda: f"2001:db8:{chars(HEX, 4)}:{chars(HEX, 4)}::{chars(HEX, 4)}",
    "mac": lambda: ":".join(chars(HEX, 2) for _ in range(6)),
    "serial": lambda: "16" + chars(DIGITS, 11),
    "uuid": lambda: "-".join(chars(HEX, n) for n in (8, 4, 4, 4, 12)),
    "path": lambda: f"/srv/{name(3)}/{name(2)}-v2/{name(3)}",
}


class Plant:
    """A root folder in which each kind of file has secrets of each kind."""

    def __init__(self, root):
        self.root = Path(root)
        self.made = {*USERS, *HOSTS}

    def new(self, kind):
        secret = KINDS[kind]()
        self.made.add(secret)
        return secret

    def each(self, *forms):
        """A secret of each kind in each of these forms."""
        return [form(self.new(kind)) for form in forms for kind in KINDS]

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


# ---- the forms: a line in which a secret stands ----

def halves(secret):
    at = len(secret) // 2
    return secret[:at] + "\n" + secret[at:]


def lines_of(before):
    """Lines that begin so, as those of a log whose lines count."""
    return (lambda s: f"{before}{s}", lambda s: f'{before}"{s}"', lambda s: f"{before}'{s}' and more",
            lambda s: f"{before}https://x.example/{quote(s, safe='')}?q=1", lambda s: f"{before}name={s},",
            lambda s: f"{before}{base64.b64encode(s.encode()).decode()}", lambda s: f"{before}{s.encode().hex()}",
            lambda s: f"{before}({s})", lambda s: f"{before}user {s} on {s}")


SETTING_FORMS = (*lines_of(""), lambda s: f"key = {s}", lambda s: f"# {s}", lambda s: f"password={s}", halves,
                 lambda s: f"{s} = 1", lambda s: f"[{s}]", lambda s: f"options nvidia NVreg_{s}=1",
                 lambda s: f"options nvidia NVreg_RegistryDwords=\"{s}\"")
VARIABLES = ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "PATH",
             "LD_LIBRARY_PATH", "PYTHONPATH", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "TORCH_HOME",
             "PYTORCH_CUDA_ALLOC_CONF", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX", "container", "CUDA_MPS_PIPE_DIRECTORY",
             "CUDA_CACHE_PATH", "NVIDIA_DRIVER_CAPABILITIES", "TF_GPU_ALLOCATOR", "JAX_PLATFORMS"]
STRANGERS = ["AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "NCCL_COMM_ID", "CUDA_API_KEY", "NVIDIA_NGC_KEY", "TF_VAR_password",
             "CUDA_HOME_SECRET", "PATH2", "GPULSE_X", "XLA_FLAGS", "WANDB_API_KEY", "http_proxy", "PS1", "CUDA"]
SETTINGS = ["/etc/modprobe.d/nvidia.conf", "/etc/ld.so.conf", "/etc/ld.so.conf.d/cuda.conf",
            "/etc/nvidia-container-runtime/config.toml", "/usr/share/nvidia/nvswitch/fabricmanager.cfg"]
WHOLE = ["/etc/nv_tegra_release", "/proc/modules", "/proc/driver/nvidia/params", "/proc/driver/nvidia/registry",
         "/proc/driver/nvidia/gpus/0000:53:00.0/information"]
# What no member copies, but checks look at and may quote.
LOOKED_AT = ["/etc/profile", "/etc/profile.d/x.sh", "/etc/bash.bashrc", "/etc/environment", "/etc/docker/daemon.json",
             "/etc/apt/sources.list", "/etc/apt/sources.list.d/nvidia.list", "/etc/group", "/etc/cdi/nvidia.yaml",
             "/var/log/apt/history.log", "/run/systemd/container", "/proc/self/mounts", "/proc/cpuinfo", "/proc/self/limits",
             f"/home/{USERS[0]}/.bashrc", f"/home/{USERS[0]}/.profile", f"/home/{USERS[0]}/.conda/environments.txt",
             "/opt/venv/pyvenv.cfg", "/usr/local/cuda/version.json", "/opt/rocm/.info/version", "/proc/self/status",
             "/var/lib/dkms/nvidia/580.105.08/build/make.log", "/usr/lib/modprobe.d/nvidia-kernel-common.conf",
             "/etc/udev/rules.d/90-gpu.rules", "/proc/device-tree/model", "/proc/1/comm"]


def plant(root):
    p = Plant(root)
    p.write("/etc/passwd", "".join(f"{user}:x:{1000 + n}:{1000 + n}::/home/{user}:/bin/bash\n" for n, user in enumerate(USERS)))
    p.write("/proc/sys/kernel/hostname", HOSTS[0] + "\n")
    p.write("/etc/hostname", HOSTS[1] + "\n")
    p.write("/etc/os-release", 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n' + "\n".join(p.each(
        lambda s: f'HOME_URL="https://{s}/"', lambda s: f"X={s}", lambda s: f"{s}=1")) + "\n")
    p.write("/proc/version", f"Linux version 6.8.0-45-generic ({p.new('mail')} {p.new('host')}) (gcc {p.new('path')}) "
            f"#45-{p.new('token')} SMP {p.new('person')}\n")
    p.write("/proc/cmdline", " ".join(["BOOT_IMAGE=/vmlinuz ro quiet nvidia-drm.modeset=1", *p.each(
        lambda s: f"x={s}", lambda s: f"iommu={s}", lambda s: s, lambda s: f"nvidia.NVreg_Secret={s}",
        lambda s: f"nvidia.NVreg_{s}=1", lambda s: f"pci=realloc,{s}", lambda s: f'quiet="{s}"')]) + "\n")
    variables = {f"{n}_{number}": s for n in STRANGERS for number, s in enumerate(p.each(str))}
    variables |= {"USER": USERS[0], "HOME": f"/home/{USERS[0]}", "HOSTNAME": HOSTS[0], "PWD": p.new("path"), "CUDA_HOME": f"/home/{USERS[1]}/{p.new('person')}/cuda-12.4",
                  "LD_LIBRARY_PATH": f"/usr/local/cuda/lib64:/opt/{p.new('person')}/lib:/home/{USERS[2]}/lib"}
    texts = [f"{key}={value}" for key, value in variables.items()]
    texts += [f"{key}={form(p.new(kind))}" for key in VARIABLES for kind in KINDS
              for form in (str, lambda s: f"/usr/bin:{s}:/opt/{s}/lib", lambda s: f"0,{s}")]
    texts += ["NCCL_SOCKET_IFNAME=eth0", "CUDA_VISIBLE_DEVICES=0,1"]
    p.write("/proc/self/environ", "\0".join(texts) + "\0")
    for path in SETTINGS:
        p.write(path, "options nvidia NVreg_PreserveVideoMemoryAllocations=1\n" + "\n".join(p.each(*SETTING_FORMS)) + "\n")
    for path in WHOLE:
        p.write(path, "\n".join(p.each(*SETTING_FORMS)) + "\n")
    for path in LOOKED_AT:
        p.write(path, "\n".join(p.each(*SETTING_FORMS, lambda s: f"export LD_LIBRARY_PATH=/usr/lib API_KEY={s}",
                                       lambda s: f"CUDA_VISIBLE_DEVICES={s}")) + "\n")
    for kind in KINDS:  # names of files are names
        p.write(f"/etc/modprobe.d/nvidia-{p.new(kind).replace('/', '_')}.conf", "options nvidia NVreg_EnableMSI=1\n")
        p.write(f"/etc/ld.so.conf.d/{p.new(kind).replace('/', '_')}-cuda.conf", "/usr/local/cuda/lib64\n")
    p.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Fri\n"
            + "".join(f"{s}\n" for s in p.each(lambda s: f"GCC version: gcc {s}")))
    p.write("/var/log/fabricmanager.log", f"[INFO] hello from {p.new('host')}\n" + "\n".join(p.each(
        *lines_of("[ERROR] failed for "), lambda s: f"[INFO] {s}", lambda s: f"[ERROR] on node {s}: failed",
        lambda s: f"error {halves(s)}", lambda s: f"{s} error")) + "\n")
    p.write("/var/log/nvidia-installer.log", "nvidia-installer version 580.105.08\n" + "\n".join(p.each(
        *lines_of("ERROR: cannot reach "), lambda s: f"command line, version: '--token {s}'", lambda s: f"{s}: version 1")) + "\n")
    begin = f"Nov 23 02:00:02 {HOSTS[0]} kernel: [   12.000000] NVRM: "
    p.write("/var/log/kern.log", "\n".join([f"{begin}GPU at PCI:0000:53:00: GPU-{p.new('uuid')}", f"{begin}GPU Board Serial Number: {p.new('serial')}",
            *p.each(*lines_of(f"{begin}Xid (PCI:0000:53:00): 31, pid=1, "), lambda s: f"{begin}Xid (PCI:0000:53:00): 13, pid=7, name={s}, Graphics",
                    lambda s: begin.replace("NVRM: ", f"Out of memory: Killed process 9 ({s}) total-vm:1kB"),
                    lambda s: f"{begin}Xid (PCI:0000:53:00): 31, {halves(s)}")]) + "\n")
    packages = [*p.each(lambda s: f"cuda-{s}", lambda s: f"nvidia-{s}"), "nvidia-driver-580", "libnccl2"]
    p.write("/var/lib/dpkg/status", "\n".join(f"Package: {n}\nStatus: install ok installed\nVersion: 580.105.08-0ubuntu1{v}\n"
                                              for n in packages for v in ("", "+" + p.new("person"))))
    site = "/opt/venv/lib/python3.11/site-packages"
    for n in ("torch-2.4.0", "jax-0.4.30", "tensorflow-2.16.1"):
        p.write(f"{site}/{n}.dist-info/METADATA", f"Name: {n.split('-')[0]}\nVersion: {n.split('-')[1]}+{p.new('person')}\n")
    p.write(f"{site}/torch/version.py", f"__version__ = '2.4.0+{p.new('person')}'\ncuda = '{p.new('password')}'\n")
    return p


# ---- the search ----

def spellings(secret):
    """As it stands, and as it may be written elsewhere."""
    raw = secret.encode()
    return {secret, quote(secret, safe=""), raw.hex(), base64.b64encode(raw).decode().rstrip("="),
            base64.urlsafe_b64encode(raw).decode().rstrip("="), secret.replace("/", "_")}


def bundle(root, folder):
    path = Path(folder) / "report.tar.gz"
    result = run(GPULSE, "--sim", "h100x2", "--root", str(root), "doctor", "--bundle", str(path), cwd=folder)
    assert result.returncode <= 2 and path.exists(), result.stderr
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member).read().decode(errors="replace") for member in archive}
    return files, result.stderr


def found_in(texts, words):
    """Also across line ends."""
    flat = {title: re.sub(r"\s+", "", title + "\n" + text).lower() for title, text in texts.items()}
    return {(word, title) for word in words for spelling in spellings(word) for title, text in flat.items()
            if spelling.lower() in text}


@test
def nothing_that_was_planted_is_in_it():
    with tempfile.TemporaryDirectory() as folder:
        p = plant(Path(folder) / "root")
        assert len(p.made) >= 10000, len(p.made)
        files, messages = bundle(p.root, folder)
        found = found_in({**files, "standard error": messages}, p.made)
        assert not found, (len(found), sorted(found)[:40])


@test
def what_helps_is_in_it():
    with tempfile.TemporaryDirectory() as folder:
        p = plant(Path(folder) / "root")
        files = {title.removeprefix("gpulse-doctor/"): text for title, text in bundle(p.root, folder)[0].items()}
        environment = files["environment.txt"].splitlines()
        for line in ("NCCL_SOCKET_IFNAME=eth0", "CUDA_VISIBLE_DEVICES=0,1", "CUDA_HOME=/home/USER/DIR/cuda-12.4",
                     "LD_LIBRARY_PATH=/usr/local/cuda/lib64:/opt/DIR/lib:/home/USER/lib", "NCCL_DEBUG=(left out)"):
            assert line in environment, (line, len(environment))
        assert files["files/proc/version"] == "Linux version 6.8.0-45-generic SMP\n", files["files/proc/version"]
        cmdline = files["files/proc/cmdline"]
        assert "quiet" in cmdline and "nvidia-drm.modeset=1" in cmdline and "iommu=(left out)" in cmdline, cmdline
        assert "Xid (PCI:0000:53:00): 31" in files["kernel-log.txt"]
        assert "nvidia-driver-580 580.105.08-0ubuntu1 installed" in files["packages.txt"], files["packages.txt"]
        assert "580.105.08" in files["files/var/log/nvidia-installer.log"]
        assert "NVreg_PreserveVideoMemoryAllocations=1" in files["files/etc/modprobe.d/nvidia.conf"]
        assert "[ERROR] on node HOST failed" in files["files/var/log/fabricmanager.log"], \
            files["files/var/log/fabricmanager.log"]


@test
def long_lines_cost_no_more_than_many_short_ones():
    """Seconds of CPU time, not of the clock; before there was a limit it was minutes."""
    enough = (60, 60)
    for piece in ("a-", "a.", "1.", "a@", "0:", "/home/", "x =", "serial "):
        with tempfile.TemporaryDirectory() as folder:
            p = Plant(Path(folder) / "root")
            p.write("/etc/modprobe.d/nvidia.conf", piece * (250000 // len(piece)) + "\n")
            path = Path(folder) / "x.tar.gz"
            result = run(GPULSE, "--root", str(p.root), "doctor", "--bundle", str(path), cwd=folder,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, enough))
            assert result.returncode in (0, 1, 2) and path.exists(), (piece, result.returncode, result.stderr[-500:])


# ---- the rules ----

# For each rule a text that it alone takes out: what it is made of are numbers and known words.
RULES = {
    "take_home": ("/home/driver/x", "/home/USER/x"),
    "take_login": ("https://driver:1234@pypi.org/x", "https://LOGIN@pypi.org/x"),
    "take_secret": ("password=driver, token: 123456", "password=SECRET, token: SECRET"),
    "take_mail": ("driver@kernel.driver", "MAIL"),
    "take_url_host": ("see http://kernel/", "see http://HOST/"),
    "take_uuid": ("GPU-8badf00d-1234-4321-aaaa-bbbbccccdddd", "GPU-00000000-0000-0000-0000-000000000001"),
    "take_serial": ("Serial Number: 123456", "Serial Number: SERIAL"),
    "take_colons": ("mac 10:20:30:40:50:60", "mac ADDRESS"),
    "take_ipv4": ("from 10.20.30.40 on", "from ADDRESS on"),
    "take_token": ("is hf_abcDEF123456 now", "is TOKEN now"),
    "take_word": ("by signature is", "by USER is"),
    "take_unknown": ("a plugh b", "a … b"),
}
FILTER = r"""
#include "base/strbuf.h"
#include "doctor/bundle/redact.h"
#include "doctor/bundle/words.h"
#include <stdio.h>
static struct gp_redactor redactor;
#include <string.h>
int main(int argc, char **argv)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    redactor.known = gp_words_known;
    gp_redact_user(&redactor, "signature");
    gp_redact_add(&redactor, &sb, argv[argc - 1], strlen(argv[argc - 1]));
    return fputs(sb.buf, stdout) < 0;
}
"""


def filter_without(folder, rule):
    """The redactor as a program, with one rule taken out of its source."""
    source = (SOURCE / "src/doctor/bundle/redact.c").read_text()
    if rule:
        assert source.count(f"size_t {rule}(") == 1, rule
        source = re.sub(rf"(size_t {rule}\([^)]*\)\n{{)", r"\1\n    if (c->length > 0)\n        return 0;", source)
    (folder / "redact.c").write_text(source)
    (folder / "filter.c").write_text(FILTER)
    subprocess.run([shutil.which("cc") or "gcc", "-D_GNU_SOURCE", "-I", str(SOURCE / "src"), "-o", str(folder / "filter"), "filter.c", "redact.c",
                    "words_data.c", str(SOURCE / "src/doctor/bundle/words.c"), str(SOURCE / "src/base/strbuf.c"),
                    str(SOURCE / "src/base/utf8.c")], cwd=folder, check=True)
    return folder / "filter"


def redacted(program, text):
    return subprocess.run([program, text], check=True, stdout=subprocess.PIPE, text=True).stdout


@test
def each_rule_is_needed():
    if not (shutil.which("cc") or shutil.which("gcc")):
        raise Skip("no C compiler")
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        subprocess.run([SOURCE / "scripts/words.py", str(SOURCE), str(folder / "words_data.c"), str(folder / "d")], check=True)
        program = filter_without(folder, None)
        for text, expected in RULES.values():
            assert redacted(program, text) == expected, (text, redacted(program, text))
        for rule, (text, expected) in RULES.items():
            assert redacted(filter_without(folder, rule), text) != expected, f"{rule} is not needed for: {text}"


if __name__ == "__main__":
    main()
