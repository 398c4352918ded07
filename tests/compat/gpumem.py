# burst-tools, bin/gpumem: the GPU with most free memory
# machine: sick
from pynvml import *

nvmlInit()
best = None, -1
for index in range(nvmlDeviceGetCount()):
    try:
        info = nvmlDeviceGetMemoryInfo(nvmlDeviceGetHandleByIndex(index))
    except NVMLError_GpuIsLost as error:
        print(index, error)
        continue
    print(f"device: {index} used: {info.used / info.total:.3%} {info.used / 1e6:.3f}mb free: {info.free / 1e6:.3f}mb")
    best = max(best, (index, info.free), key=lambda pair: pair[1])
print(best)
