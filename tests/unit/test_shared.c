/* Shared libraries' files: the functions that one takes from another, and what broken ones cost. */
#include "unit.h"

#include "doctor/readers/shared.h"

#include "base/arena.h"
#include "base/err.h"
#include "doctor/files.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

enum { SYMBOLS = 8, SECTIONS = 64, LARGE = 24 << 20 };

struct image {
    Elf64_Ehdr head;
    Elf64_Sym symbols[SYMBOLS];
    Elf64_Phdr segments[SECTIONS];
    Elf64_Shdr sections[SECTIONS];
    char strings[4096];
};

static char folder[256], file[512];
static struct gp_files files;
static struct image image; /* a file that each test builds */
static size_t string_end;

static void start(void)
{
    image = (struct image){.head = {.e_shoff = offsetof(struct image, sections),
                                    .e_shentsize = sizeof(Elf64_Shdr),
                                    .e_shnum = 3,
                                    .e_phoff = offsetof(struct image, segments),
                                    .e_phentsize = sizeof(Elf64_Phdr)}};
    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_ident[EI_CLASS] = ELFCLASS64;
    image.head.e_ident[EI_DATA] = ELFDATA2LSB;
    image.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct image, strings),
                                     .sh_size = sizeof(image.strings)};
    image.sections[2] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
                                     .sh_link = 1,
                                     .sh_offset = offsetof(struct image, symbols),
                                     .sh_size = sizeof(image.symbols)};
    string_end = 1;
}

static void add(size_t index, const char *name, bool is_defined)
{
    image.symbols[index] = (Elf64_Sym){.st_name = (Elf64_Word)string_end,
                                       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                       .st_shndx = is_defined ? 1 : SHN_UNDEF};
    memcpy(image.strings + string_end, name, strlen(name) + 1);
    string_end += strlen(name) + 1;
}

static bool read_image(struct gp_elf *shared, struct gp_arena *arena)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &image, sizeof(image)), sizeof(image));
    assert_int_equal(close(fd), 0);
    return gp_elf_read(shared, &files, arena, "/lib.so");
}

/* What is not in the file costs no memory, however often it is named. */
static void beyond_the_end(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    struct gp_elf shared;
    start();
    image.head.e_shnum = image.head.e_phnum = SECTIONS;
    for (size_t i = 2; i < SECTIONS; i++) {
        image.sections[i] = (Elf64_Shdr){
            .sh_type = i % 2 ? SHT_DYNSYM : SHT_DYNAMIC, .sh_link = 1, .sh_size = LARGE};
        image.segments[i] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_filesz = LARGE};
    }
    assert_false(read_image(&shared, &arena));
    assert_null(arena.blocks);
    for (size_t i = 2; i < SECTIONS; i++) {
        image.sections[i].sh_offset = image.segments[i].p_offset = UINT64_MAX - LARGE / 2;
        image.sections[i].sh_size = image.segments[i].p_filesz = LARGE;
    }
    assert_false(read_image(&shared, &arena));
    assert_null(arena.blocks);
}

/* Of several the first one counts, so that many do not take the memory of many. */
static void only_the_first(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    struct gp_elf shared;
    start();
    add(1, "taken", false);
    image.head.e_shnum = image.head.e_phnum = 4;
    image.sections[3] = image.sections[2];
    image.segments[0] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_filesz = LARGE};
    image.segments[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_filesz = sizeof(Elf64_Dyn)};
    assert_true(read_image(&shared, &arena));
    assert_int_equal(shared.symbol_count, SYMBOLS);
    gp_arena_fini(&arena);
    image.sections[2].sh_size = LARGE;
    assert_false(read_image(&shared, &arena));
    assert_null(arena.blocks);
}

static void lacking(void **state)
{
    (void)state;
    struct gp_arena arena = {0};
    struct gp_elf user, library;
    struct gp_elf_exports exports;
    size_t lookups = 100;
    char longest[1026] = "c10_";
    start();
    for (size_t i = 1; i < SYMBOLS; i++)
        add(i,
            (const char *[]){"", "c10_z", "c10_b", "c10_m", "c10_a", "c10_y", "c10_c", "c10_n"}[i],
            i != 3);
    assert_true(read_image(&library, &arena));
    assert_true(gp_elf_exports_of(&exports, &library, &arena));
    assert_int_equal(exports.count, SYMBOLS - 2);
    for (size_t i = 1; i < exports.count; i++)
        assert_true(strcmp(exports.names[i - 1], exports.names[i]) < 0);

    start();
    memset(longest + 4, 'x', sizeof(longest) - 5);
    for (size_t i = 1; i < SYMBOLS; i++)
        add(i,
            (const char *[]){"", "other", "c10_z", "c10_q", "c10_n", longest, "c10_m", "c10_a"}[i],
            i == 3);
    assert_true(read_image(&user, &arena));
    assert_string_equal(gp_elf_lacks(&user, "c10_", &exports, &lookups), "c10_m");
    assert_int_equal(lookups, 100 - 3); /* neither `other`, nor its own, nor the long one */
    assert_null(gp_elf_lacks(&user, "c11_", &exports, &lookups));
    assert_int_equal(lookups, 100 - 3);
    lookups = 2;
    assert_null(gp_elf_lacks(&user, "c10_", &exports, &lookups));
    assert_int_equal(lookups, 0);
    user.symbols = NULL;
    lookups = 2;
    assert_null(gp_elf_lacks(&user, "c10_", &exports, &lookups));
    assert_false(gp_elf_exports_of(&exports, &user, &arena));
    library.symbol_count = (1 << 16) + 1; /* before the first one is looked at */
    assert_false(gp_elf_exports_of(&exports, &library, &arena));
    assert_null(exports.names);
    gp_arena_fini(&arena);
}

static int open_folder(void **state)
{
    (void)state;
    struct gp_err err = {0};
    temporary_name(folder, sizeof(folder), "shared");
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
        cmocka_unit_test(beyond_the_end),
        cmocka_unit_test(only_the_first),
        cmocka_unit_test(lacking),
    };
    return cmocka_run_group_tests_name("shared", tests, open_folder, close_folder);
}
