/* The users of a report, and which groups they are in on this machine. */
#include "tape/report_internal.h"

#include "proc/groups.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS_MAX = 4096 }; /* of a file; further users are in no group */

static bool is_listed(const char *list, const char *word)
{
    const size_t len = strlen(word);
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        if (n == len && strncmp(list, word, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

struct adding {
    struct gp_report_work *work;
    struct gp_report_member *member;
};

/* Several groups can have one name, such as one in /etc/group and one in a directory service. They
 * are one row of the report, so one membership. */
static bool append(struct gp_report_work *work, struct gp_report_member *member, const char *group)
{
    const char *name = gp_report_text(work->report, group);
    for (size_t i = 0; name && i < member->count; i++)
        if (strcmp(member->groups[i].group, name) == 0)
            return true;
    struct gp_report_membership *grown =
        name ? realloc(member->groups, (member->count + 1) * sizeof(*grown)) : NULL;
    if (!grown)
        return false;
    member->groups = grown;
    grown[member->count++] = (struct gp_report_membership){name, GP_REPORT_NO_ROW};
    return true;
}

static bool add_group(void *ctx, const char *group)
{
    const struct adding *adding = ctx;
    const char *wanted = adding->work->query->groups;
    return (wanted && !is_listed(wanted, group)) || append(adding->work, adding->member, group);
}

/* A user without groups is in the group "", unless only some are wanted. */
static bool find_groups(struct gp_report_work *work, struct gp_report_member *member)
{
    struct adding adding = {work, member};
    if (*member->user && !gp_groups_of_user(member->user, add_group, &adding))
        return false;
    return member->count > 0 || work->query->groups || append(work, member, "");
}

static struct gp_report_member *add_member(struct gp_report_work *work, const char *user)
{
    struct gp_report_member **grown =
        realloc(work->members, (work->member_count + 1) * sizeof(struct gp_report_member *));
    if (!grown)
        return NULL;
    work->members = grown;
    struct gp_report_member *member = calloc(1, sizeof(*member));
    if (!member)
        return NULL;
    grown[work->member_count++] = member;
    member->user = user;
    return find_groups(work, member) ? member : NULL;
}

struct gp_report_member *gp_report_member(struct gp_report_work *work, const char *user)
{
    for (size_t i = 0; i < work->member_count; i++)
        if (strcmp(work->members[i]->user, user) == 0)
            return work->members[i];
    if (work->member_count == 0 && *user && !add_member(work, ""))
        return NULL;
    return work->member_count < MEMBERS_MAX ? add_member(work, user) : work->members[0];
}

bool gp_report_is_wanted(const struct gp_report_work *work, const char *user,
                         const struct gp_report_member *member)
{
    return (!work->query->users || is_listed(work->query->users, user)) &&
           (!work->query->groups || member->count > 0);
}

void gp_report_members_fini(struct gp_report_work *work)
{
    for (size_t i = 0; i < work->member_count; i++) {
        free(work->members[i]->groups);
        free(work->members[i]);
    }
    free(work->members);
    work->members = NULL;
    work->member_count = 0;
}
