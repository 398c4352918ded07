# rapidsai/jupyterlab-nvdashboard, jupyterlab_nvdashboard/apps/gpu.py (before it left pynvml): PCIe and NVLink
# machine: h100x8
import pynvml

pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
print(pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handles[0]), pynvml.nvmlDeviceGetMaxPcieLinkWidth(handles[0]))
print([pynvml.nvmlDeviceGetNvLinkState(handles[0], link) for link in range(pynvml.NVML_NVLINK_MAX_LINKS)])
print(sum(pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**20 for handle in handles))
for handle in handles:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    print(rates.gpu, rates.memory, pynvml.nvmlDeviceGetMemoryInfo(handle).used / 2**20, rates)
