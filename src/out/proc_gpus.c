/* Which GPUs a row uses, as a text and as bits. */
#include "out/procs.h"

#include "base/strbuf.h"
#include "model/snapshot.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Devices are added in order: "0,1" becomes "0-2" with the third in a row. A "+" marks missing GPUs
 * when there is no room. */
static void add_gpu(struct gp_proc_row *row, unsigned index, bool is_mig, const char *label)
{
    char range[GP_DEVICE_LABEL_SIZE] = "";
    const char *text = label;
    size_t n = strlen(row->gpus);
    if (index < GP_PROC_GPUS)
        row->gpu_bits[index / 64] |= (uint64_t)1 << index % 64;
    if (n == 0)
        row->gpu = index;
    bool goes_on = n > 0 && !is_mig && index == row->run_last + 1;
    if (goes_on && index >= row->run_first + 2) {
        n = row->run_at;
        text = range;
        struct gp_strbuf run = GP_STRBUF_ON(range, sizeof(range) - 1);
        gp_strbuf_add_int(&run, row->run_first);
        gp_strbuf_addc(&run, '-');
        gp_strbuf_add_int(&run, index);
    } else if (!goes_on) {
        row->run_at = (uint8_t)(n > 0 ? n + 1 : 0);
        row->run_first = is_mig ? UINT_MAX : index;
    }
    row->run_last = is_mig ? UINT_MAX - 1 : index;
    bool is_same_run = goes_on && n == row->run_at;
    if (n + strlen(text) + 2 < sizeof(row->gpus)) {
        if (n > 0 && !is_same_run)
            row->gpus[n++] = ',';
        memcpy(row->gpus + n, text, strlen(text) + 1);
    } else if (row->gpus[strlen(row->gpus) - 1] != '+')
        row->gpus[strlen(row->gpus)] = '+'; /* the rest is 0 */
}

void gp_proc_row_add_gpu(struct gp_proc_row *row, const struct gp_device *device)
{
    char text[GP_DEVICE_LABEL_SIZE];
    gp_device_label(device, text);
    add_gpu(row, device->index, device->is_mig, text);
}

void gp_proc_row_add_index(struct gp_proc_row *row, unsigned gpu)
{
    char text[GP_DEVICE_LABEL_SIZE];
    (void)snprintf(text, sizeof(text), "%u", gpu);
    add_gpu(row, gpu, false, text);
}
