#!/usr/bin/env python3
"""gpulse.integrations: callbacks, against stubs of the frameworks' interfaces, and out-of-memory errors.

variants: release
"""
import shutil
import sys

from package import ENV, JOBS, STATE, python
from tap import main, run, test

STUB = """
import types
def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
"""


@test
def numbers_of_the_gpus_in_use():
    python("""
from gpulse.integrations import FIELDS, Numbers
numbers = Numbers()
all_gpus = numbers()
assert {name.split("/")[0] for name in all_gpus} == {f"gpu{i}" for i in range(8)} # none is used yet
a, b = Job("--mem", "2GiB", gpu=7), Job("--mem", "1GiB", gpu=7)
used = numbers()
assert set(used) == {f"gpu7/{name}" for name in (*FIELDS, "process.memory")}, used
assert used["gpu7/process.memory"] == used["gpu7/memory.used"] == 3 * GIB and used["gpu7/power.draw"] > 0
assert all(type(value) in (int, float) for value in used.values())
chosen = Numbers(["memory.used", "fan.speed"], gpus="0,7")()
assert set(chosen) == {"gpu0/memory.used", "gpu7/memory.used", "gpu7/process.memory"}, chosen # there is no fan
a.end(), b.end()
""")
    python("""
from gpulse.integrations import Numbers
assert Numbers()() == {}
""", GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so")


@test
def a_plain_loop():
    python("""
from gpulse.integrations import steps
logged = []
for item in steps("abcdefg", lambda numbers, step: logged.append((numbers, step)), every=3, numbers=lambda: {"x": 1}):
    logged.append(item)
assert logged == ["a", "b", "c", ({"x": 1}, 3), "d", "e", "f", ({"x": 1}, 6), "g"], logged
assert list(steps([], None)) == []
for n, item in enumerate(steps([1], lambda numbers, step: logged.append(numbers), every=1)):
    pass
assert logged[-1]["gpu3/memory.used"] > 0
try:
    list(steps([1], None, every=0))
    assert False
except ValueError:
    pass
""")


@test
def lightning():
    """The Trainer calls every hook of Callback, on all of its loggers."""
    python(STUB + """
class Callback:
    def on_train_start(self, trainer, pl_module): pass
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): pass
module("lightning"); module("lightning.pytorch"); module("lightning.pytorch.callbacks", Callback=Callback)
from gpulse.integrations.lightning import GPULogger
assert issubclass(GPULogger, Callback)
class Logger:
    def __init__(self): self.logged = []
    def log_metrics(self, metrics, step=None): self.logged.append((metrics, step))
def trained(logger, **more):
    trainer = types.SimpleNamespace(global_step=0, log_every_n_steps=2, is_global_zero=True, loggers=[Logger(), Logger()])
    trainer.__dict__.update(more)
    logger.on_train_start(trainer, None)
    for batch in range(12):                                # two batches per optimizer step
        trainer.global_step += batch % 2
        logger.on_train_batch_end(trainer, None, None, None, batch)
    assert trainer.loggers == [] or trainer.loggers[0].logged == trainer.loggers[1].logged
    return [step for _, step in trainer.loggers[0].logged] if trainer.loggers else []
numbers = lambda: {"gpu0/memory.used": 5}
assert trained(GPULogger(numbers=numbers)) == [2, 4, 6]
assert trained(GPULogger(every=3, numbers=numbers)) == [3, 6]
assert trained(GPULogger(numbers=numbers), is_global_zero=False) == []
assert trained(GPULogger(numbers=numbers), log_every_n_steps=0) == []
assert trained(GPULogger(numbers=numbers), loggers=[]) == []
logger, trainer = GPULogger(), types.SimpleNamespace(global_step=1, log_every_n_steps=1, is_global_zero=True, loggers=[Logger()])
logger.on_train_batch_end(trainer, None, None, None, 0)
assert trainer.loggers[0].logged[0][0]["gpu0/memory.used"] > 0
""")
    python(STUB + """
class Old: pass
module("pytorch_lightning"); module("pytorch_lightning.callbacks", Callback=Old)
from gpulse.integrations.lightning import GPULogger
assert issubclass(GPULogger, Old)
""")


@test
def keras():
    """The logs of an epoch are one dictionary for all callbacks, in their order, and History is the last."""
    python(STUB + """
class Callback:
    def set_params(self, params): self.params = params
    def set_model(self, model): self.model = model
    def on_epoch_end(self, epoch, logs=None): pass
    def on_train_batch_end(self, batch, logs=None): pass
class History(Callback):
    def __init__(self): self.history = []
    def on_epoch_end(self, epoch, logs=None): self.history.append(dict(logs))
module("keras"); module("keras.callbacks", Callback=Callback)
from gpulse.integrations.keras import GPULogger
called = []
callbacks = [GPULogger(lambda numbers, epoch: called.append((numbers, epoch)), lambda: {"gpu0/power.draw": 5.0}), History()]
for epoch in range(2):
    logs = {"loss": 1.0}
    for callback in callbacks:
        callback.on_epoch_end(epoch, logs)
assert callbacks[1].history == [{"loss": 1.0, "gpu0/power.draw": 5.0}] * 2, callbacks[1].history
assert called == [({"gpu0/power.draw": 5.0}, 0), ({"gpu0/power.draw": 5.0}, 1)]
# Keras computes the logs of each batch only for callbacks that want them
assert GPULogger.on_train_batch_end is Callback.on_train_batch_end
GPULogger().on_epoch_end(0)
""")


@test
def hugging_face():
    """trainer.log() calls on_log() of all callbacks, and turns should_log off."""
    python(STUB + """
class TrainerCallback:
    def on_step_end(self, args, state, control, **kwargs): pass
    def on_log(self, args, state, control, **kwargs): pass
module("transformers", TrainerCallback=TrainerCallback)
from gpulse.integrations.huggingface import GPULogger
class Trainer:
    def __init__(self):
        self.callbacks, self.reported = [], []
        self.state = types.SimpleNamespace(global_step=0)
        self.control = types.SimpleNamespace(should_log=False)
    def add_callback(self, callback): self.callbacks.append(callback)
    def log(self, logs, start_time=None):
        self.control.should_log = False
        self.reported.append((logs, self.state.global_step))
        for callback in self.callbacks:
            callback.on_log(None, self.state, self.control, model=None, logs=logs)
    def train(self, steps):
        for self.state.global_step in range(1, steps + 1):
            self.control.should_log = self.state.global_step % 2 == 0
            for callback in self.callbacks:
                callback.on_step_end(None, self.state, self.control, model=None)
            if self.control.should_log:
                self.log({"loss": 1.0})
trainer = Trainer()
trainer.add_callback(GPULogger(trainer.log, lambda: {"gpu0/memory.used": 5}))
trainer.train(4)
assert trainer.reported == [({"loss": 1.0}, 2), ({"gpu0/memory.used": 5}, 2),
                            ({"loss": 1.0}, 4), ({"gpu0/memory.used": 5}, 4)], trainer.reported
def fails(logs):
    raise OSError("disk full")
callback = GPULogger(fails, lambda: {})
for _ in range(2):
    try:
        callback.on_log(None, None, None, logs={})
        assert False
    except OSError:
        pass
""")


@test
def frameworks_that_are_missing():
    python("""
import importlib
sys.path = [p for p in sys.path if "site-packages" not in p and "dist-packages" not in p]
for name, wanted in (("lightning", "pytorch_lightning"), ("keras", "tensorflow"), ("huggingface", "transformers")):
    try:
        importlib.import_module(f"gpulse.integrations.{name}")
        assert False, name
    except ImportError as error:
        assert "none of these is installed" in str(error) and wanted in str(error), error
import gpulse.integrations, gpulse.integrations.oom
assert not {"torch", "lightning", "keras", "tensorflow", "transformers"} & set(sys.modules)
""")


@test
def an_error_that_is_logged():
    python("""
import io, logging
from gpulse.integrations.oom import OutOfMemoryHandler
stream = io.StringIO()
logging.basicConfig(stream=stream, format="%(name)s %(levelname)s %(message)s")
logging.getLogger().addHandler(OutOfMemoryHandler())
job = Job("--mem", "20GiB")
def logged(problem):
    stream.seek(0), stream.truncate()
    try:
        raise problem
    except Exception:
        logging.getLogger("train").exception("step 5 failed")
    return stream.getvalue()
text = logged(RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"))
assert text.startswith("train ERROR step 5 failed") and text.count("gpulse ERROR GPU memory at the time") == 1, text
assert "GPU 6: 20.00 GiB of " in text and f"    pid {job.pid}, " in text and "20.00 GiB  " in text, text
assert "gpulse" not in logged(ValueError("x")) and "gpulse" not in logged(MemoryError())
stream.seek(0), stream.truncate()
logging.error("CUDA out of memory")                        # without an exception
assert stream.getvalue().count("\\n") == 1
job.end()
""")
    python("""
import io, logging
from gpulse.integrations.oom import OutOfMemoryHandler
stream = io.StringIO()
logging.basicConfig(stream=stream)
logging.getLogger().addHandler(OutOfMemoryHandler())
try:
    raise RuntimeError("CUDA out of memory")
except RuntimeError:
    logging.exception("x")
assert "who holds the memory is unknown" in stream.getvalue() and "/does/not/exist.so" in stream.getvalue()
""", GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so")


@test
def an_error_that_ends_the_program():
    code = JOBS + """
from gpulse.integrations.oom import install_excepthook
install_excepthook()
raise {}
"""
    for problem, is_explained in (("RuntimeError('CUDA out of memory')", True), ("ValueError('x')", False)):
        r = run(sys.executable, "-c", code.replace("{}", problem), env=ENV)
        assert r.returncode == 1 and "Traceback" in r.stderr and problem.split("(")[0] in r.stderr, r
        assert ("GPU memory at the time of the error:\nGPU 0: " in r.stderr) == is_explained, r.stderr
        assert not is_explained or "train.py" in r.stderr, r.stderr


try:
    main()
finally:
    shutil.rmtree(STATE)
