# stas00/ipyexperiments: the memory of a GPU in MB, before and after
# machine: rtx3060
import pynvml

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
for _ in range(2):
    info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    print(int(info.used / 2**20), int(info.free / 2**20), int(info.total / 2**20), info)
print(pynvml.nvmlDeviceGetName(handle))
