# ml-energy/zeus, zeus/device/gpu/nvidia.py: energy, power by field, limits, clocks, errors by their number
# machine: h100x8
import pynvml

assert hasattr(pynvml, "_nvmlGetFunctionPointer")
pynvml.nvmlInit()
h = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlDeviceGetName(h), pynvml.nvmlDeviceGetArchitecture(h) >= pynvml.NVML_DEVICE_ARCH_VOLTA)
print(pynvml.nvmlDeviceGetC2cModeInfoV(h).isC2cEnabled, pynvml.nvmlDeviceGetTotalEnergyConsumption(h))
low, high = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(h)
print(low, high, pynvml.nvmlDeviceGetPowerManagementDefaultLimit(h))
for field in (pynvml.NVML_FI_DEV_POWER_AVERAGE, pynvml.NVML_FI_DEV_POWER_INSTANT):
    for scope in (pynvml.NVML_POWER_SCOPE_GPU, pynvml.NVML_POWER_SCOPE_MEMORY):
        metric = pynvml.nvmlDeviceGetFieldValues(h, [(field, scope)])[0]
        print(field, scope, metric.nvmlReturn, metric.value.uiVal if metric.nvmlReturn == pynvml.NVML_SUCCESS else None)
for clock in pynvml.nvmlDeviceGetSupportedMemoryClocks(h):
    print(clock, pynvml.nvmlDeviceGetSupportedGraphicsClocks(h, clock)[:3])
for wrong in (lambda: pynvml.nvmlDeviceGetHandleByIndex(99), lambda: pynvml.nvmlDeviceGetFanSpeed(h)):
    try:
        wrong()
    except pynvml.NVMLError as error:
        print(error.value, str(error), isinstance(error, pynvml.nvmlExceptionClass(error.value)), repr(error))
