/* Functions that only exist so that programs find them, like in a real library. Their parameters
 * are ignored, so that one type fits all. */
#include "sim/unplayed.h"

#define SIM_UNPLAYED(branch, function)                                                             \
    __attribute__((visibility("default"))) nvmlReturn_t function(void);                            \
    nvmlReturn_t function(void)                                                                    \
    {                                                                                              \
        return sim_answer_unplayed(#function);                                                     \
    }
#include "sim/unplayed.def"
#undef SIM_UNPLAYED
