/* Private to the store. Its parts, from the lowest to the highest:
 *
 *   vfs.c          files, for SQLite
 *   sql.c          statements and their rows
 *   store.c        opening and reading a file
 *   store_write.c  creating and writing one
 */
#ifndef GP_TAPE_STORE_INTERNAL_H
#define GP_TAPE_STORE_INTERNAL_H

#include "base/io.h"
#include "tape/store.h"

#include <sqlite3.h>

enum { GP_STORE_APPLICATION = 0x67707473 }; /* "gpts": SQLite's mark of who may read the file */
enum { GP_STORE_STATEMENTS = 64 };          /* that stay prepared */

struct gp_store_statement {
    const char *sql;
    sqlite3_stmt *prepared;
};

/* ---- vfs.c ---- */

/* Its name; NULL: SQLite lacks what it is made from. */
const char *gp_store_vfs(bool reads);

/* ---- sql.c ---- */

/* The error of what was done last: "cannot WHAT 'FILE': …"; returns its code. */
int gp_store_fail(const struct gp_store *store, int code, const char *what, struct gp_err *err);
/* GP_EFORMAT: it is damaged, or no recording. */
int gp_store_damaged(const struct gp_store *store, struct gp_err *err);
/* Runs a text that is not kept prepared. */
int gp_store_execute(struct gp_store *store, const char *sql, const char *what,
                     struct gp_err *err) GP_MUST_CHECK;

/* ---- store.c ---- */

/* One that is not open yet; NULL without memory. */
struct gp_store *gp_store_new(const char *path, struct gp_err *err) GP_MUST_CHECK;
/* The path of a file next to the recording; false: too long. */
bool gp_store_beside(const struct gp_store *store, const char *suffix,
                     char ret[GP_PATH_SIZE]) GP_MUST_CHECK;
int gp_store_open_database(struct gp_store *store, int flags, struct gp_err *err) GP_MUST_CHECK;
/* Adds the tables that this version has and the file has not: all of them to a new one. */
int gp_store_upgrade(struct gp_store *store, struct gp_err *err) GP_MUST_CHECK;
int gp_store_check_version(struct gp_store *store, struct gp_err *err) GP_MUST_CHECK;
int gp_store_read_columns(struct gp_store *store, struct gp_err *err) GP_MUST_CHECK;

#endif
