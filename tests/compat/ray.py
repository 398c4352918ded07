# ray-project/ray, python/ray/_private/accelerators/nvidia_gpu.py: opened and closed for each question
# machine: h100x8
import re
import pynvml

for _ in range(2):
    pynvml.nvmlInit()
    print(pynvml.nvmlDeviceGetCount())
    name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
    print(type(name).__name__, re.match(r"\w+\s+([A-Z0-9]+)", name).group(1))
    pynvml.nvmlShutdown()
try:
    pynvml.nvmlDeviceGetCount()
except pynvml.NVMLError_Uninitialized as error:
    print(error)
