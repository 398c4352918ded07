#include "doctor/readers/accounts.h"

#include "doctor/exam.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_USER = 1000, NOBODY = 65534, FIELDS = 7 };

/* From FIRST_USER on: what systemd makes for login screens and for services (systemd.io/UIDS-GIDS).
 */
static const struct {
    unsigned long first, last;
} made[] = {{60578, 60705}, {61184, 65519}};

char *gp_accounts_text(struct gp_exam *exam)
{
    return gp_files_text(&exam->files, &exam->arena, "/etc/passwd", 1 << 20, NULL);
}

/* Splits "ada:x:1000:1000:Ada:/home/ada:/bin/bash"; false: it has another form. */
static bool split(char *line, char *ret[FIELDS])
{
    for (size_t i = 0; i < FIELDS; i++) {
        ret[i] = line;
        line = strchr(line, ':');
        if (!line)
            return i == FIELDS - 1;
        *line++ = '\0';
    }
    return true;
}

bool gp_accounts_next(char **text, struct gp_account_line *ret)
{
    enum { NAME, USER = 2, HOME = 5, SHELL = 6 };
    char *fields[FIELDS];
    while (*text && **text) {
        char *line = *text;
        *text += strcspn(line, "\n");
        if (**text)
            *(*text)++ = '\0';
        if (!split(line, fields))
            continue;
        *ret = (struct gp_account_line){fields[NAME], fields[HOME], fields[SHELL],
                                        strtoul(fields[USER], NULL, 10)};
        return true;
    }
    return false;
}

bool gp_account_is_person(unsigned long user)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(made); i++)
        if (user >= made[i].first && user <= made[i].last)
            return false;
    return user >= FIRST_USER && user != NOBODY;
}
