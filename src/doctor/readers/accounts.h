/* The users of a machine, by /etc/passwd. Those of a network are not in it. */
#ifndef GP_DOCTOR_READERS_ACCOUNTS_H
#define GP_DOCTOR_READERS_ACCOUNTS_H

#include "base/util.h"

struct gp_exam;

/* A line of the file, whose copy the texts belong to. */
struct gp_account_line {
    const char *name, *home, *shell;
    unsigned long user;
};

/* The file, for gp_accounts_next(); NULL: it cannot be read. From the exam's arena. */
char *gp_accounts_text(struct gp_exam *exam);

/* The next account, from what is left of the text, which is cut into pieces; lines of another form
 * are left out. False: there is none. */
bool gp_accounts_next(char **text, struct gp_account_line *ret);

/* Whether a user is a person, rather than root, a service or a login screen. */
bool gp_account_is_person(unsigned long user);

#endif
