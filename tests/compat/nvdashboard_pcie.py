# rapidsai/jupyterlab-nvdashboard, jupyterlab_nvdashboard/apps/gpu.py (before it left pynvml): PCIe throughput
# machine: rtx4090
import pynvml

pynvml.nvmlInit()
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print([pynvml.nvmlDeviceGetPcieThroughput(handle, counter) * 1024
       for counter in (pynvml.NVML_PCIE_UTIL_TX_BYTES, pynvml.NVML_PCIE_UTIL_RX_BYTES)])
print(pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle), pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle))
