/* Writes the files of a host. */
#include "sim/hosttree_internal.h"

#include "base/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void note(struct sim_hosttree *tree, bool ok)
{
    if (!ok && tree->error == 0)
        tree->error = -errno;
}

static void digest(struct sim_hosttree *tree, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        tree->digest = (tree->digest ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
}

/* Makes the directories above a path. */
static void make_parents(struct sim_hosttree *tree, const char *path)
{
    char folder[GP_PATH_SIZE];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        note(tree, mkdirat(tree->dir, folder + 1, 0700) == 0 || errno == EEXIST);
    }
}

/* Replaces the file as a whole: nobody reads half of it. */
static void put(struct sim_hosttree *tree, const char *path, const char *text, size_t size)
{
    static const char fresh[] = ".new";
    if (tree->is_digest) {
        digest(tree, path, strlen(path) + 1);
        digest(tree, text, size);
        return;
    }
    int fd = openat(tree->dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    note(tree, fd >= 0);
    if (fd < 0)
        return;
    int r = gp_io_write_all(fd, text, size);
    (void)close(fd);
    /* ext4 writes a file that replaces another to the disk at once, but not one that changes places
     * with it */
    if (r == 0 && renameat2(tree->dir, fresh, tree->dir, path + 1, RENAME_EXCHANGE) == 0) {
        (void)unlinkat(tree->dir, fresh, 0);
        return;
    }
    make_parents(tree, path);
    note(tree, r == 0 && renameat(tree->dir, fresh, tree->dir, path + 1) == 0);
}

void sim_tree_text(struct sim_hosttree *tree, const char *path, const char *text)
{
    put(tree, path, text, strlen(text));
}

void sim_tree_link(struct sim_hosttree *tree, const char *path, const char *target)
{
    if (tree->is_digest) {
        digest(tree, path, strlen(path) + 1);
        digest(tree, target, strlen(target) + 1);
        return;
    }
    make_parents(tree, path);
    (void)unlinkat(tree->dir, path + 1, 0);
    note(tree, symlinkat(target, tree->dir, path + 1) == 0);
}

void sim_tree_built(struct sim_hosttree *tree, const char *folder, const char *name,
                    struct gp_strbuf *sb)
{
    char path[GP_PATH_SIZE];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    put(tree, path, sb->buf, sb->len);
    gp_strbuf_reset(sb);
}

void sim_tree_clear(int parent, const char *name, bool itself)
{
    const struct dirent *entry;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        (void)close(fd);
    while (list && (entry = readdir(list)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlinkat(dirfd(list), entry->d_name, 0) != 0)
            sim_tree_clear(dirfd(list), entry->d_name, true);
    if (list)
        (void)closedir(list);
    if (itself)
        (void)unlinkat(parent, name, AT_REMOVEDIR);
}
