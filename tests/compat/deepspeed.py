# deepspeedai/DeepSpeed, accelerator/cuda_accelerator.py: free memory of a device under CUDA_VISIBLE_DEVICES
# machine: h100x8
import pynvml

pynvml.nvmlInit()
for word in "6,0".split(","):
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(word))
    print(word, pynvml.nvmlDeviceGetMemoryInfo(handle).free)
