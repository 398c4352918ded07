/* /etc/ld.so.cache: its two forms, and files that are none. */
#include "unit.h"

#include "doctor/readers/ldcache.h"

#include "base/util.h"

struct entry {
    unsigned flags;
    const char *name, *path;
};

static const struct entry entries[] = {
    {0x0303, "libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"},
    {0x0003, "libcuda.so.1", "/usr/lib/i386-linux-gnu/libcuda.so.1"},
    {0x0303, "libcuda.so.1", "/usr/local/cuda-12.4/compat/libcuda.so.1"},
    {0x0303, "libm.so.6", "/lib/x86_64-linux-gnu/libm.so.6"},
};

static void put(char *p, size_t value)
{
    for (size_t i = 0; i < 4; i++)
        p[i] = (char)(value >> 8 * i);
}

/* A cache of these entries, behind an old part of so many (−1: none); its size. */
static size_t build(char buf[4096], int old)
{
    size_t start = old < 0 ? 0 : (16 + (size_t)old * 12 + 7) / 8 * 8;
    char *base = buf + start;
    memset(buf, 0, 4096);
    if (old >= 0) {
        memcpy(buf, "ld.so-1.7.0", 11);
        put(buf + 12, (size_t)old);
    }
    memcpy(base, "glibc-ld.so.cache1.1", 20);
    put(base + 20, GP_ARRAY_LEN(entries));
    base[28] = 2;
    size_t strings = 48 + GP_ARRAY_LEN(entries) * 24, end = strings;
    for (size_t i = 0; i < GP_ARRAY_LEN(entries); i++) {
        char *entry = base + 48 + i * 24;
        put(entry, entries[i].flags);
        put(entry + 4, end);
        memcpy(base + end, entries[i].name, strlen(entries[i].name) + 1);
        end += strlen(entries[i].name) + 1;
        put(entry + 8, end);
        memcpy(base + end, entries[i].path, strlen(entries[i].path) + 1);
        end += strlen(entries[i].path) + 1;
    }
    put(base + 24, end - strings);
    return start + end;
}

static void both_forms(void **state)
{
    (void)state;
    char buf[4096];
    for (int old = -1; old < 4; old++) {
        struct gp_ldcache cache;
        assert_true(gp_ldcache_init(&cache, buf, build(buf, old)));
        assert_int_equal(cache.count, GP_ARRAY_LEN(entries));
        for (size_t i = 0; i < cache.count; i++) {
            struct gp_library library = gp_ldcache_at(&cache, i);
            assert_string_equal(library.name, entries[i].name);
            assert_string_equal(library.path, entries[i].path);
            assert_int_equal(library.flags, entries[i].flags);
        }
    }
}

static void by_name(void **state)
{
    (void)state;
    char buf[4096];
    struct gp_ldcache cache;
    struct gp_library library;
    size_t from = 0;
    assert_true(gp_ldcache_init(&cache, buf, build(buf, -1)));
    assert_true(gp_ldcache_find(&cache, "libcuda.so.1", "x86_64", &from, &library));
    assert_string_equal(library.path, entries[0].path);
    assert_true(gp_ldcache_find(&cache, "libcuda.so.1", "x86_64", &from, &library));
    assert_string_equal(library.path, entries[2].path);
    assert_false(gp_ldcache_find(&cache, "libcuda.so.1", "x86_64", &from, &library));
    from = 0;
    assert_true(gp_ldcache_find(&cache, "libcuda.so.1", "i686", &from, &library));
    assert_string_equal(library.path, entries[1].path);
    from = 0;
    assert_false(gp_ldcache_find(&cache, "libcuda.so.1", "aarch64", &from, &library));
    from = 0;
    assert_true(gp_ldcache_find(&cache, "libm.so.6", NULL, &from, &library));
    assert_false(gp_ldcache_find(&cache, "libm.so.6", NULL, &from, &library));
    assert_false(gp_ldcache_find(&cache, "libm.so.6", NULL, &from, &library));
}

static void damaged(void **state)
{
    (void)state;
    static const struct {
        size_t at, value;
    } damages[] = {{20, 0xffffffff}, {20, 5},      {24, 0xffffffff},          {24, 0}, {48 + 4, 47},
                   {48 + 4, 4000},   {48 + 8, 10}, {48 + 24 + 8, 0xfffffff0}, {0, 0}};
    char buf[4096];
    struct gp_ldcache cache;
    size_t size = build(buf, 3);
    for (size_t cut = 0; cut < size; cut++)
        assert_false(gp_ldcache_init(&cache, buf, cut));
    for (size_t i = 0; i < GP_ARRAY_LEN(damages); i++) {
        size = build(buf, -1);
        put(buf + damages[i].at, damages[i].value);
        assert_false(gp_ldcache_init(&cache, buf, size));
    }
    size = build(buf, 1);
    put(buf + 12, 0x7fffffff);
    assert_false(gp_ldcache_init(&cache, buf, size));
    size = build(buf, -1);
    buf[size - 1] = 'x';
    assert_false(gp_ldcache_init(&cache, buf, size));
    size = build(buf, -1);
    buf[28] = 3; /* big-endian */
    assert_false(gp_ldcache_init(&cache, buf, size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms),
        cmocka_unit_test(by_name),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests_name("ldcache", tests, NULL, NULL);
}
