/* What is known of error lines: the entries of data/explain, and the codes of data/tables, which
 * are entries too. Generated at build time by scripts/explain.py, which checks them. */
#ifndef GP_DOCTOR_ENTRIES_H
#define GP_DOCTOR_ENTRIES_H

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

enum {
    GP_WINDOW = 6,          /* characters by which lines are searched for patterns */
    GP_PATTERNS_MAX = 32768 /* less than 65536: see entries.c */
};

/* Texts are "" if there is nothing to say. */
struct gp_error_entry {
    const char *id; /* "docker.no-toolkit", "cuda.700"; for a line of the kernel, as in kmsg.def */
    const char *family; /* the name of its file, or "codes" */
    const char *title;  /* the program or library that reports it */
    const char *name;   /* of a code: as its makers call it */
    const char *cause;  /* what the line proves */
    const char *maybe;  /* what else usually is behind it, though the line does not prove it */
    const char *check;  /* how to tell apart what it can be */
    const char *look; /* comma list of checks and groups of the doctor that can tell on a machine */
    const char *found; /* those of them of which a note is what the line is about */
    const char *fix;
    const char *source;
    uint16_t first_unless, unless_count; /* in gp_unless: patterns of lines that it is not about */
    uint8_t log; /* enum gp_verdict: what such a line in a machine's log is; 0: nothing by itself */
};

/* Texts that a line contains one after the other. */
struct gp_pattern {
    const char *pieces;         /* separated by \n */
    char window[GP_WINDOW + 1]; /* characters of a piece, in lower case: the rarest ones */
    uint16_t entry;             /* its index */
    uint16_t weight;  /* the more characters, the greater; of several patterns, the greatest wins.
                         Those of generic entries are below all others. */
    bool any_case;    /* the pieces are in lower case */
    bool is_word;     /* one piece, and no letter, digit or _ next to it */
    bool ends_number; /* no digit follows the last piece: 1 is not 10 */
};

/* Entries of one kind of program. */
struct gp_family {
    const char *name;  /* of the file */
    const char *about; /* "Docker, Podman and the container toolkit" */
    const char *words; /* separated by blanks, in lower case: they hint at it in an unknown line */
    const char *check; /* what to check first after an unknown error */
    unsigned count;    /* its entries */
};

struct gp_entry_example {
    uint16_t entry;
    const char *line;
};

extern const struct gp_error_entry gp_entries[]; /* sorted by id */
extern const size_t gp_entry_count;
extern const struct gp_pattern gp_patterns[], gp_unless[];
extern const size_t gp_pattern_count;
extern const struct gp_family gp_families[];
extern const size_t gp_family_count;
extern const struct gp_entry_example gp_entry_examples[]; /* for tests, which alone link them */
extern const size_t gp_entry_example_count;

/* NULL: unknown. */
const struct gp_error_entry *gp_entry_find(const char *id);

/* The entry whose pattern in the line is the most specific one, and the weight of that; NULL: no
 * pattern is in the line. Of equally specific ones, the first in the line wins. Each pattern is
 * tried at most once, and without backtracking. */
const struct gp_error_entry *gp_entry_of_line(const char *line, unsigned *ret_weight);

/* Whether it is the weight of a pattern that wins only where no other one is in the line. */
bool gp_entry_is_generic(unsigned weight);

/* The family that a line is about most likely; NULL: nothing hints at one. */
const struct gp_family *gp_family_of_line(const char *line);
/* NULL: unknown, or no name. */
const struct gp_family *gp_family_find(const char *name);

#endif
