/* The systemd journal of the examined machine, read with libsystemd, which is loaded only where
 * there is a journal. Fields that begin with an underscore are set by systemd-journald: no program
 * can pretend to be the kernel, or another service. */
#ifndef GP_DOCTOR_READERS_JOURNAL_H
#define GP_DOCTOR_READERS_JOURNAL_H

#include "base/util.h"

struct gp_exam;

struct gp_journal_line {
    const char
        *text; /* of the kernel: a record as /dev/kmsg has it; of a program: "NAME[PID]: TEXT" */
    const char *unit;  /* the service; NULL: the kernel, or a user's program */
    const char *where; /* the command that shows it, "journalctl -u ollama.service", in the exam's
                          arena; the same pointer for all lines of a unit */
    uint64_t since_boot_us; /* of a program, when it was logged; 0: unknown */
    uint64_t before_end_us; /* of the kernel in the boot before, until anything was logged last */
};

typedef void gp_journal_take(const struct gp_journal_line *line, void *argument);

/* The kernel's messages since boot, at most the last GP_JOURNAL_KERNEL, oldest first. Returns their
 * number or −errno: −ENOENT if there is no journal, −EACCES if it must not be read, −ENOSYS without
 * libsystemd. */
enum { GP_JOURNAL_KERNEL = 8192 };
extern const char gp_journal_kernel_command[];
long gp_journal_kernel(struct gp_exam *exam, gp_journal_take *take, void *argument);

/* Those of the boot before, in the last day before this one began; likewise. −ENODATA if the
 * machine has run for more than a day since. */
extern const char gp_journal_earlier_command[];
long gp_journal_earlier(struct gp_exam *exam, gp_journal_take *take, void *argument);

/* What the services have printed since each was last started, and in the last day, since boot, the
 * programs of the user who asks, and login screens; of a service the beginning and the end, of the
 * others the end, oldest first. Left out are other users' programs, those that quote what others
 * say, such as sshd, containers, whose engines have logs of their own, and of such engines all but
 * the last day. 0 or −errno, likewise. */
int gp_journal_programs(struct gp_exam *exam, gp_journal_take *take, void *argument);

/* What these units (a comma list) have logged, and systemd about them, in earlier boots, too, as in
 * a syslog: its last MiB, oldest first; a line "kernel: Linux version" begins each further boot.
 * All that systemd says is of "init.scope". NULL: nothing, or it cannot be read. In the exam's
 * arena. */
char *gp_journal_text(struct gp_exam *exam, const char *units, size_t *ret_length);

/* Whether it is such a line that begins a boot. */
bool gp_journal_begins_boot(const char *line, size_t length);

#endif
