/* The distribution packages that concern GPUs. */
#include "doctor/bundle/harmless.h"

#include <ctype.h>
#include <string.h>

/* A '#' is a number or a version that may contain '.' or '-'. */
static const char *const packages[] = {
    "nvidia-driver",
    "nvidia-driver#",
    "nvidia-driver#-open",
    "nvidia-driver#-server",
    "nvidia-driver#-server-open",
    "nvidia-driver-bin",
    "nvidia-driver-libs",
    "nvidia-driver-full",
    "nvidia-driver-cuda",
    "nvidia-headless#",
    "nvidia-headless#-open",
    "nvidia-headless#-server",
    "nvidia-headless-no-dkms#",
    "nvidia-open",
    "nvidia-open#",
    "nvidia-open-kernel-dkms",
    "nvidia-open-dkms",
    "nvidia-open-lts",
    "nvidia-kernel-dkms",
    "nvidia-kernel-open-dkms",
    "nvidia-kernel-common",
    "nvidia-kernel-common#",
    "nvidia-kernel-common#-server",
    "nvidia-kernel-source#",
    "nvidia-kernel-source#-open",
    "nvidia-kernel-support",
    "nvidia-kernel-open",
    "nvidia-dkms",
    "nvidia-dkms#",
    "nvidia-dkms#-open",
    "nvidia-dkms#-server",
    "nvidia-dkms#-server-open",
    "nvidia-firmware#",
    "nvidia-compute-utils#",
    "nvidia-compute-utils#-server",
    "nvidia-utils",
    "nvidia-utils#",
    "nvidia-utils#-server",
    "nvidia-lts",
    "nvidia",
    "nvidia-smi",
    "nvidia-settings",
    "nvidia-prime",
    "nvidia-modprobe",
    "nvidia-persistenced",
    "nvidia-alternative",
    "nvidia-fabricmanager",
    "nvidia-fabricmanager#",
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "nvidia-container-runtime",
    "nvidia-docker#",
    "nvidia-cuda-toolkit",
    "nvidia-cuda-dev",
    "nvidia-cudnn",
    "nvidia-opencl-icd",
    "nvidia-suspend-common",
    "nvidia-vaapi-driver",
    "nvidia-legacy-#xx-driver",
    "nvidia-tesla#-driver",
    "libnvidia-compute",
    "libnvidia-compute#",
    "libnvidia-compute#-server",
    "libnvidia-cfg#",
    "libnvidia-cfg#-#",
    "libnvidia-common#",
    "libnvidia-decode#",
    "libnvidia-encode#",
    "libnvidia-extra#",
    "libnvidia-fbc#",
    "libnvidia-gl#",
    "libnvidia-ml#",
    "libnvidia-container#",
    "libnvidia-container-tools",
    "libnvidia-nscq#",
    "libcuda#",
    "libcudart#",
    "cuda",
    "cuda#",
    "cuda-drivers",
    "cuda-drivers#",
    "cuda-toolkit",
    "cuda-toolkit#",
    "cuda-toolkit#-config-common",
    "cuda-toolkit-config-common",
    "cuda-compat#",
    "cuda-runtime#",
    "cuda-libraries#",
    "cuda-nvcc#",
    "cuda-cudart#",
    "cuda-keyring",
    "cuda-tools",
    "cudnn",
    "cudnn#",
    "cudnn#-cuda#",
    "libcudnn#",
    "libcudnn#-cuda#",
    "libcudnn#-dev",
    "libcudnn#-dev-cuda#",
    "libcudnn#-headers-cuda#",
    "libnccl#",
    "libnccl-dev",
    "nccl",
    "linux-image-generic",
    "linux-image-amd64",
    "linux-image#-generic",
    "linux-image#-amd64",
    "linux-image#-lowlatency",
    "linux-image#-cloud-amd64",
    "linux-image#-aws",
    "linux-image#-azure",
    "linux-image#-gcp",
    "linux-image#-oracle",
    "linux-image#-nvidia",
    "linux-headers-generic",
    "linux-headers-amd64",
    "linux-headers#",
    "linux-headers#-generic",
    "linux-headers#-amd64",
    "linux-headers#-common",
    "linux-headers#-aws",
    "linux-headers#-azure",
    "linux-headers#-gcp",
    "linux-headers#-oracle",
    "linux-headers#-nvidia",
    "linux-modules#-generic",
    "linux-modules-extra#-generic",
    "linux-modules-nvidia#-generic",
    "rocm",
    "rocm-core",
    "rocm-dev",
    "rocm-libs",
    "rocm-smi-lib",
    "rocm-hip-runtime",
    "rocm-hip-sdk",
    "rocm-opencl-runtime",
    "rocminfo",
    "amdgpu-dkms",
    "amdgpu-core",
    "amdgpu-install",
    "intel-opencl-icd",
    "libze#",
    "libze-intel-gpu#",
    "libze-dev",
};

/* The length of the number or version that begins here, optionally after a '-'. Four numbers
 * separated by dots are an address. */
static size_t version_length(const char *text)
{
    enum { POINTS_MOST = 2, LONGEST = 12 };
    size_t n = text[0] == '-' && isdigit((unsigned char)text[1]);
    int points = 0;
    while (isdigit((unsigned char)text[n]) ||
           (n > 0 && text[n] && strchr(".-", text[n]) && isdigit((unsigned char)text[n + 1])))
        points += text[n++] == '.';
    return points <= POINTS_MOST && n <= LONGEST ? n : 0;
}

static bool is_of_pattern(const char *pattern, const char *name)
{
    for (; *pattern && (*pattern == '#' || *pattern == *name); pattern++) {
        size_t n = *pattern == '#' ? version_length(name) : 1;
        if (n == 0)
            return false;
        name += n;
    }
    return !*pattern && !*name;
}

bool gp_harmless_package(const char *name)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(packages); i++)
        if (is_of_pattern(packages[i], name))
            return true;
    return false;
}
