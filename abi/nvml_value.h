/* Values whose type the driver states: of fields and samples. */
#ifndef GP_ABI_NVML_VALUE_H
#define GP_ABI_NVML_VALUE_H

#include "abi/nvml.h"

#include <stdbool.h>

/* A value of an integer type; false: it is a double, or its type is unknown. */
static inline bool nvml_value_integer(nvmlValueType_t type, const nvmlValue_t *value, int64_t *ret)
{
    switch (type) {
    case NVML_VALUE_TYPE_UNSIGNED_INT:
        *ret = value->uiVal;
        return true;
    case NVML_VALUE_TYPE_UNSIGNED_LONG:
        *ret = (int64_t)value->ulVal;
        return true;
    case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG:
        *ret = (int64_t)value->ullVal;
        return true;
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
        *ret = value->sllVal;
        return true;
    case NVML_VALUE_TYPE_SIGNED_INT:
        *ret = value->siVal;
        return true;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT:
        *ret = value->usVal;
        return true;
    case NVML_VALUE_TYPE_DOUBLE:
        break;
    }
    return false;
}

/* Whether the driver left an entry of nvmlDeviceGetFieldValues() as the caller had cleared it: no
 * answer, although its return code is that of success. */
static inline bool nvml_field_is_untouched(const nvmlFieldValue_t *field)
{
    return field->nvmlReturn == NVML_SUCCESS && field->timestamp == 0 && field->latencyUsec == 0 &&
           field->valueType == NVML_VALUE_TYPE_DOUBLE && field->value.ullVal == 0;
}

#endif
