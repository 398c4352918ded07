/* How SQLite gets at the files of a recording: without locks (see store.h), and without looking for
 * a journal. In WAL mode there is none; but SQLite would play back one that another user has put
 * next to the file, and delete files that it names. For readers, nothing can be changed: SQLite
 * would create a log that is missing, which the recorder then could not use. */
#include "tape/store_internal.h"

#include <pthread.h>
#include <string.h>

static sqlite3_vfs writer, reader;
static const sqlite3_vfs *base;

static bool is_journal(const char *path)
{
    static const char suffix[] = "-journal";
    const size_t len = path ? strlen(path) : 0;
    return len >= strlen(suffix) && strcmp(path + len - strlen(suffix), suffix) == 0;
}

static int exists(sqlite3_vfs *vfs, const char *path, int flags, int *ret)
{
    *ret = 0;
    return is_journal(path) ? SQLITE_OK : base->xAccess(vfs, path, flags, ret);
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    file->pMethods = NULL;
    if (vfs == &reader)
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    return flags & SQLITE_OPEN_MAIN_JOURNAL ? SQLITE_CANTOPEN
                                            : base->xOpen(vfs, path, file, flags, ret_flags);
}

static int delete_nothing(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    (void)path;
    (void)sync;
    return SQLITE_IOERR_DELETE;
}

static bool add(sqlite3_vfs *vfs, const char *name)
{
    *vfs = *base;
    vfs->pNext = NULL;
    vfs->zName = name;
    vfs->xAccess = exists;
    vfs->xOpen = open_file;
    if (vfs == &reader)
        vfs->xDelete = delete_nothing;
    return sqlite3_vfs_register(vfs, 0) == SQLITE_OK;
}

static void begin(void)
{
    base = sqlite3_vfs_find("unix-none");
    if (base && (!add(&writer, "gpulse") || !add(&reader, "gpulse-read")))
        base = NULL;
}

const char *gp_store_vfs(bool reads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, begin) != 0 || !base)
        return NULL;
    return reads ? reader.zName : writer.zName;
}
