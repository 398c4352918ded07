#include "tape/process_texts.h"

#include "base/err.h"
#include "tape/store.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

static int find_private(struct gp_store *store, sqlite3_stmt *row, uint64_t id,
                        const char *ret[GP_PRIVATE__COUNT])
{
    struct gp_private_entry entry;
    struct stat st;
    if (!store->has_private && stat(store->path, &st) == 0) {
        if (!gp_private_read(store->path, st.st_uid, &store->private))
            return GP_ENOMEM;
        store->has_private = true;
    }
    if (gp_private_find(&store->private, id, (uint64_t)gp_store_int(row, 5),
                        (uint64_t)gp_store_int(row, 6), &entry))
        memcpy(ret, entry.texts, sizeof(entry.texts));
    return 0;
}

/* Copies the texts of a row to the store. */
static int copy_texts(struct gp_store *store, sqlite3_stmt *row, const char *ret[GP_PRIVATE__COUNT])
{
    size_t places[GP_PRIVATE__COUNT];
    struct gp_strbuf *sb = &store->texts;
    gp_strbuf_reset(sb);
    for (int i = 0; i < GP_PRIVATE__COUNT; i++) {
        places[i] = sb->len;
        gp_strbuf_adds(sb, gp_store_text(row, i));
        gp_strbuf_addc(sb, '\0');
    }
    for (int i = 0; !sb->error && i < GP_PRIVATE__COUNT; i++)
        ret[i] = gp_store_is_null(row, i) ? NULL : sb->buf + places[i];
    return sb->error == GP_ENOMEM ? GP_ENOMEM : sb->error ? GP_EFORMAT : 0;
}

int gp_process_texts(struct gp_store *store, uint64_t id, const char *ret[GP_PRIVATE__COUNT])
{
    sqlite3_stmt *row = gp_store_statement(store,
                                           "SELECT path, command, cwd, container_name, origin, "
                                           "pid, start, user FROM process WHERE id = ?",
                                           "i", (int64_t)id);
    memset(ret, 0, GP_PRIVATE__COUNT * sizeof(*ret));
    int r = gp_store_step(store, row, NULL);
    if (r != 1)
        return r;
    r = store->columns->is_shared ? find_private(store, row, id, ret) : copy_texts(store, row, ret);
    (void)sqlite3_reset(row);
    return r;
}
