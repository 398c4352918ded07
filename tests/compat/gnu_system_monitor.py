# fredwntr1/gnu-system-monitor, nvidia_gpu_stats.py: everything by "import *"
# machine: desktop
from pynvml import *

nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
print(nvmlDeviceGetTemperature(gpu, NVML_TEMPERATURE_GPU), nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_GRAPHICS),
      nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_MEM), nvmlDeviceGetPowerUsage(gpu) / 1000, nvmlDeviceGetFanSpeed(gpu))
