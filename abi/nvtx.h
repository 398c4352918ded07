/* The part of NVTX (NVIDIA's tools extension) that a library needs which receives a program's
 * marks and ranges: NVTX loads the one that $NVTX_INJECTION64_PATH names, and calls its
 * InitializeInjectionNvtx2().
 * Source: the headers of NVTX 3 (nvtx3/nvToolsExt.h, nvtx3/nvtxDetail/nvtxTypes.h), which every
 * program carries with it. tests/check_nvtx.py compares them, where they are installed. */
#ifndef GPULSE_ABI_NVTX_H
#define GPULSE_ABI_NVTX_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum {
    NVTX_ETID_CALLBACKS = 1, /* of the tables that a program exports */

    NVTX_CB_MODULE_CORE = 1,
    NVTX_CB_MODULE_CORE2 = 5,

    NVTX_MESSAGE_UNKNOWN = 0,
    NVTX_MESSAGE_TYPE_ASCII = 1,
    NVTX_MESSAGE_TYPE_UNICODE = 2,
    NVTX_MESSAGE_TYPE_REGISTERED = 3,

    NVTX_NO_PUSH_POP_TRACKING = -2, /* returned by push and pop */
};

/* Places in the table of a module. */
enum {
    NVTX_CBID_CORE_MarkEx = 1,
    NVTX_CBID_CORE_MarkA = 2,
    NVTX_CBID_CORE_MarkW = 3,
    NVTX_CBID_CORE_RangeStartEx = 4,
    NVTX_CBID_CORE_RangeStartA = 5,
    NVTX_CBID_CORE_RangeStartW = 6,
    NVTX_CBID_CORE_RangeEnd = 7,
    NVTX_CBID_CORE_RangePushEx = 8,
    NVTX_CBID_CORE_RangePushA = 9,
    NVTX_CBID_CORE_RangePushW = 10,
    NVTX_CBID_CORE_RangePop = 11,
    NVTX_CBID_CORE_NameOsThreadA = 14,
    NVTX_CBID_CORE_NameOsThreadW = 15,

    NVTX_CBID_CORE2_DomainMarkEx = 1,
    NVTX_CBID_CORE2_DomainRangeStartEx = 2,
    NVTX_CBID_CORE2_DomainRangeEnd = 3,
    NVTX_CBID_CORE2_DomainRangePushEx = 4,
    NVTX_CBID_CORE2_DomainRangePop = 5,
    NVTX_CBID_CORE2_DomainRegisterStringA = 10,
    NVTX_CBID_CORE2_DomainRegisterStringW = 11,
    NVTX_CBID_CORE2_DomainCreateA = 12,
    NVTX_CBID_CORE2_DomainCreateW = 13,
};

typedef uint64_t nvtxRangeId_t;
/* Made by the tool; NULL is the default domain. */
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;

typedef union {
    const char *ascii;
    const wchar_t *unicode;
    nvtxStringHandle_t registered;
} nvtxMessageValue_t;

typedef struct {
    uint16_t version;
    uint16_t size; /* of the struct, as the program knows it */
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType;
    int32_t reserved0;
    uint64_t payload; /* a number of one of several types */
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;

static_assert(sizeof(nvtxEventAttributes_t) == 48, "layout of nvtxEventAttributes_t");
static_assert(offsetof(nvtxEventAttributes_t, payload) == 24, "layout of nvtxEventAttributes_t");
static_assert(offsetof(nvtxEventAttributes_t, messageType) == 32,
              "layout of nvtxEventAttributes_t");
static_assert(offsetof(nvtxEventAttributes_t, message) == 40, "layout of nvtxEventAttributes_t");

typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable; /* pointers to the program's function pointers */

typedef struct {
    size_t struct_size;
    /* Returns 1, and the number of entries, with the unused one at 0. */
    int (*GetModuleFunctionTable)(int module, NvtxFunctionTable *table, unsigned int *size);
} NvtxExportTableCallbacks;

typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t table);

#endif
