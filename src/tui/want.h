/* What gpulse top reads. */
#ifndef GP_TUI_WANT_H
#define GP_TUI_WANT_H

#include "source/source.h"

struct gp_want gp_top_want(void);

#endif
