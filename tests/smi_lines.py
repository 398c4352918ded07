"""For tests/check_smi_recorded.py and tests/gpu/check.py: what a real nvidia-smi answers to a command line against what
gpulse answers."""
import re

# Command lines (whole, as patterns) with another answer, and why.
KNOWN = {
    r"(-L|-B|--version|-h)( .*|=1)|.+ (-L|-h)": "gpulse accepts other options with these, or calls them unknown",
    r"topo -m -mp|nvlink -(s -c|l 0|i 0)|topo -i 0|topo -m -i 0|topo -p -i 0,1": "topo and nvlink: which options go together",
    r"topo -nvme|nvlink -(ec|info|cBridge|gLowPwrInfo|gBwMode)": "not supported yet",
    r"nvlink -(sc|gc|g|g 0)": "counters of older drivers",
    r"nvlink -(s|c|e|p|R|gt [drz]|s -l 99)": "NVLink is switched off in the kernel module: nvidia-smi prints nothing at all",
    r"(gpm|compute-policy|boost-slider|power-hint|pci|base-clocks|power-smoothing|power-profiles|drain|daemon|replay)( .*)?":
        "not supported yet",
    r"-col": "not supported yet",
    r"-i 0,99": "each GPU of -i must exist",
    r"--query-\S+= --format=csv|--query-gpu=name --format=": "an empty value",
    r"--query-gpu=name (-q|--format=csv (-x|-d MEMORY))|--format=csv -q|--loop-ms=100 -c 1|-q=1|--query=1|-i=0":
        "another error for the same mistake",
    r"-q -d RESET_STATUS(,MEMORY)?": "drivers up to 575 have it; the driver is not known yet when the sections are read",
    r"-q -d PERFORMANCE": "Sparse Operation Mode comes from a private call",
    r"-u( -q -i 0)?|-x -q -u|--dtd -q|-q -x -d MEMORY": "units, and sections as XML",
    r"--dtd": "gpulse prints the document type",
    r"dmon -c 1 -f /nonexistent/x": "gpulse says which file",
    r"dmon (.*--gpm-metrics 1|--gpm-metrics 1,8.*|.*--gpm-metrics 1,2,8)": "gpulse has values from the first line on, nvidia-smi from the third",
    r"--help-query-gpu extra": "an argument too many",
    r"--get-hostname": "the captured text is from another driver",
}


def shape(line):
    """A line without its numbers and day, and without the width of its columns, which follows from them."""
    line = re.sub(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b", "DAY", line)
    return re.sub(r"[ -]{2,}", " ", re.sub(r"\d[\d.:]*", "0", line)).strip()


def reason_of(words):
    return next((why for pattern, why in KNOWN.items() if re.fullmatch(pattern, words)), None)


def is_help(text):
    return "Usage: nvidia-smi" in text or "NVIDIA System Management Interface" in text or "List of valid properties" in text


def helps(text, message):
    """Whether a text of gpulse is this message and its help."""
    lines = text.splitlines()
    shown = any(re.match(r"nvidia-smi .*\[options\]|nvidia-smi \[OPTION1", line) for line in lines)
    return shown and (not message or lines[0] == message)
