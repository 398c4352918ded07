/* Places of libnvidia-ml.so.1. Never the unversioned libnvidia-ml.so, which is often the toolkit's
 * stub, or missing (drivers since 560). WSL has a second copy that does not work, so its own
 * directory comes first. */
#ifndef GPULSE_ABI_NVML_LIBRARY_H
#define GPULSE_ABI_NVML_LIBRARY_H

#define NVML_LIBRARY_PLACES                                                                        \
    "/usr/lib/wsl/lib/libnvidia-ml.so.1", "libnvidia-ml.so.1",                                     \
        "/run/opengl-driver/lib/libnvidia-ml.so.1", /* NixOS */                                    \
        "/usr/lib64/libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",             \
        "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",                                            \
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1", /* container images of some cloud providers   \
                                                      */                                           \
        "/usr/local/nvidia/lib/libnvidia-ml.so.1"

#endif
