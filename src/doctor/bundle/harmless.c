#include "doctor/bundle/harmless.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum kind {
    WORDS, /* numbers, and known words */
    PATHS,
};

struct name {
    const char *name;
    enum kind kind;
};

static const struct name variables[] = {
    {"CUDA_VISIBLE_DEVICES", WORDS},
    {"NVIDIA_VISIBLE_DEVICES", WORDS},
    {"HIP_VISIBLE_DEVICES", WORDS},
    {"ROCR_VISIBLE_DEVICES", WORDS},
    {"ZE_AFFINITY_MASK", WORDS},
    {"CUDA_DEVICE_ORDER", WORDS},
    {"CUDA_LAUNCH_BLOCKING", WORDS},
    {"CUDA_MODULE_LOADING", WORDS},
    {"CUDA_CACHE_DISABLE", WORDS},
    {"CUDA_CACHE_MAXSIZE", WORDS},
    {"CUDA_CACHE_PATH", PATHS},
    {"CUDA_HOME", PATHS},
    {"CUDA_PATH", PATHS},
    {"CUDA_ROOT", PATHS},
    {"CUDA_MPS_PIPE_DIRECTORY", PATHS},
    {"CUDA_MPS_LOG_DIRECTORY", PATHS},
    {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", WORDS},
    {"CUDA_VERSION", WORDS},
    {"CUDA_DEVICE_MAX_CONNECTIONS", WORDS},
    {"CUDA_PROFILE", WORDS},
    {"COMPUTE_PROFILE", WORDS},
    {"NVIDIA_DRIVER_CAPABILITIES", WORDS},
    {"NVIDIA_REQUIRE_CUDA", WORDS},
    {"NVIDIA_DISABLE_REQUIRE", WORDS},
    {"NVIDIA_TF32_OVERRIDE", WORDS},
    {"NCCL_DEBUG", WORDS},
    {"NCCL_DEBUG_SUBSYS", WORDS},
    {"NCCL_SOCKET_IFNAME", WORDS},
    {"NCCL_IB_DISABLE", WORDS},
    {"NCCL_IB_HCA", WORDS},
    {"NCCL_IB_GID_INDEX", WORDS},
    {"NCCL_IB_TIMEOUT", WORDS},
    {"NCCL_P2P_DISABLE", WORDS},
    {"NCCL_P2P_LEVEL", WORDS},
    {"NCCL_SHM_DISABLE", WORDS},
    {"NCCL_NET", WORDS},
    {"NCCL_NET_GDR_LEVEL", WORDS},
    {"NCCL_ALGO", WORDS},
    {"NCCL_PROTO", WORDS},
    {"NCCL_NVLS_ENABLE", WORDS},
    {"NCCL_BUFFSIZE", WORDS},
    {"NCCL_VERSION", WORDS},
    {"NCCL_ASYNC_ERROR_HANDLING", WORDS},
    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", WORDS},
    {"TORCH_NCCL_BLOCKING_WAIT", WORDS},
    {"TORCH_CUDA_ARCH_LIST", WORDS},
    {"TORCH_HOME", PATHS},
    {"PYTORCH_CUDA_ALLOC_CONF", WORDS},
    {"PYTORCH_ALLOC_CONF", WORDS},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", WORDS},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", WORDS},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION", WORDS},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", WORDS},
    {"JAX_PLATFORMS", WORDS},
    {"JAX_PLATFORM_NAME", WORDS},
    {"TF_FORCE_GPU_ALLOW_GROWTH", WORDS},
    {"TF_CPP_MIN_LOG_LEVEL", WORDS},
    {"TF_GPU_ALLOCATOR", WORDS},
    {"HSA_OVERRIDE_GFX_VERSION", WORDS},
    {"HSA_ENABLE_SDMA", WORDS},
    {"HIP_PATH", PATHS},
    {"ROCM_PATH", PATHS},
    {"ZE_ENABLE_PCI_ID_DEVICE_ORDER", WORDS},
    {"PATH", PATHS},
    {"LD_LIBRARY_PATH", PATHS},
    {"LD_PRELOAD", PATHS},
    {"PYTHONPATH", PATHS},
    {"CONDA_PREFIX", PATHS},
    {"VIRTUAL_ENV", PATHS},
    {"container", WORDS},
};

static const char *const parameters[] = {
    "quiet",
    "splash",
    "ro",
    "rw",
    "nomodeset",
    "nouveau.modeset",
    "nouveau.blacklist",
    "nvidia-drm.modeset",
    "nvidia_drm.modeset",
    "nvidia-drm.fbdev",
    "nvidia_drm.fbdev",
    "rd.driver.blacklist",
    "modprobe.blacklist",
    "module_blacklist",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "pci",
    "pcie_aspm",
    "mitigations",
    "isolcpus",
    "nohz_full",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "transparent_hugepage",
    "numa_balancing",
    "acpi",
    "ibt",
    "lockdown",
    "module.sig_enforce",
    "systemd.unified_cgroup_hierarchy",
    "swapaccount",
    "cgroup_enable",
};

/* The words that values consist of, besides numbers. */
static const char *const words[] = {
    "all",
    "none",
    "void",
    "on",
    "off",
    "true",
    "false",
    "yes",
    "no",
    "auto",
    "default",
    "lazy",
    "eager",
    "pci_bus_id",
    "fastest_first",
    "compute",
    "utility",
    "graphics",
    "video",
    "display",
    "ngx",
    "compat32",
    "cuda",
    "brand",
    "driver",
    "tesla",
    "geforce",
    "quadro",
    "titan",
    "nvidia",
    "rtx",
    "info",
    "warn",
    "trace",
    "version",
    "abort",
    "init",
    "coll",
    "p2p",
    "shm",
    "net",
    "graph",
    "tuning",
    "env",
    "alloc",
    "ib",
    "socket",
    "loc",
    "nvl",
    "pix",
    "pxb",
    "phb",
    "sys",
    "tree",
    "ring",
    "nvls",
    "simple",
    "ll",
    "ll128",
    "platform",
    "bfc",
    "gpu",
    "cpu",
    "tpu",
    "rocm",
    "cuda_malloc_async",
    "cudamallocasync",
    "native",
    "backend",
    "expandable_segments",
    "max_split_size_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
    "pinned_use_cuda_host_register",
    "pinned_num_register_threads",
    "docker",
    "podman",
    "lxc",
    "oci",
    "wsl",
    "nouveau",
    "nvidiafb",
    "nvidia_drm",
    "nova_core",
    "i915",
    "amdgpu",
    "radeon",
    "pt",
    "force",
    "soft",
    "nosmt",
    "always",
    "madvise",
    "never",
    "memory",
    "realloc",
    "nocrs",
    "noaer",
    "nommconf",
    "ptx",
    "unknown",
};

/* Directory names that identify nobody. */
static const char *const folders[] = {
    "",
    "usr",
    "local",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "opt",
    "nvidia",
    "cuda",
    "compat",
    "extras",
    "CUPTI",
    "stubs",
    "targets",
    "include",
    "share",
    "games",
    "snap",
    "home",
    "Users",
    "root",
    "tmp",
    "mnt",
    "etc",
    "var",
    "run",
    "conda",
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    "envs",
    "venv",
    ".venv",
    "site-packages",
    "dist-packages",
    "rocm",
    "hpc_sdk",
    "Linux_x86_64",
    "x86_64-linux",
    "sbsa-linux",
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "wsl",
    ".local",
    "nvvm",
    "nvidia-mps",
    "driver-store",
    "cudnn",
    "nccl",
    "torch",
    "jvm",
    "nsight-compute",
    "nsight-systems",
    ".cache",
    ".nv",
    "ComputeCache",
};

static bool is_among(const char *const *list, size_t count, const char *text, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == n && strncasecmp(list[i], text, n) == 0)
            return true;
    return false;
}

/* "12", "2.5", "8G", "12.4.1" */
static bool is_number(const char *text, size_t n)
{
    enum { LONGEST = 12 };
    static const char units[] = "KMGTiB%+";
    size_t i = 0;
    if (n == 0 || n > LONGEST || !isdigit((unsigned char)text[0]))
        return false;
    while (i < n && (isdigit((unsigned char)text[i]) || text[i] == '.'))
        i++;
    while (i < n && strchr(units, text[i]))
        i++;
    return i == n;
}

/* "eth0", "enp3s0f1", "ib0", "mlx5_0" */
static bool is_interface(const char *text, size_t n)
{
    static const char *const kinds[] = {"eth", "enp", "eno", "ens", "ib", "bond", "lo", "mlx5_"};
    enum { LONGEST = 10 };
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds) && n <= LONGEST; i++) {
        size_t length = strlen(kinds[i]);
        if (n < length || strncmp(text, kinds[i], length) != 0)
            continue;
        while (length < n && (isdigit((unsigned char)text[length]) || strchr("sfnp", text[length])))
            length++;
        if (length == n)
            return true;
    }
    return false;
}

/* The number of a GPU, which the redactor replaces. */
static bool is_uuid(const char *text, size_t n)
{
    enum { DIGITS = 36 };
    size_t begin = strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0 ? 4 : n;
    if (n != begin + DIGITS)
        return false;
    for (size_t i = begin; i < n; i++)
        if (!isxdigit((unsigned char)text[i]) && text[i] != '-')
            return false;
    return true;
}

static bool is_known(const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t length = 0;
        while (at + length < n && !strchr(",;:=^<>! \t", text[at + length]))
            length++;
        if (length > 0 && !is_number(text + at, length) && !is_interface(text + at, length) &&
            !is_uuid(text + at, length) && !is_among(words, GP_ARRAY_LEN(words), text + at, length))
            return false;
        at += length + 1;
    }
    return true;
}

/* A name, optionally with a version: "cuda-12.4", "python3.11", "lib64". */
static bool is_folder(const char *text, size_t n)
{
    if (is_among(folders, GP_ARRAY_LEN(folders), text, n) || is_number(text, n))
        return true;
    size_t name = n;
    while (name > 0 && (isdigit((unsigned char)text[name - 1]) || text[name - 1] == '.'))
        name--;
    if (n - name > 8)
        return false;
    name -= name > 0 && text[name - 1] == '-';
    return is_among(folders, GP_ARRAY_LEN(folders), text, name) ||
           (name == 6 && strncmp(text, "python", 6) == 0);
}

static void add_paths(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    bool is_user = false;
    for (size_t at = 0; at <= length;) {
        size_t n = 0;
        while (at + n < length && !strchr("/:; ", text[at + n]))
            n++;
        bool is_name = is_user && n > 0;
        if (!is_name && is_folder(text + at, n)) {
            gp_strbuf_add(sb, text + at, n);
        } else {
            gp_strbuf_adds(sb, is_name ? "USER" : "DIR");
            ++*left_out;
        }
        is_user = !is_user && ((n == 4 && strncmp(text + at, "home", 4) == 0) ||
                               (n == 5 && strncmp(text + at, "Users", 5) == 0));
        if (at + n < length)
            gp_strbuf_addc(sb, text[at + n]);
        at += n + 1;
    }
}

/* NULL: it is not on the list. *ret_value: the value it is set to. */
static const struct name *find_variable(const char *variable, const char **ret_value)
{
    size_t n = strcspn(variable, "=");
    *ret_value = variable + n + (variable[n] == '=');
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (strlen(variables[i].name) == n && strncmp(variables[i].name, variable, n) == 0)
            return &variables[i];
    return NULL;
}

static void add_value(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    if (is_known(text, length)) {
        gp_strbuf_add(sb, text, length);
    } else {
        gp_strbuf_adds(sb, "(left out)");
        ++*left_out;
    }
}

void gp_harmless_variables(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    size_t others = 0;
    for (const char *p = text; p < text + length; p += strlen(p) + 1) {
        const char *value;
        const struct name *name = find_variable(p, &value);
        others += !name;
        if (!name)
            continue;
        gp_strbuf_addf(sb, "%s=", name->name);
        (name->kind == PATHS ? add_paths : add_value)(sb, value, strlen(value), left_out);
        gp_strbuf_addc(sb, '\n');
    }
    gp_strbuf_addf(sb, "(%zu others)\n", others);
    *left_out += others;
}

void gp_harmless_unknown(const char *variable, void (*report)(void *ctx, const char *name),
                         void *ctx)
{
    const char *value;
    const struct name *name = find_variable(variable, &value);
    while (name && name->kind == PATHS && *value) {
        char folder[96];
        size_t n = strcspn(value, "/:; ");
        if (n < sizeof(folder) && !is_folder(value, n)) {
            memcpy(folder, value, n);
            folder[n] = '\0';
            report(ctx, folder);
        }
        value += n + (value[n] != '\0');
    }
}

static bool is_parameter(const char *text, size_t n)
{
    static const char options[] = "nvidia.NVreg_"; /* of the driver */
    enum { LONGEST = 60 };
    if (is_among(parameters, GP_ARRAY_LEN(parameters), text, n))
        return true;
    if (n < sizeof(options) || n > LONGEST || strncmp(text, options, sizeof(options) - 1) != 0)
        return false;
    for (size_t i = sizeof(options) - 1; i < n; i++)
        if (!isalpha((unsigned char)text[i]))
            return false;
    return true;
}

void gp_harmless_cmdline(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    static const char between[] = " \t\n";
    size_t others = 0;
    for (size_t at = 0; at < length;) {
        size_t n = 0;
        size_t name = 0;
        while (at + n < length && !strchr(between, text[at + n]))
            n++;
        while (name < n && text[at + name] != '=')
            name++;
        if (n > 0 && is_parameter(text + at, name)) {
            gp_strbuf_add(sb, text + at, name + (name < n));
            if (name < n)
                add_value(sb, text + at + name + 1, n - name - 1, left_out);
            gp_strbuf_addc(sb, ' ');
        } else {
            others += n > 0;
        }
        at += n + 1;
    }
    gp_strbuf_addf(sb, "(%zu others)\n", others);
    *left_out += others;
}

void gp_harmless_kernel(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    static const char begin[] = "Linux version ";
    static const char *const kinds[] = {"SMP", "PREEMPT", "PREEMPT_DYNAMIC", "PREEMPT_RT"};
    size_t n = 0;
    if (length < sizeof(begin) || strncmp(text, begin, sizeof(begin) - 1) != 0)
        return;
    text += sizeof(begin) - 1;
    length -= sizeof(begin) - 1;
    while (n < length && n < 64 && (isalnum((unsigned char)text[n]) || strchr(".+~_-", text[n])))
        n++;
    gp_strbuf_adds(sb, begin);
    gp_strbuf_add(sb, text, n);
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        const char *at = memmem(text, length, kinds[i], strlen(kinds[i]));
        if (at && (size_t)(at - text) + strlen(kinds[i]) < length &&
            isspace((unsigned char)at[strlen(kinds[i])]))
            gp_strbuf_addf(sb, " %s", kinds[i]);
    }
    gp_strbuf_addc(sb, '\n');
    ++*left_out; /* the builder */
}

void gp_harmless_settings(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        const char *comment = memchr(text + at, '#', n);
        *left_out += comment != NULL;
        size_t kept = comment ? (size_t)(comment - text) - at : n;
        while (kept > 0 && isspace((unsigned char)text[at + kept - 1]))
            kept--;
        if (kept > 0) {
            gp_strbuf_add(sb, text + at, kept);
            gp_strbuf_addc(sb, '\n');
        }
        at += n + 1;
    }
}

/* Whether the next word is a host name, judged by the word before it. */
static bool announces_host(const char *text, size_t n)
{
    static const char *const before[] = {"host", "hostname", "node", "nodename", "server",
                                         "peer", "machine",  "from", "user",     "login"};
    while (n > 0 && strchr(":=", text[n - 1]))
        n--;
    return is_among(before, GP_ARRAY_LEN(before), text, n);
}

static void add_log_line(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    bool is_host = false;
    for (size_t at = 0; at < length;) {
        size_t n = 0;
        char quote = strchr("\"'", text[at]) ? text[at] : '\0';
        if (quote) {
            const char *end = memchr(text + at + 1, quote, length - at - 1);
            n = end ? (size_t)(end - text) - at + 1 : length - at;
            gp_strbuf_addf(sb, "%c…%c", quote, quote);
            ++*left_out;
            at += n;
            continue;
        }
        while (at + n < length && !strchr(" \t\"'", text[at + n]) &&
               (n == 0 || text[at + n - 1] != '='))
            n++;
        bool is_name = is_host && n > 0;
        gp_strbuf_add(sb, is_name ? "HOST" : text + at, is_name ? strlen("HOST") : n);
        *left_out += is_name;
        is_host = n > 0 ? announces_host(text + at, n) : is_host;
        at += n;
        if (at < length && strchr(" \t", text[at]))
            gp_strbuf_addc(sb, text[at++]);
    }
    gp_strbuf_addc(sb, '\n');
}

void gp_harmless_log(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out)
{
    static const char *const meant[] = {"error", "fail", "fatal", "version", "Xid", "abort"};
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - text) - at : length - at;
        bool is_meant = false;
        for (size_t i = 0; i < GP_ARRAY_LEN(meant); i++)
            for (size_t k = 0; k + strlen(meant[i]) <= n && !is_meant; k++)
                is_meant = strncasecmp(text + at + k, meant[i], strlen(meant[i])) == 0;
        if (is_meant)
            add_log_line(sb, text + at, n, left_out);
        *left_out += !is_meant && n > 0;
        at += n + 1;
    }
}
