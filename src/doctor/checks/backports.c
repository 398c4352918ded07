#include "doctor/checks/backports.h"

#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/version.h"

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

void gp_backports_enable(struct gp_exam *exam)
{
    const struct row *row = find(&exam->machine);
    const char *suite = gp_backports_suite(exam);
    const char *path = gp_exam_text(exam, "/etc/apt/sources.list.d/debian-%s.list", suite);
    if (!row || gp_apt_has_suite(exam, suite))
        return;
    /* A file of this name may have other lines. */
    gp_exam_command(exam, "have apt know the backports of this release",
                    "echo 'deb %s/debian %s %s' | sudo tee %s%s", row->host, suite, row->parts,
                    gp_files_exist(&exam->files, path) ? "-a " : "", path);
    gp_exam_command(exam, "", "sudo apt update");
}
