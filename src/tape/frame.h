/* A frame: what a sample changes in a scene, as bytes. A key frame changes an empty scene. */
#ifndef GP_TAPE_FRAME_H
#define GP_TAPE_FRAME_H

#include "base/strbuf.h"
#include "tape/scene.h"

struct gp_snapshot;

enum { GP_FRAME_MAX = 64 << 20 };
/* From one key frame to the next; a recorder makes fewer, and more are damage. */
enum { GP_FRAMES_MAX = 4096 };

/* A sample, and the numbers in the file of its GPUs and MIG instances and of its processes, in the
 * order of the snapshot. */
struct gp_frame_sample {
    const struct gp_snapshot *snapshot;
    const uint64_t *devices;
    const uint64_t *processes;
};

/* Applies the sample to the scene, and appends the frame. After a failure (GP_ENOMEM, GP_ETOOBIG)
 * the next one must be a key frame. */
int gp_frame_encode(struct gp_scene *scene, const struct gp_frame_sample *sample, bool is_key,
                    struct gp_strbuf *out) GP_MUST_CHECK;

/* The same from another scene, with the ranges of a third one that has the same rows: a summary of
 * some time. The frame is not compressed. */
int gp_frame_encode_scene(struct gp_scene *scene, const struct gp_scene *from,
                          const struct gp_scene *ranges, bool is_key,
                          struct gp_strbuf *out) GP_MUST_CHECK;

/* Applies a frame to the scene. GP_EFORMAT: it is damaged; GP_ENOMEM. The scene is then only good
 * for a key frame. */
int gp_frame_decode(struct gp_scene *scene, const void *frame, size_t size) GP_MUST_CHECK;

bool gp_frame_is_key(const void *frame, size_t size);

#endif
