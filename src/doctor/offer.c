#include "doctor/offer.h"

#include "doctor/compat.h"
#include "doctor/version.h"

#include <string.h>

/* NVIDIA's repository for Debian can be pinned to this and newer branches. */
enum { FIRST_OF_NVIDIA = 580 };

void gp_wish_add(struct gp_wish *wish, unsigned capability)
{
    const struct gp_arch *arch = gp_arch_find(capability);
    if (!arch)
        return;
    if (arch->first_branch > wish->first)
        wish->first = arch->first_branch;
    if (arch->last_branch > 0 && (wish->last == 0 || arch->last_branch < wish->last))
        wish->last = arch->last_branch;
    wish->needs_open = wish->needs_open || !(arch->modules & GP_MODULE_PROPRIETARY);
    wish->needs_proprietary = wish->needs_proprietary || !(arch->modules & GP_MODULE_OPEN);
}

bool gp_wish_is_possible(const struct gp_wish *wish)
{
    return !(wish->needs_open && wish->needs_proprietary) &&
           (wish->last == 0 || wish->first <= wish->last);
}

bool gp_wish_fits(const struct gp_wish *wish, unsigned branch)
{
    return branch >= wish->first && (wish->last == 0 || branch <= wish->last);
}

const struct gp_driver *gp_driver_long_term(void)
{
    const struct gp_driver *best = &gp_drivers[0]; /* the table is never empty */
    for (size_t i = 1; i < gp_driver_count; i++)
        if (strcmp(gp_drivers[i].ends, best->ends) >= 0)
            best = &gp_drivers[i];
    return best;
}

/* Of Ubuntu's old releases, which have rows of their own; 0: another one. */
static unsigned release_of(const char *codename)
{
    static const struct {
        const char *codename;
        unsigned release;
    } names[] = {{"trusty", 14}, {"xenial", 16}, {"bionic", 18}, {"focal", 20}};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (strcmp(names[i].codename, codename) == 0)
            return names[i].release;
    return 0;
}

static bool has_row(const char *family, unsigned release)
{
    for (size_t i = 0; i < gp_offer_count; i++)
        if (strcmp(gp_offers[i].distribution, family) == 0 && gp_offers[i].release == release)
            return true;
    return false;
}

/* The number of its rows: those between Ubuntu's long-term releases have some with the month. */
static unsigned release_of_machine(const struct gp_machine *machine)
{
    unsigned year = gp_version_major(machine->distro_version);
    unsigned with_month = year * 100 + gp_version_minor(machine->distro_version);
    if (machine->distro != GP_DISTRO_UBUNTU)
        return year;
    if (strcmp(machine->distro_id, "ubuntu") != 0)
        return release_of(machine->base_codename); /* derivatives count their own releases */
    return has_row(gp_distro_word(machine->distro), with_month) ? with_month : year;
}

/* Whether a row is for this machine: of its release, or of all without rows of their own; where
 * each has some, of the newest known one if its own is newer or unknown, as on Debian's testing. */
static bool is_of(const struct gp_offer *row, const struct gp_machine *machine)
{
    const char *family = gp_distro_word(machine->distro);
    unsigned release = release_of_machine(machine), newest = 0;
    if (strcmp(row->distribution, family) != 0)
        return false;
    if (has_row(family, 0))
        return row->release == (has_row(family, release) ? release : 0);
    for (size_t i = 0; i < gp_offer_count; i++)
        if (strcmp(gp_offers[i].distribution, family) == 0 && gp_offers[i].release > newest)
            newest = gp_offers[i].release;
    if (release == 0 || release > newest)
        release = newest;
    return row->release == release;
}

static bool is_wanted(const struct gp_offer *row, const struct gp_wish *wish)
{
    bool is_branch = row->branch == 0 ? wish->last == 0 : gp_wish_fits(wish, row->branch);
    return is_branch && (!wish->needs_open || row->modules & GP_MODULE_OPEN) &&
           (!wish->needs_proprietary || row->modules & GP_MODULE_PROPRIETARY);
}

static bool is_newer(const struct gp_offer *row, const struct gp_offer *other)
{
    return !other || (other->branch > 0 && (row->branch == 0 || row->branch > other->branch));
}

static struct gp_offer_choice choose_elsewhere(const struct gp_machine *machine,
                                               const struct gp_wish *wish)
{
    unsigned usual = gp_driver_long_term()->branch;
    unsigned branch = wish->last > 0 ? wish->last : usual > wish->first ? usual : wish->first;
    struct gp_offer_choice choice = {GP_OFFER_ANY, NULL, branch, !wish->needs_proprietary};
    if (machine->distro == GP_DISTRO_OTHER)
        return choice;
    choice.from = GP_OFFER_NONE;
    if (machine->distro == GP_DISTRO_DEBIAN && (wish->last == 0 || wish->last >= FIRST_OF_NVIDIA)) {
        choice.from = GP_OFFER_NVIDIA;
        choice.branch = wish->last; /* 0: the newest */
    }
    return choice;
}

struct gp_offer_choice gp_offer_choose(const struct gp_machine *machine, const struct gp_wish *wish)
{
    const struct gp_offer *best = NULL;
    for (size_t i = 0; i < gp_offer_count; i++)
        if (is_of(&gp_offers[i], machine) && is_wanted(&gp_offers[i], wish) &&
            is_newer(&gp_offers[i], best))
            best = &gp_offers[i];
    if (!best)
        return choose_elsewhere(machine, wish);
    return (struct gp_offer_choice){GP_OFFER_DISTRO, best, best->branch,
                                    best->modules & GP_MODULE_OPEN && !wish->needs_proprietary};
}
