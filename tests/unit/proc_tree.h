/* A root directory by hand, whose /proc a test fills. */
#ifndef GP_TESTS_PROC_TREE_H
#define GP_TESTS_PROC_TREE_H

#include "unit.h"

#include <sys/stat.h>

static char tree_root[64];

static inline void write_file(const char *name, const void *data, size_t size)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s%s", tree_root, name);
    for (char *p = strchr(path + strlen(tree_root) + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(path, 0755);
        *p = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static inline void write_pid(unsigned pid, const char *name, const void *data, size_t size)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
    write_file(path, data, size);
}

/* The line `stat` of a process: its CPU time and start in clock ticks, its memory in pages. */
static inline void write_stat(unsigned pid, const char *comm, unsigned long utime,
                              unsigned long start, long rss)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "%u (%s) R 1 2 3 4 5 6 7 8 9 10 %lu 20 12 13 14 15 16 17 %lu 19 %ld 21\n", pid,
                     comm, utime, start, rss);
    write_pid(pid, "stat", text, (size_t)n);
}

/* A process with a parent, which started so many clock ticks behind the boot. */
static inline void write_child(unsigned pid, unsigned ppid, unsigned long start,
                               const char *command)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "%u (x) S %u 2 3 4 5 6 7 8 9 10 30 20 12 13 14 15 2 17 %lu 19 5 21\n", pid,
                     ppid, start);
    write_pid(pid, "stat", text, (size_t)n);
    write_pid(pid, "cmdline", command, strlen(command) + 1);
}

static inline int set_up(void **state)
{
    (void)state;
    temporary_name(tree_root, sizeof(tree_root), "proc");
    if (!mkdtemp(tree_root))
        return -1;
    write_text("/proc/stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\nbtime 1700000000\n");
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", tree_root);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

/* A test with a tree of its own. */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
