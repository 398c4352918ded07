#!/usr/bin/env python3
"""What a bundle of gpulse doctor must not have in it: secrets of all kinds are planted in all that it
reads, and searched in what it writes, also in other spellings of theirs.

variants: release
"""
import base64
import io
import json
import os
import re
import tarfile
import tempfile
from pathlib import Path
from urllib.parse import quote

from tap import BUILD, good, main, run, test

GPULSE = os.environ.get("GPULSE", f"{BUILD}/gpulse")

TOKENS = [
    "ghp_9aZ3kQ7pLm2Xc8Vb5Nn1Rt6Yw4Ud0SeFgHjK", "glpat-x7Y2mQ9vT4kL1pZ8sR3w", "hf_QwErTyUiOpAsDfGhJkLzXcVbNm1234567",
    "sk-proj-a8B3c9D4e0F5g1H6i2J7k3L8m4N9", "xoxb-123456789012-AbCdEfGhIjKl", "AKIAZ7Q3MXPLE9WTB4KC",
    "nvapi-Zx9Cv8Bn7Mq6Wl5Ek4Rj3Th2Yg1Uf0", "AIzaSyD3x4mpl3K3yF0rT3st1ngPurp0s3s", "npm_a1B2c3D4e5F6g7H8i9J0k1L2m3N4",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "dckr_pat_M4xQ7vZ2nL9kP1wR8tY3", "pypi-AgEIcHlwaS5vcmcCJDk4NzY1NDMyMQ", "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEYq",
]
PASSWORDS = ["correcthorsebattery", "Tr0ub4dor-3", "hunter2hunter", "s3cr3t-of-zeus", "letmein_2026", "pa55phrase.x"]
USERS = ["alicia", "roberto", "mxyzptlk"]
HOSTS = ["dgx-vesuvio", "zeus7", "pluto.corp.example.net", "licence.hades.internal"]
MAILS = ["alicia@example.org", "root.of.all@evil-corp.io", "build+bot@ci.example.com"]
ADDRESSES = ["10.77.13.5", "192.168.219.44", "203.0.113.97", "172.30.7.8", "fe80::a1b2:c3ff:fed4:e5f6",
             "2001:db8:77::beef", "52:54:00:ab:cd:ef", "0c:42:a1:5e:77:31"]
NUMBERS = ["1655518412345", "GPU-8badf00d-1234-4321-aaaa-bbbbccccdddd", "4d9f0c1a-77e2-4b11-9c33-0f1e2d3c4b5a"]
PATHS = ["project-manhattan", "customer-acme", "Wile E Coyote", "kryptonite-v3"]


def secrets():
    return TOKENS + PASSWORDS + USERS + HOSTS + MAILS + ADDRESSES + NUMBERS + PATHS


class Plant:
    """A root folder in which each kind of file has secrets of each kind."""

    def __init__(self, root):
        self.root = Path(root)
        self.made = set()
        self.number = 0

    def new(self, kind):
        """A secret that nothing else has, made from one of this kind."""
        source = globals()[kind]
        text = source[self.number % len(source)]
        self.number += 1
        self.made.add(text)
        return text

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())


def plant(root):
    p = Plant(root)
    p.made.update(secrets())
    token, word = iter(TOKENS * 9), iter(PASSWORDS * 20)
    p.write("/etc/os-release", 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n')
    p.write("/etc/passwd", "".join(f"{name}:x:{1000 + n}:{1000 + n}::/home/{name}:/bin/bash\n" for n, name in enumerate(USERS)))
    p.write("/proc/sys/kernel/hostname", HOSTS[0] + "\n")
    p.write("/etc/hostname", HOSTS[1] + "\n")
    p.write("/proc/version", f"Linux version 6.8.0-45-generic ({MAILS[2]} {HOSTS[2]}) (gcc 13.2.0) #45-Ubuntu SMP\n")
    p.write("/proc/cmdline", f"BOOT_IMAGE=/vmlinuz root=UUID={NUMBERS[2]} ro quiet nfsroot={ADDRESSES[0]}:/srv/{PATHS[0]} "
            f"rd.luks.key={next(token)} password={next(word)} ip={ADDRESSES[1]} nvidia-drm.modeset=1 "
            f"systemd.hostname={HOSTS[0]} iommu={next(word)} nvidia.NVreg_Secret={next(token)}\n")
    variables = {
        "USER": USERS[0], "HOME": f"/home/{USERS[0]}", "HOSTNAME": HOSTS[0],
        "TF_VAR_db_password": next(word), "TF_VAR_token": next(token), "NVIDIA_NGC_KEY": next(token), "NVIDIA_NGC": next(token),
        "NCCL_COMM_ID": f"{ADDRESSES[2]}:29500", "NCCL_TOPO_FILE": f"/srv/{PATHS[1]}/topo.xml", "NCCL_SOCKET_IFNAME": "eth0",
        "CUDA_HOME": f"/home/{USERS[1]}/{PATHS[1]}/cuda-12.4", "CUDA_CACHE_PATH": f"/scratch/{PATHS[3]}",
        "CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": NUMBERS[1], "CUDA_API_THING": next(token),
        "LD_LIBRARY_PATH": f"/usr/local/cuda/lib64:/opt/{PATHS[3]}/lib:/home/{USERS[2]}/lib",
        "PATH": f"/usr/bin:/mnt/c/Users/{PATHS[2]}/bin:/srv/{next(token)}", "PYTHONPATH": f"/data/{PATHS[0]}",
        "AWS_SECRET_ACCESS_KEY": TOKENS[13], "WANDB_API_KEY": TOKENS[10], "HF_TOKEN": TOKENS[2], "GPULSE_X": next(word),
        "NCCL_DEBUG": next(word), "TORCH_HOME": f"/nfs/{HOSTS[1]}/{USERS[1]}", "HSA_NAME": next(word), "XLA_FLAGS": next(token),
        "PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:True,{next(word)}:1", "CUDA_DEVICE_ORDER": next(word),
    }
    p.write("/proc/self/environ", "".join(f"{k}={v}\0" for k, v in variables.items()))
    p.write(f"/home/{USERS[0]}/.bashrc", f"export API_KEY={TOKENS[0]} LD_LIBRARY_PATH=/opt/cuda/lib64 DB_PASS='{PASSWORDS[0]}'\n"
            f"CUDA_VISIBLE_DEVICES=9; curl -H 'Authorization: Bearer {TOKENS[4]}' https://{USERS[2]}:{PASSWORDS[2]}@{HOSTS[2]}/x\n")
    p.write("/etc/profile.d/x.sh", f'export SECRET="{PASSWORDS[3]}" LD_LIBRARY_PATH="/usr/lib" # {MAILS[0]}\n')
    p.write("/etc/environment", f"LD_LIBRARY_PATH=/usr/lib TOKEN={TOKENS[3]}\n")
    p.write("/etc/modprobe.d/nvidia.conf", f"options nvidia NVreg_Foo=1 # by {USERS[0]} on {HOSTS[3]}, password {PASSWORDS[4]}\n"
            f"# {MAILS[1]} {ADDRESSES[3]}\n")
    p.write("/etc/ld.so.conf", f"include /etc/ld.so.conf.d/*.conf # {TOKENS[5]}\n")
    p.write("/etc/nvidia-container-runtime/config.toml", f'[nvidia-container-cli]\nload-kmods = true # {PASSWORDS[5]}\n'
            f'token = "{TOKENS[6]}"\n')
    p.write("/usr/share/nvidia/nvswitch/fabricmanager.cfg", f"# {HOSTS[2]}\nLOG_LEVEL=4\nBIND_INTERFACE_IP={ADDRESSES[0]}\n")
    p.write("/var/log/fabricmanager.log", f"[INFO] hello from {HOSTS[3]} to {USERS[1]}\n[ERROR] on node {HOSTS[2]}: failed for "
            f"\"{PASSWORDS[1]}\", hostname: {HOSTS[3]}, nv {ADDRESSES[1]}, ib {ADDRESSES[4]}, login {USERS[2]}\n")
    p.write("/var/log/nvidia-installer.log", f"nvidia-installer version 580.105.08, command line '--token {TOKENS[7]}'\n"
            f"ERROR: cannot reach https://{HOSTS[2]}/{TOKENS[8]}, mail {MAILS[1]}, proxy http://x:{PASSWORDS[4]}@{ADDRESSES[2]}:3128\n")
    p.write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Fri\n")
    p.write("/proc/driver/nvidia/gpus/0000:53:00.0/information", f"Model: \t\t NVIDIA H100\nGPU UUID: \t {NUMBERS[1]}\n")
    p.write("/proc/driver/nvidia/registry", f'Binary: ""\nSecret: password={PASSWORDS[2]}\n'
            f"Serial: {NUMBERS[0]}\nMirror: ftp://x:{PASSWORDS[3]}@depot/\n")
    p.write("/proc/modules", "nvidia 1 2 - Live 0x0\n")
    p.write("/var/log/kern.log", f"Nov 23 02:00:00 {HOSTS[0]} kernel: [   10.000000] NVRM: GPU at PCI:0000:53:00: {NUMBERS[1]}\n"
            f"Nov 23 02:00:01 {HOSTS[0]} kernel: [   11.000000] NVRM: GPU Board Serial Number: {NUMBERS[0]}\n"
            f"Nov 23 02:00:02 {HOSTS[0]} kernel: [   12.000000] NVRM: Xid (PCI:0000:53:00): 31, pid=1, name={USERS[1]}, "
            f"mac {ADDRESSES[6]} ip {ADDRESSES[5]} token={TOKENS[9]} from {MAILS[0]}\n")
    return p


def spellings(secret):
    """As it stands, and as it may be written elsewhere."""
    raw = secret.encode()
    return {secret, quote(secret, safe=""), raw.hex(), raw.hex().upper(), base64.b64encode(raw).decode().rstrip("="),
            base64.urlsafe_b64encode(raw).decode().rstrip("=")}


def bundle(root, folder):
    path = Path(folder) / "report.tar.gz"
    result = run(GPULSE, "--sim", "h100x2", "--root", str(root), "doctor", "--bundle", str(path), cwd=folder)
    assert result.returncode <= 2 and path.exists(), result.stderr
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read().decode(errors="replace") for member in archive}


def found_in(files, words):
    """Also where a line end is within."""
    found = set()
    for name, text in files.items():
        flat = re.sub(r"\s+", "", text)
        for word in words:
            for spelling in spellings(word):
                if spelling.lower() in text.lower() or re.sub(r"\s+", "", spelling).lower() in flat.lower() or \
                        spelling in name:
                    found.add((word, name))
    return found


@test
def nothing_that_was_planted_is_in_it():
    assert len(set(secrets())) >= 40
    with tempfile.TemporaryDirectory() as folder:
        p = plant(Path(folder) / "root")
        files = bundle(p.root, folder)
        found = found_in(files, p.made)
        assert not found, sorted(found)


@test
def what_helps_is_in_it():
    with tempfile.TemporaryDirectory() as folder:
        p = plant(Path(folder) / "root")
        files = {name.removeprefix("gpulse-doctor/"): text for name, text in bundle(p.root, folder).items()}
        environment = files["environment.txt"].splitlines()
        for line in ("NCCL_SOCKET_IFNAME=eth0", "CUDA_VISIBLE_DEVICES=0,1", "CUDA_HOME=/home/USER/DIR/cuda-12.4",
                     "LD_LIBRARY_PATH=/usr/local/cuda/lib64:/opt/DIR/lib:/home/USER/lib", "NCCL_DEBUG=(left out)"):
            assert line in environment, environment
        assert files["files/proc/version"] == "Linux version 6.8.0-45-generic SMP\n", files["files/proc/version"]
        cmdline = files["files/proc/cmdline"]
        assert "quiet" in cmdline and "nvidia-drm.modeset=1" in cmdline and "iommu=(left out)" in cmdline, cmdline
        assert "Xid (PCI:0000:53:00): 31" in files["kernel-log.txt"]
        assert "580.105.08" in files["files/var/log/nvidia-installer.log"]
        assert "NVreg_Foo=1" in files["files/etc/modprobe.d/nvidia.conf"]
        assert "[ERROR] on node HOST failed for" in files["files/var/log/fabricmanager.log"], \
            files["files/var/log/fabricmanager.log"]


if __name__ == "__main__":
    main()
