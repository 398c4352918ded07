/* Private to the import. Its parts:
 *
 *   import.c             finds out the format
 *   import_csv.c, import_dmon.c, import_prometheus.c
 *   import_file.c        lines, times, indices
 *   import_names.c       what other programs call things
 *   import_rows.c        samples from values
 */
#ifndef GP_TAPE_IMPORT_FILE_H
#define GP_TAPE_IMPORT_FILE_H

#include "base/strbuf.h"
#include "tape/import_rows.h"

/* A file that is read line by line. */
struct gp_import_file {
    struct gp_import_rows *rows;
    FILE *stream;
    char *line; /* the current one, without its end: in */
    struct gp_strbuf text;
};

/* The next line: 1; 0: there is none; GP_EFORMAT, GP_EIO. */
int gp_import_next_line(struct gp_import_file *file, struct gp_err *err) GP_MUST_CHECK;

/* "2026/11/27 03:10:00.123", local time, or RFC 3339. */
bool gp_import_time(const char *text, int64_t *ret_wall_us) GP_MUST_CHECK;

/* An index; −1: it is none. */
int gp_import_index(const char *text);

/* Each begins with the first line of the file, which is its current one. 0, or an error. */
int gp_import_csv(struct gp_import_file *file, struct gp_err *err) GP_MUST_CHECK;
int gp_import_ndjson(struct gp_import_file *file, struct gp_err *err) GP_MUST_CHECK;
int gp_import_dmon(struct gp_import_file *file, struct gp_err *err) GP_MUST_CHECK;
int gp_import_dcgm(struct gp_import_file *file, struct gp_err *err) GP_MUST_CHECK;
int gp_import_prometheus(struct gp_import_file *file, struct gp_err *err) GP_MUST_CHECK;

#endif
