"""Which exceptions mean that memory ran out, of all frameworks, without importing any."""

from __future__ import annotations

from typing import Iterator, List

from ._errors import GpulseError
from ._model import gpus
from ._usage import size_text

# Names of classes that mean it whatever their text says: PyTorch's and CuPy's, TensorFlow's.
_NAMES = {"OutOfMemoryError", "ResourceExhaustedError"}
# Texts, in lower case, of exceptions that have other meanings, too: of CUDA and its libraries, Numba, ONNX Runtime.
_TEXTS = ("out of memory", "cuda_error_out_of_memory", "cudaerrormemoryallocation", "cublas_status_alloc_failed",
          "cudnn_status_alloc_failed", "failed to allocate memory")
_HOST_TEXTS = ("defaultcpuallocator", "cannot allocate memory")


def _chain(problem: BaseException) -> Iterator[BaseException]:
    """It and its causes. The context is none: in it are errors that were handled."""
    seen: List[int] = []
    while id(problem) not in seen:
        yield problem
        seen.append(id(problem))
        problem = problem.__cause__ or problem


def _is_of_host(problem: BaseException) -> bool:
    text = str(problem).lower()
    return type(problem) is MemoryError or (isinstance(problem, (RuntimeError, OSError)) and
                                            any(part in text for part in _HOST_TEXTS))


def _is_of_gpu(problem: BaseException) -> bool:
    if any(parent.__name__ in _NAMES for parent in type(problem).__mro__):
        return True
    if isinstance(problem, (SyntaxError, AttributeError, NameError, ImportError, OSError)):
        return False
    name, text = type(problem).__name__, str(problem).lower()
    is_jax = name in ("XlaRuntimeError", "JaxRuntimeError") and "resource_exhausted" in text
    is_pycuda = name == "MemoryError"
    return is_jax or is_pycuda or any(part in text for part in _TEXTS)


def ran_out(problem: BaseException) -> str:
    """"gpu" or "host" if the exception, or a cause of it, says that this memory ran out; otherwise ""."""
    for one in _chain(problem):
        if _is_of_host(one):
            return "host"
        if _is_of_gpu(one):
            return "gpu"
    return ""


def holders() -> str:
    """Who has the memory of the GPUs now: a line for each GPU and for each process."""
    try:
        rows = gpus()
    except GpulseError as problem:
        return f"who holds the memory is unknown: {problem}"
    lines: List[str] = []
    for gpu in rows:
        used, total = gpu.get("memory.used"), gpu.get("memory.total")
        if isinstance(used, int) and isinstance(total, int):
            lines.append(f"GPU {gpu.get('index')}: {size_text(used)} of {size_text(total)} in use")
        else:
            lines.append(f"GPU {gpu.get('index')}: memory unknown")
        for process in gpu.processes:
            size = process.get("used_gpu_memory")
            text = size_text(size) if isinstance(size, int) else "unknown size"
            who = process.get("process.command") or process.get("process_name") or ""
            lines.append(f"    pid {process.get('pid')}, {process.get('process.user', 'unknown user')}: {text}  {who}")
    return "\n".join(lines)
