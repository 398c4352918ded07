/* What programs have logged: the part of the log that gp_log_of() has in `known`. */
#ifndef GP_DOCTOR_READERS_LOG_PROGRAMS_H
#define GP_DOCTOR_READERS_LOG_PROGRAMS_H

#include "doctor/readers/log.h"

struct gp_log_place {
    const char *path; /* a file, or a command that shows the line; the same pointer for all lines */
    uint64_t line;    /* its number; 0: unknown */
    const char *unit; /* the service; NULL: unknown */
    uint64_t since_boot_ns; /* of a line in the journal; 0: unknown */
};

/* Keeps a line that is a finding by itself; of each error on a device the first one, and how often
 * its place has it. */
void gp_log_keep_known(struct gp_exam *exam, struct gp_log *log, struct gp_log_place place,
                       const char *text);

/* Whether users can write to a log, too. Syslog daemons keep the kernel's facility for the kernel,
 * but in a log of all programs nothing but a tag says where a line is from. */
bool gp_log_is_shared(const char *path);

/* Reads all logs of programs: the journal, files, pods, containers and virtual machines. */
void gp_log_read_programs(struct gp_exam *exam, struct gp_log *log);

#endif
