#include "doctor/readers/archlist.h"

#include "doctor/files.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, SECTIONS_MAX = 4096, ITEMS = 3, ITEM_MAX = 16 };

/* ---- in bytes ---- */

/* The length of "sm_90a" or "compute_90" at p; 0: there is none. */
static size_t item_length(const char *p, size_t size)
{
    static const char *const kinds[] = {"sm_", "compute_"};
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i]), digits = 0;
        if (size < n || memcmp(p, kinds[i], n) != 0)
            continue;
        while (n + digits < size && digits < 4 && isdigit((unsigned char)p[n + digits]))
            digits++;
        n += digits;
        return digits < 2 ? 0 : n + (n < size && (p[n] == 'a' || p[n] == 'f'));
    }
    return 0;
}

/* The length of the list at p, and the number of its items. */
static size_t list_length(const char *p, size_t size, size_t *ret_items)
{
    size_t length = item_length(p, size), items = length > 0;
    while (length > 0 && length < size && length < GP_ARCHLIST_SIZE && p[length] == ' ') {
        size_t n = item_length(p + length + 1, size - length - 1);
        if (n == 0)
            break;
        length += 1 + n;
        items++;
    }
    *ret_items = items;
    return length;
}

bool gp_archlist_find(const char *data, size_t size, bool is_end, char ret[GP_ARCHLIST_SIZE])
{
    const char *end = data + size;
    size_t length;
    for (const char *p = data; (p = memmem(p, (size_t)(end - p), "sm_", 3));
         p += length + !length) {
        size_t items;
        length = list_length(p, (size_t)(end - p), &items);
        if (items < ITEMS || length >= GP_ARCHLIST_SIZE ||
            (!is_end && end - (p + length) < ITEM_MAX))
            continue;
        memcpy(ret, p, length);
        ret[length] = '\0';
        return true;
    }
    return false;
}

/* ---- in a file ---- */

static bool read_at(int fd, uint64_t offset, void *buf, size_t size)
{
    return offset < INT64_MAX && pread(fd, buf, size, (off_t)offset) == (ssize_t)size;
}

struct range {
    uint64_t offset, size;
};

/* The section of an ELF library that holds constants. */
static bool find_constants(int fd, struct range *ret)
{
    static const char wanted[] = ".rodata";
    Elf64_Ehdr head;
    Elf64_Shdr section, names;
    char name[sizeof(wanted)];
    if (!read_at(fd, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_shentsize != sizeof(section) || head.e_shstrndx >= head.e_shnum ||
        head.e_shnum > SECTIONS_MAX || head.e_shoff > INT64_MAX / 2 ||
        !read_at(fd, head.e_shoff + head.e_shstrndx * sizeof(names), &names, sizeof(names)) ||
        names.sh_offset > INT64_MAX / 2)
        return false;
    for (size_t i = 0; i < head.e_shnum; i++) {
        if (!read_at(fd, head.e_shoff + i * sizeof(section), &section, sizeof(section)))
            return false;
        if (section.sh_type == SHT_PROGBITS &&
            read_at(fd, names.sh_offset + section.sh_name, name, sizeof(name)) &&
            memcmp(name, wanted, sizeof(wanted)) == 0 && section.sh_offset < INT64_MAX / 2) {
            *ret = (struct range){section.sh_offset, section.sh_size};
            return true;
        }
    }
    return false;
}

/* Block by block, each prefixed with the end of the previous one: a list may span two. */
static bool search(int fd, struct range range, uint64_t *budget, char ret[GP_ARCHLIST_SIZE])
{
    char *block = malloc(BLOCK);
    size_t kept = 0;
    bool is_found = false, is_end = !block;
    while (!is_end && !is_found && *budget > 0) {
        uint64_t want = BLOCK - kept;
        want = want < range.size ? want : range.size;
        ssize_t n = pread(fd, block + kept, (size_t)want, (off_t)range.offset);
        if (n < 0)
            break;
        *budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
        range.offset += (uint64_t)n;
        range.size -= (uint64_t)n;
        is_end = n == 0 || range.size == 0;
        size_t size = kept + (size_t)n;
        is_found = gp_archlist_find(block, size, is_end, ret);
        kept = size < GP_ARCHLIST_SIZE ? size : GP_ARCHLIST_SIZE;
        memmove(block, block + size - kept, kept);
    }
    free(block);
    return is_found;
}

bool gp_archlist_read(const struct gp_files *files, const char *path, uint64_t *budget,
                      char ret[GP_ARCHLIST_SIZE])
{
    struct range range = {0, INT64_MAX / 2};
    int fd = gp_files_open_file(files, path);
    if (fd < 0)
        return false;
    (void)find_constants(fd, &range);
    bool is_found = search(fd, range, budget, ret);
    (void)close(fd);
    return is_found;
}
