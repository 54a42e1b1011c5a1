/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Directories that are open. The server lists more at once than the kernel takes, and may have
 * listed all: then it is not asked for the rest, nor for the end. What changes meanwhile a program
 * sees when it opens the directory, or goes back to its beginning.
 *
 * But what this mount changes is seen at once. The kernel takes no attributes that were asked for
 * before a change of its own ended, if both were under way at once; it knows when it asked, not
 * when the server was asked. So where a change has ended since, the server is asked again.
 *
 * Offsets of the kernel: 1 and 2 are behind "." and "..", and those of ARFS are above that.
 */
#include "listing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DOTS = 2 };

struct listing {
	pthread_mutex_t lock;
	bool plus;
	uint64_t from, end; /* offsets of the first, and behind the last */
	uint64_t changes;   /* of the client, before it asked */
	size_t used;
	bool whole; /* behind the last there is none */
	char bytes[ARFS_LIST_MAX] __attribute__((aligned(8)));
};

struct listing *listing_create(void)
{
	struct listing *l = malloc(sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->from = l->end = UINT64_MAX;
	l->used = 0;
	l->plus = l->whole = false;
	l->changes = 0;
	return l;
}

void listing_destroy(struct listing *l)
{
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* One that was listed, and its attributes if they are there */
struct record {
	const struct arfs_attr *attr;
	const struct arfs_listed *entry;
};

/* False: there is no whole one at *@at, which else is behind it then */
static bool record_next(const struct listing *l, size_t *at, struct record *out)
{
	size_t head = l->plus ? sizeof(*out->attr) : 0, left = l->used - *at, len;

	if (left < head + sizeof(*out->entry))
		return false;
	out->attr = l->plus ? (const void *)(l->bytes + *at) : NULL;
	out->entry = (const void *)(l->bytes + *at + head);
	len = head + ((sizeof(*out->entry) + out->entry->name_len + 7) & ~(size_t)7);
	if (out->entry->name_len > ARFS_NAME_MAX || len > left)
		return false;
	*at += len;
	return true;
}

static bool is_plus(const struct listing_ask *ask)
{
	return ask->keep >= 0;
}

static int listing_fetch(struct listing *l, struct client *c, const struct listing_ask *ask,
			 uint64_t from, size_t room)
{
	bool plus = is_plus(ask);
	size_t longest = ARFS_LISTED_MAX + (plus ? sizeof(struct arfs_attr) : 0), at = 0;
	struct record r;
	long got;

	l->changes = client_changes(c);
	got = client_list(c, ask->node, from, plus ? ARFS_PLUS : 0, l->bytes, room);
	if (got == -ESTALE) /* it was removed: nothing is in it */
		got = 0;
	l->used = got < 0 ? 0 : (size_t)got;
	l->whole = got >= 0 && room - l->used >= longest;
	l->plus = plus;
	l->from = l->end = from;
	while (record_next(l, &at, &r))
		l->end = r.entry->next;
	return got < 0 ? (int)got : 0;
}

/* Where in the bytes what begins at this offset of the directory is; SIZE_MAX: not there */
static size_t listing_find(const struct listing *l, uint64_t from)
{
	uint64_t offset = l->from;
	size_t at = 0;
	struct record r;

	while (offset != from)
		if (record_next(l, &at, &r))
			offset = r.entry->next;
		else
			return SIZE_MAX;
	return offset != l->end || l->whole ? at : SIZE_MAX;
}

/* What the kernel is told */
struct told {
	const struct listing_ask *ask;
	char *to;
	size_t used;
};

static bool name_add(struct told *t, const char *name, const struct fuse_entry_param *e, off_t next)
{
	size_t left = t->ask->room - t->used;
	char *to = t->to + t->used;
	size_t need = t->ask->keep < 0
			      ? fuse_add_direntry(t->ask->req, to, left, name, &e->attr, next)
			      : fuse_add_direntry_plus(t->ask->req, to, left, name, e, next);

	if (need > left)
		return false;
	t->used += need;
	return true;
}

/* Of the dots, and of what is damaged, the kernel learns no attributes: it asks for them */
static bool record_add(struct told *t, const struct record *r)
{
	struct fuse_entry_param e = { .attr = { .st_ino = r->entry->inode,
						.st_mode = r->entry->type << 12 } };
	char name[ARFS_NAME_MAX + 1];

	if (r->attr && r->attr->mode)
		e = entry_of(r->attr, t->ask->keep);
	memcpy(name, r->entry->name, r->entry->name_len);
	name[r->entry->name_len] = 0;
	return name_add(t, name, &e, (off_t)r->entry->next + DOTS);
}

static bool dots_add(struct told *t)
{
	const struct fuse_entry_param e = { .attr = { .st_ino = (uint32_t)t->ask->node,
						      .st_mode = S_IFDIR } };

	return (t->ask->offset >= 1 || name_add(t, ".", &e, 1)) &&
	       (t->ask->offset >= DOTS || name_add(t, "..", &e, DOTS));
}

/* What is there is of before a change of this mount's */
static bool is_old(const struct listing *l, const struct client *c)
{
	return l->plus && l->changes != client_changes(c);
}

long listing_read(struct listing *l, struct client *c, const struct listing_ask *ask, char *to)
{
	uint64_t from = ask->offset > DOTS ? (uint64_t)ask->offset - DOTS : 0;
	struct told told = { .ask = ask, .to = to };
	size_t at = SIZE_MAX, room = sizeof(l->bytes);
	struct record r;
	int ret = 0;

	pthread_mutex_lock(&l->lock);
	/* Beside a writer, what the kernel takes now is all that will be of use */
	if (ask->offset && is_old(l, c))
		room = ask->room < room ? ask->room : room;
	else if (ask->offset && is_plus(ask) == l->plus)
		at = listing_find(l, from);
	if (at == SIZE_MAX) {
		ret = listing_fetch(l, c, ask, from, room);
		at = 0;
	}
	if (!ret && dots_add(&told))
		while (record_next(l, &at, &r) && record_add(&told, &r))
			;
	pthread_mutex_unlock(&l->lock);
	return ret ? ret : (long)told.used;
}
