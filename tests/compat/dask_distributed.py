# dask/distributed, distributed/diagnostics/nvml.py: handles once, then utilization and memory of each
# machine: h100x8
import pynvml

pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
print("name", [pynvml.nvmlDeviceGetName(h) for h in handles])
print("total", [pynvml.nvmlDeviceGetMemoryInfo(h).total for h in handles])
for _ in range(2):
    print("utilization", [pynvml.nvmlDeviceGetUtilizationRates(h).gpu for h in handles])
    print("used", [pynvml.nvmlDeviceGetMemoryInfo(h).used for h in handles])
