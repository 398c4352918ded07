/* A machine's journal as libsystemd has opened it: for journal.c, which says what it is asked. */
#ifndef GP_DOCTOR_READERS_SDJOURNAL_H
#define GP_DOCTOR_READERS_SDJOURNAL_H

#include "base/util.h"

struct gp_exam;

enum { GP_SDJOURNAL_ID = 33 }; /* the size of an id: 32 hexadecimal digits */

struct sd_journal;

/* What sd_journal(3) describes; each returns −errno if it fails. */
struct gp_sdjournal_api {
    int (*open_files)(struct sd_journal **ret, const char **paths, int flags);
    void (*close)(struct sd_journal *j);
    int (*add_match)(struct sd_journal *j, const void *data, size_t size);
    int (*add_disjunction)(struct sd_journal *j);
    void (*flush_matches)(struct sd_journal *j);
    int (*seek_head)(struct sd_journal *j);
    int (*seek_tail)(struct sd_journal *j);
    int (*previous)(struct sd_journal *j);
    int (*previous_skip)(struct sd_journal *j, uint64_t skip);
    int (*next)(struct sd_journal *j);
    int (*get_data)(struct sd_journal *j, const char *field, const void **ret, size_t *ret_size);
    int (*get_realtime_usec)(struct sd_journal *j, uint64_t *ret);
    int (*get_monotonic_usec)(struct sd_journal *j, uint64_t *ret, void *ret_boot_id);
    int (*query_unique)(struct sd_journal *j, const char *field);
    int (*enumerate_unique)(struct sd_journal *j, const void **ret, size_t *ret_size);
};

struct gp_sdjournal {
    struct gp_exam *exam;
    struct gp_sdjournal_api api;
    struct sd_journal *j;
    char boot[sizeof("_BOOT_ID=") - 1 + GP_SDJOURNAL_ID];
    uint64_t last_us; /* since 1970: the last entry */
    unsigned user;    /* who asks; 0: root, or unknown */
};

#define GP_SDJOURNAL_DAY_US (24 * 3600 * UINT64_C(1000000))

/* 0 or −errno; close it in any case. */
int gp_sdjournal_open(struct gp_exam *exam, struct gp_sdjournal *journal);
void gp_sdjournal_close(const struct gp_sdjournal *journal);

/* A field's value in the current entry, not terminated; NULL: it does not have it. */
const char *gp_sdjournal_field(const struct gp_sdjournal *journal, const char *name,
                               size_t *ret_length);

/* A number in a field, such as _UID; false: there is none. */
bool gp_sdjournal_number(const struct gp_sdjournal *journal, const char *name, unsigned long *ret);

/* Selects the entries with this field, "_UID=1000": with one of several of the same name, and with
 * all of different ones. 0 or −errno. */
int gp_sdjournal_match(const struct gp_sdjournal *journal, const char *text);

/* Selects what was logged since boot, and goes to its end; more matches may follow. */
bool gp_sdjournal_select_boot(const struct gp_sdjournal *journal);

#endif
