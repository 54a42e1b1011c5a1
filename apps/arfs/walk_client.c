/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A walk from the client: run after run, each of which goes on where the last one stopped.
 */
#include "walk_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warp/active.h>

enum { ROOM = 65536, TRIES = 4 };

static int complain(const struct walk *w, const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", w->name, what, why);
	return -EPROTO;
}

/* The state for the next run goes to the arguments. -EPROTO: what came is none */
static int hits_take(struct walk *w, const char *from, size_t len)
{
	size_t at = 0;

	while (len - at >= sizeof(struct walk_hit)) {
		const struct walk_hit *hit = (const void *)(from + at);
		const char *bytes = from + at + sizeof(*hit);

		if (hit->len > len - at - sizeof(*hit))
			return -EPROTO;
		if (hit->kind == WALK_STATE && hit->len == sizeof(w->args.state))
			memcpy(&w->args.state, bytes, sizeof(w->args.state));
		else if (hit->kind == WALK_STATE || !w->take(hit, bytes))
			return -EPROTO;
		at += (sizeof(*hit) + hit->len + 7) & ~(size_t)7;
	}
	return 0;
}

/* One run, with the lock if others change too much: 1 there is more, 0, or an error */
static int run_once(struct walk *w, struct client *c, const struct warp_active_object *object,
		    char *output)
{
	struct walk_args now = w->args;
	struct warp_active_run run = { .object = object,
				       .function = "main",
				       .args = &now,
				       .args_len = sizeof(now),
				       .output = output,
				       .output_room = ROOM };
	struct warp_active_result result;
	int ret = -EAGAIN;

	for (int i = 0; i < 2 * TRIES && ret == -EAGAIN; i++) {
		now.locked = i >= TRIES;
		ret = client_run(c, &run, WARP_ACTIVE_READ | (now.locked ? WARP_ACTIVE_WRITE : 0u),
				 &result);
		if (!ret && result.code != WARP_ACTIVE_OK)
			return complain(w, "the server", result.text);
		ret = ret ? ret : (int)(int64_t)result.value;
	}
	if (ret >= 0 && hits_take(w, output, result.output))
		return -EPROTO;
	return ret;
}

/* One part more of the path at which the walk begins */
static int path_add(struct walk_state *s, const char *part, size_t len)
{
	uint32_t *end = &s->level[0].path_len;

	if (*end + len + 1 > WALK_PATH - 300)
		return -ENAMETOOLONG;
	memcpy(s->path + *end, part, len);
	s->path[*end + len] = '/';
	*end += (uint32_t)len + 1;
	return 0;
}

/* A file's records can be walked through as if it stood alone in its directory */
static int file_begin(struct walk *w, const struct arfs_attr *dir, const struct arfs_attr *file,
		      size_t name_len)
{
	if (file->mode >> 12 != 8 || w->args.mode != WALK_FOLD_RECORDS)
		return -ENOTDIR;
	w->args.only = (uint32_t)file->node;
	w->args.state.level[0].path_len -= (uint32_t)name_len + 1;
	w->args.state.level[0].inode = (uint32_t)dir->node;
	return 0;
}

/* What @where names becomes the walk's first level */
static int start_at(struct walk *w, struct client *c, const char *where)
{
	struct arfs_attr a = { .node = ARFS_ROOT }, dir = a;
	char part[ARFS_NAME_MAX + 1];
	size_t len = 0;
	int ret = 0;

	w->args.state.depth = 1;
	for (where += strspn(where, "/"); *where && !ret; where += len + strspn(where + len, "/")) {
		len = strcspn(where, "/");
		if (len > ARFS_NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(part, where, len);
		part[len] = 0;
		dir = a;
		ret = client_lookup(c, a.node, part, &a);
		if (!ret)
			ret = path_add(&w->args.state, part, len);
	}
	if (!ret)
		ret = client_getattr(c, a.node, &a);
	if (!ret && a.mode >> 12 != 4)
		return file_begin(w, &dir, &a, len);
	w->args.state.level[0].inode = (uint32_t)a.node;
	return ret;
}

static int walk(struct walk *w, struct client *c, const struct warp_active_object *object,
		const char *where)
{
	char *output = malloc(ROOM);
	int ret = output ? start_at(w, c, where) : -ENOMEM;

	w->args.room = ROOM;
	if (!ret)
		ret = 1;
	while (ret == 1)
		ret = run_once(w, c, object, output);
	free(output);
	return ret ? complain(w, where, strerror(-ret)) : 0;
}

int walk_all(struct walk *w, const void *elf, size_t len, const char *where)
{
	struct warp_active_object *object;
	struct client *c;
	int ret = client_open(&w->client, &c);

	if (ret)
		return complain(w, w->host, strerror(-ret));
	ret = warp_active_object_create(elf, len, &object);
	if (!ret) {
		ret = walk(w, c, object, where);
		warp_active_object_destroy(object);
	} else {
		ret = complain(w, "code", strerror(-ret));
	}
	client_close(c);
	return ret;
}
