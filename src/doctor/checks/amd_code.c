/* Whether ROCm's libraries, or those of PyTorch, have code for the AMD GPUs. */
#include "doctor/checks/amd.h"
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/variable_fix.h"
#include "doctor/readers/gfxchip.h"
#include "doctor/readers/gfxlist.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/services.h"
#include "doctor/readers/torch.h"
#include "doctor/tables.h"
#include "doctor/version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char override_name[] = "HSA_OVERRIDE_GFX_VERSION";

/* Variables that show programs only some of the GPUs, which they count in the kernel's order. */
static const char *const masks[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                    "CUDA_VISIBLE_DEVICES"};

/* ---- the GPUs ---- */

/* "gfx1030" of version 100300 in its properties, or of "10.3.0" in the variable. */
static void name_of(unsigned long major, unsigned long minor, unsigned long step,
                    char ret[GP_GFX_NAME])
{
    (void)snprintf(ret, GP_GFX_NAME, "gfx%lu%lx%lx", major % 1000, minor & 0xf, step & 0xf);
}

bool gp_amd_read_override(const char *value, char ret[GP_GFX_NAME])
{
    char *end = NULL;
    unsigned long numbers[3] = {0};
    for (size_t i = 0; value && i < GP_ARRAY_LEN(numbers); i++) {
        numbers[i] = strtoul(value, &end, 10);
        value = *end == '.' ? end + 1 : NULL;
    }
    if (numbers[0] == 0)
        return false;
    name_of(numbers[0], numbers[1], numbers[2], ret);
    return true;
}

/* By the PCI devices, where the kernel's list is missing. */
static void read_chips(const struct gp_exam *exam, struct gp_gfxlist *ret)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count && ret->count < GP_GFX_NAMES; i++) {
        const char *name = gp_gfx_of_chip(m->gpus[i].device);
        if (m->gpus[i].vendor == GP_PCI_AMD && name[0] && strcmp(m->gpus[i].driver, "amdgpu") == 0)
            (void)snprintf(ret->names[ret->count++], GP_GFX_NAME, "%s", name);
    }
}

static const char nodes_folder[] = GP_AMD_NODES;

/* A number in a node's "simd_count 256\n"; −1: it has none, or may not be read, as for GPUs that a
 * cgroup forbids. */
static long property(struct gp_exam *exam, const char *node, const char *name)
{
    char path[300], text[8192];
    (void)snprintf(path, sizeof(path), "%s/%.40s/properties", nodes_folder, node);
    if (gp_files_read(&exam->files, path, text, sizeof(text)) < 0)
        return -1;
    const char *found = strstr(text, name);
    return found ? strtol(found + strlen(name), NULL, 10) : -1;
}

long gp_amd_count_nodes(struct gp_exam *exam)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, nodes_folder, &names), count = 0;
    bool is_known = n > 0;
    for (long i = 0; i < n; i++) {
        long units = property(exam, names[i], "simd_count ");
        count += units > 0;
        is_known = is_known && units >= 0;
    }
    return count > 0 || is_known ? count : -1;
}

const char *gp_amd_targets(struct gp_exam *exam, struct gp_gfxlist *ret)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, nodes_folder, &names);
    *ret = (struct gp_gfxlist){.count = 0};
    for (long i = 0; i < n && ret->count < GP_GFX_NAMES; i++) {
        long found = property(exam, names[i], "gfx_target_version ");
        unsigned long version = found > 0 ? (unsigned long)found : 0; /* 0: a CPU */
        if (version > 0)
            name_of(version / 10000, version / 100 % 100, version % 100, ret->names[ret->count++]);
    }
    if (n >= 0 && (ret->count > 0 || gp_amd_count_nodes(exam) <= 0))
        return nodes_folder;
    read_chips(exam, ret); /* older kernels do not tell the version */
    return "/sys/bus/pci/devices";
}

/* A GPU with the same instructions, whose code this one runs if it is taken for it. */
struct relative {
    const char *family; /* the beginning of its name */
    const char *like, *version;
};

/* From reports of users: AMD supports none of this. */
static const struct relative relatives[] = {
    {"gfx103", "gfx1030", "10.3.0"}, {"gfx110", "gfx1100", "11.0.0"},
    {"gfx115", "gfx1100", "11.0.0"}, {"gfx101", "gfx1010", "10.1.0"},
    {"gfx90c", "gfx900", "9.0.0"},   {"gfx902", "gfx900", "9.0.0"},
    {"gfx120", "gfx1201", "12.0.1"},
};

static const struct relative *relative_of(const char *name, const struct gp_gfxlist *list)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(relatives); i++)
        if (strncmp(name, relatives[i].family, strlen(relatives[i].family)) == 0 &&
            strcmp(name, relatives[i].like) != 0 && gp_gfxlist_has(list, relatives[i].like))
            return &relatives[i];
    return NULL;
}

/* ---- what is installed ---- */

/* What rocBLAS is built for (its CMakeLists.txt, TARGET_LIST_ROCM_…), where its files are missing:
 * GPUs that no version before the first, or from the end on, is built for. */
static const struct {
    const char *name;
    const char *first, *end; /* versions of ROCm; first "": none */
} unserved[] = {
    {"gfx902", "", ""},     {"gfx909", "", ""},    {"gfx90c", "", ""},     {"gfx1011", "", ""},
    {"gfx1013", "", ""},    {"gfx1031", "", ""},   {"gfx1032", "", ""},    {"gfx1033", "", ""},
    {"gfx1034", "", ""},    {"gfx1035", "", ""},   {"gfx1036", "", ""},    {"gfx803", "3.0", "6.0"},
    {"gfx942", "5.7", ""},  {"gfx950", "7.0", ""}, {"gfx1100", "5.4", ""}, {"gfx1101", "5.5", ""},
    {"gfx1102", "5.4", ""}, {"gfx1103", "7", ""},  {"gfx1150", "7", ""},   {"gfx1151", "6.3", ""},
    {"gfx1152", "7", ""},   {"gfx1153", "7", ""},  {"gfx1200", "6.3", ""}, {"gfx1201", "6.3", ""},
};

static bool is_unserved(const char *name, const char *rocm)
{
    for (size_t i = 0; rocm[0] && i < GP_ARRAY_LEN(unserved); i++)
        if (strcmp(unserved[i].name, name) == 0)
            return !unserved[i].first[0] || gp_version_compare(rocm, unserved[i].first) < 0 ||
                   (unserved[i].end[0] && gp_version_compare(rocm, unserved[i].end) >= 0);
    return false;
}

static const char *words_of(struct gp_exam *exam, const struct gp_gfxlist *list)
{
    const char *words = "";
    for (size_t i = 0; i < list->count; i++)
        words = gp_exam_text(exam, "%s%s%s", words, *words ? " " : "", list->names[i]);
    return words;
}

struct library {
    const struct gp_pyenv *env; /* NULL: the system's ROCm */
    const char *torch;          /* its version, "2.5.0+rocm6.2"; NULL likewise */
    const char *words;          /* "PyTorch 2.5.0 in /home/ada/venv" */
    const char *where;
    const char *place; /* which says what the GPUs are */
    const char *rocm;
    bool is_wheel;          /* PyTorch's own */
    struct gp_gfxlist list; /* empty: unknown */
};

/* PyTorch's own builds have no code for these before a release ("": in none): since the first in
 * 1.8 for gfx803 (ROCm/legacy-rocm-build#1471); pytorch/builder, PYTORCH_ROCM_ARCH. */
static bool is_without(const char *name, const struct library *library)
{
    static const struct {
        const char *name, *first;
    } wheels[] = {{"gfx803", ""},  {"gfx1010", ""},    {"gfx1011", ""},
                  {"gfx1012", ""}, {"gfx1101", "2.6"}, {"gfx1102", "2.6"}};
    for (size_t i = 0; library->is_wheel && i < GP_ARRAY_LEN(wheels); i++)
        if (strcmp(name, wheels[i].name) == 0 &&
            (!wheels[i].first[0] || gp_version_compare(library->torch, wheels[i].first) < 0))
            return true;
    return is_unserved(name, library->rocm);
}

/* The place of the GPU that is meant for computing: one of the cards, if there are any. */
static size_t meant_place(const struct gp_gfxlist *targets)
{
    for (size_t i = 0; i < targets->count; i++)
        if (!gp_gfx_is_integrated(targets->names[i]))
            return i;
    return 0;
}

/* The GPU meant for computing, if there is no code for any; NULL: one of them has, or it is
 * unknown. */
static const char *find_missing(const struct gp_gfxlist *targets, const struct library *library)
{
    for (size_t i = 0; i < targets->count; i++)
        if (library->list.count > 0 ? gp_gfxlist_has(&library->list, targets->names[i])
                                    : !is_without(targets->names[i], library))
            return NULL;
    return targets->count > 0 ? targets->names[meant_place(targets)] : NULL;
}

/* What builds have code for, where their files do not say. */
static void assume_targets(struct gp_gfxlist *list, bool is_wheel)
{
    const char *names =
        is_wheel ? "=gfx900 =gfx1030 =gfx1100" : "=gfx900 =gfx1010 =gfx1030 =gfx1100";
    gp_gfxlist_find(list, names, strlen(names), "=");
}

/* The newest release for ROCm and this Python; NULL: the installed one is as new. */
static const struct gp_torch_rocm *newest_release(const struct library *library)
{
    const char *python = library->env->python;
    for (size_t i = gp_torch_rocm_count; i > 0; i--) {
        const struct gp_torch_rocm *row = &gp_torch_rocms[i - 1];
        struct gp_build build;
        if (python[0] && gp_build_known(GP_FRAMEWORK_TORCH, row->torch, "", &build) &&
            (gp_version_compare(python, build.first_python) < 0 ||
             (build.last_python[0] && gp_version_compare(python, build.last_python) > 0)))
            continue;
        return gp_version_compare(library->torch, row->torch) < 0 ? row : NULL;
    }
    return NULL;
}

/* Whether a release of PyTorch may have code for this GPU: the first of its own builds that has,
 * for those that came late. */
static bool may_have_code(const char *torch, const char *name)
{
    static const struct {
        const char *family, *torch;
    } firsts[] = {{"gfx115", "2.11"}, {"gfx1103", "2.11"}, {"gfx120", "2.7"}};
    for (size_t i = 0; i < GP_ARRAY_LEN(firsts); i++)
        if (strncmp(name, firsts[i].family, strlen(firsts[i].family)) == 0)
            return gp_version_compare(torch, firsts[i].torch) >= 0;
    return true;
}

static void propose_newer(struct gp_exam *exam, const struct library *library, const char *name,
                          bool is_other_way)
{
    const struct gp_torch_rocm *row = newest_release(library);
    struct gp_build build;
    if (row && !may_have_code(row->torch, name)) {
        row = &gp_torch_rocms[gp_torch_rocm_count - 1];
        if (gp_build_known(GP_FRAMEWORK_TORCH, row->torch, "", &build))
            gp_exam_advice(exam,
                           "%sinstall PyTorch %s in a new environment with Python %s or newer: "
                           "those for Python %s have no code for this GPU either",
                           is_other_way ? "or, instead of that, " : "", row->torch,
                           build.first_python, library->env->python);
        return;
    }
    if (!row)
        return;
    if (is_other_way)
        gp_exam_advice(exam, "or, instead of that, install a newer PyTorch, for newer GPUs:");
    gp_exam_torch(exam, library->env, is_other_way ? "" : "newer builds know newer GPUs",
                  gp_exam_text(exam, "'torch==%s.*'", row->torch),
                  gp_exam_text(exam, "https://download.pytorch.org/whl/rocm%s", row->rocm));
}

const char *gp_amd_wheel_override(struct gp_exam *exam, const char *torch, const char *rocm,
                                  const char **ret_name)
{
    const struct library library = {.torch = torch, .rocm = rocm, .is_wheel = true};
    struct gp_gfxlist targets, assumed = {.count = 0};
    (void)gp_amd_targets(exam, &targets);
    const char *name = gp_machine_variable(&exam->machine, override_name)
                           ? NULL
                           : find_missing(&targets, &library);
    assume_targets(&assumed, true);
    const struct relative *like = name ? relative_of(name, &assumed) : NULL;
    *ret_name = name ? gp_exam_text(exam, "%s", name) : "";
    return like ? like->version : NULL;
}

static bool is_masked(const struct gp_exam *exam)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(masks); i++)
        if (gp_machine_variable(&exam->machine, masks[i]))
            return true;
    return false;
}

/* Leaves those whose numbers are in this mask, up to the first that is none of a GPU, as "-1"; all,
 * if there is no mask, or it has other names ("GPU-…"). */
static void apply_mask(struct gp_gfxlist *list, const char *value)
{
    struct gp_gfxlist left = {.count = 0};
    while (value && *value && left.count < GP_GFX_NAMES) {
        char *end;
        long place = strtol(value, &end, 10);
        if (end == value)
            return;
        if (place < 0 || (unsigned long)place >= list->count)
            break;
        memcpy(left.names[left.count++], list->names[place], GP_GFX_NAME);
        value = *end == ',' ? end + 1 : "";
    }
    if (value)
        *list = left;
}

/* The GPUs that programs see: HIP counts those that ROCR shows it. */
static struct gp_gfxlist shown_of(const struct gp_exam *exam, const struct gp_gfxlist *targets)
{
    const struct gp_machine *m = &exam->machine;
    struct gp_gfxlist shown = *targets;
    const char *hip = gp_machine_variable(m, "HIP_VISIBLE_DEVICES");
    apply_mask(&shown, gp_machine_variable(m, "ROCR_VISIBLE_DEVICES"));
    apply_mask(&shown, hip ? hip : gp_machine_variable(m, "CUDA_VISIBLE_DEVICES"));
    return shown;
}

/* Whether programs take the GPU that is a part of the processor, as it is the first, and not the
 * card beside it (ROCm/legacy-rocm-build#3401). */
static bool is_before_card(const struct gp_exam *exam, const struct gp_gfxlist *targets)
{
    return meant_place(targets) > 0 && !is_masked(exam);
}

static void report(struct gp_exam *exam, const struct library *library,
                   const struct gp_gfxlist *targets, const char *name, bool is_overridden)
{
    bool is_second = !is_overridden && is_before_card(exam, targets);
    struct gp_gfxlist assumed = library->list;
    if (assumed.count == 0)
        assume_targets(&assumed, library->is_wheel);
    const struct relative *like = relative_of(name, &assumed);
    gp_exam_report(exam, library->env ? gp_pyenv_verdict(library->env, true) : GP_VERDICT_WARN,
                   is_second ? "%s has no code for the AMD GPU %s, nor for the integrated one "
                               "(%s), which programs take first"
                             : "%s has no code for this AMD GPU (%s)",
                   library->words, name, targets->names[0]);
    gp_exam_evidence(exam, is_overridden ? override_name : library->place, "%s",
                     is_second ? words_of(exam, targets) : name);
    gp_exam_evidence(exam, library->where, "%s",
                     library->list.count > 0
                         ? gp_exam_text(exam, "built for %s", words_of(exam, &library->list))
                         : gp_exam_text(exam, "ROCm %s: not built for %s", library->rocm, name));
    gp_exam_why(exam, "Programs see the GPU, but the first kernel fails: \"invalid device "
                      "function\", \"no kernel image is available\" or \"Cannot read "
                      "TensileLibrary.dat\".");
    if (is_second)
        gp_exam_command(exam, "let programs see only the card; rocminfo lists the GPUs",
                        "export HIP_VISIBLE_DEVICES=%zu", meant_place(targets));
    if (like && !is_overridden)
        gp_exam_command(exam,
                        gp_exam_text(exam,
                                     "have it taken for a %s, which runs the same code; AMD "
                                     "does not support this",
                                     like->like),
                        "export %s=%s", override_name, like->version);
    else if (is_overridden)
        gp_exam_command(exam, "and remove it where it is set", "unset %s", override_name);
    bool is_new = strlen(name) == 7 && strncmp(name, "gfx11", 5) >= 0;
    if (library->env && is_new)
        propose_newer(exam, library, name, like && !is_overridden);
    if (!like && !is_overridden && !library->env)
        gp_exam_advice(exam, is_new ? "install a newer ROCm: newer ones are built for newer GPUs"
                                    : "install an older ROCm: AMD has dropped this GPU");
    if (!like && !is_overridden)
        gp_exam_advice(exam,
                       library->env ? "use a build of PyTorch that has %s: build it from source "
                                      "with PYTORCH_ROCM_ARCH=%s"
                                    : "or use a build of the program and of rocBLAS that has %s: "
                                      "build them from source with GPU_TARGETS=%s",
                       name, name);
}

/* One of the GPUs, mostly an integrated one, has no code: PyTorch sees it, too, and may stumble
 * over it (pytorch/pytorch#119637). The place of a GPU that has code, in the kernel's order. */
static void report_partial(struct gp_exam *exam, const struct gp_gfxlist *targets,
                           const struct library *library)
{
    const char *bare = NULL;
    size_t place = 0;
    if (is_masked(exam))
        return;
    for (size_t i = targets->count; i > 0; i--) {
        struct gp_gfxlist one = {.count = 1};
        memcpy(one.names[0], targets->names[i - 1], sizeof(one.names[0]));
        if (find_missing(&one, library))
            bare = targets->names[i - 1];
        else
            place = i - 1;
    }
    if (!bare || !library->env->is_active)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "%s has code for one AMD GPU, but not for the other (%s), which it sees, too",
                   library->words, bare);
    gp_exam_evidence(exam, library->place, "%s", words_of(exam, targets));
    gp_exam_why(exam, "Programs crash or hang when the runtime starts on both: \"shared object "
                      "initialization failed\", \"device kernel image is invalid\".");
    gp_exam_command(exam, "let it see only the other one", "export HIP_VISIBLE_DEVICES=%zu", place);
    gp_exam_advice(exam,
                   "if that is the wrong one, use another number (rocminfo lists them); or turn "
                   "the integrated GPU off in the firmware settings");
}

enum answer { UNKNOWN, HAS_CODE, REPORTED };

static enum answer judge(struct gp_exam *exam, const struct gp_gfxlist *targets,
                         const struct library *library)
{
    struct gp_gfxlist taken = {.count = 1};
    const char *value = gp_machine_variable(&exam->machine, override_name);
    struct gp_service_setting set[1];
    /* Where a service is configured, it is what uses this ROCm; an environment of Python is a
     * user's. */
    if (!value && !library->env && gp_service_settings(exam, override_name, set, 1) > 0 &&
        gp_amd_read_override(set[0].value, taken.names[0]) && !find_missing(&taken, library))
        value = set[0].value;
    bool is_overridden = gp_amd_read_override(value, taken.names[0]);
    struct gp_gfxlist shown = is_overridden ? taken : shown_of(exam, targets);
    const char *name = find_missing(&shown, library);
    if (name)
        report(exam, library, targets, name, is_overridden);
    else if (library->env && !is_overridden)
        report_partial(exam, targets, library);
    return name ? REPORTED : library->list.count > 0 ? HAS_CODE : UNKNOWN;
}

/* Of the environments with a PyTorch for ROCm, the first with a problem is reported; false: there
 * is no such environment. */
static bool judge_torches(struct gp_exam *exam, const struct gp_gfxlist *targets, const char *place,
                          enum answer *answer)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    uint64_t budget = 1 << 30;
    struct gp_torch torch;
    bool is_any = false;
    for (size_t i = 0; i < envs->count && *answer != REPORTED; i++) {
        const struct gp_pyenv *env = &envs->list[i];
        char path[GP_PATH_SIZE] = "";
        if (!gp_pyenv_torch(exam, env, &torch) || !torch.hip[0])
            continue;
        struct library library = {
            .env = env,
            .torch = gp_exam_text(exam, "%s", torch.version),
            .place = place,
            .words = gp_exam_text(exam, "PyTorch %s in %s", torch.version, env->prefix),
            .rocm = gp_exam_text(exam, "%s", torch.hip),
            .is_wheel = strstr(torch.version, "+rocm") != NULL};
        is_any = true;
        if (gp_pyenv_path(env, "torch/lib/libtorch_hip.so", path))
            gp_gfxlist_of_library(&library.list, &exam->files, path, &budget);
        if (library.list.count == 0 && gp_pyenv_path(env, "torch/lib/rocblas/library", path))
            gp_gfxlist_of_folder(&library.list, &exam->files, &exam->arena, path);
        if (library.list.count == 0)
            (void)gp_pyenv_path(env, "torch/version.py", path);
        library.where = gp_exam_text(exam, "%s", path);
        *answer = judge(exam, targets, &library);
    }
    return is_any;
}

static void judge_system(struct gp_exam *exam, const struct gp_gfxlist *targets, const char *place,
                         enum answer *answer)
{
    static const char version_path[] = "/opt/rocm/.info/version";
    static const char *const folders[] = {"/opt/rocm/lib/rocblas/library",
                                          "/opt/rocm/rocblas/lib/library",
                                          "/usr/lib64/rocblas/library", "/usr/lib/rocblas/library",
                                          "/usr/lib/x86_64-linux-gnu/rocblas/library"};
    char version[64] = "";
    struct library library = {.words = "ROCm", .where = version_path, .place = place};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && library.list.count == 0; i++) {
        gp_gfxlist_of_folder(&library.list, &exam->files, &exam->arena, folders[i]);
        if (library.list.count > 0)
            library.where = folders[i];
    }
    bool has_version = gp_files_line(&exam->files, version_path, version, sizeof(version));
    library.rocm = version;
    if (has_version)
        library.words = gp_exam_text(exam, "ROCm %s", version);
    if (has_version || library.list.count > 0)
        *answer = judge(exam, targets, &library);
}

/* ---- masks ---- */

/* The variables that hide GPUs from ROCm's programs; CUDA's is read by them, too. */
void gp_amd_check_masks(struct gp_exam *exam)
{
    static const char *const names[] = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                        "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES"};
    struct gp_gfxlist targets;
    (void)gp_amd_targets(exam, &targets);
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = gp_machine_variable(&exam->machine, names[i]);
        char *end;
        unsigned long first = value ? strtoul(value, &end, 10) : 0;
        if (!value)
            continue;
        bool is_hiding = !value[0] || value[0] == '-';
        bool is_beyond = !is_hiding && end != value && targets.count > 0 && first >= targets.count;
        if (!is_hiding && !is_beyond)
            continue;
        gp_exam_report(exam, GP_VERDICT_WARN,
                       is_hiding ? "%s hides all GPUs from programs started in this shell"
                                 : "%s names no GPU of this machine: programs see none",
                       names[i]);
        gp_exam_evidence(exam, names[i], "\"%s\"", value);
        gp_exam_unset(exam, names[i], "show all GPUs");
    }
}

/* ---- all ---- */

void gp_amd_check_code(struct gp_exam *exam)
{
    struct gp_gfxlist targets;
    enum answer answer = UNKNOWN;
    const char *place = gp_amd_targets(exam, &targets);
    if (targets.count > 0 && shown_of(exam, &targets).count == 0) {
        gp_exam_report(exam, GP_VERDICT_SKIP, "programs started in this shell see no AMD GPU");
        return;
    }
    if (!judge_torches(exam, &targets, place, &answer))
        judge_system(exam, &targets, place, &answer);
    if (targets.count == 0 || answer == UNKNOWN)
        gp_exam_report(exam, GP_VERDICT_SKIP,
                       targets.count == 0 ? "the kernel names no AMD GPU for computing"
                                          : "the files do not say which GPUs they have code for");
}
