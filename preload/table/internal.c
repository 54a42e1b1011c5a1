/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors of our own.
 *
 * One entry stands for all of them; it is never released, for it has a number more than the
 * table knows.
 */
#include "preload/table/internal.h"

#include "base/fdutil.h"
#include "preload/table/fdtab.h"

static struct fdent entry = { .refs = 1, .kind = FD_INTERNAL, .numbers = 1 };

/* Where the table has no room the number stays the program's to close */
static void enter(int fd)
{
	fdtab_number_get(&entry);
	if (fdtab_set(fd, &entry))
		fdtab_number_put(&entry);
}

int internal_dup(int fd)
{
	int high = base_fd_dup_high(fd);

	if (high >= 0)
		enter(high);
	return high;
}

int internal_move(int fd)
{
	int high = internal_dup(fd);

	if (high < 0) {
		enter(fd);
		return fd;
	}
	base_fd_close(fd);
	return high;
}

bool internal_is(int fd)
{
	return fdtab_peek(fd) == &entry;
}

void internal_forget(int fd)
{
	fdtab_put(fdtab_take(fd, &entry, NULL));
}

void internal_close(int fd)
{
	if (fd < 0)
		return;
	internal_forget(fd);
	base_fd_close(fd);
}
