# multigrate (a tutorial): the device with most free memory, by nvitop
# machine: sick
from nvitop import Device

devices = Device.all()
print([device.memory_free() for device in devices])
print([device.name() for device in devices])
