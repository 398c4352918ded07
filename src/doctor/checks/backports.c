#include "doctor/checks/backports.h"

#include "doctor/exam.h"
#include "doctor/version.h"

#include <string.h>

/* Those of releases that are no longer supported are in the archive. */
static const struct row {
    unsigned release;
    const char *codename, *host, *parts;
} rows[] = {
    {9, "stretch", "[check-valid-until=no] http://archive.debian.org", "main contrib non-free"},
    {10, "buster", "[check-valid-until=no] http://archive.debian.org", "main contrib non-free"},
    {11, "bullseye", "[check-valid-until=no] http://archive.debian.org", "main contrib non-free"},
    {12, "bookworm", "http://deb.debian.org", "main contrib non-free non-free-firmware"},
    {13, "trixie", "http://deb.debian.org", "main contrib non-free non-free-firmware"},
};

static const struct row *find(const struct gp_machine *m)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(rows) && m->distro == GP_DISTRO_DEBIAN; i++)
        if (gp_version_major(m->distro_version) == rows[i].release)
            return &rows[i];
    return NULL;
}

const char *gp_backports_suite(struct gp_exam *exam)
{
    const struct row *row = find(&exam->machine);
    return row ? gp_exam_text(exam, "%s-backports", row->codename) : "";
}

static bool has_line(struct gp_exam *exam, const char *path, const char *suite)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    for (const char *p = text; p && (p = strstr(p, suite)); p++) {
        const char *start = p;
        while (start > text && start[-1] != '\n')
            start--;
        if (*start != '#')
            return true;
    }
    return false;
}

static bool is_enabled(struct gp_exam *exam, const char *suite)
{
    static const char folder[] = "/etc/apt/sources.list.d";
    char **names;
    bool is_on = has_line(exam, "/etc/apt/sources.list", suite);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && !is_on; i++)
        is_on = has_line(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), suite);
    return is_on;
}

void gp_backports_enable(struct gp_exam *exam)
{
    const struct row *row = find(&exam->machine);
    const char *suite = gp_backports_suite(exam);
    if (!row || is_enabled(exam, suite))
        return;
    gp_exam_command(exam, "have apt know the backports of this release",
                    "echo 'deb %s/debian %s %s' | sudo tee "
                    "/etc/apt/sources.list.d/backports.list",
                    row->host, suite, row->parts);
    gp_exam_command(exam, "", "sudo apt update");
}
