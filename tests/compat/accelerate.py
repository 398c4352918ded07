# huggingface/accelerate, src/accelerate/utils/environment.py: the CPUs nearest to a GPU, as a mask
# machine: h100x8
import pynvml

pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    mask = pynvml.nvmlDeviceGetCpuAffinity(pynvml.nvmlDeviceGetHandleByIndex(index), 4)
    print(index, [bit + 64 * word for word in range(4) for bit in range(64) if mask[word] >> bit & 1])
