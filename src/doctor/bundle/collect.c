#include "doctor/bundle/collect.h"

#include "base/err.h"
#include "doctor/bundle/bundle.h"
#include "doctor/bundle/harmless.h"
#include "doctor/bundle/words.h"
#include "doctor/exam.h"
#include "doctor/readers/accounts.h"
#include "doctor/readers/log.h"
#include "doctor/readers/packages.h"
#include "doctor/report.h"
#include "model/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 256 << 10 };

/* ---- names to hide ---- */

static void hide_users(struct gp_redactor *r, struct gp_exam *exam)
{
    static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER", "USERNAME"};
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++) {
        const char *name = gp_machine_variable(&exam->machine, variables[i]);
        if (name)
            gp_redact_user(r, name);
    }
    struct gp_account_line account;
    for (char *text = gp_accounts_text(exam); gp_accounts_next(&text, &account);)
        if (gp_account_is_person(account.user))
            gp_redact_user(r, account.name);
}

static void hide_hosts(struct gp_redactor *r, struct gp_exam *exam)
{
    static const char *const files[] = {"/proc/sys/kernel/hostname", "/etc/hostname"};
    char host[256];
    const char *variable = gp_machine_variable(&exam->machine, "HOSTNAME");
    if (variable)
        gp_redact_host(r, variable);
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        if (gp_files_line(&exam->files, files[i], host, sizeof(host)))
            gp_redact_host(r, host);
}

static void hide_serials(struct gp_redactor *r, const struct gp_snapshot *snapshot)
{
    for (size_t i = 0; snapshot && i < snapshot->device_count; i++)
        gp_redact_serial(r, gp_device_text(&snapshot->devices[i], GP_SERIAL, ""));
}

static void hide_folder(void *ctx, const char *name)
{
    gp_redact_folder(ctx, name);
}

static void hide_folders(struct gp_redactor *r, const struct gp_exam *exam)
{
    for (const char *p = exam->machine.environment; *p; p += strlen(p) + 1)
        gp_harmless_unknown(p, hide_folder, r);
}

/* ---- the machine file ---- */

/* Why the driver should not be queried for a machine file; NULL: it may be. */
static const char *reason_not_to_ask(const struct gp_exam *exam)
{
    const struct gp_snapshot *s = exam->snapshot;
    if (!s)
        return exam->driver_words[0] ? exam->driver_words : "the driver was not queried";
    for (size_t i = 0; i < s->device_count; i++) {
        if (s->devices[i].status == GP_STATUS_TIMEOUT)
            return "a GPU does not respond";
        if (s->devices[i].status == GP_STATUS_ASLEEP)
            return "a GPU is asleep, and a bundle does not wake it";
    }
    return NULL;
}

static void add_machine(struct gp_bundle *bundle, const struct gp_exam *exam,
                        int (*record)(char **ret, struct gp_err *err))
{
    char *text = NULL;
    struct gp_err err = {0};
    const char *reason = reason_not_to_ask(exam);
    if (!reason && record(&text, &err) < 0)
        reason = err.text;
    if (reason)
        gp_bundle_miss(bundle, "machine.json", reason);
    else
        gp_bundle_add_as_is(bundle, "machine.json", text); /* already redacted */
    free(text);
}

/* ---- files ---- */

/* Selects the publishable parts of a file; NULL: all of it, as it comes from the kernel or a
 * distribution. */
typedef void publisher(struct gp_strbuf *sb, const char *text, size_t length, size_t *left_out);

static const struct {
    const char *path;
    publisher *publish;
    enum gp_bundle_kind kind; /* of what that omits */
} files[] = {
    {"/etc/os-release", NULL, 0},
    {"/proc/version", gp_harmless_kernel, GP_BUNDLE_PARAMETERS},
    {"/proc/cmdline", gp_harmless_cmdline, GP_BUNDLE_PARAMETERS},
    {"/proc/modules", NULL, 0},
    {"/proc/sys/kernel/dmesg_restrict", NULL, 0},
    {"/proc/driver/nvidia/version", NULL, 0},
    {"/proc/driver/nvidia/params", NULL, 0},
    {"/proc/driver/nvidia/registry", NULL, 0},
    {"/sys/module/nvidia/version", NULL, 0},
    {"/etc/nv_tegra_release", NULL, 0},
    {"/etc/ld.so.conf", gp_harmless_settings, GP_BUNDLE_SETTINGS},
    {"/etc/nvidia-container-runtime/config.toml", gp_harmless_settings, GP_BUNDLE_SETTINGS},
    {"/usr/share/nvidia/nvswitch/fabricmanager.cfg", gp_harmless_settings, GP_BUNDLE_SETTINGS},
    {"/var/log/fabricmanager.log", gp_harmless_log, GP_BUNDLE_LOG_LINES},
    {"/var/log/nvidia-installer.log", gp_harmless_log, GP_BUNDLE_LOG_LINES},
};

/* A file in each subdirectory of a directory, or files whose names contain one of the words. */
static const struct {
    const char *folder, *file;
    const char *words[6];
} folders[] = {
    {"/proc/driver/nvidia/gpus", "/information", {NULL}},
    {"/etc/modprobe.d", "", {"nvidia", "nouveau", "blacklist", "gpu", "i915", NULL}},
    {"/etc/ld.so.conf.d", "", {"cuda", "nvidia", "rocm", "wsl", NULL}},
};

/* Adds the publishable parts of a text. */
static void publish(struct gp_bundle *bundle, const char *name, const char *text, size_t length,
                    publisher *how, enum gp_bundle_kind kind)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(4 * TEXT_MAX);
    how(&sb, text, length, &bundle->left_out[kind]);
    if (length > 0 && sb.len == 0)
        gp_bundle_miss(bundle, name, "nothing in it may be published");
    else
        gp_bundle_add(bundle, name, sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

/* Of a long file the end, which matters in a log. */
static void add_file(struct gp_bundle *bundle, struct gp_exam *exam, const char *path,
                     publisher *how, enum gp_bundle_kind kind)
{
    size_t length = 0;
    const char *text = gp_files_tail(&exam->files, &exam->arena, path, TEXT_MAX, &length);
    if (!text && (errno == ENOENT || errno == ENOTDIR))
        return;
    const char *why = text ? "" : strerror(errno);
    const char *name = gp_exam_text(exam, "files%s", path);
    if (!text)
        gp_bundle_miss(bundle, name, why);
    else if (how)
        publish(bundle, name, text, length, how, kind);
    else
        gp_bundle_add(bundle, name, text, length);
}

static bool has_word(const char *name, const char *const *words)
{
    const char *const *word = words;
    while (*word && !strstr(name, *word))
        word++;
    return !*words || *word;
}

static void add_files(struct gp_bundle *bundle, struct gp_exam *exam)
{
    enum { MOST = 64 }; /* per directory */
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        add_file(bundle, exam, files[i].path, files[i].publish, files[i].kind);
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        char **names;
        size_t count = 0;
        long n = gp_files_list(&exam->files, &exam->arena, folders[i].folder, &names);
        for (long f = 0; f < n; f++)
            if (has_word(names[f], folders[i].words) && ++count <= MOST)
                add_file(
                    bundle, exam,
                    gp_exam_text(exam, "%s/%s%s", folders[i].folder, names[f], folders[i].file),
                    folders[i].file[0] ? NULL : gp_harmless_settings, GP_BUNDLE_SETTINGS);
        if (count > MOST)
            gp_bundle_miss(bundle, gp_exam_text(exam, "files%s", folders[i].folder),
                           gp_exam_text(exam, "%zu more files; only the first %d were read",
                                        count - MOST, (int)MOST));
    }
}

/* ---- lists ---- */

static void add_packages(struct gp_bundle *bundle, struct gp_exam *exam)
{
    static const char *const words[] = {"nvidia",      "libnvidia",     "cuda",          "libcuda",
                                        "libcudnn",    "cudnn",         "libnccl",       "nccl",
                                        "linux-image", "linux-headers", "linux-modules", "rocm",
                                        "amdgpu",      "intel-opencl",  "libze",         NULL};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (gp_harmless_package(packages[i].name))
            gp_strbuf_addf(&sb, "%s %s %s\n", packages[i].name, packages[i].version,
                           packages[i].state);
        else
            bundle->left_out[GP_BUNDLE_PACKAGES]++;
    if (n < 0)
        gp_bundle_miss(bundle, "packages.txt",
                       "no dpkg or pacman database; only rpm can read that of rpm");
    else if (sb.len == 0)
        gp_bundle_miss(bundle, "packages.txt", "no package of a driver or of CUDA is installed");
    else
        gp_bundle_add(bundle, "packages.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static void add_log(struct gp_bundle *bundle, struct gp_exam *exam)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(8 << 20);
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->count; i++) { /* without the host name that syslog adds */
        const struct gp_kmsg *k = &log->lines[i].kmsg;
        gp_strbuf_addf(&sb, "%s: [%.*s] %s\n", log->lines[i].where, (int)k->stamp_length,
                       k->stamp ? k->stamp : "", k->body);
    }
    if (!log->path)
        gp_bundle_miss(bundle, "kernel-log.txt", strerror(-log->error));
    else if (sb.len == 0)
        gp_bundle_miss(bundle, "kernel-log.txt", "the log has no lines about GPUs since boot");
    else
        gp_bundle_add(bundle, "kernel-log.txt", sb.buf, sb.len);
    gp_strbuf_fini(&sb);
}

static void add_environment(struct gp_bundle *bundle, const struct gp_exam *exam)
{
    const char *p = exam->machine.environment;
    while (*p)
        p += strlen(p) + 1;
    publish(bundle, "environment.txt", exam->machine.environment,
            (size_t)(p - exam->machine.environment), gp_harmless_variables, GP_BUNDLE_VARIABLES);
}

static void add_report(struct gp_bundle *bundle, const struct gp_exam *exam)
{
    struct gp_strbuf text = GP_STRBUF_INIT(64 << 20);
    struct gp_strbuf json = GP_STRBUF_INIT(64 << 20);
    gp_doctor_add_text(&text, exam, true, false);
    gp_doctor_add_json(&json, exam);
    gp_bundle_add(bundle, "report.txt", text.buf, text.len);
    gp_bundle_add(bundle, "report.json", json.buf, json.len);
    gp_strbuf_fini(&text);
    gp_strbuf_fini(&json);
}

void gp_collect(struct gp_bundle *bundle, struct gp_exam *exam,
                int (*record)(char **ret, struct gp_err *err))
{
    bundle->redactor.known = gp_words_known;
    hide_hosts(&bundle->redactor, exam);
    hide_serials(&bundle->redactor, exam->snapshot);
    hide_users(&bundle->redactor, exam);
    hide_folders(&bundle->redactor, exam);
    add_report(bundle, exam);
    add_machine(bundle, exam, record);
    add_packages(bundle, exam);
    add_log(bundle, exam);
    add_environment(bundle, exam);
    add_files(bundle, exam);
}
