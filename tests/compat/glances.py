# nicolargo/glances, glances/plugins/gpu/cards/nvidia.py: None for what a GPU does not have
# machine: rtx4090
import pynvml


def value(function, *arguments):
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None


pynvml.nvmlInit()
for i in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(i)
    memory = value(pynvml.nvmlDeviceGetMemoryInfo, handle)
    print(f"nvidia{i}", value(pynvml.nvmlDeviceGetName, handle), memory and memory.used * 100 / memory.total,
          value(pynvml.nvmlDeviceGetUtilizationRates, handle).gpu,
          value(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
          value(pynvml.nvmlDeviceGetFanSpeed, handle))
pynvml.nvmlShutdown()
