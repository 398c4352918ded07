# rapidsai/dask-cuda, dask_cuda/utils.py: MIG instances, handles by UUID as bytes, CPU affinity
# machine: h100-mig
import pynvml

pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    print("mode", pynvml.nvmlDeviceGetMigMode(handle)[0], "at most", pynvml.nvmlDeviceGetMaxMigDeviceCount(handle))
    try:
        print("affinity", list(pynvml.nvmlDeviceGetCpuAffinity(handle, 2)))
    except pynvml.NVMLError as error:
        print("affinity", error)
    for i in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(device=handle, index=i)
        except pynvml.NVMLError as error:
            print(i, error)
            continue
        uuid = pynvml.nvmlDeviceGetUUID(instance)
        again = pynvml.nvmlDeviceGetHandleByUUID(str.encode(uuid))
        parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(again)
        print(i, uuid, bool(pynvml.nvmlDeviceIsMigDeviceHandle(again)), bool(pynvml.nvmlDeviceIsMigDeviceHandle(handle)),
              pynvml.nvmlDeviceGetMemoryInfo(again).total, pynvml.nvmlDeviceGetUUID(parent))
