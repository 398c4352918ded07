# XuehaiPan/nvitop, README: metrics of a training loop, by nested tags
# machine: h100x8
from nvitop import Device, ResourceMetricCollector

collector = ResourceMetricCollector(devices=Device.all()[:2], interval=0.05)
with collector(tag="train"):
    with collector(tag="batch"):
        print(sorted(collector.collect()))
    metrics = collector.collect()
for key, value in sorted(metrics.items()):
    if "/gpu:" in key and not key.endswith("/mean"):
        print(key, value)
try:
    collector.collect()
except RuntimeError as error:
    print(error)
