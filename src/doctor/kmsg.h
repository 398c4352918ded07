/* A line of the kernel's log, as far as it tells of GPUs.
 *
 * The forms of /dev/kmsg, dmesg, journalctl and syslog's files are known; a line of syslog that is
 * not the kernel's, or that a program wrote into the kernel's log, is none. Pure: text in, struct
 * out. */
#ifndef GP_DOCTOR_KMSG_H
#define GP_DOCTOR_KMSG_H

#include "base/util.h"

enum gp_kmsg_kind {
    GP_KMSG_NONE, /* nothing about GPUs */
#define KIND(id, ...) GP_KMSG_##id,
#define LINE(...)
#include "doctor/kmsg.def"
#undef KIND
#undef LINE
    GP_KMSG__COUNT
};

enum gp_kmsg_clock {
    GP_KMSG_NO_CLOCK,
    GP_KMSG_SINCE_BOOT,
    GP_KMSG_WALL, /* as the line has it: of an unknown zone, and maybe without the year */
};

enum { GP_KMSG_BUS_ID = 20, GP_KMSG_PROCESS = 64, GP_KMSG_NO_INSTANCE = -1 };

struct gp_kmsg {
    enum gp_kmsg_kind kind;
    enum gp_kmsg_clock clock;
    uint64_t time_ns;
    const char *stamp; /* the time as it stands in the line */
    size_t stamp_length;
    const char *body;            /* the line behind time, host and "kernel:" */
    const char *message;         /* what it says, behind the numbers; of what has none the body */
    char bus_id[GP_KMSG_BUS_ID]; /* "0000:65:00.0"; "": it names none */
    unsigned code;               /* Xid, SXid; 0 else */
    int gpu_instance, compute_instance; /* of MIG, or GP_KMSG_NO_INSTANCE */
    int64_t pid;                        /* 0: not known */
    char process[GP_KMSG_PROCESS];      /* "": not known; may be anything a user calls a program */
    unsigned cause;                     /* the Xid that an Xid 45 names as its cause; 0: none */
    bool is_fatal;                      /* an SXid, or an Xid of NVLink, says so */
};

/* False, with the kind GP_KMSG_NONE, if it is nothing about GPUs. The texts lie in the line. */
bool gp_kmsg_parse(const char *line, struct gp_kmsg *ret);

/* The same for a line that somebody has copied: whatever may stand before the driver's words. */
bool gp_kmsg_parse_copied(const char *line, struct gp_kmsg *ret);

/* Whether the kind is something to tell of, not only a part or the surroundings of it. */
bool gp_kmsg_is_notable(enum gp_kmsg_kind kind);

/* "bus-lost": the id of its message. */
const char *gp_kmsg_word(enum gp_kmsg_kind kind);

/* What the message of an Xid 144 to 150 says. */
struct gp_kmsg_nvlink {
    char unit[24];   /* "RLW_RXPIPE" */
    bool is_fatal;   /* as the message has it */
    unsigned link;   /* of the GPU */
    unsigned reason; /* bits 20 to 25 of the first number */
    uint32_t status; /* the second number */
    bool has_status;
};

bool gp_kmsg_nvlink(const char *message, struct gp_kmsg_nvlink *ret);

/* What the message of an Xid 154 says: numbers of recovery actions. */
bool gp_kmsg_recovery(const char *message, unsigned *ret_was, unsigned *ret_now);

#endif
