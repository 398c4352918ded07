/* The allocator of the code under test, by the linker's --wrap: it fails when it is told to. And
 * what may be left behind then. */
#include "unit.h"

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static atomic_long fail_from = -1;
static atomic_long fail_to;
static atomic_long count;

static void fail_between(long from, long to)
{
    atomic_store(&count, 0);
    atomic_store(&fail_to, to);
    atomic_store(&fail_from, from);
}

void alloc_fail_from(long n)
{
    fail_between(n, LONG_MAX);
}

void alloc_fail_at(long n)
{
    fail_between(n, n);
}

long alloc_count(void)
{
    return atomic_load(&count);
}

static bool fails(void)
{
    long n = atomic_fetch_add(&count, 1);
    long from = atomic_load(&fail_from);
    return from >= 0 && n >= from && n <= atomic_load(&fail_to);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t items, size_t size)
{
    return fails() ? NULL : __real_calloc(items, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

size_t open_file_count(void)
{
    size_t files = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        files++;
    (void)closedir(dir);
    return files;
}
