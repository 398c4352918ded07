/* Where the memory of a GPU is: what its listed processes use, and, for what is used without one,
 * who probably has it and what would free it. Pure: of a snapshot and of who has the device files
 * open. */
#ifndef GP_JOBS_ACCOUNT_H
#define GP_JOBS_ACCOUNT_H

#include "out/procs.h"

struct gp_cgroup_regions;
struct gp_device;
struct gp_err;
struct gp_holder;
struct gp_holders;
struct gp_snapshot;
struct gp_strbuf;

/* What a process is that has the GPU open and is not listed. */
enum gp_suspect_kind {
    GP_SUSPECT_LEFTOVER, /* what started it has ended */
    GP_SUSPECT_OTHER,
    GP_SUSPECT_MPS, /* the server that holds memory for its clients */
    GP_SUSPECT_DISPLAY,
    GP_SUSPECT_SERVICE, /* of the driver, or one that watches: it holds no memory worth the name */
};

struct gp_suspect {
    const struct gp_holder *holder;
    enum gp_suspect_kind kind;
};

/* The most probable explanation, the first that fits. */
enum gp_account_verdict {
    GP_ACCOUNT_NO_ANSWER, /* of the GPU */
    GP_ACCOUNT_UNKNOWN,   /* the driver does not tell what its processes use */
    GP_ACCOUNT_ACCOUNTED, /* but for a remainder that contexts of the driver explain */
    GP_ACCOUNT_LEFTOVERS,
    GP_ACCOUNT_HOLDERS,
    GP_ACCOUNT_MPS,
    GP_ACCOUNT_NAMESPACE, /* processes outside of this container cannot be seen */
    GP_ACCOUNT_HIDDEN,    /* those of others may not be looked at */
    GP_ACCOUNT_UNCOUNTED, /* listed processes whose managed memory and contexts nobody counts */
    GP_ACCOUNT_DISPLAY,
    GP_ACCOUNT_DRIVER, /* nobody has it open */
    GP_ACCOUNT__COUNT,
};

struct gp_account {
    const struct gp_device *device;
    struct gp_amount total, used, reserved, free, listed, rest; /* bytes */
    size_t processes;                                           /* that are listed */
    struct gp_suspect *suspects;                                /* the most suspicious first */
    size_t suspect_count;
    const struct gp_cgroup_regions
        *regions; /* of all GPUs; those with its PCI address are its own */
    size_t hidden;
    enum gp_account_verdict verdict;
};

enum { GP_ACCOUNT_SLACK = 64 << 20 }; /* bytes without a process that need no explanation */

/* gp_holders_read() within a deadline. GP_ETIMEOUT: it waits for a process that hangs, on a thread
 * that is left alone; then the process must end with _exit(). One at a time. */
int gp_account_find_holders(const char *root, uint64_t timeout_ns, struct gp_holders *ret,
                            struct gp_err *err) GP_MUST_CHECK;

/* Whether it has the device file of this GPU open; of a MIG instance that cannot be told. */
bool gp_account_has_open(const struct gp_device *device, const struct gp_holder *holder);

/* The accounts of all GPUs of the snapshot, MIG instances with their GPU. What they point to must
 * outlive them. GP_ENOMEM. */
int gp_accounts_make(const struct gp_snapshot *snapshot, const struct gp_holders *holders,
                     struct gp_account **ret, size_t *ret_count) GP_MUST_CHECK;
void gp_accounts_free(struct gp_account *accounts, size_t count);

/* "leftovers", … */
const char *gp_account_verdict_word(enum gp_account_verdict verdict);
const char *gp_suspect_word(enum gp_suspect_kind kind);
/* What it means and what would free it, in words; whole sentences. */
void gp_account_add_verdict(struct gp_strbuf *sb, const struct gp_account *account);
/* Some lines for people. */
void gp_account_add(struct gp_strbuf *sb, const struct gp_account *account);
/* A document of the schema gpulse.memory/1. */
void gp_accounts_json(struct gp_strbuf *sb, const struct gp_snapshot *snapshot,
                      const struct gp_account *accounts, size_t count);

#endif
