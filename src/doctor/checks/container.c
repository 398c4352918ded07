/* Inside a container: which parts of the GPUs were passed in. The table of all checks of
 * containers, those on a host as well. */
#include "doctor/checks/container.h"

#include "doctor/checks/driver.h"
#include "doctor/checks/graphics.h"
#include "doctor/readers/access.h"
#include "doctor/readers/install.h"
#include "doctor/readers/opencl.h"
#include "doctor/readers/searchpath.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const char *variable(const struct gp_exam *exam, const char *name)
{
    const char *value = gp_machine_variable(&exam->machine, name);
    return value ? value : "";
}

/* ---- inside ---- */

/* A container on a machine with NVIDIA GPUs: /sys shows the host's GPUs. */
static bool is_inside(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    return m->container && !m->is_wsl && !m->is_jetson &&
           (m->nvidia_count > 0 || variable(exam, "NVIDIA_VISIBLE_DEVICES")[0]);
}

/* Whether the device plugin has given the pod a GPU: it names that, images name none or "all". */
static bool is_given(struct gp_exam *exam)
{
    const char *given = variable(exam, "NVIDIA_VISIBLE_DEVICES");
    return strcmp(exam->machine.container, "kubernetes") == 0 &&
           (strncmp(given, "GPU-", 4) == 0 || strncmp(given, "MIG-", 4) == 0);
}

/* How to request GPUs, by container runtime. */
static void advise_start(struct gp_exam *exam)
{
    const char *container = exam->machine.container;
    if (strcmp(container, "kubernetes") == 0 && is_given(exam))
        gp_exam_advice(exam, "give the pod runtimeClassName: nvidia, or make nvidia the default "
                             "runtime of the node's container engine, and start the pod again");
    else if (strcmp(container, "kubernetes") == 0)
        gp_exam_advice(exam, "request GPUs in the pod: resources: limits: nvidia.com/gpu: 1; the "
                             "node needs NVIDIA's device plugin");
    else if (gp_files_exist(&exam->files, "/usr/bin/distrobox-export"))
        gp_exam_command(exam, "on the host: make the box again, with the driver of the host",
                        "distrobox create --nvidia --image IMAGE --name NAME");
    else if (strcmp(container, "podman") == 0)
        gp_exam_command(exam, "on the host: start a container with all GPUs",
                        "podman run --device nvidia.com/gpu=all …");
    else if (strcmp(container, "apptainer") == 0)
        gp_exam_command(exam, "on the host: --nv adds the driver's libraries",
                        "apptainer exec --nv …");
    else if (gp_machine_is_lxc(&exam->machine))
        gp_container_advise_lxc(exam, GP_PCI_NVIDIA);
    else if (strcmp(container, "docker") == 0)
        gp_exam_command(exam, "on the host: start a container with all GPUs",
                        "docker run --gpus all …");
    else
        gp_exam_advice(exam, "pass the device files /dev/nvidia* and the driver's libraries when "
                             "starting the container");
}

/* One of /dev/nvidia0, nvidia1, … */
static bool has_gpu_file(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, "/dev", &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "nvidia", 6) == 0 && isdigit((unsigned char)names[i][6]))
            return true;
    return false;
}

/* Compute programs need this besides the GPU; the toolkit provides it with "compute". */
static void check_uvm(struct gp_exam *exam)
{
    static const char path[] = "/dev/nvidia-uvm";
    const char *capabilities = variable(exam, "NVIDIA_DRIVER_CAPABILITIES");
    bool is_wanted =
        !capabilities[0] || strstr(capabilities, "all") || strstr(capabilities, "compute");
    if (!is_wanted || gp_files_exist(&exam->files, path))
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "this container has a GPU, but not the device file that CUDA needs");
    gp_exam_evidence(exam, path, "missing");
    gp_exam_why(exam, "nvidia-smi works without it, but CUDA does not: \"CUDA unknown error\", or "
                      "no device at all.");
    gp_exam_command(exam, "on the host: create the file if it is missing there too",
                    "sudo nvidia-modprobe -c0 -u");
    if (strcmp(exam->machine.container, "podman") == 0)
        gp_exam_command(
            exam, "on the host: and so at each boot, which no container without root can do",
            "printf '[Service]\\nType=oneshot\\nExecStart=/usr/bin/nvidia-modprobe -c0 "
            "-u\\n[Install]\\nWantedBy=multi-user.target\\n' | sudo tee "
            "/etc/systemd/system/nvidia-uvm.service && sudo systemctl enable nvidia-uvm");
    if (strcmp(exam->machine.container, "docker") != 0) {
        advise_start(exam);
        return;
    }
    gp_exam_command(exam, "on the host: start a container with all GPUs, and with these files",
                    "docker run --gpus all --device %s --device %s-tools …", path, path);
    gp_exam_advice(exam,
                   "in a compose file: a line \"- %s\" and one \"- %s-tools\" below devices:", path,
                   path);
}

/* An instance of a GPU in MIG mode has device files of its own. */
static void check_instance(struct gp_exam *exam)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"};
    static const char folder[] = "/dev/nvidia-caps";
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *given = variable(exam, names[i]);
        if (strncmp(given, "MIG-", 4) != 0 || gp_files_exist(&exam->files, folder))
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "this container has a GPU, but not the device files of its MIG instance");
        gp_exam_evidence(exam, folder, "missing");
        gp_exam_evidence(exam, names[i], "%s", given);
        gp_exam_why(exam, "A program may use an instance only with its files in that directory. "
                          "CUDA finds no device without them.");
        gp_exam_advice(exam, "name the instance when starting the container, so that NVIDIA's "
                             "toolkit passes its files in, in place of single --device options");
        if (strcmp(exam->machine.container, "docker") == 0)
            gp_exam_command(
                exam, "on the host", "docker run --gpus device=%s …",
                gp_exam_quoted(exam, gp_exam_text(exam, "%.*s", (int)strcspn(given, ","), given)));
        return;
    }
}

/* Device files that were passed in with modes that keep the user out. */
static bool report_access(struct gp_exam *exam)
{
    static const char *const paths[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"};
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        struct gp_access access = gp_access_of(exam, paths[i]);
        if (!access.is_there || !access.is_known || access.may_use)
            continue;
        gp_exam_report(exam, GP_VERDICT_FAIL,
                       "this user has no permission to use the container's GPUs");
        gp_exam_evidence(exam, paths[i], "mode %04o, group %s", access.mode, access.group_name);
        gp_exam_why(exam, "nvidia-smi then reports \"Insufficient Permissions\", and CUDA finds no "
                          "GPU.");
        gp_exam_command(exam, "on the host: the default mode, for all users",
                        "sudo chmod 0666 /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm");
        if (access.group != 0 && (access.mode & 0060) == 0060)
            gp_exam_advice(exam, "or give the container's user the group of the files, number %u",
                           access.group);
        return true;
    }
    return false;
}

static void check_devices(struct gp_exam *exam)
{
    const char *asked = variable(exam, "NVIDIA_VISIBLE_DEVICES");
    const char *missing = !gp_files_exist(&exam->files, "/dev/nvidiactl") ? "/dev/nvidiactl"
                          : !has_gpu_file(exam)                           ? "/dev/nvidia0 …"
                                                                          : NULL;
    if (!missing) {
        if (!report_access(exam)) {
            check_uvm(exam);
            check_instance(exam);
        }
        return;
    }
    gp_exam_report(exam, GP_VERDICT_FAIL, "this container has no GPU");
    gp_exam_evidence(exam, missing, "missing");
    if (exam->machine.nvidia_count > 0)
        gp_exam_evidence(exam, "/sys/bus/pci/devices", "the host has %zu",
                         exam->machine.nvidia_count);
    if (strcmp(asked, "void") == 0 || strcmp(asked, "none") == 0)
        gp_exam_evidence(exam, "NVIDIA_VISIBLE_DEVICES", "%s: no device requested", asked);
    if (is_given(exam)) {
        gp_exam_evidence(exam, "NVIDIA_VISIBLE_DEVICES", "%s: Kubernetes has given it one", asked);
        gp_exam_why(exam, "NVIDIA's runtime passes in the GPU that the variable names. This pod "
                          "runs with another runtime.");
    }
    advise_start(exam);
}

/* Control groups v1 list the allowed devices; v2 shows nothing. */
static void check_control_group(struct gp_exam *exam)
{
    char text[4096];
    static const char path[] = "/sys/fs/cgroup/devices/devices.list";
    long read = gp_files_read(&exam->files, path, text, sizeof(text));
    if (read < 0 && read != -ENOENT && read != -ENOTDIR)
        gp_exam_unreadable(exam, path, (int)read);
    if (read < 0)
        return;
    bool allows = false;
    const char *denied = NULL;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        bool is_all = *line == 'a';
        bool is_gpu = strncmp(line, "c 195:", 6) == 0 || strncmp(line, "c *:*", 5) == 0;
        size_t n = strcspn(line, "\n");
        bool may_use = memchr(line + (n > 6 ? 6 : 0), 'r', n > 6 ? n - 6 : 0);
        allows = allows || is_all || (is_gpu && may_use);
        if (is_gpu && !may_use && !denied && line[2] == '1')
            denied = gp_exam_text(exam, "%.*s", (int)n, line);
    }
    if (allows)
        return;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the container's control group denies access to its GPUs");
    gp_exam_evidence(exam, path, "%s", denied ? denied : "no line allows major number 195");
    gp_exam_why(exam, "A running container loses its GPUs when the host's systemd reloads its "
                      "units (systemctl daemon-reload) and rewrites the device rules without them; "
                      "NVML then reports Unknown Error.");
    gp_exam_advice(exam, "restart the container");
    gp_exam_command(exam, "on the host, to prevent it from happening again",
                    "sudo nvidia-ctk system create-dev-char-symlinks --create-all");
    gp_exam_link(exam, "https://github.com/NVIDIA/nvidia-docker/issues/1730");
}

/* Whether the loader would find it: in its own directories, or in those that the image adds. */
static bool has_library(struct gp_exam *exam, const char *name)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *list = variable(exam, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    for (size_t i = 0; i < in->library_count; i++)
        if (strcmp(in->libraries[i].name, name) == 0)
            return true;
    while (gp_search_path_next(&list, ":;", folder))
        if (folder[0] == '/' &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, name)))
            return true;
    return false;
}

/* Only device files, passed in without NVIDIA's toolkit, or not all libraries. */
static void check_libraries(struct gp_exam *exam)
{
    static const struct {
        const char *name, *words;
        enum gp_verdict verdict;
    } needed[] = {{"libcuda.so.1", "CUDA's library is not in this container", GP_VERDICT_FAIL},
                  {"libnvidia-ml.so.1", "NVML is not in this container", GP_VERDICT_WARN}};
    if (!has_library(exam, "libcuda.so.1") && gp_container_report_default(exam))
        return;
    for (size_t i = 0; i < GP_ARRAY_LEN(needed); i++) {
        if (has_library(exam, needed[i].name))
            continue;
        gp_exam_report(exam, needed[i].verdict, "%s", needed[i].words);
        gp_exam_evidence(exam, needed[i].name, "not in any library directory");
        gp_exam_why(exam,
                    "The libraries must come from the host, in the version of its module; NVIDIA's "
                    "container toolkit provides them together with the device files.");
        advise_start(exam);
        return;
    }
}

/* Alpine's images, unless a loader for glibc was added. */
static bool report_musl(struct gp_exam *exam)
{
    const char *arch = exam->machine.arch;
    const char *musl = gp_exam_text(exam, "/lib/ld-musl-%s.so.1", arch);
    static const char *const loaders[] = {
        "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"};
    if (!gp_files_exist(&exam->files, musl))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(loaders); i++)
        if (gp_files_exist(&exam->files, loaders[i]))
            return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the driver's libraries do not work in this image: it has musl, not glibc");
    gp_exam_evidence(exam, musl, "present");
    gp_exam_evidence(exam, "glibc's loader", "missing");
    gp_exam_why(exam, "NVIDIA's libraries and programs, which come from the host, need glibc: "
                      "nvidia-smi is \"not found\", and CUDA cannot be loaded.");
    gp_exam_advice(exam, "use an image of Debian, Ubuntu or another distribution with glibc, such "
                         "as nvidia/cuda, in place of Alpine's");
    return true;
}

static void check_capabilities(struct gp_exam *exam)
{
    if (report_musl(exam))
        return;
    const struct gp_finding *before = exam->last;
    const char *given = variable(exam, "NVIDIA_DRIVER_CAPABILITIES");
    static const struct {
        const char *word, *lacks;
        enum gp_verdict verdict;
    } needed[] = {
        {"compute", "CUDA's library (libcuda) was not passed to the container", GP_VERDICT_FAIL},
        {"utility", "nvidia-smi and NVML were not passed to the container", GP_VERDICT_WARN}};
    for (size_t i = 0; given[0] && !strstr(given, "all") && i < GP_ARRAY_LEN(needed); i++) {
        if (strstr(given, needed[i].word))
            continue;
        gp_exam_report(exam, needed[i].verdict, "%s: not requested by the container",
                       needed[i].lacks);
        gp_exam_evidence(exam, "NVIDIA_DRIVER_CAPABILITIES", "%s", given);
        gp_exam_advice(exam, "start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    }
    if (exam->last == before)
        check_libraries(exam);
}

/* ---- what programs in it need besides ---- */

/* Programs that use a part of the driver which the toolkit passes in only on request. */
static const struct {
    const char *capability, *library, *words;
    size_t devoted;          /* number of programs at the start that have little other use */
    const char *programs[8]; /* up to NULL */
} parts[] = {
    {"video",
     "libnvidia-encode.so.1",
     "the libraries that encode and decode video",
     4,
     {"/usr/lib/jellyfin-ffmpeg/ffmpeg", "/usr/lib/plexmediaserver/Plex Transcoder",
      "/usr/bin/HandBrakeCLI", "/usr/bin/obs", "/usr/bin/ffmpeg", "/usr/local/bin/ffmpeg"}},
    {"graphics",
     "libGLX_nvidia.so.0",
     "the libraries for OpenGL and Vulkan",
     0,
     {"/usr/bin/vulkaninfo", "/usr/bin/vkcube", "/usr/bin/glxinfo", "/usr/bin/eglinfo",
      "/usr/bin/blender", "/usr/bin/glxgears"}},
};

enum { GRAPHICS = 1 }; /* the row */

/* The first of its programs that the image has, in the row; NULL there: none. */
static const char *const *program_of(struct gp_exam *exam, size_t part)
{
    const char *const *program = parts[part].programs;
    while (*program && !gp_files_exist(&exam->files, *program))
        program++;
    return program;
}

/* The variable is a list of words; "all" is everything. */
static bool is_requested(const char *list, const char *word)
{
    char entry[GP_PATH_SIZE];
    while (gp_search_path_next(&list, ",", entry))
        if (strcmp(entry, word) == 0 || strcmp(entry, "all") == 0)
            return true;
    return false;
}

static bool has_part(struct gp_exam *exam, const char *library)
{
    return gp_system_library(exam, "", library) ||
           gp_files_exist(&exam->files,
                          gp_exam_text(exam, "/usr/local/nvidia/lib64/%s", library)) ||
           has_library(exam, library);
}

static void check_opencl(struct gp_exam *exam)
{
    const char *program = gp_opencl_program(exam);
    if (!has_part(exam, "libOpenCL.so.1") || !has_part(exam, "libnvidia-opencl.so.1") ||
        gp_graphics_knows_opencl(exam, "nvidia"))
        return;
    gp_exam_report(exam, program ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "OpenCL programs in this container find no NVIDIA GPU");
    gp_exam_evidence(exam, GP_OPENCL_VENDORS "/nvidia.icd", "missing");
    gp_exam_evidence(exam, "libnvidia-opencl.so.1", "present");
    if (program)
        gp_exam_evidence(exam, program, "present: it uses OpenCL");
    gp_exam_why(exam,
                "OpenCL's loader reads from the files there which libraries to load; NVIDIA's "
                "container toolkit passes in the library, but not always the file.");
    gp_exam_command(exam, "in the image, as root",
                    "mkdir -p " GP_OPENCL_VENDORS
                    " && echo libnvidia-opencl.so.1 > " GP_OPENCL_VENDORS "/nvidia.icd");
}

/* What the toolkit passes in if the image and the user request nothing. */
static const char default_parts[] = "compute,utility";

static void check_parts(struct gp_exam *exam)
{
    const char *set = variable(exam, "NVIDIA_DRIVER_CAPABILITIES");
    const char *gpus = variable(exam, "NVIDIA_VISIBLE_DEVICES"); /* the toolkit has read it */
    const char *given = set[0] ? set : gpus[0] ? default_parts : "";
    for (size_t i = 0; given[0] && i < GP_ARRAY_LEN(parts); i++) {
        const char *const *program = program_of(exam, i);
        if (!*program || is_requested(given, parts[i].capability) ||
            has_part(exam, parts[i].library))
            continue;
        bool is_devoted = (size_t)(program - parts[i].programs) < parts[i].devoted;
        gp_exam_report(exam, set[0] || is_devoted ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "this container lacks %s", parts[i].words);
        gp_exam_evidence(exam, "NVIDIA_DRIVER_CAPABILITIES", "%s: without %s",
                         set[0] ? set : gp_exam_text(exam, "not set, like %s", default_parts),
                         parts[i].capability);
        gp_exam_evidence(exam, parts[i].library, "not in any library directory");
        gp_exam_evidence(exam, *program, "present: it can use them");
        gp_exam_why(exam, "NVIDIA's container toolkit passes in only the parts of the driver that "
                          "the variable lists; programs then find no encoder or no GPU.");
        gp_exam_advice(exam,
                       "start the container with NVIDIA_DRIVER_CAPABILITIES=%s,%s, or with "
                       "all",
                       given, parts[i].capability);
    }
    const char *program = *program_of(exam, GRAPHICS);
    check_opencl(exam);
    gp_driver_check_nvenc(exam);
    if (program)
        gp_driver_check_registers(exam);
    gp_container_check_glibc(exam, program);
}

static void check_incus(struct gp_exam *exam)
{
    if (!gp_container_report_incus(exam))
        gp_container_check_lxc_hook(exam);
}

const struct gp_check gp_checks_container[] = {
    {"container.devices", "the container has GPUs", {NULL}, is_inside, check_devices},
    {"container.cgroup",
     "the container may use its GPUs",
     {"container.devices"},
     is_inside,
     check_control_group},
    {"container.capabilities",
     "the container has the driver's libraries",
     {"container.devices"},
     is_inside,
     check_capabilities},
    {"container.parts",
     "the container has the parts of the driver that its programs use",
     {"container.devices", "container.capabilities"},
     is_inside,
     check_parts},
    {"container.desktop",
     "docker's containers run on this system",
     {NULL},
     gp_container_has_desktop,
     gp_container_check_desktop},
    {"container.toolkit",
     "containers can use GPUs",
     {NULL},
     gp_container_may_start,
     gp_container_check_toolkit},
    {"container.docker",
     "NVIDIA's runtime is configured in docker",
     {NULL},
     gp_container_has_docker,
     gp_container_check_docker},
    {"container.nixos",
     "docker on NixOS has NVIDIA's runtime",
     {NULL},
     gp_container_is_nixos,
     gp_container_check_nixos},
    {"container.containerd",
     "Kubernetes' containers get NVIDIA's runtime",
     {NULL},
     gp_container_has_kubelet,
     gp_container_check_kubelet},
    {"container.crio",
     "CRI-O uses NVIDIA's hook",
     {NULL},
     gp_container_has_crio,
     gp_container_check_crio},
    {"container.cdi",
     "containers get the libraries of this driver",
     {"driver.loaded"},
     gp_container_has_cdi,
     gp_container_check_cdi},
    {"container.asked",
     "the CDI devices that pods ask for are there",
     {"driver.loaded"},
     gp_container_has_asked,
     gp_container_check_asked},
    {"container.selinux",
     "SELinux lets containers use GPUs",
     {NULL},
     gp_container_has_selinux,
     gp_container_check_selinux},
    {"container.podman",
     "podman knows the GPUs",
     {NULL},
     gp_container_has_podman,
     gp_container_check_podman},
    {"container.cgroups-off",
     "containers may use their devices",
     {NULL},
     gp_container_has_config,
     gp_container_check_cgroups},
    {"container.rootless",
     "docker without root knows NVIDIA's runtime",
     {NULL},
     gp_container_is_rootless,
     gp_container_check_rootless},
    {"container.operator",
     "the GPU Operator's toolkit finds the driver and the container engine",
     {"driver.libraries"},
     gp_container_has_operator,
     gp_container_check_operator},
    {"container.nested",
     "docker in this LXC container can pass GPUs on",
     {"container.devices"},
     gp_container_is_nested,
     gp_container_check_nested},
    {"container.narrow",
     "32-bit programs in containers get the driver's libraries",
     {"container.toolkit"},
     gp_container_has_narrow,
     gp_container_check_narrow},
    {"container.mode",
     "the runtime has what its mode needs",
     {NULL},
     gp_container_has_mode,
     gp_container_check_mode},
    {"container.version",
     "the toolkit is new enough for the driver and the system",
     {NULL},
     gp_container_has_version,
     gp_container_check_version},
    {"container.engine",
     "the container engine knows how to pass GPUs",
     {NULL},
     gp_container_has_old_engine,
     gp_container_check_engine},
    {"container.refused",
     "no container was refused for its image or for an old toolkit",
     {"driver.loaded"},
     gp_container_has_refused,
     gp_container_check_refused},
    {"container.ldconfig",
     "the toolkit can update a container's library cache",
     {NULL},
     gp_container_has_ldconfig,
     gp_container_check_ldconfig},
    {"container.lxc",
     "LXC containers may open the device files of their GPUs",
     {"driver.loaded"},
     gp_container_has_guests,
     gp_container_check_guests},
    {"container.given",
     "docker's containers are given the GPUs that they ask for",
     {"container.devices"},
     gp_container_has_given,
     gp_container_check_given},
    {"container.incus",
     "LXC has the tool that passes NVIDIA's driver into containers",
     {"driver.loaded"},
     gp_container_has_incus,
     check_incus},
    {"container.compose",
     "compose knows the way by which its file asks for GPUs",
     {NULL},
     gp_container_has_compose,
     gp_container_check_compose},
    {"container.singularity",
     "Singularity finds the driver's libraries",
     {"driver.libraries"},
     gp_container_has_singularity,
     gp_container_check_singularity},
    {"container.nvlist",
     "the option --nv passes the driver's libraries through",
     {"driver.libraries"},
     gp_container_has_nvlist,
     gp_container_check_nvlist},
    {"container.preload",
     "no library that is loaded into all programs is known to break the container toolkit",
     {"driver.loaded"},
     gp_container_has_preload,
     gp_container_check_preload},
    {"container.release",
     "the container engine is no release that breaks GPUs",
     {NULL},
     gp_container_has_faulty_release,
     gp_container_check_release},
    {"container.keep_groups",
     "podman's containers without root keep the groups that may use GPUs",
     {NULL},
     gp_container_has_keep_groups,
     gp_container_check_keep_groups},
    {0},
};
