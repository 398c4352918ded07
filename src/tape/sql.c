/* The statements of a recording, and the rows that they return. */
#include "tape/store_internal.h"

#include "base/err.h"

#include <stdarg.h>
#include <string.h>

int gp_store_fail(const struct gp_store *store, int code, const char *what, struct gp_err *err)
{
    const int kind = sqlite3_errcode(store->db) & 0xff;
    const int sys =
        kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN ? sqlite3_system_errno(store->db) : 0;
    if (kind == SQLITE_NOMEM)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    if (kind == SQLITE_FULL)
        return gp_err_set(err, GP_EIO, "cannot %s '%.200s': the file system is full", what,
                          store->path);
    if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB)
        return gp_err_set(err, GP_EFORMAT, "'%.200s' is damaged, or is no recording", store->path);
    return gp_err_set(err, code, "cannot %s '%.200s': %s", what, store->path,
                      sys ? strerror(sys) : sqlite3_errmsg(store->db));
}

int gp_store_damaged(const struct gp_store *store, struct gp_err *err)
{
    return (sqlite3_errcode(store->db) & 0xff) == SQLITE_NOMEM
               ? gp_err_set(err, GP_ENOMEM, "out of memory")
               : gp_err_set(err, GP_EFORMAT, "'%.200s' is damaged, or is no recording",
                            store->path);
}

int gp_store_decode_error(const char *path, int r, struct gp_err *err)
{
    return gp_err_set(err, r, r == GP_ENOMEM ? "out of memory" : "'%.200s' is damaged", path);
}

/* ---- statements ---- */

/* SQLITE_OK, or the first error. */
static int bind(sqlite3_stmt *statement, const char *types, va_list values)
{
    int r = SQLITE_OK;
    for (int i = 1; *types && r == SQLITE_OK; types++, i++) {
        const void *data;
        const char *text;
        switch (*types) {
        case 'i':
            r = sqlite3_bind_int64(statement, i, va_arg(values, int64_t));
            break;
        case 'd':
            r = sqlite3_bind_double(statement, i, va_arg(values, double));
            break;
        case 't':
            text = va_arg(values, const char *);
            r = sqlite3_bind_text(statement, i, text, -1, SQLITE_TRANSIENT);
            break;
        case 'b':
            data = va_arg(values, const void *);
            r = sqlite3_bind_blob64(statement, i, data, va_arg(values, size_t), SQLITE_TRANSIENT);
            break;
        default:
            r = sqlite3_bind_null(statement, i);
        }
        if (r == SQLITE_RANGE) /* a statement that does not have all of them */
            r = SQLITE_OK;
    }
    return r;
}

/* Prepares a text, or finds it among those that are. */
static sqlite3_stmt *prepare(struct gp_store *store, const char *sql)
{
    size_t i = 0;
    while (i < GP_STORE_STATEMENTS && store->statements[i].sql && store->statements[i].sql != sql)
        i++;
    if (i == GP_STORE_STATEMENTS)
        return NULL;
    struct gp_store_statement *s = &store->statements[i];
    if (!s->prepared && sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                           &s->prepared, NULL) != SQLITE_OK)
        return NULL;
    s->sql = sql;
    (void)sqlite3_reset(s->prepared);
    return s->prepared;
}

struct sqlite3_stmt *gp_store_statement(struct gp_store *store, const char *sql, const char *types,
                                        ...)
{
    va_list values;
    sqlite3_stmt *statement = prepare(store, sql);
    va_start(values, types);
    if (statement && bind(statement, types, values) != SQLITE_OK)
        statement = NULL;
    va_end(values);
    return statement;
}

int gp_store_run(struct gp_store *store, struct gp_err *err, const char *sql, const char *types,
                 ...)
{
    va_list values;
    sqlite3_stmt *statement = prepare(store, sql);
    if (!statement)
        return gp_store_fail(store, GP_EIO, "write to", err);
    va_start(values, types);
    int r = bind(statement, types, values) == SQLITE_OK ? SQLITE_ROW : SQLITE_ERROR;
    va_end(values);
    while (r == SQLITE_ROW) /* of a PRAGMA */
        r = sqlite3_step(statement);
    r = r == SQLITE_DONE ? 0 : gp_store_fail(store, GP_EIO, "write to", err);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return r;
}

int gp_store_step(struct gp_store *store, struct sqlite3_stmt *statement, struct gp_err *err)
{
    int r = statement ? sqlite3_step(statement) : SQLITE_ERROR;
    if (r == SQLITE_ROW)
        return 1;
    int result = r == SQLITE_DONE ? 0 : gp_store_fail(store, GP_EIO, "read", err);
    if (statement)
        (void)sqlite3_reset(statement);
    return result;
}

int64_t gp_store_int(struct sqlite3_stmt *statement, int column)
{
    return sqlite3_column_int64(statement, column);
}

double gp_store_real(struct sqlite3_stmt *statement, int column)
{
    return sqlite3_column_double(statement, column);
}

const char *gp_store_text(struct sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

const void *gp_store_bytes(struct sqlite3_stmt *statement, int column, size_t *ret_size)
{
    const void *data = sqlite3_column_blob(statement, column);
    *ret_size = data ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    return data ? data : "";
}

bool gp_store_is_null(struct sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL;
}

int gp_store_get_number(struct gp_store *store, const char *sql, int64_t fallback, int64_t *ret,
                        struct gp_err *err)
{
    sqlite3_stmt *statement = gp_store_statement(store, sql, "");
    const int r = gp_store_step(store, statement, err);
    *ret = fallback;
    if (r != 1)
        return r;
    if (!gp_store_is_null(statement, 0))
        *ret = gp_store_int(statement, 0);
    (void)sqlite3_reset(statement);
    return 0;
}

int64_t gp_store_number(struct gp_store *store, const char *sql, int64_t fallback)
{
    int64_t n;
    return gp_store_get_number(store, sql, fallback, &n, NULL) < 0 ? fallback : n;
}

/* Runs a text that is not kept prepared. */
int gp_store_execute(struct gp_store *store, const char *sql, const char *what, struct gp_err *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : gp_store_fail(store, GP_EIO, what, err);
}
