/* How the memory of a GPU is used: how much the listed processes use and, for the rest, who
 * probably holds it and what would free it. Pure: computed from a snapshot and the processes that
 * have the device files open. */
#ifndef GP_JOBS_ACCOUNT_H
#define GP_JOBS_ACCOUNT_H

#include "out/procs.h"

#include <jansson.h>

struct gp_cgroup_regions;
struct gp_device;
struct gp_err;
struct gp_holder;
struct gp_holders;
struct gp_metric_set;
struct gp_snapshot;
struct gp_strbuf;

/* The role of an unlisted process that has the GPU open. */
enum gp_suspect_kind {
    GP_SUSPECT_LEFTOVER, /* its parent has exited */
    GP_SUSPECT_OTHER,
    GP_SUSPECT_MPS, /* the MPS server, which holds memory for its clients */
    GP_SUSPECT_DISPLAY,
    GP_SUSPECT_SERVICE, /* of the driver, or a monitor: it holds a negligible amount of memory */
};

struct gp_suspect {
    const struct gp_holder *holder;
    enum gp_suspect_kind kind;
};

/* The most probable explanation; the first match wins. */
enum gp_account_verdict {
    GP_ACCOUNT_NO_ANSWER, /* the GPU has an error */
    GP_ACCOUNT_UNKNOWN,   /* the driver does not report the memory of its processes */
    GP_ACCOUNT_ACCOUNTED, /* except for a remainder that driver contexts explain */
    GP_ACCOUNT_LEFTOVERS,
    GP_ACCOUNT_HOLDERS,
    GP_ACCOUNT_MPS,
    GP_ACCOUNT_NAMESPACE, /* processes outside this container are not visible */
    GP_ACCOUNT_HIDDEN,    /* those of other users may not be inspected */
    GP_ACCOUNT_UNCOUNTED, /* listed processes, whose managed memory and contexts are not counted */
    GP_ACCOUNT_DISPLAY,
    GP_ACCOUNT_DRIVER, /* no process has it open */
    GP_ACCOUNT__COUNT,
};

struct gp_account {
    const struct gp_device *device;
    struct gp_amount total, used, reserved, free, listed, rest; /* bytes */
    size_t processes;                                           /* of the listed processes */
    double suspended_bytes; /* in host memory: of the suspended processes, which are not listed */
    size_t suspended_count;
    struct gp_suspect *suspects;                                /* the most suspicious first */
    size_t suspect_count;
    const struct gp_cgroup_regions
        *regions; /* of all GPUs; this GPU's are those with its PCI address */
    size_t hidden;
    enum gp_account_verdict verdict;
};

enum { GP_ACCOUNT_SLACK = 64 << 20 }; /* bytes not used by a process that need no explanation */

/* The metrics that the accounts need. */
void gp_accounts_want(struct gp_metric_set *metrics);

/* gp_holders_read() with a deadline. GP_ETIMEOUT: it is blocked by a hung process, on a thread that
 * is abandoned; this process must then terminate with _exit(). Only one call at a time. */
int gp_account_find_holders(const char *root, uint64_t timeout_ns, struct gp_holders *ret,
                            struct gp_err *err) GP_MUST_CHECK;

/* Adds a row for each process that has one of the GPUs open and that the driver does not list. The
 * rows point into the holders. GP_ENOMEM: no row was added. */
int gp_account_add_holders(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                           const struct gp_holders *holders) GP_MUST_CHECK;

/* The accounts of all GPUs of the snapshot, MIG instances included in their GPU. Snapshot and
 * holders must outlive them. GP_ENOMEM. */
int gp_accounts_make(const struct gp_snapshot *snapshot, const struct gp_holders *holders,
                     struct gp_account **ret, size_t *ret_count) GP_MUST_CHECK;
void gp_accounts_free(struct gp_account *accounts, size_t count);

/* "leftovers", … */
const char *gp_account_verdict_word(enum gp_account_verdict verdict);
const char *gp_suspect_word(enum gp_suspect_kind kind);
/* The meaning and the remedy, in full sentences. */
void gp_account_add_verdict(struct gp_strbuf *sb, const struct gp_account *account);
/* Its amounts in whole MiB (but still in bytes), rounded so that the parts add up: what is in use
 * up, as nvidia-smi does, and the rest accordingly. */
struct gp_account gp_account_in_mib(const struct gp_account *account);

/* An amount in bytes, or null if it is unknown. */
json_t *gp_account_number(struct gp_amount a);

/* Appends the human-readable report; for gpulse reclaim without the advice to use it. */
void gp_account_add(struct gp_strbuf *sb, const struct gp_account *account, bool reclaims);
/* Appends a document of the schema gpulse.memory/1. */
void gp_accounts_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_account *accounts, size_t count);
/* Appends that document, or the reports of all GPUs. GP_ENOMEM. */
int gp_accounts_explain(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                        const struct gp_holders *holders, bool json) GP_MUST_CHECK;

#endif
