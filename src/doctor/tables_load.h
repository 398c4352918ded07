/* Tables from files, in place of those that are compiled in.
 *
 * A folder of tables has the CSV files of data/tables, or some of them, and DATE, a file with the
 * date of their facts. It is used as a whole or not at all: each file must have the columns, the
 * types and the keys that the build requires (scripts/tables.py makes the description that is used
 * here). Only files and folders of root or of the user are read, which nobody else can change. */
#ifndef GP_DOCTOR_TABLES_LOAD_H
#define GP_DOCTOR_TABLES_LOAD_H

#include "base/io.h"

struct gp_arena;
struct gp_err;

/* How a cell is stored in its member. */
enum gp_table_store {
    GP_STORE_TEXT,       /* const char * */
    GP_STORE_NUMBER,     /* unsigned */
    GP_STORE_HEX,        /* unsigned */
    GP_STORE_CAPABILITY, /* unsigned: 86 for 8.6 */
    GP_STORE_REAL,       /* double */
    GP_STORE_YES,        /* bool */
    GP_STORE_MODULES,    /* unsigned, a set of GP_MODULE_… */
    GP_STORE_VERDICT,    /* enum gp_verdict */
};

struct gp_table_column {
    const char *name;
    enum gp_table_store store;
    const char *pattern; /* for the whole cell, as a POSIX extended expression; NULL: any text */
    const char *words;   /* what a cell is that does not match: "no version" */
    bool is_optional;    /* it may be empty: 0 or "" */
    size_t offset;
    unsigned key; /* its place in the key, from 1; 0: not in it */
};

struct gp_table {
    const char *name; /* "chips" */
    const struct gp_table_column *columns;
    size_t column_count;
    size_t row_size;
    void *rows;    /* &gp_chips, the pointer to them */
    size_t *count; /* &gp_chip_count */
};

extern const struct gp_table gp_tables[];
extern const size_t gp_table_count;
extern const char gp_tables_built_in_date[];

enum { GP_TABLES_DATE = 11, GP_TABLES_OLD_DAYS = 180 };

/* Which tables are in use. */
struct gp_tables_state {
    char date[GP_TABLES_DATE]; /* "2026-11-28" */
    char folder[GP_PATH_SIZE]; /* "": built in */
    char refused[512];         /* why another folder was not used: "FILE:LINE: reason"; "" */
};

/* Chooses the tables: from the folder if one is given, else the newest by date of those that are
 * built in, installed and the user's. A folder that is refused is noted in the state, and leaves
 * the others. Call it before anything else reads tables. −errno in `err` only if the given folder
 * cannot be opened. */
int gp_tables_choose(const char *folder, struct gp_err *err) GP_MUST_CHECK;

const struct gp_tables_state *gp_tables_state(void);

/* The age of the tables in days, by the clock; negative: their date is still to come. */
long gp_tables_age_days(void);

/* Reads a table from the text of its file into the arena, sorted by its key. GP_EDATA with
 * "FILE:LINE: reason". */
int gp_table_parse(const struct gp_table *table, const char *file, char *text, size_t length,
                   struct gp_arena *arena, void **ret_rows, size_t *ret_count,
                   struct gp_err *err) GP_MUST_CHECK;

#endif
