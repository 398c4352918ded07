/* A line of the kernel log, as far as it concerns GPUs.
 *
 * The formats of /dev/kmsg, dmesg, journalctl and syslog files are known. A syslog line from
 * another program, or one that a program wrote to the kernel log, is rejected. Pure: text in,
 * struct out. */
#ifndef GP_DOCTOR_READERS_KMSG_H
#define GP_DOCTOR_READERS_KMSG_H

#include "base/util.h"

enum gp_kmsg_kind {
    GP_KMSG_NONE, /* not about GPUs */
#define KIND(id, ...) GP_KMSG_##id,
#define LINE(...)
#include "doctor/readers/kmsg.def"
#undef KIND
#undef LINE
    GP_KMSG__COUNT
};

enum gp_kmsg_clock {
    GP_KMSG_NO_CLOCK,
    GP_KMSG_SINCE_BOOT,
    GP_KMSG_WALL, /* as in the line: of an unknown time zone, and possibly without the year */
};

enum { GP_KMSG_BUS_ID = 20, GP_KMSG_PROCESS = 64, GP_KMSG_NO_INSTANCE = -1 };

struct gp_kmsg {
    enum gp_kmsg_kind kind;
    enum gp_kmsg_clock clock;
    uint64_t time_ns;
    const char *stamp; /* the time as text in the line */
    size_t stamp_length;
    const char *body;    /* the line after the time, host and "kernel:" */
    const char *message; /* the text after the numbers, or the whole body if there are none */
    char bus_id[GP_KMSG_BUS_ID];        /* "0000:65:00.0"; "": not named */
    unsigned code;                      /* Xid, SXid; otherwise 0 */
    int gpu_instance, compute_instance; /* MIG, or GP_KMSG_NO_INSTANCE */
    int64_t pid;                        /* 0: unknown */
    char process[GP_KMSG_PROCESS];      /* "": unknown; users can name programs anything */
    unsigned cause;                     /* the Xid that an Xid 45 names as its cause; 0: none */
    bool is_fatal;                      /* set if an SXid, or an Xid of NVLink, says so */
};

/* False, with the kind GP_KMSG_NONE, if the line is not about GPUs; the time is set nevertheless.
 * The texts point into the line. */
bool gp_kmsg_parse(const char *line, struct gp_kmsg *ret);

/* Likewise for a line copied by someone: anything may precede the driver's text. */
bool gp_kmsg_parse_copied(const char *line, struct gp_kmsg *ret);

/* Whether lines of this kind are reported, and not only context. */
bool gp_kmsg_is_notable(enum gp_kmsg_kind kind);

/* "bus-lost": the id of its message. */
const char *gp_kmsg_word(enum gp_kmsg_kind kind);

/* What the message of an Xid 144 to 150 says. */
struct gp_kmsg_nvlink {
    char unit[24];   /* "RLW_RXPIPE" */
    bool is_fatal;   /* as in the message */
    unsigned link;   /* on the GPU */
    unsigned reason; /* bits 20 to 25 of the first number */
    uint32_t status; /* the second number */
    bool has_status;
};

bool gp_kmsg_nvlink(const char *message, struct gp_kmsg_nvlink *ret);

/* The numbers of recovery actions in the message of an Xid 154. */
bool gp_kmsg_recovery(const char *message, unsigned *ret_was, unsigned *ret_now);

#endif
