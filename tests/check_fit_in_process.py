#!/usr/bin/env python3
"""gpulse.fit_batch(): the same search as that of gpulse fit-batch, and on simulated jobs.

variants: release
"""
import re
import shutil

from package import SOURCE, STATE, python
from tap import main, test

NUMBER = re.compile(r"^-?[\d.e]+$")


def members(text):
    """The members of a C initializer, as {"name": "value"}."""
    return dict(re.findall(r"\.(\w+) = ([\w.-]+)", text))


def cases_of_the_command():
    """Each row of the table in test_fit.c whose law depends on nothing but the batch size: (name, law, request, what is
    tried, answer, end)."""
    text = (SOURCE / "tests/unit/test_fit.c").read_text()
    laws = {name: members(body) for name, body in re.findall(r"^static const struct law (\w+) = \{(.*?)\};", text, re.M | re.S)}
    ends = dict(re.findall(r'X\((\w+), "([\w-]+)", (?:true|false), GP_', (SOURCE / "src/jobs/fit.h").read_text()))
    table = text[text.index("} cases[] = {"):text.index("static void what_is_tried")]
    rows = re.findall(r'\{\s*"([^"]+)",\s*&(\w+),\s*\{(.*?)\},\s*"([^"]*)",\s*(\d+),\s*GP_FIT_END_(\w+)\s*\}', table, re.S)
    assert len(rows) == table.count("GP_FIT_END_") == len(re.findall(r'\{\s*"', table)), len(rows)
    for name, law, request, tries, batch, end in rows:
        # what hangs or grows is seen from outside only
        if not {"hangs_at", "hangs_long", "leak", "always_tight"} & set(laws[law]):
            yield name, laws[law], members(request), tries, int(batch), ends[end]


@test
def the_search_is_that_of_the_command():
    cases = list(cases_of_the_command())
    assert len(cases) > 25, cases
    python(f"""
from gpulse._fit import Fit, Request
true, false = True, False
CAPACITY, TOTAL = 40000, 41000
for name, law, request, tries, batch, end in {cases!r}:
    law = {{k: float(v) for k, v in law.items()}}
    request = {{k: eval(v) for k, v in request.items()}}
    fit = Fit(Request(CAPACITY * MIB, TOTAL * MIB, **request))
    tried = []
    while fit.end == "searching":
        b, again = fit.next, fit.is_confirming
        mib = law.get("fixed", 0) + law.get("sample", 0) * b + law.get("square", 0) * b * b
        mib += law.get("step", 0) if law.get("step_at") and b >= law["step_at"] else 0
        mib *= law.get("longer", 1) if again else 1
        if mib > CAPACITY:
            fit.take("oom", CAPACITY * MIB)
        else:
            fit.take("ok", int((CAPACITY if mib > 0.985 * CAPACITY else mib) * MIB))
        last = fit.trials[-1]
        mark = "x" if last.verdict == "oom" else "~" if last.verdict == "tight" else "+" if last.peak > fit.goal else ""
        tried.append(f"{{b}}{{'?' if again else ''}}{{mark}}")
    assert (" ".join(tried), fit.answer, fit.end) == (tries, batch, end), (name, tried, fit.answer, fit.end)
""")


@test
def wrong_requests_are_the_same():
    python("""
for wrong, text in (({"min": 0}, "at least 1"), ({"multiple": 0}, "at least 1"), ({"max": 1 << 31}, "at most"),
                    ({"min": 5, "max": 4}, "above the largest"), ({"min": 5, "start": 4}, "below the smallest"),
                    ({"max": 5, "start": 6}, "above the largest"), ({"margin": 1}, "margin"), ({"trials": 0}, "trials"),
                    ({"min": 9, "max": 15, "multiple": 8}, "no multiple")):
    try:
        gpulse.fit_batch(lambda size: 1 / 0, **wrong)
        assert False, wrong
    except ValueError as error:
        assert text in str(error), (wrong, error)
from gpulse._fit import Fit, Request
try:
    Fit(Request(500 * MIB, 1000 * MIB))
    assert False
except ValueError as error:
    assert "margin" in str(error)
""")


TRAIN = """
sizes = []
def train(size):
    sizes.append(size)
    Kept("--mem", f"{2000 + 100 * size}MiB")
"""


@test
def on_a_simulated_gpu():
    python(TRAIN + """
progress = []
gc.disable()
Kept("--mem", "10GiB")                                     # garbage, which counts for no trial
best = gpulse.fit_batch(train, start=8, multiple=4, progress=progress.append)
total = gpulse.gpus()[6].memory.total
goal = best.capacity - int(0.05 * total)
need = lambda size: (2000 + 100 * size) * MIB
assert best.end == "found" and need(best.batch_size) <= goal < need(best.batch_size + 4), best
assert best.peak == need(best.batch_size) and sizes[:2] == [8, 32]
assert all(t.peak == need(t.batch_size) for t in best.trials if t.verdict == "ok"), best
assert [t.batch_size for t in best.trials] == sizes and progress == best.trials
assert str(best).splitlines()[-1] == f"batch size {best.batch_size}: larger sizes do not fit, or leave less than the margin"

sizes.clear()
best = gpulse.fit_batch(train, start=4000, max=4000, confirm=True, gpus="6", margin=0.1)
assert [t.verdict for t in best.trials][:2] == ["oom", "oom"] and sizes[:2] == [4000, 2000], best
assert best.trials[-1].is_confirming and sizes[-1] == best.batch_size

def with_a_wall(size):
    if size > 9:
        raise RuntimeError("CUDA out of memory")           # before it has a process on the GPU
    train(size)
best = gpulse.fit_batch(with_a_wall)
assert best.batch_size == 9 and best.trials[-1].verdict in ("ok", "oom"), best

best = gpulse.fit_batch(train, max=4)
assert (best.batch_size, best.end) == (4, "max") and sizes[-2:] == [1, 4]
""")


@test
def what_ends_a_search():
    python(TRAIN + """
class Custom(Exception): pass
def fails(size):
    raise Custom(size)
try:
    gpulse.fit_batch(fails)
    assert False
except Custom:
    pass
def host(size):
    train(size)
    raise MemoryError
best = gpulse.fit_batch(host)
assert best.end == "host" and "batch_size: the host has too little" in unavailable(lambda: best.batch_size)
def never(size):
    train(size)
    raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
best = gpulse.fit_batch(never, start=4)
assert best.end == "nothing" and [t.batch_size for t in best.trials] == [4, 2, 1], best
assert "no GPU" in unavailable(lambda: gpulse.fit_batch(lambda size: None))
""")


@test
def a_trial_leaves_no_memory():
    """An exception's frames hold what the call allocated."""
    python(TRAIN + """
import weakref
class Tensor: pass
kept, errors = [], []
def torchlike(size):
    tensor = Tensor()
    tensor.me = tensor                                     # only the garbage collector frees it
    assert not any(ref() for ref in kept)
    kept.append(weakref.ref(tensor))
    train(1)
    if size > 10:
        try:
            raise KeyError
        except KeyError:
            errors.append(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
            raise errors[-1]                               # a logger or a notebook may keep it
gc.disable()
best = gpulse.fit_batch(torchlike, max=40)
assert best.batch_size == 10 and not any(ref() for ref in kept), best
""")


@test
def out_of_memory_of_all_frameworks():
    python("""
from gpulse._oom import ran_out
def made(name, *bases):
    return type(name, bases, {})
class Cupy(MemoryError): pass
Cupy.__name__ = "OutOfMemoryError"
gpu = [made("OutOfMemoryError", RuntimeError)("x"), made("AcceleratorError", RuntimeError)("CUDA error: out of memory"),
       RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"), Cupy("Out of memory allocating 1 bytes"),
       made("ResourceExhaustedError", Exception)("OOM when allocating tensor"),
       made("XlaRuntimeError", RuntimeError)("RESOURCE_EXHAUSTED: Failed to allocate request"),
       made("JaxRuntimeError", RuntimeError)("RESOURCE_EXHAUSTED: Out of memory"),
       made("MemoryError", Exception)("cuMemAlloc failed"), RuntimeError("cuda runtime error (2) : out of memory"),
       RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"),
       made("CudaAPIError", Exception)("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")]
host = [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        OSError(12, "Cannot allocate memory")]
none = [RuntimeError("CUDA error: device-side assert triggered"), ValueError("x"), KeyboardInterrupt(),
        made("RpcError", Exception)("RESOURCE_EXHAUSTED: Received message larger than max"),
        AttributeError("no attribute: out of memory")]
for group, word in ((gpu, "gpu"), (host, "host"), (none, "")):
    for problem in group:
        assert ran_out(problem) == word, (problem, ran_out(problem))
def chained(from_it):
    try:
        try:
            raise gpu[0]
        except RuntimeError as problem:
            if from_it:
                raise ValueError("step failed") from problem
            {}["a bug in the handler"]
    except Exception as problem:
        return problem
assert ran_out(chained(True)) == "gpu" and ran_out(chained(False)) == ""
""")


try:
    main()
finally:
    shutil.rmtree(STATE)
