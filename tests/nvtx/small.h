/* Enough of NVTX for job.c where its headers are not installed: loads a tool as they do. */
#ifndef GP_TESTS_NVTX_SMALL_H
#define GP_TESTS_NVTX_SMALL_H

#include "abi/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { NVTX_VERSION = 3, NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t) };

static NvtxFunctionPointer core_functions[16], core2_functions[16];

static int small_table(int module, NvtxFunctionTable *table, unsigned int *size)
{
    static NvtxFunctionPointer *places[2][17];
    if (module != NVTX_CB_MODULE_CORE && module != NVTX_CB_MODULE_CORE2)
        return 0;
    NvtxFunctionPointer **own = places[module == NVTX_CB_MODULE_CORE2];
    for (int i = 1; i < 16; i++)
        own[i] = module == NVTX_CB_MODULE_CORE ? &core_functions[i] : &core2_functions[i];
    *table = own;
    *size = 16;
    return 1;
}

static const void *small_export(uint32_t id)
{
    static const NvtxExportTableCallbacks callbacks = {sizeof(callbacks), small_table};
    return id == NVTX_ETID_CALLBACKS ? &callbacks : NULL;
}

static void small_load(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialize)(NvtxGetExportTableFunc_t) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (initialize && initialize(small_export) == 0)
        dlclose(library);
}

static inline NvtxFunctionPointer small_find(NvtxFunctionPointer *functions, int id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, small_load);
    return functions[id];
}

/* FUNCTION(result, what it is without a tool, name, parameters, arguments, module) */
#define FUNCTION(result, none, name, parameters, arguments, module)                                \
    static inline result nvtx##name parameters                                                     \
    {                                                                                              \
        typedef result(*type) parameters;                                                          \
        type function = (type)small_find(module##_functions, NVTX_CBID_##name##_PLACE);            \
        return function ? function arguments : none;                                               \
    }

#define NVTX_CBID_MarkA_PLACE NVTX_CBID_CORE_MarkA
#define NVTX_CBID_MarkW_PLACE NVTX_CBID_CORE_MarkW
#define NVTX_CBID_RangePushA_PLACE NVTX_CBID_CORE_RangePushA
#define NVTX_CBID_RangePop_PLACE NVTX_CBID_CORE_RangePop
#define NVTX_CBID_RangeStartA_PLACE NVTX_CBID_CORE_RangeStartA
#define NVTX_CBID_RangeEnd_PLACE NVTX_CBID_CORE_RangeEnd
#define NVTX_CBID_NameOsThreadA_PLACE NVTX_CBID_CORE_NameOsThreadA
#define NVTX_CBID_DomainCreateA_PLACE NVTX_CBID_CORE2_DomainCreateA
#define NVTX_CBID_DomainRegisterStringA_PLACE NVTX_CBID_CORE2_DomainRegisterStringA
#define NVTX_CBID_DomainRangePushEx_PLACE NVTX_CBID_CORE2_DomainRangePushEx
#define NVTX_CBID_DomainRangePop_PLACE NVTX_CBID_CORE2_DomainRangePop
#define NVTX_CBID_DomainMarkEx_PLACE NVTX_CBID_CORE2_DomainMarkEx

FUNCTION(void, (void)0, MarkA, (const char *text), (text), core)
FUNCTION(void, (void)0, MarkW, (const wchar_t *text), (text), core)
FUNCTION(int, -2, RangePushA, (const char *text), (text), core)
FUNCTION(int, -2, RangePop, (void), (), core)
FUNCTION(nvtxRangeId_t, 0, RangeStartA, (const char *text), (text), core)
FUNCTION(void, (void)0, RangeEnd, (nvtxRangeId_t id), (id), core)
FUNCTION(void, (void)0, NameOsThreadA, (uint32_t tid, const char *name), (tid, name), core)
FUNCTION(nvtxDomainHandle_t, NULL, DomainCreateA, (const char *name), (name), core2)
FUNCTION(nvtxStringHandle_t, NULL, DomainRegisterStringA,
         (nvtxDomainHandle_t domain, const char *text), (domain, text), core2)
FUNCTION(int, -2, DomainRangePushEx,
         (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event), (domain, event), core2)
FUNCTION(int, -2, DomainRangePop, (nvtxDomainHandle_t domain), (domain), core2)
FUNCTION(void, (void)0, DomainMarkEx,
         (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event), (domain, event), core2)

#endif
