/* Podman without root: whether a container may open the GPUs' files that it is given, where they
 * are for a group. Only crun can keep the groups of the user, and only if it is asked to. */
#include "doctor/checks/container.h"
#include "doctor/entries.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/access.h"
#include "doctor/readers/accounts.h"
#include "doctor/readers/docker.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char crun[] = "crun", kfd[] = "/dev/kfd";

struct given {
    const char *name, *folder; /* of its files; its name, "": unknown */
    const char *created;
    const char *path; /* of a GPU's file that it is given, but may not open */
    struct gp_access access;
    bool asks_to_keep; /* by --group-add keep-groups */
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ---- the runtime ---- */

/* The value of runtime in [engine] of a file of settings, in the exam's arena; "": it is not set.
 */
static const char *runtime_in(struct gp_exam *exam, const char *path)
{
    static const char key[] = "runtime", section[] = "[engine]";
    bool is_engine = false;
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL), *line;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        const char *one = gp_exam_text(exam, "%.*s", (int)n, line);
        one += strspn(one, " \t");
        if (*one == '[')
            is_engine = strncmp(one, section, sizeof(section) - 1) == 0;
        const char *value = strncmp(one, key, sizeof(key) - 1) == 0 ? one + sizeof(key) - 1 : "x";
        value += strspn(value, " \t");
        if (*value != '=' || !is_engine)
            continue;
        value += 1 + strspn(value + 1, " \t\"'");
        return gp_exam_text(exam, "%.*s", (int)strcspn(value, "\"' \t#"), value);
    }
    return "";
}

static bool has_program(struct gp_exam *exam, const char *name)
{
    static const char *const folders[] = {"/usr/bin", "/usr/sbin", "/usr/local/bin",
                                          "/usr/local/sbin", "/usr/libexec"};
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folders[i], name)))
            return true;
    return false;
}

/* Likewise with the files of its directory "NAME.d", which come after it: the last name wins. */
static const char *runtime_with(struct gp_exam *exam, const char *path, const char **ret_where)
{
    enum { FILES_MAX = 64 }; /* more than anyone has; the last ones count */
    const char *folder = gp_exam_text(exam, "%s.d", path);
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = n - 1; i >= 0 && i >= n - FILES_MAX; i--) {
        const char *end = strrchr(names[i], '.');
        *ret_where = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *value = end && strcmp(end, ".conf") == 0 ? runtime_in(exam, *ret_where) : "";
        if (value[0])
            return value;
    }
    *ret_where = path;
    return runtime_in(exam, path);
}

/* That of the settings, or the first that is installed; "": unknown. */
static const char *runtime_of(struct gp_exam *exam, const char *home, const char **ret_where)
{
    const char *const files[] = {gp_exam_text(exam, "%s/.config/containers/containers.conf", home),
                                 "/etc/containers/containers.conf",
                                 "/usr/share/containers/containers.conf"};
    static const char *const runtimes[] = {"crun", "runc"};
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++) {
        const char *value = runtime_with(exam, files[i], ret_where);
        if (value[0])
            return strrchr(value, '/') ? strrchr(value, '/') + 1 : value;
    }
    *ret_where = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(runtimes); i++)
        if (has_program(exam, runtimes[i]))
            return runtimes[i];
    return "";
}

/* ---- the containers ---- */

static const char *name_of(struct gp_exam *exam, unsigned user)
{
    struct gp_account_line account;
    for (char *text = gp_accounts_text(exam); gp_accounts_next(&text, &account);)
        if (account.user == user)
            return account.name;
    return "";
}

/* Whether the user may map a group into containers, "ada:992:1". The mappings of the container
 * itself are in numbers of podman's user namespace, not in those of this machine. */
static bool is_mappable(struct gp_exam *exam, unsigned user, unsigned group)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/etc/subgid", 1 << 18, NULL);
    const char *name = name_of(exam, user), *line;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        size_t length = strcspn(line, ":\n");
        char *end;
        if (line[length] != ':' || ((strlen(name) != length || strncmp(line, name, length) != 0) &&
                                    (strtoul(line, &end, 10) != user || end != line + length)))
            continue;
        unsigned long first = strtoul(line + length + 1, &end, 10);
        if (*end == ':' && group >= first && group - first < strtoul(end + 1, NULL, 10))
            return true;
    }
    return false;
}

/* Whether udev marks a file for the user at the screen, who then may open it by an access list:
 * this holds in containers, too. */
static bool is_for_seat(struct gp_exam *exam, const char *path)
{
    const char *name = strrchr(path, '/') + 1, *class = strcmp(name, "kfd") == 0 ? "kfd" : "drm";
    const char *number =
        gp_files_text(&exam->files, &exam->arena,
                      gp_exam_text(exam, "/sys/class/%s/%s/dev", class, name), 64, NULL);
    return number && gp_files_exist(&exam->files, gp_exam_text(exam, "/run/udev/tags/uaccess/c%.*s",
                                                               (int)strcspn(number, "\n"), number));
}

/* Whether the user may open a file only as a member of a group that is not the first one of the
 * user, and so not that of the container's root, and has no number in the container. */
static bool is_by_group(struct gp_exam *exam, const char *path, struct gp_access *ret)
{
    struct gp_credentials who;
    struct stat st;
    *ret = gp_access_of(exam, path);
    return ret->is_there && ret->is_known && !ret->is_root && ret->may_use && !(ret->mode & 06) &&
           gp_credentials_of_process(exam, "/proc/self/status", &who) &&
           gp_files_stat(&exam->files, path, &st) == 0 && st.st_uid != who.user &&
           ret->group != who.group && !is_mappable(exam, who.user, ret->group) &&
           !is_for_seat(exam, path);
}

/* /dev/kfd, which computing needs first, or a render node; NVIDIA's files are another check's. */
static bool find_file(struct gp_exam *exam, const json_t *config, struct given *ret)
{
    const json_t *mounts = json_object_get(config, "mounts");
    bool is_given = false;
    for (size_t i = 0; i < json_array_size(mounts); i++) {
        const char *path = text_of(json_array_get(mounts, i), "source");
        bool is_kfd = strcmp(path, kfd) == 0;
        if (!is_kfd && strncmp(path, "/dev/dri/renderD", 16) != 0)
            continue;
        is_given = true;
        struct gp_access access;
        if ((ret->path && !is_kfd) || !is_by_group(exam, path, &access))
            continue;
        ret->path = gp_exam_text(exam, "%s", path);
        ret->access = access;
    }
    return is_given;
}

static void look_at(struct gp_exam *exam, const char *storage, const json_t *entry,
                    struct given *newest)
{
    const char *created = text_of(entry, "created");
    const char *folder = gp_exam_text(exam, "%s/%s/userdata", storage, text_of(entry, "id"));
    json_t *config = strcmp(created, newest->created) > 0
                         ? gp_docker_json(exam, gp_exam_text(exam, "%s/config.json", folder))
                         : NULL;
    const json_t *notes = json_object_get(config, "annotations");
    const char *name = json_string_value(json_array_get(json_object_get(entry, "names"), 0));
    struct given given = {.name = gp_exam_text(exam, "%.80s", name ? name : ""),
                          .folder = folder,
                          .created = gp_exam_text(exam, "%s", created),
                          .asks_to_keep =
                              strcmp(text_of(notes, "run.oci.keep_original_groups"), "1") == 0};
    if (config && find_file(exam, config, &given))
        *newest = given;
    json_decref(config);
}

/* The lists of the user's containers, of all ways in which podman stores them; NULL: behind the
 * last. */
static const char *list_at(struct gp_exam *exam, const char *home, size_t place,
                           const char **ret_storage)
{
    static const char *const kinds[] = {"overlay", "vfs", "btrfs"};
    static const char *const lists[] = {"containers.json", "volatile-containers.json"};
    if (place >= GP_ARRAY_LEN(kinds) * GP_ARRAY_LEN(lists))
        return NULL;
    *ret_storage = gp_exam_text(exam, "%s/.local/share/containers/storage/%s-containers", home,
                                kinds[place / GP_ARRAY_LEN(lists)]);
    return gp_exam_text(exam, "%s/%s", *ret_storage, lists[place % GP_ARRAY_LEN(lists)]);
}

/* The newest container that is given a GPU, and if it may not use it: an older one is left over. */
static bool find_given(struct gp_exam *exam, const char *home, struct given *ret)
{
    const char *storage, *path;
    *ret = (struct given){.created = ""};
    for (size_t i = 0; (path = list_at(exam, home, i, &storage)); i++) {
        json_t *all = gp_docker_json(exam, path);
        for (size_t k = 0; k < json_array_size(all) && k < GP_DOCKER_CONTAINERS; k++)
            look_at(exam, storage, json_array_get(all, k), ret);
        json_decref(all);
    }
    return ret->created[0];
}

/* What it has printed of a GPU that it does not find, or may not use; NULL: nothing. Errors
 * of a program that is not given /dev/kfd have other causes, too: they must name the file. */
static const char *denied_line(struct gp_exam *exam, const char *path, const char *file)
{
    enum { SHOWN = 300, MOST = 1 << 18 };
    const char *text = gp_files_tail(&exam->files, &exam->arena, path, MOST, NULL), *line;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        unsigned weight;
        const char *one = gp_exam_text(exam, "%.*s", (int)(n < SHOWN ? n : SHOWN), line);
        const struct gp_error_entry *entry = gp_entry_of_line(one, &weight);
        if (entry && gp_exam_is_listed(entry->look, "container.keep_groups") &&
            (strcmp(file, kfd) == 0 || strstr(one, file)))
            return one;
    }
    return NULL;
}

/* ---- the check ---- */

static const char *home_of(struct gp_exam *exam)
{
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    return home && home[0] == '/' ? home : NULL;
}

/* What the lists have is left to the check, so as to read them once. */
bool gp_container_has_keep_groups(struct gp_exam *exam)
{
    const char *home = home_of(exam), *storage, *path;
    if (exam->machine.container || !home || !has_program(exam, "podman"))
        return false;
    for (size_t i = 0; (path = list_at(exam, home, i, &storage)); i++)
        if (gp_files_exist(&exam->files, path))
            return true;
    return false;
}

static void fix(struct gp_exam *exam, const struct given *given, const char *home,
                const char *runtime, const char *where)
{
    bool is_crun = strcmp(runtime, crun) == 0;
    if (!has_program(exam, crun))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CRUN, NULL, NULL);
    if (!is_crun && where)
        gp_exam_advice(exam, "write runtime = \"crun\" in [engine] of %s",
                       strncmp(where, home, strlen(home)) == 0
                           ? where
                           : "~/.config/containers/containers.conf");
    gp_exam_command(exam, "then create the container again, with its other options",
                    is_crun || !where ? "podman run --group-add keep-groups …"
                                      : "podman --runtime crun run --group-add keep-groups …");
    if (strncmp(given->name, "ramalama_", 9) == 0)
        gp_exam_command(exam, "or, as RamaLama has created it", "ramalama run --keep-groups …");
}

void gp_container_check_keep_groups(struct gp_exam *exam)
{
    struct given given;
    const char *home = home_of(exam), *where;
    if (!find_given(exam, home, &given)) {
        gp_exam_is_empty(exam);
        return;
    }
    const char *runtime = runtime_of(exam, home, &where);
    bool is_crun = strcmp(runtime, crun) == 0;
    if (!given.path || !runtime[0])
        return;
    const char *log = gp_exam_text(exam, "%s/ctr.log", given.folder);
    const char *line = denied_line(exam, log, given.path);
    /* It may have been started with --runtime crun, which its files do not tell. */
    if (given.asks_to_keep && (is_crun || (has_program(exam, crun) && !line)))
        return;
    gp_exam_report(exam, line ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "podman's container %s %s permission to use the GPU: it does not keep group %s",
                   given.name, line ? "has no" : "may have no", given.access.group_name);
    gp_exam_evidence(exam, given.path, "mode %04o, group %s", given.access.mode,
                     given.access.group_name);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/config.json", given.folder),
                     "is given %s, %s keep-groups", given.path,
                     given.asks_to_keep ? "with" : "without");
    if (!is_crun)
        gp_exam_evidence(exam, where ? where : "runtime", "%s%s", runtime,
                         where || has_program(exam, crun) ? "" : "; crun is not installed");
    if (line)
        gp_exam_evidence(exam, log, "%s", line);
    gp_exam_why(exam,
                "You are a member of the group, but a container that is started without root "
                "leaves your groups, unless crun keeps them%s.",
                is_crun ? "" : ": runc cannot");
    fix(exam, &given, home, runtime, where);
    gp_exam_link(exam, "https://docs.podman.io/en/latest/markdown/podman-run.1.html");
}
