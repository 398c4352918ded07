/* The list of architectures in a library: in bytes, in ELF files, across blocks. */
#include "unit.h"

#include "doctor/readers/archlist.h"

#include "base/err.h"
#include "doctor/files.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

static const char list[] = "sm_75 sm_80 sm_86 sm_90a sm_120 compute_120";

static void in_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *found; /* NULL: none */
    } cases[] = {
        {"sm_75 sm_80 sm_90", "sm_75 sm_80 sm_90"},
        {"x sm_50 sm_60 compute_60, sm_70", "sm_50 sm_60 compute_60"},
        {"sm_75 sm_80", NULL}, /* may be anything */
        {"sm_75", NULL},
        {"sm_75  sm_80 sm_90", NULL},
        {"sm_75,sm_80,sm_90", NULL},
        {"sm_7 sm_80 sm_90", NULL},
        {"sm_75 sm_80 sm_86 sm_", "sm_75 sm_80 sm_86"},
        {"sm_75 sm_80 nothing sm_50 sm_60 sm_70 and", "sm_50 sm_60 sm_70"},
        {"sm_90a sm_100f sm_103 compute_103f", "sm_90a sm_100f sm_103 compute_103f"},
        {"sm_75 sm_80 sm_12345", "sm_75 sm_80 sm_1234"},
        {"", NULL},
    };
    char found[GP_ARCHLIST_SIZE];
    for (size_t i = 0; i < GP_ARRAY_LEN(cases); i++) {
        bool is_found = gp_archlist_find(cases[i].bytes, strlen(cases[i].bytes), true, found);
        if (is_found != (cases[i].found != NULL))
            fail_msg("%s", cases[i].bytes);
        if (is_found)
            assert_string_equal(found, cases[i].found);
    }
    static char many[1 << 20]; /* no list is so long, and it costs no more than its length */
    for (size_t i = 0; i + 7 <= sizeof(many); i += 6)
        memcpy(many + i, "sm_10 ", 6);
    (void)gp_archlist_find(many, sizeof(many), false, found);
    char longer[sizeof(list) + 16] = "";
    (void)snprintf(longer, sizeof(longer), "%s", list);
    for (size_t n = 0; n < sizeof(list) + 15; n++) /* more may follow */
        assert_false(gp_archlist_find(longer, n, false, found));
    assert_true(gp_archlist_find(longer, sizeof(list) + 15, false, found));
    assert_string_equal(found, list);
}

/* The longest list that there is room for, and one that is longer by a character. */
static void longest(void **state)
{
    (void)state;
    char found[GP_ARCHLIST_SIZE], text[GP_ARCHLIST_SIZE + 16];
    for (size_t more = 0; more < 2; more++) {
        size_t n = 0, threes = 2 + more;
        while (n < GP_ARCHLIST_SIZE - 1 + more)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
                                  threes > 0 && threes-- ? "sm_100" : "sm_75");
        assert_int_equal(n, GP_ARCHLIST_SIZE - 1 + more);
        assert_int_equal(gp_archlist_find(text, n, true, found), more == 0);
        if (more == 0)
            assert_string_equal(found, text);
    }
}

static char folder[256], file[512];
static struct gp_files files;

static bool find_in(const void *head, size_t head_size, long at, uint64_t budget, char *found)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, list, sizeof(list), at), sizeof(list));
    if (head_size > 0)
        assert_int_equal(pwrite(fd, head, head_size, 0), (long)head_size);
    assert_int_equal(close(fd), 0);
    return gp_archlist_read(&files, "/lib.so", &budget, found);
}

/* Where nothing is on standard input, the file gets its number. */
static void without_standard_input(void **state)
{
    (void)state;
    char found[GP_ARCHLIST_SIZE];
    int input = dup(STDIN_FILENO);
    (void)close(STDIN_FILENO);
    bool is_found = find_in(NULL, 0, 0, 1 << 20, found);
    if (input >= 0) {
        (void)dup2(input, STDIN_FILENO);
        (void)close(input);
    }
    assert_true(is_found);
    assert_string_equal(found, list);
}

static void across_blocks(void **state)
{
    (void)state;
    char found[GP_ARCHLIST_SIZE];
    for (long at = (1 << 20) - 60; at < (1 << 20) + 4; at++) {
        assert_true(find_in(NULL, 0, at, 1 << 24, found));
        assert_string_equal(found, list);
    }
    assert_true(find_in(NULL, 0, 5 << 20, 1 << 24, found));
    assert_false(find_in(NULL, 0, 5 << 20, 1 << 20, found)); /* too far */
}

static const char section_names[] = "\0.shstrtab\0.rodata\0.text";

enum { AT_NAMES = 0x1000, AT_SECTIONS = 0x1100, AT_TEXT = 0x2000, AT_CONSTANTS = 0x4000 };

struct elf {
    Elf64_Ehdr head;
    char room[AT_NAMES - sizeof(Elf64_Ehdr)];
    char names[AT_SECTIONS - AT_NAMES];
    Elf64_Shdr sections[4];
};

static struct elf build_elf(void)
{
    struct elf elf = {.head = {.e_shoff = AT_SECTIONS,
                               .e_shentsize = sizeof(Elf64_Shdr),
                               .e_shnum = 4,
                               .e_shstrndx = 1}};
    memcpy(elf.head.e_ident, ELFMAG, SELFMAG);
    elf.head.e_ident[EI_CLASS] = ELFCLASS64;
    elf.head.e_ident[EI_DATA] = ELFDATA2LSB;
    memcpy(elf.names, section_names, sizeof(section_names));
    elf.sections[1] = (Elf64_Shdr){.sh_name = 1, .sh_offset = AT_NAMES, .sh_size = 25};
    elf.sections[2] = (Elf64_Shdr){
        .sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = AT_CONSTANTS, .sh_size = 0x100};
    elf.sections[3] = (Elf64_Shdr){
        .sh_name = 19, .sh_type = SHT_PROGBITS, .sh_offset = AT_TEXT, .sh_size = 0x100};
    return elf;
}

static void in_elf(void **state)
{
    (void)state;
    char found[GP_ARCHLIST_SIZE];
    struct elf elf = build_elf();
    assert_true(find_in(&elf, sizeof(elf), AT_CONSTANTS + 9, 1 << 20, found));
    assert_string_equal(found, list);
    assert_false(find_in(&elf, sizeof(elf), AT_TEXT, 1 << 20, found)); /* only the constants */
    elf.sections[2].sh_offset = UINT64_MAX;
    assert_true(find_in(&elf, sizeof(elf), AT_TEXT, 1 << 20, found)); /* damaged: all of it */
    elf = build_elf();
    elf.sections[2].sh_size = UINT64_MAX;
    assert_true(find_in(&elf, sizeof(elf), AT_CONSTANTS + 9, 1 << 20, found));
    elf = build_elf();
    elf.head.e_shoff = UINT64_MAX - 64;
    assert_true(find_in(&elf, sizeof(elf), AT_TEXT, 1 << 20, found));
    elf = build_elf();
    elf.head.e_shstrndx = 9;
    assert_true(find_in(&elf, sizeof(elf), AT_TEXT, 1 << 20, found));
    elf.head.e_ident[EI_CLASS] = ELFCLASS32;
    assert_true(find_in(&elf, sizeof(elf), AT_TEXT, 1 << 20, found));
}

static void no_memory(void **state)
{
    (void)state;
    char found[GP_ARCHLIST_SIZE];
    uint64_t budget = 1 << 20;
    alloc_fail_from(0);
    bool is_found = gp_archlist_read(&files, "/lib.so", &budget, found);
    alloc_fail_from(-1);
    assert_false(is_found);
    assert_false(gp_archlist_read(&files, "/none", &budget, found));
    assert_false(gp_archlist_read(&files, "/", &budget, found));
}

static int open_folder(void **state)
{
    (void)state;
    struct gp_err err = {0};
    temporary_name(folder, sizeof(folder), "archlist");
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(file, sizeof(file), "%s/lib.so", folder);
    return gp_files_open(&files, folder, &err);
}

static int close_folder(void **state)
{
    (void)state;
    gp_files_close(&files);
    (void)unlink(file);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest),
        cmocka_unit_test(in_bytes),
        cmocka_unit_test(without_standard_input),
        cmocka_unit_test(across_blocks),
        cmocka_unit_test(in_elf),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests_name("archlist", tests, open_folder, close_folder);
}
