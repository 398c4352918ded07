/* How SQLite gets at the files of a recording: without locks (see store.h), and without looking for
 * a journal. In WAL mode there is none; but SQLite would play back one that another user has put
 * next to the file, and delete files that it names. */
#include "tape/store_internal.h"

#include <pthread.h>
#include <string.h>

static sqlite3_vfs own;
static const sqlite3_vfs *base;

static bool is_journal(const char *path)
{
    static const char suffix[] = "-journal";
    const size_t len = path ? strlen(path) : 0;
    return len >= strlen(suffix) && strcmp(path + len - strlen(suffix), suffix) == 0;
}

static int exists(sqlite3_vfs *vfs, const char *path, int flags, int *ret)
{
    (void)vfs;
    *ret = 0;
    return is_journal(path) ? SQLITE_OK : base->xAccess(&own, path, flags, ret);
}

static int open_file(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    (void)vfs;
    file->pMethods = NULL;
    return flags & SQLITE_OPEN_MAIN_JOURNAL ? SQLITE_CANTOPEN
                                            : base->xOpen(&own, path, file, flags, ret_flags);
}

static void begin(void)
{
    base = sqlite3_vfs_find("unix-none");
    if (!base)
        return;
    own = *base;
    own.pNext = NULL;
    own.zName = "gpulse";
    own.xAccess = exists;
    own.xOpen = open_file;
    if (sqlite3_vfs_register(&own, 0) != SQLITE_OK)
        base = NULL;
}

const char *gp_store_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, begin) == 0 && base ? own.zName : NULL;
}
