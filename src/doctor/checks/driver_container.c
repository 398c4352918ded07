/* Why the driver container of NVIDIA's GPU Operator has loaded no driver on this node, by the log
 * of its pod: a finding of driver.installed. */
#include "doctor/checks/driver.h"
#include "doctor/checks/driver_fix.h"
#include "doctor/checks/driver_wish.h"
#include "doctor/lines.h"
#include "doctor/offer.h"
#include "doctor/readers/log.h"
#include "doctor/readers/modules.h"
#include "doctor/readers/podlogs.h"
#include "doctor/version.h"

#include <string.h>

enum { LINE = 300 };

/* The container's own words, of its scripts for Ubuntu and for RHEL and OpenShift, and of the
 * package managers that these call; the first row that fits counts. That a system is not registered
 * is a notice which dnf prints in each container of RHEL. */
static const struct reason {
    const char *words[6];
    const char *summary, *why;
    const char *fix; /* NULL: gp_driver_fix_container() */
    bool is_retried; /* the programs try again, or do without */
} reasons[] = {
    {{"Key was rejected by service", "Required key not available", "loading is restricted"},
     "the kernel rejects its module, which is not signed with a key that this node trusts",
     "With Secure Boot on, the kernel loads only modules signed with a key that it knows.",
     NULL,
     false},
    {{"entitlement may be improperly deployed"},
     "it may not use Red Hat's repositories",
     "It installs the headers of the node's kernel from there, which needs a subscription "
     "(entitlement) in the cluster.",
     "give the cluster the entitlement; on OpenShift 4.10 and later let the Operator use the "
     "driver toolkit, which needs none (operator.use_ocp_driver_toolkit of the ClusterPolicy)",
     false},
    {{"failed to reach RHEL package repositories", "Temporary failure resolving",
      "Could not resolve host", "Failed to download metadata for repo", "Could not connect to"},
     "it cannot reach the repositories of packages",
     "It installs the headers of the node's kernel from the distribution's repositories.",
     "let the node's pods resolve and reach them, or give the driver container a proxy or a "
     "mirror: HTTPS_PROXY in driver.env, driver.repoConfig.configMapName",
     true},
    {{"Could not resolve Linux kernel version", "Unable to locate package linux-",
      "Unable to find a match: kernel-", "Could not locate Linux kernel version string",
      "Couldn't find any package by glob 'linux-"},
     "it finds no packages for this node's kernel",
     "It compiles the module with the headers of exactly the running kernel, which the "
     "repositories of its system do not have: the kernel is of another release or origin, or was "
     "withdrawn.",
     "boot the node with a kernel that the repositories of its release have, such as their newest; "
     "for a kernel of a cloud or a vendor, give the container the repository with its headers: "
     "driver.repoConfig.configMapName",
     false},
    {{"could not insert 'nvidia'", "Unable to load the kernel module"},
     "the kernel does not load the module that it built",
     "The kernel's log of that time says why: another driver has the GPU, the GPU is not supported "
     "by this release, or the module does not fit the kernel.",
     "see the kernel's messages on the node (sudo dmesg), and have them explained by gpulse "
     "explain",
     false},
};

/* What the container prints when it has the packages, or its module, after all. */
static const char *const steps[] = {
    "Proceeding with Linux kernel version",   "Installing Linux kernel headers",
    "Installing Linux kernel module files",   "Generating Linux kernel version string",
    "Compiling NVIDIA driver kernel modules", "Relinking NVIDIA driver kernel modules",
    "Building NVIDIA driver package",         "Installing NVIDIA driver kernel modules",
    "Loading NVIDIA driver kernel modules"};

static const char *has(const struct gp_pod_log *log, const char *words)
{
    return memmem(log->text, log->size, words, strlen(words));
}

/* The line that some words are in; logins are cut before its end is, which may be within one. */
static const char *line_at(struct gp_exam *exam, const struct gp_pod_log *log, const char *at)
{
    const char *start = at, *end = memchr(at, '\n', (size_t)(log->text + log->size - at));
    while (start > log->text && start[-1] != '\n')
        start--;
    size_t n = (size_t)((end ? end : log->text + log->size) - start);
    const char *line = gp_exam_text(exam, "%.*s", (int)n, start);
    return gp_exam_text(exam, "%.*s", LINE, gp_exam_without_logins(exam, line));
}

/* Of the shell's -x, which prints each command, with what is secret in it. */
static bool is_traced(const char *line, size_t n)
{
    size_t depth = 0;
    while (depth < n && line[depth] == '+')
        depth++;
    return depth > 0 && depth < n && line[depth] == ' ';
}

static const char *last_line(struct gp_exam *exam, const struct gp_pod_log *log)
{
    const char *last = NULL, *line;
    size_t n;
    for (struct gp_lines lines = gp_lines_of(log->text, log->size);
         gp_lines_next(&lines, &line, &n);)
        last = n > 0 && !is_traced(line, n) ? line : last;
    return last ? line_at(exam, log, last) : "";
}

/* When it ends, it unmounts what it has mounted; so it does when it starts, before its steps. */
static bool is_ended(struct gp_exam *exam, const struct gp_pod_log *log)
{
    return strcmp(last_line(exam, log), "Unmounting NVIDIA driver rootfs...") == 0;
}

/* "Starting installation of NVIDIA driver version 535.129.03 for Linux kernel version …"; "": it is
 * not stated. */
static const char *version_of(struct gp_exam *exam, const struct gp_pod_log *log)
{
    static const char *const marks[] = {"NVIDIA driver version ", "NVIDIA driver branch ",
                                        "NVIDIA-Linux-x86_64-", "NVIDIA-Linux-aarch64-"};
    enum { LONGEST = 16 };
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++) {
        const char *at = has(log, marks[i]);
        at = at ? at + strlen(marks[i]) : "";
        size_t n = strspn(at, "0123456789.");
        while (n > 0 && at[n - 1] == '.') /* the full stop of a sentence */
            n--;
        if (n > 0 && n <= LONGEST)
            return gp_exam_text(exam, "%.*s", (int)n, at);
    }
    return "";
}

static void offer_node(struct gp_exam *exam)
{
    gp_exam_advice(exam, "or install the driver on the node, as its image, and set "
                         "driver.enabled=false in the Operator; that is for all nodes");
    gp_exam_link(exam, "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/"
                       "troubleshooting.html");
}

static const char *version_setting(bool is_of_resource)
{
    return is_of_resource ? "spec.version of its NVIDIADriver resource"
                          : "driver.version in the Operator";
}

/* For fixes that name settings of the ClusterPolicy: where they are, if the pod of the driver is of
 * an NVIDIADriver resource. */
static void fix_resource(struct gp_exam *exam)
{
    struct gp_pod_log log;
    if (!gp_pod_read_driver(exam, &log) || !log.is_of_resource)
        return;
    gp_exam_command(exam, "this node's driver pod is made from one of these",
                    "kubectl get nvidiadrivers.nvidia.com");
    gp_exam_advice(exam, "what is called driver.version, driver.env and so on here is "
                         "spec.version, spec.env of that resource: the ClusterPolicy's has no "
                         "effect on it; spec.usePrecompiled cannot be changed, and needs a new "
                         "resource");
}

void gp_driver_fix_container(struct gp_exam *exam)
{
    gp_exam_advice(exam, "have the GPU Operator use precompiled driver images, whose modules are "
                         "signed (NVIDIA has them for Ubuntu's kernels): "
                         "driver.usePrecompiled=true, and the branch as driver.version");
    fix_resource(exam);
    gp_exam_advice(exam, "or sign in an image of your own: in the container, call nvidia-installer "
                         "with --module-signing-secret-key=FILE and "
                         "--module-signing-public-key=FILE, build the image again, and enroll the "
                         "public key on each node (sudo mokutil --import FILE, then reboot)");
    if (exam->machine.distro == GP_DISTRO_UBUNTU)
        gp_exam_advice(exam,
                       "or install the driver on the node, with modules that Canonical has signed "
                       "(linux-modules-nvidia-…-server-%s, as sudo ubuntu-drivers install --gpgpu "
                       "does), and set driver.enabled=false in the Operator",
                       exam->machine.kernel);
    else
        gp_exam_advice(exam, "or install the driver on the node, from packages with signed "
                             "modules, and set driver.enabled=false in the Operator");
    gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings of the node");
    gp_exam_link(exam, "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/"
                       "precompiled-drivers.html");
}

static const char *words_of(struct gp_exam *exam, const char *version)
{
    return gp_exam_text(exam, "the driver container of the GPU Operator%s%s",
                        version[0] ? " with driver " : "", version);
}

/* The GPU is of a generation that this release knows nothing of, or no longer. */
static bool report_misfit(struct gp_exam *exam, const struct gp_pod_log *log,
                          const struct gp_pci_gpu *gpu, const char *version)
{
    struct gp_wish wish = gp_driver_wish(exam);
    const char *why = gp_driver_misfit(exam, gpu, version, false, false);
    if (!version[0] || !why)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "%s cannot drive %s", words_of(exam, version),
                   gp_driver_gpu_words(exam, gpu));
    gp_exam_evidence(exam, log->path, "driver %s", version);
    gp_exam_why(exam, "Driver %s.", why);
    gp_exam_advice(exam, "set %s to a release of branch %u", version_setting(log->is_of_resource),
                   wish.last > 0 ? wish.last : gp_driver_long_term()->branch);
    offer_node(exam);
    return true;
}

static void fix_release(struct gp_exam *exam, const struct gp_pod_log *log, const char *error,
                        const char *version)
{
    struct gp_wish wish = gp_driver_wish(exam);
    const char *releases = gp_driver_releases_for(exam, error, version);
    unsigned newest = wish.last > 0 ? wish.last : gp_driver_long_term()->branch;
    gp_exam_advice(
        exam, "set %s to %s, for which NVIDIA has a driver image of this system%s",
        version_setting(log->is_of_resource),
        releases[0] ? releases
                    : gp_exam_text(exam, "a newer release, such as of branch %u", newest),
        log->is_of_resource ? ""
                            : ", or update the Operator, which has a newer one as its default");
    gp_exam_command(exam, "what it is now",
                    log->is_of_resource ? "kubectl get nvidiadrivers.nvidia.com -o "
                                          "custom-columns=NAME:.metadata.name,VERSION:.spec.version"
                                        : "kubectl get clusterpolicies.nvidia.com -o "
                                          "jsonpath='{.items[*].spec.driver.version}'");
    gp_exam_advice(exam,
                   "or, until then, boot the kernel that it was last built for, and hold back "
                   "updates of the kernel (in a managed cluster: the node image before)");
}

/* It compiles the module for the kernel of the node. */
static bool report_build(struct gp_exam *exam, const struct gp_pod_log *log, const char *version)
{
    static const char begin[] = "Compiling NVIDIA driver kernel modules",
                      end[] = "Relinking NVIDIA driver kernel modules";
    const char *start = has(log, begin), *line = "";
    size_t n = 0;
    if (!start || has(log, end) ||
        !gp_modules_first_error(start, log->size - (size_t)(start - log->text), &line, &n))
        return false;
    const char *error = line_at(exam, log, line);
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "%s fails: its module does not compile for this node's kernel, %s",
                   words_of(exam, version), exam->machine.kernel);
    gp_exam_evidence(exam, log->path, "%s", error);
    if (!gp_driver_explain_symbol(exam, error, version))
        gp_exam_why(exam, "The driver is older than the kernel, or than the container's compiler; "
                          "an update of the node's kernel suffices for that.");
    fix_release(exam, log, error, version);
    offer_node(exam);
    return true;
}

/* Those of them that a line has, at most `most`; NULL: none. */
static const struct reason *reason_of(const char *line, size_t n, size_t most)
{
    for (size_t i = 0; i < most; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(reasons[i].words) && reasons[i].words[k]; k++)
            if (memmem(line, n, reasons[i].words[k], strlen(reasons[i].words[k])))
                return &reasons[i];
    return NULL;
}

static bool is_step(const char *line, size_t n)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(steps); i++)
        if (n >= strlen(steps[i]) && memcmp(line, steps[i], strlen(steps[i])) == 0)
            return true;
    return false;
}

/* The reason why it stopped. One that a step follows is none: the container went on. */
static const struct reason *find_reason(struct gp_exam *exam, const struct gp_pod_log *log,
                                        const char **ret_line)
{
    const struct reason *found = NULL;
    const bool has_ended = is_ended(exam, log);
    const char *line;
    size_t n;
    for (struct gp_lines lines = gp_lines_of(log->text, log->size);
         gp_lines_next(&lines, &line, &n);) {
        if (is_step(line, n))
            found = NULL;
        size_t most = found ? (size_t)(found - reasons) : GP_ARRAY_LEN(reasons);
        const struct reason *reason = is_traced(line, n) ? NULL : reason_of(line, n, most);
        if (!reason || (reason->is_retried && !has_ended))
            continue;
        found = reason;
        *ret_line = line;
    }
    return found;
}

static bool report_reason(struct gp_exam *exam, const struct gp_pod_log *log, const char *version)
{
    const char *line = "";
    const struct reason *reason = find_reason(exam, log, &line);
    if (!reason)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL, "%s fails: %s", words_of(exam, version), reason->summary);
    gp_exam_evidence(exam, log->path, "%s", line_at(exam, log, line));
    gp_exam_why(exam, "%s", reason->why);
    if (!reason->fix) {
        gp_driver_fix_container(exam);
        return true;
    }
    gp_exam_advice(exam, "%s", reason->fix);
    fix_resource(exam);
    offer_node(exam);
    return true;
}

/* It is at work, or has stopped for another reason. */
static void report_other(struct gp_exam *exam, const struct gp_pod_log *log, const char *version)
{
    const char *error = "";
    const bool has_ended = is_ended(exam, log);
    size_t n;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   has_ended ? "%s has stopped without having loaded the driver"
                             : "%s has not loaded the driver yet",
                   words_of(exam, version));
    if (gp_modules_first_error(log->text, log->size, &error, &n))
        gp_exam_evidence(exam, log->path, "%s", line_at(exam, log, error));
    gp_exam_evidence(exam, log->path, "the last line: %s", last_line(exam, log));
    gp_exam_why(exam,
                "The node's driver comes from this container, which compiles it and loads it.");
    if (!has_ended)
        gp_exam_advice(exam, "wait until it is ready, which takes minutes where it compiles");
    gp_exam_advice(exam, "if it keeps restarting: have the first error in its log explained by "
                         "gpulse explain (kubectl logs -p)");
    offer_node(exam);
}

/* The kubelet could not get its image: then there is no log of the container. */
static bool report_image(struct gp_exam *exam)
{
    const struct gp_log_known *known = gp_log_known_of(exam, "k8s.driver-image");
    if (!known)
        return false;
    gp_exam_report(exam, GP_VERDICT_FAIL,
                   "the driver container of the GPU Operator does not start: its image cannot be "
                   "pulled");
    gp_exam_evidence(exam, known->where, "%s", known->text);
    gp_exam_why(exam, "There are images for some releases of the driver on some systems; with "
                      "driver.usePrecompiled=true, only for some kernels.");
    bool is_of_resource = strstr(known->text, gp_pod_of_resource);
    gp_exam_advice(exam,
                   "not found: set %s to one that NVIDIA's catalog (NGC) has for this node's "
                   "system, or %s; otherwise: let the node reach the registry, or correct the pull "
                   "secret",
                   version_setting(is_of_resource),
                   is_of_resource ? "create a resource without spec.usePrecompiled"
                                  : "driver.usePrecompiled=false");
    offer_node(exam);
    return true;
}

bool gp_driver_report_container(struct gp_exam *exam, const struct gp_pci_gpu *gpu)
{
    static const char done[] = "Done, now waiting for signal";
    struct gp_pod_log log;
    if (!gp_pod_read_driver(exam, &log))
        return report_image(exam);
    if (has(&log, done))
        return false;
    const char *version = version_of(exam, &log);
    (void)gp_log_known_of(exam, "k8s.operator-kernel,k8s.operator-busy");
    if (!report_misfit(exam, &log, gpu, version) && !report_reason(exam, &log, version) &&
        !report_build(exam, &log, version))
        report_other(exam, &log, version);
    return true;
}
