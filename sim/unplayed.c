/* Functions that exist so that a program finds them, as it does in a real library. Their parameters
 * are left alone, so that one form fits all. */
#include "sim/unplayed.h"

#define SIM_UNPLAYED(branch, function)                                                             \
    __attribute__((visibility("default"))) nvmlReturn_t function(void);                            \
    nvmlReturn_t function(void)                                                                    \
    {                                                                                              \
        return sim_answer_unplayed(#function);                                                     \
    }
#include "sim/unplayed.def"
#undef SIM_UNPLAYED
