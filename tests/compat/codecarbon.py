# mlco2/codecarbon, codecarbon/core/gpu.py: what a GPU is, its energy, power, and processes
# machine: h100x8
import pynvml

pynvml.nvmlInit()
for i in range(pynvml.nvmlDeviceGetCount()):
    h = pynvml.nvmlDeviceGetHandleByIndex(i)
    memory = pynvml.nvmlDeviceGetMemoryInfo(h)
    print(pynvml.nvmlDeviceGetName(h), pynvml.nvmlDeviceGetUUID(h), memory.free, memory.total, memory.used)
    print(pynvml.nvmlDeviceGetTotalEnergyConsumption(h), pynvml.nvmlDeviceGetPowerUsage(h),
          pynvml.nvmlDeviceGetEnforcedPowerLimit(h), pynvml.nvmlDeviceGetUtilizationRates(h).gpu,
          pynvml.nvmlDeviceGetTemperature(h, pynvml.NVML_TEMPERATURE_GPU),
          pynvml.nvmlDeviceGetComputeMode(h))
    print([(p.pid, p.usedGpuMemory) for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h)],
          [(p.pid, p.usedGpuMemory) for p in pynvml.nvmlDeviceGetGraphicsRunningProcesses(h)])
