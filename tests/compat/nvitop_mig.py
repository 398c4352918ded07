# XuehaiPan/nvitop, documentation of MigDevice and of CUDA_VISIBLE_DEVICES
# machine: h100-mig
from nvitop import Device, MigDevice, parse_cuda_visible_devices

parent = Device(0)
print(parent.is_mig_mode_enabled(), parent.to_leaf_devices(), parent.gpu_utilization())
for instance in MigDevice.all():
    print(instance.index, instance.name(), instance.uuid(), instance.memory_usage(), instance.parent,
          instance.gpu_instance_id(), instance.compute_instance_id(), sorted(instance.processes()), instance.temperature())
print(parse_cuda_visible_devices("0"), parse_cuda_visible_devices(""), Device((0, 1)))
