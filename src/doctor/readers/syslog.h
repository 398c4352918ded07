/* The logs in which system services write: the journal, and the files of a syslog daemon. */
#ifndef GP_DOCTOR_READERS_SYSLOG_H
#define GP_DOCTOR_READERS_SYSLOG_H

#include "base/util.h"

struct gp_exam;

enum { GP_SYSLOGS = 3 };

struct gp_syslog {
    const char *where; /* "/var/log/syslog", or the command that shows it */
    const char *text;  /* the last MiB of lines as syslog daemons write them; in the exam's arena */
    size_t length;
};

/* Those that can be read; of the journal what these units (a comma list) have logged, and systemd
 * about them. Returns their number. */
size_t gp_syslogs(struct gp_exam *exam, const char *units, struct gp_syslog ret[GP_SYSLOGS]);

#endif
