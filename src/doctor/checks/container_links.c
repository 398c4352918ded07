/* The driver's libraries in running containers of docker, as their own layer shows them. */
#include "doctor/checks/container.h"

#include "doctor/readers/docker.h"

#include <ctype.h>
#include <string.h>

/* A copy's name with its version, without the link by which programs find it; NULL: there is none.
 * The toolkit puts the first into the container, and ldconfig the second next to it. */
static const char *lone_library(struct gp_exam *exam, const char *folder)
{
    static const char start[] = "libcuda.so.", link[] = "libcuda.so.1";
    const char *lone = NULL;
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        if (strcmp(names[i], link) == 0)
            return NULL;
        const char *version = names[i] + sizeof(start) - 1;
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 && isdigit((unsigned char)*version) &&
            strchr(version, '.'))
            lone = gp_exam_text(exam, "%s/%s", folder, names[i]);
    }
    return lone;
}

static void check_one(struct gp_exam *exam, const struct gp_docker_container *c, void *argument)
{
    const char *const folders[] = {gp_exam_text(exam, "/usr/lib/%s-linux-gnu", exam->machine.arch),
                                   "/usr/lib64"};
    struct gp_container_unlinked *ret = argument;
    const char *layer = c->is_running && !ret->library ? gp_docker_layer(exam, c) : NULL;
    for (size_t i = 0; layer && !ret->library && i < GP_ARRAY_LEN(folders); i++) {
        ret->library = lone_library(exam, gp_exam_text(exam, "%s%s", layer, folders[i]));
        ret->container = gp_exam_text(exam, "%s", c->name[0] ? c->name : c->id);
    }
}

bool gp_container_find_unlinked(struct gp_exam *exam, struct gp_container_unlinked *ret)
{
    *ret = (struct gp_container_unlinked){0};
    (void)gp_docker_each(exam, check_one, ret);
    return ret->library != NULL;
}
