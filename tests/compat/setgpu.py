# bamos/setGPU, setGPU.py: the GPU with the least memory in use, by the entries of gpustat
# machine: h100x8
import gpustat

stats = gpustat.GPUStatCollection.new_query()
ids = [int(gpu.entry["index"]) for gpu in stats]
ratios = [float(gpu.entry["memory.used"]) / float(gpu.entry["memory.total"]) for gpu in stats]
print(min(zip(ids, ratios), key=lambda pair: pair[1])[0], ratios)
