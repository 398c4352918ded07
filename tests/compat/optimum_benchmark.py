# huggingface/optimum-benchmark, optimum_benchmark/trackers/memory.py: the memory of these processes, and all of it
# machine: processes
import os
import pynvml

wanted = {int(pid) for pid in os.environ["COMPAT_PIDS"].split()[:2]}
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
print(sum(process.usedGpuMemory for handle in handles for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
          if process.pid in wanted))
print(sum(pynvml.nvmlDeviceGetMemoryInfo(handle).used for handle in handles))
pynvml.nvmlShutdown()
