/* Where Python environments were looked for, as evidence. */
#include "doctor/checks/framework.h"

#include "doctor/exam.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/pyplaces.h"

#include <string.h>

enum { NAMED = 6 }; /* homes; of a whole institute's machine only the first ones */

static const char *list(struct gp_exam *exam, const char *words, const char *path)
{
    return gp_exam_text(exam, "%s%s%s", words, *words ? ", " : "", path);
}

/* "/opt" of "/opt/conda", as far as it was not the folder of the row before. */
static const char *folder_of(struct gp_exam *exam, size_t i)
{
    size_t length = strcspn(gp_pyplaces[i].path + 1, "/") + 1;
    for (size_t k = 0; k < i; k++)
        if (strncmp(gp_pyplaces[k].path, gp_pyplaces[i].path, length) == 0 &&
            strcspn(gp_pyplaces[k].path + 1, "/") + 1 == length)
            return NULL;
    return gp_exam_text(exam, "%.*s", (int)length, gp_pyplaces[i].path);
}

/* "/home/ada, /root, /opt, /usr", or the paths of --python. */
static const char *places_words(struct gp_exam *exam)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    const char *here = gp_machine_variable(&exam->machine, "PWD"), *words = "";
    for (size_t i = 0; exam->pythons && exam->pythons[i]; i++)
        words = list(exam, words, exam->pythons[i]);
    if (exam->pythons)
        return words;
    for (size_t i = 0; i < homes->count && i < NAMED; i++)
        words = list(exam, words, homes->list[i]);
    if (homes->count > NAMED)
        words = gp_exam_text(exam, "%s, %zu more homes", words, homes->count - NAMED);
    if (homes->is_of_all && homes->count == 0)
        words = "/home, /root";
    if (here && *here == '/' && !(homes->count > 0 && strcmp(here, homes->list[0]) == 0))
        words = list(exam, words, here);
    for (size_t i = 0; i < gp_pyplace_count; i++) {
        const char *folder = gp_pyplaces[i].path[0] == '/' ? folder_of(exam, i) : NULL;
        if (folder)
            words = list(exam, words, folder);
    }
    return words;
}

void gp_python_show_places(struct gp_exam *exam)
{
    gp_exam_evidence(exam, "looked in", "%s; --python names another place", places_words(exam));
}
