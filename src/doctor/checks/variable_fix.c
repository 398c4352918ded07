#include "doctor/checks/variable_fix.h"

#include "doctor/exam.h"
#include "doctor/readers/searchpath.h"

#include <string.h>

static void show(struct gp_exam *exam, const struct gp_assignment *found, void *argument)
{
    (void)argument;
    gp_exam_evidence(exam, found->place, "%s", found->text);
}

void gp_exam_assignments(struct gp_exam *exam, const char *name)
{
    enum { SHOWN = 4 }; /* of a file */
    gp_assignments_each(exam, name, SHOWN, show, NULL);
}

void gp_exam_unset(struct gp_exam *exam, const char *name, const char *note)
{
    gp_exam_assignments(exam, name);
    gp_exam_command(exam, note, "unset %s", name);
}

/* Whether a file has only one line besides comments. */
static bool has_one_line(struct gp_exam *exam, const char *path)
{
    enum { MOST = 256 << 10 };
    const char *text = gp_files_text(&exam->files, &exam->arena, path, MOST, NULL);
    size_t count = 0;
    for (text = text ? text : ""; *text; text += strcspn(text, "\n")) {
        text += strspn(text, " \t\r\n");
        count += *text && *text != '#';
    }
    return count == 1;
}

struct gathered {
    const char *files; /* of the system, without another line: " /etc/profile.d/x.sh" */
    const char *other; /* the last one of the rest; NULL: none */
};

static void gather(struct gp_exam *exam, const struct gp_assignment *found, void *argument)
{
    struct gathered *all = argument;
    const char *path = gp_exam_text(exam, "%s", found->path);
    bool is_own = strncmp(path, "/etc/", 5) == 0 || strncmp(path, "/usr/", 5) == 0;
    show(exam, found, NULL);
    if (is_own && strcmp(path, "/etc/environment") != 0 && has_one_line(exam, path))
        all->files = gp_exam_text(exam, "%s %s", all->files, gp_exam_quoted(exam, path));
    else
        all->other = path;
}

void gp_exam_unset_for_all(struct gp_exam *exam, const char *name)
{
    enum { MOST = 64 }; /* of a file */
    struct gathered all = {.files = ""};
    gp_assignments_each(exam, name, MOST, gather, &all);
    if (all.files[0])
        gp_exam_command(exam, "nothing else is set there; then log in again", "sudo rm%s",
                        all.files);
    if (all.other)
        gp_exam_advice(exam, "delete that from %s, and log in again", all.other);
}

const char *gp_exam_session_value(struct gp_exam *exam, const char *name)
{
    const char *place, *own = gp_machine_variable(&exam->machine, name);
    const char *value = own ? own : gp_assignment_last(exam, name, &place);
    return !own && value && strpbrk(value, "$`~") ? NULL : value;
}

void gp_exam_fix_variable(struct gp_exam *exam, const char *name, const char *value,
                          const char *note)
{
    gp_exam_evidence(exam, name, "%s", value);
    if (gp_machine_variable(&exam->machine, name))
        gp_exam_unset(exam, name, note);
    else
        gp_exam_unset_for_all(exam, name);
}
