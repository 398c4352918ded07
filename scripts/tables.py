#!/usr/bin/env python3
"""Generates C code from the tables in data/tables: tables.py FOLDER OUT.c OUT.d

A table is a CSV file. TABLES defines its columns; an invalid row fails the build with its file and
line. The structs are in src/doctor/tables.h; their members have the names of the columns.
"""
import csv
import re
import sys
from pathlib import Path


class Bad(Exception):
    pass


# ---- kinds of columns

def quoted(cell):
    if any(ord(c) < 32 for c in cell):
        raise Bad("a control character")
    body = cell.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
    return f'"{body}"'


class Kind:
    """How a cell is checked and stored. The loader of tables at run time does the same, from the
    members of enum gp_table_store, a POSIX expression for the whole cell, and words for what it matches.
    """

    def __init__(self, store, pattern, words, convert, absent=None):
        self.store, self.pattern, self.words = store, pattern, words
        self.convert, self.absent = convert, absent

    def __call__(self, cell):
        if not cell and self.absent is not None:
            return self.absent
        if self.pattern and not re.fullmatch(self.pattern, cell):
            raise Bad(self.words)
        if not cell:
            raise Bad("nothing where a text is needed")
        return self.convert(cell)


def optional(kind):
    absent = '""' if kind.store == "TEXT" else "0"
    return Kind(kind.store, kind.pattern, kind.words, kind.convert, absent)


def word_of(pattern, words):
    return Kind("TEXT", pattern, words, quoted)


def one_of(*words):
    return word_of("|".join(words), f"none of: {' '.join(words)}")


def named(store, values):
    return Kind(store, "|".join(values), f"none of: {' '.join(values)}", values.get)


def tenths(cell):
    """8.6 becomes 86."""
    major, minor = cell.split(".")
    return str(int(major) * 10 + int(minor))


some = Kind("TEXT", None, "", quoted)
text = optional(some)
number = Kind("NUMBER", "0|[1-9][0-9]{0,8}", "no number", str)
real = Kind("REAL", r"[0-9]+([.][0-9]+)?", "no number", str)
hexadecimal = Kind("HEX", "[0-9a-f]{1,8}", "no hexadecimal number", lambda cell: "0x" + cell)
yes = Kind("YES", "yes|no", "neither yes nor no", lambda cell: "true" if cell == "yes" else "false")
version = word_of("[0-9]+([.][0-9]+)*", "no version")
month = word_of("20[0-9]{2}-(0[1-9]|1[0-2])", "no month")
capability = Kind("CAPABILITY", "[0-9]{1,3}[.][0-9]", "no compute capability", tenths)
module_bits = named("MODULES", {"proprietary": "GP_MODULE_PROPRIETARY", "open": "GP_MODULE_OPEN",
                                "both": "GP_MODULE_PROPRIETARY | GP_MODULE_OPEN"})
verdict = named("VERDICT", {word: f"GP_VERDICT_{word.upper()}" for word in ("ok", "info", "warn", "fail")})
# As for nvcc: sm_75 sm_90a compute_120.
architectures = word_of("(sm|compute)_[0-9]+[af]?( (sm|compute)_[0-9]+[af]?)*", "no list")
word = word_of("[a-z0-9][a-z0-9._-]*", "no word")
capitals = word_of("[A-Z][A-Z0-9_]*", "no word in capitals")


# ---- the tables: name of the file -> struct, columns, key (unique; rows are sorted by it)
# None: only validated here; scripts/explain.py makes entries of the rows

TABLES = {
    "chips": ("gp_chip", {
        "device": hexadecimal,
        "name": some,
        "architecture": some,
        "compute_capability": capability,
        "last_branch": optional(number),
        "in_open_module": yes,
        "source": some,
    }, "device"),
    "archs": ("gp_arch", {
        "compute_capability": capability,
        "architecture": some,
        "examples": some,
        "first_cuda": version,
        "last_cuda": optional(version),
        "first_branch": optional(number),
        "last_branch": optional(number),
        "modules": module_bits,
        "is_integrated": yes,
        "source": some,
    }, "compute_capability"),
    "toolkits": ("gp_toolkit", {
        "cuda": version,
        "driver": version,
        "source": some,
    }, "cuda"),
    "cuda_majors": ("gp_cuda_major", {
        "major": number,
        "driver": version,
        "source": some,
    }, "major"),
    "drivers": ("gp_driver", {
        "branch": number,
        "cuda": optional(version),
        "kind": text,
        "ends": optional(month),
        "modules": module_bits,
        "source": some,
    }, "branch"),
    "offers": ("gp_offer", {
        "distribution": one_of("Debian", "Ubuntu", "Fedora", "RHEL", "Arch", "openSUSE"),
        "release": optional(number),
        "branch": number,
        "modules": module_bits,
        "package": some,
        "source": some,
    }, "distribution release branch"),
    "torch_builds": ("gp_torch_build", {
        "torch": version,
        "build": some,
        "cuda": version,
        "status": one_of("stable", "experimental", "extra", "legacy"),
        "is_default": yes,
        "cudnn": optional(version),
        "first_python": version,
        "last_python": version,
        "archs": architectures,
        "source": some,
    }, "torch cuda"),
    "torch_rocms": ("gp_torch_rocm", {
        "torch": version,
        "rocm": version,
        "source": some,
    }, "torch"),
    "torch_stacks": ("gp_torch_stack", {
        "package": word,
        "version": some,
        "torch": version,
        "last_python": optional(version),
        "source": some,
    }, "package torch"),
    "tensorflow_builds": ("gp_tensorflow_build", {
        "tensorflow": version,
        "package": some,
        "cuda": version,
        "cudnn": version,
        "first_python": version,
        "last_python": version,
        "archs": optional(architectures),
        "source": some,
    }, "tensorflow"),
    "jax_builds": ("gp_jax_build", {
        "jax": version,
        "extra": some,
        "cuda": version,
        "first_python": version,
        "archs": architectures,
        "source": some,
    }, "jax cuda"),
    "cudnns": ("gp_cudnn", {
        "cudnn": version,
        "cuda_major": number,
        "first_capability": capability,
        "last_capability": capability,
        "library": some,
        "source": some,
    }, "cuda_major cudnn"),
    "cards": ("gp_card", {
        "model": some,
        "compute_capability": capability,
        "memory_gb": number,
        "memory_type": some,
        "bandwidth_gbs": number,
        "fp32": real,
        "tf32": optional(real),
        "fp16": optional(real),
        "fp16_fp32": optional(real),
        "bf16": optional(real),
        "fp8": optional(real),
        "int8": optional(real),
        "fp4": optional(real),
        "tdp_w": number,
        "cores": optional(number),
        "boost_mhz": optional(number),
        "tensor_mhz": optional(number),
        "pcie_gen": optional(number),
        "pcie_lanes": optional(number),
        "nvlink_gbs": optional(real),
        "names": text,
        "note": text,
        "source": some,
    }, "compute_capability model"),
    "xids": ("gp_xid_row", {
        "code": number,
        "mnemonic": some,
        "words": text,
        "fault": optional(one_of("application", "driver", "hardware", "unclear")),
        "advice": text,
        "note": text,
        "verdict": verdict,
        "action": optional(capitals),
        "is_application": yes,
        "source": some,
    }, "code"),
    "nvlink_errors": ("gp_nvlink_error", {
        "xid": number,
        "units": some,
        "reason": number,
        "status": hexadecimal,
        "fatal": one_of("no", "link", "fatal"),
        "action": some,
        "look": text,
        "fault": text,
        "effect": text,
        "source": some,
    }, "xid units reason status"),
    "sxids": ("gp_sxid_row", {
        "code": number,
        "name": some,
        "words": some,
        "fatal": one_of("never", "maybe", "always"),
        "advice": some,
        "source": some,
    }, "code"),
    "throttle_reasons": ("gp_throttle_reason", {
        "mask": hexadecimal,
        "word": word,
        "name": some,
        "words": some,
        "verdict": verdict,
        "advice": text,
        "source": some,
    }, "mask"),
    "recovery_actions": ("gp_recovery_action", {
        "number": number,
        "word": word,
        "words": some,
        "advice": text,
        "source": some,
    }, "number"),
    "memory_states": ("gp_memory_state", {
        "word": word,
        "words": some,
        "verdict": verdict,
        "advice": text,
        "source": some,
    }, "word"),
    "cuda_errors": (None, {
        "number": number,
        "name": text,
        "driver_name": optional(capitals),
        "text": text,
        "words": some,
        "advice": text,
        "source": some,
    }, "number"),
    "nvml_errors": (None, {
        "number": number,
        "name": capitals,
        "text": some,
        "words": some,
        "advice": text,
        "source": some,
    }, "number"),
}


# ---- references between tables

def numbers(cell):
    return [int(n) for n in cell.split(".")]


def check_build(row, archs, toolkits):
    """The compiler in a build's CUDA version must support the architectures of the build."""
    cuda = numbers(row["cuda"])
    if cuda not in toolkits:
        raise Bad(f"no toolkit has CUDA {row['cuda']}")
    for item in re.findall(r"[0-9]+", row["archs"]):
        arch = archs.get(f"{item[:-1]}.{item[-1]}")
        if not arch:
            raise Bad(f"unknown architecture {item}")
        if len(cuda) > 1 and cuda < numbers(arch["first_cuda"]):
            raise Bad(f"CUDA {row['cuda']} is too old for {item}")
        if arch["last_cuda"] and cuda[:2] > numbers(arch["last_cuda"]):
            raise Bad(f"CUDA {row['cuda']} no longer supports {item}")


def check_all(folder, tables):
    archs = {row["compute_capability"]: row for _, row, _ in tables["archs"]}
    versions = [numbers(row["cuda"]) for _, row, _ in tables["toolkits"]]
    toolkits = [v[:n] for v in versions for n in (1, 2, 3)]
    for name, rows in tables.items():
        for line, row, _ in rows:
            try:
                if row.get("compute_capability", "7.5") not in archs:
                    raise Bad(f"unknown architecture {row['compute_capability']}")
                if name.endswith("_builds"):
                    check_build(row, archs, toolkits)
            except Bad as bad:
                raise Bad(f"{folder / name}.csv:{line}: {bad}") from None


def sort_key(value):
    if re.fullmatch(r'"[0-9]+([.][0-9]+)*"', value):
        return (1, numbers(value.strip('"')))
    return (0, int(value, 0)) if re.fullmatch(r"0x[0-9a-f]+|[0-9]+", value) else (2, value[:-1])


def read(path, columns, key):
    """Rows of line, cells and initialisers."""
    rows, keys = [], {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        header = next(reader, [])
        if header != list(columns):
            raise Bad(f"{path}:1: the columns are {header}, not {list(columns)}")
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if len(cells) != len(columns):
                raise Bad(f"{where}: {len(cells)} cells, not {len(columns)}")
            row = {}
            for (name, kind), cell in zip(columns.items(), cells):
                try:
                    row[name] = kind(cell)
                except Bad as bad:
                    raise Bad(f"{where}: {name} is '{cell}': {bad}") from None
            names = key.split()
            value = tuple(row[name] for name in names)
            if value in keys:
                raise Bad(f"{where}: {key} is that of line {keys[value]}")
            keys[value] = reader.line_num
            rows.append((reader.line_num, dict(zip(columns, cells)), row))
    rows.sort(key=lambda row: [sort_key(row[2][name]) for name in key.split()])
    return rows


def write(out, struct, rows):
    out.append(f"static const struct {struct} built_in_{struct}s[] = {{\n")
    for _, _, row in rows:
        cells = ", ".join(f".{column} = {value}" for column, value in row.items())
        out.append(f"    {{{cells}}},\n")
    out.append("};\n")
    out.append(f"const struct {struct} *{struct}s = built_in_{struct}s;\n")
    out.append(f"size_t {struct}_count = {len(rows)};\n\n")


def write_columns(out, name):
    struct, columns, key = TABLES[name]
    out.append(f"static const struct gp_table_column columns_of_{name}[] = {{\n")
    for column, kind in columns.items():
        pattern = f'"^({kind.pattern})$"' if kind.pattern else "NULL"
        is_optional = "false" if kind.absent is None else "true"
        out.append(f'    {{"{column}", GP_STORE_{kind.store}, {pattern}, "{kind.words}", {is_optional}, '
                   f"offsetof(struct {struct}, {column}), {key.split().index(column) + 1 if column in key.split() else 0}}},\n")
    out.append("};\n\n")


def write_tables(out):
    out.append("const struct gp_table gp_tables[] = {\n")
    count = 0
    for name, (struct, columns, _) in TABLES.items():
        if struct:
            out.append(f'    {{"{name}", columns_of_{name}, {len(columns)}, sizeof(struct {struct}), '
                       f"(void *)&{struct}s, &{struct}_count}},\n")
            count += 1
    out.append("};\n")
    out.append(f"const size_t gp_table_count = {count};\n")


def read_date(path):
    date = path.read_text(encoding="ascii").strip()
    if not re.fullmatch("20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", date):
        raise Bad(f"{path}:1: '{date}' is no date")
    return date


def main():
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    out = ["/* Made by scripts/tables.py of the files in data/tables. */\n",
           '#include "doctor/tables.h"\n', '#include "doctor/tables_load.h"\n\n', "#include <stddef.h>\n\n"]
    unknown = {path.stem for path in folder.glob("*.csv")} - set(TABLES)
    try:
        if unknown:
            raise Bad(f"{folder}: no table is called {' '.join(sorted(unknown))}")
        tables = {name: read(folder / f"{name}.csv", columns, key)
                  for name, (_, columns, key) in TABLES.items()}
        check_all(folder, tables)
        for name, rows in tables.items():
            if TABLES[name][0]:
                write(out, TABLES[name][0], rows)
                write_columns(out, name)
        write_tables(out)
        out.append(f'const char gp_tables_built_in_date[] = "{read_date(folder / "DATE")}";\n')
    except (Bad, OSError, csv.Error, UnicodeError) as bad:
        sys.exit(f"tables.py: {bad}")
    target.write_text("".join(out), encoding="utf-8")
    needed = " ".join(str(folder / f"{name}.csv").replace(" ", "\\ ") for name in tables)
    needed += " " + str(folder / "DATE").replace(" ", "\\ ")
    Path(sys.argv[3]).write_text(f"{target}: {needed}\n", encoding="utf-8")


main()
