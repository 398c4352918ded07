/* NVIDIA's repositories in apt's sources: what stops apt, or makes it refuse their packages. */
#include "doctor/checks/system.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/packages.h"
#include "doctor/readers/toolkit.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SOURCES = 32, MOST_FILES = 64 };

static const char folder[] = "/etc/apt/sources.list.d";

struct source {
    const char *path;
    size_t line;
    const char *uri, *suite;
    const char *keyring; /* "": none is named; "embedded": it is in the file itself */
    bool is_trusted;     /* without a key */
};

struct sources {
    const char *suite;                /* the one to look for; NULL: NVIDIA's repositories */
    struct source list[MOST_SOURCES]; /* of them */
    size_t count;
    const char *page; /* a list that is a web page; "" */
};

/* ---- reading ---- */

static void add(struct gp_exam *exam, struct sources *all, struct source source)
{
    size_t n = strlen(source.uri);
    while (n > 0 && source.uri[n - 1] == '/')
        n--;
    source.uri = gp_exam_text(exam, "%.*s", (int)n, source.uri);
    bool is_wanted =
        all->suite ? strcmp(source.suite, all->suite) == 0 : strstr(source.uri, "nvidia.") != NULL;
    if (is_wanted && all->count < MOST_SOURCES)
        all->list[all->count++] = source;
}

/* The value of an option or of a field: "signed-by=/usr/share/keyrings/x.gpg]". */
static const char *value_of(struct gp_exam *exam, const char *text, const char *key,
                            const char *stops)
{
    const char *at = strcasestr(text, key);
    if (!at)
        return "";
    at += strlen(key) + strspn(at + strlen(key), " \t");
    return gp_exam_text(exam, "%.*s", (int)strcspn(at, stops), at);
}

static bool is_yes(const char *value)
{
    return value[0] && strcasecmp(value, "no") != 0;
}

/* "deb [arch=amd64 signed-by=…] https://… /" */
static void read_line(struct gp_exam *exam, struct sources *all, const char *path,
                      const char *words, size_t number)
{
    struct source source = {.path = path, .line = number, .keyring = ""};
    words += strspn(words, " \t");
    if (strncmp(words, "deb", 3) != 0 || !strchr(" \t", words[3]))
        return;
    words += 3 + strspn(words + 3, " \t");
    const char *end = words[0] == '[' ? strchr(words, ']') : NULL;
    if (end) {
        const char *options = gp_exam_text(exam, "%.*s", (int)(end - words), words);
        source.keyring = value_of(exam, options, "signed-by=", ", \t");
        source.is_trusted = is_yes(value_of(exam, options, "trusted=", " \t"));
        words = end + 1 + strspn(end + 1, " \t");
    }
    size_t n = strcspn(words, " \t");
    source.uri = gp_exam_text(exam, "%.*s", (int)n, words);
    words += n + strspn(words + n, " \t");
    source.suite = gp_exam_text(exam, "%.*s", (int)strcspn(words, " \t"), words);
    add(exam, all, source);
}

static void read_list(struct gp_exam *exam, struct sources *all, const char *path)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line);
        if (lines.number == 1 && words[0] == '<')
            all->page = path;
        read_line(exam, all, path, words, lines.number);
    }
}

/* One of the newer format: fields. `text`: its lines, after a newline. */
static void read_stanza(struct gp_exam *exam, struct sources *all, const char *path,
                        const char *text)
{
    struct source source = {.path = path, .line = 1, .keyring = ""};
    const char *types = value_of(exam, text, "\nTypes:", "\n"), *word;
    const char *suites = value_of(exam, text, "\nSuites:", "\n"), *end = suites + strlen(suites);
    size_t n;
    if (strcasecmp(value_of(exam, text, "\nEnabled:", " \t\n"), "no") == 0 ||
        strcmp(types, "deb-src") == 0)
        return;
    source.uri = value_of(exam, text, "\nURIs:", " \t\n");
    source.keyring = value_of(exam, text, "\nSigned-By:", ", \t\n");
    source.is_trusted = is_yes(value_of(exam, text, "\nTrusted:", " \t\n"));
    if (!source.keyring[0] && strcasestr(text, "\nSigned-By:"))
        source.keyring = "embedded";
    while (gp_lines_word(&suites, end, &word, &n)) {
        source.suite = gp_exam_text(exam, "%.*s", (int)n, word);
        add(exam, all, source);
    }
}

/* Empty lines are between them. Of NVIDIA only the first of a file is read: its files have one, and
 * what would be done about it is done to the whole file. */
static void read_stanzas(struct gp_exam *exam, struct sources *all, const char *path)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    for (const char *at = text, *end; at && *at; at = end + strspn(end, "\n")) {
        end = strstr(at, "\n\n");
        end = end ? end : at + strlen(at);
        read_stanza(exam, all, path, gp_exam_text(exam, "\n%.*s", (int)(end - at), at));
        if (!all->suite)
            break;
    }
}

static struct sources read_sources(struct gp_exam *exam, const char *suite)
{
    struct sources all = {.page = "", .suite = suite};
    char **names;
    read_list(exam, &all, "/etc/apt/sources.list");
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < MOST_FILES; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *end = strrchr(names[i], '.');
        if (end && strcmp(end, ".list") == 0)
            read_list(exam, &all, path);
        else if (end && strcmp(end, ".sources") == 0)
            read_stanzas(exam, &all, path);
    }
    return all;
}

bool gp_apt_has_suite(struct gp_exam *exam, const char *suite)
{
    return read_sources(exam, suite).count > 0;
}

bool gp_apt_has_nvidia(struct gp_exam *exam)
{
    if (!gp_machine_has_apt(&exam->machine))
        return false;
    struct sources all = read_sources(exam, NULL);
    return all.count > 0 || all.page[0];
}

/* ---- judging ---- */

static bool is_container_toolkit(const char *text)
{
    return strstr(text, "nvidia-docker") || strstr(text, "libnvidia-container") ||
           strstr(text, "nvidia-container") || strstr(text, "nvidia.github.io");
}

bool gp_apt_has_toolkit(struct gp_exam *exam)
{
    struct sources all = read_sources(exam, NULL);
    for (size_t i = 0; i < all.count; i++)
        if (is_container_toolkit(all.list[i].uri))
            return true;
    return false;
}

/* What a release upgrade adds to an entry of the toolkit that it turns off, "disabled on upgrade to
 * noble"; NULL: the line is none. */
static const char *closing_words(const char *line)
{
    const char *words = line + strspn(line, "# \t");
    return line[0] == '#' && strncmp(words, "deb", 3) == 0 && is_container_toolkit(line)
               ? strstr(line, "disabled on upgrade to")
               : NULL;
}

static const char *closed_in(struct gp_exam *exam, const char *path, const char **ret_why)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        *ret_why = closing_words(gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line));
        if (*ret_why)
            return gp_exam_text(exam, "%s:%zu", path, lines.number);
    }
    return NULL;
}

const char *gp_apt_closed_toolkit(struct gp_exam *exam, const char **ret_why)
{
    char **names;
    const char *found = NULL;
    if (gp_apt_has_toolkit(exam))
        return NULL;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < MOST_FILES && !found; i++) {
        const char *end = strrchr(names[i], '.');
        if (end && strcmp(end, ".list") == 0)
            found = closed_in(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), ret_why);
    }
    return found;
}

/* The name of a release in an address of CUDA's repository: "ubuntu2204"; "": it is another one. */
static const char *release_in(struct gp_exam *exam, const char *uri)
{
    static const char mark[] = "/compute/cuda/repos/";
    const char *at = strstr(uri, mark);
    return at ? gp_exam_text(exam, "%.*s", (int)strcspn(at + sizeof(mark) - 1, "/"),
                             at + sizeof(mark) - 1)
              : "";
}

static void leave_out(struct gp_exam *exam, const struct source *source)
{
    if (strstr(source->path, ".sources"))
        gp_exam_command(exam, "apt then ignores this file", "sudo mv %s %s.disabled",
                        gp_exam_quoted(exam, source->path), gp_exam_quoted(exam, source->path));
    else
        gp_exam_command(exam, "comment this entry out", "sudo sed -i '%zus/^/# /' %s", source->line,
                        gp_exam_quoted(exam, source->path));
}

/* Adds the repository again, with its key. */
static void add_again(struct gp_exam *exam, const char *text)
{
    const char *name = gp_toolkit_repository(exam);
    if (is_container_toolkit(text))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    else if (name[0])
        gp_exam_remedy(exam, GP_REMEDY_ADD_CUDA_REPOSITORY, name, NULL);
}

static const char *where_of(struct gp_exam *exam, const struct source *source)
{
    return gp_exam_text(exam, "%s:%zu", source->path, source->line);
}

/* What the server answers for a release that it does not know. */
static bool report_page(struct gp_exam *exam, const char *path)
{
    if (!path[0])
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "apt cannot read its sources: %s is a web page", path);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:1", path), "begins with <");
    gp_exam_why(exam, "The address that it was downloaded from has no list for this release. apt "
                      "stops with \"Type '<!doctype' is not known\", and installs nothing.");
    gp_exam_command(exam, "remove it", "sudo rm %s", gp_exam_quoted(exam, path));
    if (is_container_toolkit(path))
        add_again(exam, path);
    else
        gp_exam_command(exam, "", "sudo apt update");
    return true;
}

/* How likely it is the entry to keep: its key is there, and its file is that of the package. */
static unsigned rank(struct gp_exam *exam, const struct source *source)
{
    const char *name = strrchr(source->path, '/') + 1;
    bool is_usual =
        strncmp(name, "cuda-", 5) == 0 || strncmp(name, "nvidia-container-toolkit", 24) == 0;
    bool has_key = source->keyring[0] == '/' && gp_files_exist(&exam->files, source->keyring);
    return (has_key ? 2U : 0U) + (is_usual ? 1U : 0U);
}

/* apt puts its architecture into "https://…/deb/$(ARCH)". */
static const char *with_arch(struct gp_exam *exam, const char *uri)
{
    static const char mark[] = "$(ARCH)";
    const char *at = strstr(uri, mark), *arch = gp_machine_dpkg_arch(&exam->machine);
    return at ? gp_exam_text(exam, "%.*s%s%s", (int)(at - uri), uri, arch, at + sizeof(mark) - 1)
              : uri;
}

static bool report_conflict(struct gp_exam *exam, const struct source *a, const struct source *b)
{
    if (strcmp(with_arch(exam, a->uri), with_arch(exam, b->uri)) != 0 ||
        strcmp(a->suite, b->suite) != 0 || strcmp(a->keyring, b->keyring) == 0)
        return false;
    const struct source *other = rank(exam, a) < rank(exam, b) ? a : b;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "apt cannot read its sources: NVIDIA's repository is there twice, with "
                   "different keys");
    gp_exam_evidence(exam, where_of(exam, a), "%s, signed by %s", a->uri,
                     a->keyring[0] ? a->keyring : "any key");
    gp_exam_evidence(exam, where_of(exam, b), "%s, signed by %s", b->uri,
                     b->keyring[0] ? b->keyring : "any key");
    gp_exam_why(exam,
                "apt stops with \"Conflicting values set for option Signed-By\", and installs "
                "or updates nothing.");
    leave_out(exam, other);
    gp_exam_command(exam, "", "sudo apt update");
    return true;
}

static bool report_keyring(struct gp_exam *exam, const struct source *source)
{
    const char *slash = strrchr(source->keyring, '/');
    if (source->keyring[0] != '/' || source->is_trusted ||
        gp_files_exist(&exam->files, source->keyring) ||
        !gp_files_exist(&exam->files, gp_exam_text(exam, "%.*s", (int)(slash - source->keyring),
                                                   source->keyring)))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "apt refuses NVIDIA's repository: its key is missing");
    gp_exam_evidence(exam, where_of(exam, source), "%s", source->uri);
    gp_exam_evidence(exam, source->keyring, "missing");
    gp_exam_why(exam, "apt reports NO_PUBKEY, and finds none of the packages there.");
    add_again(exam, source->uri);
    return true;
}

/* NVIDIA has signed CUDA's repositories with a new key since April 2022, of cuda-keyring. */
static bool report_old_key(struct gp_exam *exam, const struct source *source)
{
    static const char id[] = "\xa4\xb4\x69\x96\x3b\xf8\x63\xcc", trusted[] = "/etc/apt/trusted.gpg";
    const char *parts = gp_exam_text(exam, "%s.d", trusted);
    const char *release = release_in(exam, source->uri);
    char **names;
    if (source->keyring[0] || source->is_trusted || !release[0])
        return false;
    long n = gp_files_list(&exam->files, &exam->arena, parts, &names);
    bool is_seen = n >= 0;
    for (long i = -1; i < 0 || (i < n && i < MOST_FILES); i++) {
        size_t size = 0;
        const char *path = i < 0 ? trusted : gp_exam_text(exam, "%s/%s", parts, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, &size);
        is_seen = is_seen || text;
        if (strstr(path, ".asc") || (i >= 0 && !text) ||
            (text && memmem(text, size, id, sizeof(id) - 1)))
            return false;
    }
    if (!is_seen)
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "apt refuses NVIDIA's repository: it does not have its present key");
    gp_exam_evidence(exam, where_of(exam, source), "%s", source->uri);
    gp_exam_evidence(exam, trusted, "no key A4B469963BF863CC");
    gp_exam_why(exam, "NVIDIA replaced the key in April 2022: apt reports NO_PUBKEY "
                      "A4B469963BF863CC, and finds no newer packages there.");
    leave_out(exam, source);
    add_again(exam, source->uri);
    return true;
}

/* Whether it has been of use already: releases close to each other share most of their libraries.
 */
static bool has_packages(struct gp_exam *exam)
{
    static const char *const words[] = {"cuda-",   "nvidia-driver", "nvidia-open", "libcudnn",
                                        "libnccl", "libnvinfer",    "datacenter-", NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].state, "installed") == 0 &&
            strcmp(packages[i].name, "cuda-keyring") != 0)
            return true;
    return n < 0;
}

static bool report_other_release(struct gp_exam *exam, const struct source *source)
{
    const char *here = gp_toolkit_repository(exam), *there = release_in(exam, source->uri);
    if (!here[0] || !there[0] || strcmp(here, there) == 0 || strstr(there, "wsl") ||
        has_packages(exam))
        return false;
    gp_exam_report(exam, GP_VERDICT_WARN, "NVIDIA's repository is that of another release, %s",
                   there);
    gp_exam_evidence(exam, where_of(exam, source), "%s", source->uri);
    gp_exam_evidence(exam, "/etc/os-release", "%s: %s", exam->machine.distro_name, here);
    gp_exam_why(exam, "Some of its packages, among them those of cuda, depend on libraries of that "
                      "release: apt reports \"unmet dependencies\", such as libtinfo5.");
    leave_out(exam, source);
    add_again(exam, source->uri);
    return true;
}

void gp_apt_check(struct gp_exam *exam)
{
    struct sources all = read_sources(exam, NULL);
    if (report_page(exam, all.page))
        return;
    for (size_t i = 0; i < all.count; i++)
        for (size_t k = i + 1; k < all.count; k++)
            if (report_conflict(exam, &all.list[i], &all.list[k]))
                return;
    for (size_t i = 0; i < all.count; i++)
        if (report_keyring(exam, &all.list[i]) || report_old_key(exam, &all.list[i]) ||
            report_other_release(exam, &all.list[i]))
            return;
}
