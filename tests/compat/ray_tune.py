# ray-project/ray, python/ray/tune/utils/util.py (UtilMonitor): utilization and memory by gpustat
# machine: h100x8
import gpustat

for gpu in gpustat.new_query().gpus:
    print(gpu.index, float(gpu.utilization), float(gpu.memory_used), float(gpu.memory_total), gpu.power_draw, gpu.temperature,
          gpu.fan_speed)
print(gpustat.gpu_count(), gpustat.is_available())
