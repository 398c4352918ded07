/* The library edits its own symbol table when it is loaded. The page is this process's private
 * copy, so no file is changed, and dlsym finds only the symbols of that driver. A program that was
 * linked with the library already has its symbols; for those it gets FUNCTION_NOT_FOUND. */
#include "sim/withhold.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct table {
    ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
};

/* _DYNAMIC is the dynamic section of the object that contains this code. */
static bool find_table(struct table *ret)
{
    Dl_info self;
    if (!dladdr(_DYNAMIC, &self))
        return false;
    *ret = (struct table){0};
    for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        /* Some loaders relocate the addresses in the section, others leave them as in the file. */
        uintptr_t base = (uintptr_t)self.dli_fbase;
        void *at = (void *)(d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            ret->symbols = at;
        else if (d->d_tag == DT_STRTAB)
            ret->strings = at;
        else if (d->d_tag == DT_GNU_HASH)
            ret->hash = at;
    }
    return ret->symbols && ret->strings && ret->hash;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* The filter is followed by the buckets, and those by the chains; the lowest bit marks the end of a
 * chain. */
static ElfW(Sym) * find_symbol(const struct table *table, const char *name)
{
    uint32_t bucket_count = table->hash[0], first = table->hash[1], filter_words = table->hash[2];
    const uint32_t *buckets = table->hash + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chains = buckets + bucket_count;
    uint32_t hash = gnu_hash(name);
    uint32_t at = buckets[hash % bucket_count];
    for (; at >= first; at++) {
        ElfW(Sym) *symbol = &table->symbols[at];
        if ((chains[at - first] | 1) == (hash | 1) &&
            strcmp(table->strings + symbol->st_name, name) == 0)
            return symbol;
        if (chains[at - first] & 1)
            break;
    }
    return NULL;
}

/* No lookup finds an undefined symbol with value 0. */
static void take_out(ElfW(Sym) * symbol)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)symbol & ~(page - 1);
    size_t size = (uintptr_t)(symbol + 1) - begin;
    if (mprotect((void *)begin, size, PROT_READ | PROT_WRITE) < 0)
        return;
    symbol->st_shndx = SHN_UNDEF;
    symbol->st_value = 0;
    (void)mprotect((void *)begin, size, PROT_READ);
}

void sim_withhold(const struct sim_machine *machine)
{
    struct table table;
    if (!find_table(&table))
        return;
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++) {
        ElfW(Sym) *symbol = machine->missing[i] ? find_symbol(&table, sim_symbols[i].name) : NULL;
        if (symbol)
            take_out(symbol);
    }
}
