#include "doctor/readers/shared.h"

#include "base/arena.h"
#include "doctor/files.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The files may be anybody's: a C++ name is seldom longer than some hundred bytes, and libc10.so
 * has some thousand functions. */
enum { SECTIONS_MAX = 4096, SECTION_MAX = 32 << 20, NAME_LENGTH_MAX = 1024, EXPORTS_MAX = 1 << 16 };

static bool read_at(int fd, uint64_t offset, void *buf, size_t size)
{
    return offset < INT64_MAX && pread(fd, buf, size, (off_t)offset) == (ssize_t)size;
}

/* A section's items in the arena, and their number; NULL: it cannot be read. */
static void *load(int fd, struct gp_arena *arena, const Elf64_Shdr *section, size_t item,
                  size_t *ret_count)
{
    size_t count = section->sh_size / item;
    struct stat st;
    if (count == 0 || section->sh_size > SECTION_MAX || fstat(fd, &st) < 0 ||
        section->sh_offset > (uint64_t)st.st_size ||
        section->sh_size > (uint64_t)st.st_size - section->sh_offset)
        return NULL; /* before memory is taken for it */
    void *data = gp_arena_take(arena, count, item);
    if (!data || !read_at(fd, section->sh_offset, data, count * item))
        return NULL;
    *ret_count = count;
    return data;
}

static bool load_strings(int fd, struct gp_arena *arena, const Elf64_Ehdr *head, size_t index,
                         struct gp_elf *ret)
{
    Elf64_Shdr section;
    if (index >= head->e_shnum ||
        !read_at(fd, head->e_shoff + index * sizeof(section), &section, sizeof(section)))
        return false;
    ret->strings = load(fd, arena, &section, 1, &ret->strings_size);
    return ret->strings && ret->strings[ret->strings_size - 1] == '\0';
}

static bool load_sections(int fd, struct gp_arena *arena, struct gp_elf *ret)
{
    Elf64_Ehdr head;
    Elf64_Shdr section;
    size_t strings = 0;
    bool has_entries = false, has_symbols = false; /* a second one would be of a broken file */
    if (!read_at(fd, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_shentsize != sizeof(section) || head.e_shnum > SECTIONS_MAX ||
        head.e_shoff > INT64_MAX / 2)
        return false;
    for (size_t i = 0; i < head.e_shnum; i++) {
        if (!read_at(fd, head.e_shoff + i * sizeof(section), &section, sizeof(section)))
            return false;
        if (section.sh_type == SHT_DYNAMIC && !has_entries) {
            has_entries = true;
            ret->entries = load(fd, arena, &section, sizeof(Elf64_Dyn), &ret->entry_count);
        } else if (section.sh_type == SHT_DYNSYM && !has_symbols) {
            has_symbols = true;
            ret->symbols = load(fd, arena, &section, sizeof(Elf64_Sym), &ret->symbol_count);
        } else {
            continue;
        }
        strings = section.sh_link;
    }
    return (ret->entries || ret->symbols) && load_strings(fd, arena, &head, strings, ret);
}

/* ---- without sections, as the loader reads it ---- */

enum { SEGMENTS_MAX = 64 };

struct segments {
    Elf64_Phdr list[SEGMENTS_MAX];
    size_t count;
};

static bool load_segments(int fd, struct segments *ret)
{
    Elf64_Ehdr head;
    *ret = (struct segments){.count = 0};
    if (!read_at(fd, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > SEGMENTS_MAX ||
        !read_at(fd, head.e_phoff, ret->list, head.e_phnum * sizeof(Elf64_Phdr)))
        return false;
    ret->count = head.e_phnum;
    return true;
}

/* The place in the file of an address; false: it is in no segment. */
static bool offset_of(const struct segments *segments, uint64_t address, uint64_t *ret)
{
    for (size_t i = 0; i < segments->count; i++) {
        const Elf64_Phdr *p = &segments->list[i];
        if (p->p_type != PT_LOAD || address < p->p_vaddr || address - p->p_vaddr >= p->p_filesz)
            continue;
        *ret = p->p_offset + (address - p->p_vaddr);
        return true;
    }
    return false;
}

/* The dynamic entries and their strings; the number of symbols is not in them. */
static bool load_dynamic(int fd, struct gp_arena *arena, struct gp_elf *ret)
{
    struct segments segments;
    Elf64_Shdr place = {0};
    uint64_t strings = 0;
    *ret = (struct gp_elf){0};
    if (!load_segments(fd, &segments))
        return false;
    for (size_t i = 0; i < segments.count; i++) {
        if (segments.list[i].p_type != PT_DYNAMIC)
            continue;
        place.sh_offset = segments.list[i].p_offset;
        place.sh_size = segments.list[i].p_filesz;
        ret->entries = load(fd, arena, &place, sizeof(Elf64_Dyn), &ret->entry_count);
        break; /* there is one; more are not tried */
    }
    place.sh_size = 0;
    const Elf64_Dyn *entries = ret->entries;
    for (size_t i = 0; entries && i < ret->entry_count; i++) {
        if (entries[i].d_tag == DT_STRTAB)
            strings = entries[i].d_un.d_ptr;
        else if (entries[i].d_tag == DT_STRSZ)
            place.sh_size = entries[i].d_un.d_val;
    }
    if (!offset_of(&segments, strings, &strings))
        return false;
    place.sh_offset = strings;
    ret->strings = load(fd, arena, &place, 1, &ret->strings_size);
    return ret->strings && ret->strings[ret->strings_size - 1] == '\0';
}

bool gp_elf_read(struct gp_elf *shared, const struct gp_files *files, struct gp_arena *arena,
                 const char *path)
{
    int fd = gp_files_open_file(files, path);
    *shared = (struct gp_elf){0};
    if (fd < 0)
        return false;
    bool is_read = load_sections(fd, arena, shared) || load_dynamic(fd, arena, shared);
    (void)close(fd);
    return is_read;
}

bool gp_elf_read_libraries(struct gp_elf *shared, const struct gp_files *files,
                           struct gp_arena *arena, const char *path)
{
    int fd = gp_files_open_file(files, path);
    *shared = (struct gp_elf){0};
    if (fd < 0)
        return false;
    bool is_read = load_dynamic(fd, arena, shared);
    (void)close(fd);
    return is_read;
}

const char *gp_elf_needed(const struct gp_elf *shared, size_t *from)
{
    const Elf64_Dyn *entries = shared->entries;
    while (entries && *from < shared->entry_count) {
        const Elf64_Dyn *entry = &entries[(*from)++];
        if (entry->d_tag == DT_NEEDED && entry->d_un.d_val < shared->strings_size)
            return shared->strings + entry->d_un.d_val;
    }
    return NULL;
}

const char *gp_elf_run_path(const struct gp_elf *shared)
{
    const Elf64_Dyn *entries = shared->entries;
    for (size_t i = 0; entries && i < shared->entry_count; i++)
        if ((entries[i].d_tag == DT_RUNPATH || entries[i].d_tag == DT_RPATH) &&
            entries[i].d_un.d_val < shared->strings_size)
            return shared->strings + entries[i].d_un.d_val;
    return "";
}

bool gp_elf_is_path_first(const struct gp_elf *shared)
{
    const Elf64_Dyn *entries = shared->entries;
    bool is_first = false;
    for (size_t i = 0; entries && i < shared->entry_count; i++) {
        if (entries[i].d_tag == DT_RUNPATH) /* then the loader ignores the other one */
            return false;
        is_first = is_first || entries[i].d_tag == DT_RPATH;
    }
    return is_first;
}

/* The name of a symbol that is defined in the library, or is to be found elsewhere; "": it is of
 * the other kind, or may be missing. */
static const char *symbol(const struct gp_elf *shared, size_t index, bool is_defined)
{
    const Elf64_Sym *symbols = shared->symbols, *s = &symbols[index];
    bool is_spare = !is_defined && ELF64_ST_BIND(s->st_info) == STB_WEAK;
    return (s->st_shndx != SHN_UNDEF) == is_defined && !is_spare &&
                   s->st_name < shared->strings_size
               ? shared->strings + s->st_name
               : "";
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *gp_elf_import(const struct gp_elf *shared, const char *start, size_t *from)
{
    while (shared->symbols && *from < shared->symbol_count) {
        const char *name = symbol(shared, (*from)++, false);
        if (strncmp(name, start, strlen(start)) == 0)
            return name;
    }
    return NULL;
}

static bool is_long(const char *name)
{
    return strnlen(name, NAME_LENGTH_MAX + 1) > NAME_LENGTH_MAX;
}

bool gp_elf_exports_of(struct gp_elf_exports *exports, const struct gp_elf *shared,
                       struct gp_arena *arena)
{
    *exports = (struct gp_elf_exports){0};
    if (!shared->symbols || shared->symbol_count > EXPORTS_MAX)
        return false;
    const char **names = gp_arena_take(arena, shared->symbol_count, sizeof(*names));
    if (!names)
        return false;
    for (size_t i = 0; i < shared->symbol_count; i++) {
        const char *name = symbol(shared, i, true);
        if (name[0] && !is_long(name))
            names[exports->count++] = name;
    }
    qsort(names, exports->count, sizeof(*names), compare);
    exports->names = names;
    return true;
}

const char *gp_elf_lacks(const struct gp_elf *shared, const char *start,
                         const struct gp_elf_exports *other, size_t *lookups)
{
    const size_t n = strlen(start);
    for (size_t i = 0; shared->symbols && other->names && i < shared->symbol_count; i++) {
        const char *name = symbol(shared, i, false);
        if (strncmp(name, start, n) != 0 || is_long(name))
            continue;
        if (*lookups == 0)
            return NULL;
        --*lookups;
        if (!bsearch(&name, other->names, other->count, sizeof(*other->names), compare))
            return name;
    }
    return NULL;
}
