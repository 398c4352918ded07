/* libgpulse-nvtx.so: NVTX loads it into a job of `gpulse run --nvtx`, and it writes the program's
 * marks and ranges to the timeline (base/marks.h). It needs nothing but libc, and is never
 * unloaded: the program keeps pointers to its functions. */
#include "abi/nvtx.h"
#include "base/marks.h"
#include "base/util.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* A domain or a registered string: kept until the program exits, because any thread may still use
 * it. The same text is the same name, so a program that registers it repeatedly needs no more
 * memory. */
struct name {
    struct name *next;
    char text[];
};

enum { BUCKETS = 1024, NAMES_MOST = 65536, TEXT_MOST = GP_MARKS_TEXT };

/* NULL: without memory, or there are too many. */
static struct name *name_of(const char *text)
{
    static struct name *_Atomic buckets[BUCKETS];
    static atomic_uint count;
    struct name *_Atomic *bucket = &buckets[gp_hash(GP_HASH_INIT, text) % BUCKETS];
    struct name *first = atomic_load(bucket);
    for (struct name *n = first; n; n = n->next)
        if (strcmp(n->text, text) == 0)
            return n;
    const size_t size = strlen(text) + 1;
    struct name *made =
        atomic_fetch_add(&count, 1) < NAMES_MOST ? malloc(sizeof(*made) + size) : NULL;
    if (!made)
        return NULL;
    memcpy(made->text, text, size);
    do
        made->next = first;
    while (!atomic_compare_exchange_weak(bucket, &first, made));
    return made;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static void add_bytes(char *to, size_t *n, uint32_t c, unsigned more)
{
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    to[(*n)++] = (char)(more ? first[more] | (c >> 6 * more & 0x3f) : c);
    while (more-- > 0)
        to[(*n)++] = (char)(0x80 | (c >> 6 * more & 0x3f));
}

/* As UTF-8, cut. */
static const char *narrow(char to[TEXT_MOST], const wchar_t *from)
{
    size_t n = 0;
    for (; from && *from && n + 5 < TEXT_MOST; from++) {
        uint32_t c = (uint32_t)*from;
        add_bytes(to, &n, c, 0U + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000));
    }
    to[n] = '\0';
    return to;
}

static const char *domain_name(nvtxDomainHandle_t domain)
{
    return domain ? ((const struct name *)(const void *)domain)->text : "";
}

/* The text of an event; `room` is used if it must be converted. */
static const char *message_of(const nvtxEventAttributes_t *event, char room[TEXT_MOST])
{
    if (!event || event->size < sizeof(*event))
        return "";
    const void *registered = event->message.registered;
    switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
        return or_empty(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
        return narrow(room, event->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
        return registered ? ((const struct name *)registered)->text : "";
    default:
        return "";
    }
}

/* ---- what the program calls ---- */

static void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    char room[TEXT_MOST];
    gp_marks_mark(domain_name(domain), message_of(event, room));
}

static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    char room[TEXT_MOST];
    return gp_marks_start(domain_name(domain), message_of(event, room));
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)domain;
    gp_marks_end(id);
}

static int level(int found)
{
    return found < 0 ? NVTX_NO_PUSH_POP_TRACKING : found;
}

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    char room[TEXT_MOST];
    return level(gp_marks_push((uintptr_t)domain, domain_name(domain), message_of(event, room)));
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    return level(gp_marks_pop((uintptr_t)domain));
}

static void mark(const nvtxEventAttributes_t *event)
{
    domain_mark(NULL, event);
}

static void mark_text(const char *text)
{
    gp_marks_mark("", or_empty(text));
}

static void mark_wide(const wchar_t *text)
{
    char room[TEXT_MOST];
    gp_marks_mark("", narrow(room, text));
}

static nvtxRangeId_t start(const nvtxEventAttributes_t *event)
{
    return domain_start(NULL, event);
}

static nvtxRangeId_t start_text(const char *text)
{
    return gp_marks_start("", or_empty(text));
}

static nvtxRangeId_t start_wide(const wchar_t *text)
{
    char room[TEXT_MOST];
    return gp_marks_start("", narrow(room, text));
}

static int push(const nvtxEventAttributes_t *event)
{
    return domain_push(NULL, event);
}

static int push_text(const char *text)
{
    return level(gp_marks_push(0, "", or_empty(text)));
}

static int push_wide(const wchar_t *text)
{
    char room[TEXT_MOST];
    return level(gp_marks_push(0, "", narrow(room, text)));
}

static int pop(void)
{
    return domain_pop(NULL);
}

static void name_thread(uint32_t tid, const char *name)
{
    gp_marks_name_thread(tid, or_empty(name));
}

static void name_thread_wide(uint32_t tid, const wchar_t *name)
{
    char room[TEXT_MOST];
    gp_marks_name_thread(tid, narrow(room, name));
}

static nvtxDomainHandle_t create_domain(const char *name)
{
    return (nvtxDomainHandle_t)(void *)name_of(or_empty(name));
}

static nvtxDomainHandle_t create_domain_wide(const wchar_t *name)
{
    char room[TEXT_MOST];
    return create_domain(narrow(room, name));
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    return (nvtxStringHandle_t)(void *)name_of(or_empty(text));
}

static nvtxStringHandle_t register_wide(nvtxDomainHandle_t domain, const wchar_t *text)
{
    char room[TEXT_MOST];
    return register_string(domain, narrow(room, text));
}

/* ---- attaching ---- */

struct place {
    unsigned id;
    NvtxFunctionPointer function;
};

#define PLACE(id, function)                                                                        \
    {                                                                                              \
        NVTX_CBID_##id, (NvtxFunctionPointer)(function)                                            \
    }

static const struct place core[] = {
    PLACE(CORE_MarkEx, mark),
    PLACE(CORE_MarkA, mark_text),
    PLACE(CORE_MarkW, mark_wide),
    PLACE(CORE_RangeStartEx, start),
    PLACE(CORE_RangeStartA, start_text),
    PLACE(CORE_RangeStartW, start_wide),
    PLACE(CORE_RangeEnd, gp_marks_end),
    PLACE(CORE_RangePushEx, push),
    PLACE(CORE_RangePushA, push_text),
    PLACE(CORE_RangePushW, push_wide),
    PLACE(CORE_RangePop, pop),
    PLACE(CORE_NameOsThreadA, name_thread),
    PLACE(CORE_NameOsThreadW, name_thread_wide),
};

static const struct place core2[] = {
    PLACE(CORE2_DomainMarkEx, domain_mark),
    PLACE(CORE2_DomainRangeStartEx, domain_start),
    PLACE(CORE2_DomainRangeEnd, domain_end),
    PLACE(CORE2_DomainRangePushEx, domain_push),
    PLACE(CORE2_DomainRangePop, domain_pop),
    PLACE(CORE2_DomainRegisterStringA, register_string),
    PLACE(CORE2_DomainRegisterStringW, register_wide),
    PLACE(CORE2_DomainCreateA, create_domain),
    PLACE(CORE2_DomainCreateW, create_domain_wide),
};

static bool attach(const NvtxExportTableCallbacks *callbacks, int module,
                   const struct place *places, size_t count)
{
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size) || !table)
        return false;
    for (size_t i = 0; i < count; i++)
        if (places[i].id < size && table[places[i].id])
            *table[places[i].id] = places[i].function;
    return true;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

/* Called once for each library of the program that contains NVTX. 0: NVTX stays off there. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks =
        gp_marks_is_on() ? get_table(NVTX_ETID_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof(*callbacks) ||
        !callbacks->GetModuleFunctionTable)
        return 0;
    bool has_core = attach(callbacks, NVTX_CB_MODULE_CORE, core, GP_ARRAY_LEN(core));
    return attach(callbacks, NVTX_CB_MODULE_CORE2, core2, GP_ARRAY_LEN(core2)) && has_core;
}
