/* Compose on this host: whether it knows the way by which the user's files ask for GPUs. */
#include "doctor/checks/container.h"

#include "doctor/checks/container_host.h"
#include "doctor/lines.h"
#include "doctor/readers/docker.h"
#include "doctor/version.h"

#include <string.h>

/* ---- the installed one ---- */

struct compose {
    const char *version, *name; /* "": none, or it is unknown */
    bool is_unknown;            /* there may be a newer one */
};

/* Copies that no package has installed, or, for a docker-compose of version 1, plugins at all. */
static bool has_other(struct gp_exam *exam, bool is_old)
{
    static const char *const plugins[] = {"/usr/libexec/docker/cli-plugins/docker-compose",
                                          "/usr/lib/docker/cli-plugins/docker-compose", NULL};
    static const char *const copies[] = {
        "/usr/local/bin/docker-compose", "/usr/local/libexec/docker/cli-plugins/docker-compose",
        "/usr/local/lib/docker/cli-plugins/docker-compose", "/opt/bin/docker-compose", NULL};
    static const char *const own[] = {".docker/cli-plugins", ".local/bin", "bin"};
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    bool is_any =
        gp_files_first(&exam->files, copies) || (is_old && gp_files_first(&exam->files, plugins));
    for (size_t i = 0; i < GP_ARRAY_LEN(own) && home; i++)
        is_any = is_any || gp_files_exist(&exam->files,
                                          gp_exam_text(exam, "%s/%s/docker-compose", home, own[i]));
    return is_any;
}

/* The package, if it is the only compose: next to it, users may use another one. */
static struct compose find_compose(struct gp_exam *exam)
{
    static const char *const names[] = {"docker-compose", "docker-compose-v2",
                                        "docker-compose-plugin"};
    struct compose found = {.version = "", .name = ""};
    size_t count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *version = gp_container_engine_version(exam, names[i]);
        if (!version[0])
            continue;
        found.version = version;
        found.name = names[i];
        count++;
    }
    found.is_unknown = count > 1 || has_other(exam, gp_version_compare(found.version, "2") < 0);
    return found;
}

/* ---- its files ---- */

/* Lines of a compose file, and the first version that knows them. */
static const struct {
    const char *start, *inside; /* the start of the line; a key that it is below, "": a service */
    char format;                /* the first digit of the file's version; 0: any */
    const char *first, *words;
} ways[] = {
    {"devices:", "reservations:", 0, "1.28", "deploy.resources.reservations.devices"},
    {"runtime: nvidia", "", '3', "1.27", "runtime in files of version 3"},
    {"gpus:", "", 0, "2.30", "gpus of a service"},
};

struct request {
    const char *path, *line;
    unsigned number;
    size_t way;
};

/* A reservation of devices is one of GPUs: there are no drivers for others. */
static bool is_way(const char *line, size_t n, const char *above, char format, size_t way)
{
    size_t length = strlen(ways[way].start);
    return n >= length && strncmp(line, ways[way].start, length) == 0 &&
           (!ways[way].format || ways[way].format == format) &&
           (!ways[way].inside[0] || strcmp(above, ways[way].inside) == 0);
}

/* The 3 of version: "3.8", which stands before the services; 0: none. */
static char format_of(const char *text)
{
    static const char key[] = "version:";
    const char *found =
        strncmp(text, key, sizeof(key) - 1) == 0 ? text : strstr(text, "\nversion:");
    found = found ? strchr(found, ':') + 1 : "";
    return found[strspn(found, " \"'")];
}

/* Where a line is below the services, by its indent. */
struct depth {
    bool is_inside;
    size_t service, key; /* the indent of services, and of the keys of the last one; 0: unknown */
};

/* Whether a line is a key of a service, and not of its environment or labels. */
static bool is_key_of_service(struct depth *d, const char *line, size_t n, size_t indent)
{
    static const char services[] = "services:";
    const size_t length = sizeof(services) - 1;
    if (indent == 0)
        *d = (struct depth){.is_inside = n >= length && strncmp(line, services, length) == 0};
    if (indent == 0 || !d->is_inside)
        return false;
    if (d->service == 0 || indent <= d->service) {
        *d = (struct depth){.is_inside = true, .service = indent};
        return false;
    }
    if (d->key == 0)
        d->key = indent;
    return indent == d->key;
}

/* The way that needs the newest compose. `above` is the key that was opened last. */
static bool find_request(struct gp_exam *exam, const char *path, struct request *ret)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL), *line;
    struct gp_lines lines = gp_lines_of(text, text ? strlen(text) : 0);
    const char format = text ? format_of(text) : 0, *above = "";
    size_t above_indent = 0;
    struct depth depth = {0};
    bool is_found = false;
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        size_t indent = strspn(line, " \t");
        const char *key = line + indent;
        n = n > indent ? n - indent : 0;
        if (n == 0 || *key == '#')
            continue;
        if (indent <= above_indent)
            above = ""; /* the section has ended */
        bool is_key = is_key_of_service(&depth, key, n, indent);
        for (size_t i = 0; i < GP_ARRAY_LEN(ways); i++) {
            if (!is_way(key, n, above, format, i) || (!ways[i].inside[0] && !is_key) ||
                (is_found && gp_version_compare(ways[i].first, ways[ret->way].first) < 0))
                continue;
            *ret = (struct request){.path = path,
                                    .line = gp_exam_text(exam, "%.*s", (int)n, key),
                                    .number = (unsigned)lines.number,
                                    .way = i};
            is_found = true;
        }
        if (key[n - 1] == ':') {
            above = gp_exam_text(exam, "%.*s", (int)n, key);
            above_indent = indent;
        }
    }
    return is_found;
}

/* In the order in which compose takes the first that exists. */
static const char *const defaults[] = {"compose.yaml", "compose.yml", "docker-compose.yaml",
                                       "docker-compose.yml"};

static bool find_in_folder(struct gp_exam *exam, const char *folder, struct request *ret)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(defaults); i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, defaults[i]);
        if (gp_files_exist(&exam->files, path))
            return find_request(exam, path, ret);
    }
    return false;
}

/* "docker-compose.gpu.yml", which programs name to compose besides the first file. */
static bool is_further(const char *name)
{
    const char *end = strrchr(name, '.');
    for (size_t i = 0; i < GP_ARRAY_LEN(defaults); i++)
        if (strcmp(name, defaults[i]) == 0)
            return false;
    size_t start = strncmp(name, "docker-", 7) == 0 ? 7 : 0;
    return strncmp(name + start, "compose.", 8) == 0 && end && end > name + start + 7 &&
           (strcmp(end, ".yml") == 0 || strcmp(end, ".yaml") == 0);
}

static bool find_further(struct gp_exam *exam, const char *folder, struct request *ret)
{
    char **entries;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &entries);
    for (long i = 0; i < n; i++)
        if (is_further(entries[i]) &&
            find_request(exam, gp_exam_text(exam, "%s/%s", folder, entries[i]), ret))
            return true;
    return false;
}

enum { FOLDERS_MAX = 400, DEPTH = 3 };

/* Where programs keep much, but no file for compose. */
static bool is_store(const char *name)
{
    static const char *const stores[] = {".cache", ".local", ".git",  ".npm",
                                         ".cargo", ".conda", ".venv", ".docker"};
    for (size_t i = 0; i < GP_ARRAY_LEN(stores); i++)
        if (strcmp(name, stores[i]) == 0)
            return true;
    return false;
}

/* Likewise in the directories below one: either the visible or the hidden ones, in which programs
 * keep their own files. */
static bool find_below(struct gp_exam *exam, const char *folder, unsigned depth, bool is_hidden,
                       size_t *looked, struct request *ret)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && *looked < FOLDERS_MAX; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        struct stat st;
        if ((names[i][0] == '.') != is_hidden || is_store(names[i]) ||
            gp_files_stat_link(&exam->files, path, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        ++*looked;
        if (find_in_folder(exam, path, ret) || find_further(exam, path, ret) ||
            (depth > 1 && find_below(exam, path, depth - 1, false, looked, ret)))
            return true;
    }
    return false;
}

/* The file in the working directory, or else in one of the user's; the first is about to be used.
 */
static bool find_file(struct gp_exam *exam, struct request *ret, bool *ret_is_here)
{
    const char *here = gp_machine_variable(&exam->machine, "PWD");
    const char *home = gp_machine_variable(&exam->machine, "HOME");
    size_t looked = 0;
    *ret_is_here = here && here[0] == '/' && find_in_folder(exam, here, ret);
    if (*ret_is_here)
        return true;
    if (here && here[0] == '/' && find_further(exam, here, ret))
        return true;
    return home && home[0] == '/' &&
           (find_below(exam, home, DEPTH, false, &looked, ret) ||
            find_below(exam, home, DEPTH - 1, true, &looked, ret));
}

/* ---- the check ---- */

static void look_at_label(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    const json_t *labels = json_object_get(json_object_get(c->config, "Config"), "Labels");
    const char *version = gp_docker_text(labels, "com.docker.compose.version");
    const char **newest = argument;
    if (version && gp_version_compare(version, *newest) > 0)
        *newest = gp_exam_text(exam, "%s", version);
}

/* The newest compose by which a container was created; "": none was. */
static const char *newest_used(struct gp_exam *exam)
{
    const char *newest = "";
    (void)gp_docker_each(exam, look_at_label, &newest);
    return newest;
}

static void advise_update(struct gp_exam *exam, const struct compose *compose, const char *needed)
{
    static const char target[] = "/usr/local/lib/docker/cli-plugins/docker-compose";
    const struct gp_machine *m = &exam->machine;
    /* Docker's repositories for older releases have ended before the newest way came. */
    const char *first = m->distro == GP_DISTRO_UBUNTU   ? "20.04"
                        : m->distro == GP_DISTRO_DEBIAN ? "11"
                                                        : NULL;
    /* Ubuntu updates its own package within these releases. */
    bool is_updated = m->distro == GP_DISTRO_UBUNTU &&
                      strcmp(compose->name, "docker-compose-v2") == 0 &&
                      gp_version_compare(m->distro_version, "22.04") >= 0;
    bool is_dnf = m->distro == GP_DISTRO_FEDORA || m->distro == GP_DISTRO_RHEL;
    bool has_repository = gp_container_engine_version(exam, "docker-ce")[0] != '\0';
    if (has_repository && is_dnf)
        gp_exam_command(exam, "from docker's repository, which is set up",
                        "sudo dnf install docker-compose-plugin && sudo dnf upgrade "
                        "docker-compose-plugin");
    else if (has_repository && first && gp_version_compare(m->distro_version, first) >= 0)
        gp_exam_command(exam, "from docker's repository, which is set up",
                        "sudo apt update && sudo apt install docker-compose-plugin");
    else if (is_updated)
        gp_exam_command(
            exam, gp_exam_text(exam, "docker compose version must then show %s or newer", needed),
            "sudo apt update && sudo apt install --only-upgrade docker-compose-v2");
    else
        gp_exam_command(exam, "install version 2, which the command docker compose starts",
                        "sudo curl -fL --create-dirs -o %s https://github.com/docker/compose/"
                        "releases/download/v2.32.4/docker-compose-linux-$(uname -m) && sudo chmod "
                        "+x %s",
                        target, target);
}

/* Other ways that the installed one knows. */
static void advise_file(struct gp_exam *exam, const char *version)
{
    if (gp_version_compare(version, "1.28") >= 0)
        gp_exam_advice(exam, "or without an update, in the service: deploy: {resources: "
                             "{reservations: {devices: [{driver: nvidia, count: all, capabilities: "
                             "[gpu]}]}}}");
    else if (gp_version_compare(version, "1.19") >= 0)
        gp_exam_advice(exam, "or without an update: version: \"2.3\" at the top of the file, and "
                             "runtime: nvidia in the service, without a section deploy");
}

bool gp_container_has_compose(struct gp_exam *exam)
{
    const char *version = gp_container_is_host(exam) ? find_compose(exam).version : "";
    bool is_old = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(ways); i++)
        is_old = is_old || gp_version_compare(version, ways[i].first) < 0;
    return version[0] && is_old;
}

/* Files elsewhere may be samples, or someone's dotfiles, that nobody starts. */
void gp_container_check_compose(struct gp_exam *exam)
{
    struct compose compose = find_compose(exam);
    struct request request;
    bool is_here;
    if (compose.is_unknown || !find_file(exam, &request, &is_here))
        return;
    const char *first = ways[request.way].first;
    if (gp_version_compare(compose.version, first) >= 0 ||
        gp_version_compare(newest_used(exam), first) >= 0)
        return;
    bool is_first = gp_version_compare(compose.version, "2") < 0;
    gp_exam_report(exam, is_here ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "%s %.*s does not know the way by which %s asks for a GPU",
                   is_first ? "docker-compose" : "docker compose",
                   (int)strspn(compose.version, "0123456789."), compose.version,
                   strrchr(request.path, '/') + 1);
    gp_exam_evidence(exam, "package", "%s %s; %s or newer knows %s", compose.name, compose.version,
                     first, ways[request.way].words);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%u", request.path, request.number), "%s",
                     request.line);
    gp_exam_why(exam, "It refuses the file: \"Additional propert%s not allowed\"%s.",
                strcmp(ways[request.way].start, "gpus:") == 0 ? "y gpus is" : "ies are",
                is_first ? ", or \"Unsupported config option\"" : "");
    advise_update(exam, &compose, first);
    if (is_further(strrchr(request.path, '/') + 1) && !is_here)
        gp_exam_advice(exam, "then start again what uses the file");
    else
        gp_exam_command(exam, "then, in the directory of the file", "docker compose up -d");
    advise_file(exam, compose.version);
}
