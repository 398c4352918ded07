# XuehaiPan/nvitop, README: devices and their processes
# machine: processes
from nvitop import NA, Device, GpuProcess

for device in Device.all():
    print(device)
    print(device.fan_speed(), device.temperature(), device.gpu_utilization(), device.memory_total_human(),
          device.memory_used_human(), device.memory_free_human(), device.power_status(), device.memory_percent())
    for process in sorted(device.processes().values(), key=lambda p: p.pid):
        with GpuProcess.failsafe():
            print(process.pid, process.username(), process.gpu_memory_human(), process.gpu_memory_percent(), process.type,
                  process.gpu_sm_utilization(), process.command(), process.status(), process.is_running())
    snapshot = device.as_snapshot()
    print(snapshot["memory_info"], snapshot.clock_infos, snapshot.utilization_rates, snapshot.performance_state)
print(NA, float(NA), NA > 5, NA + 1, NA is Device(0).fan_speed(), sorted([3, NA, 1]))
print(Device.driver_version(), Device.cuda_driver_version(), Device.count(), Device(1))
