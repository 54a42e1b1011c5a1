/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-btree: an ordered map at a server, used in two ways: by RDMA alone, and by a program that
 * the client sends. The tree's code is btree_code.h for both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "active_app.h"
#include "btree_code.h"
#include "btree_fill.h"
#include "endpoint.h"
#include "place_rdma.h"

enum { OUTPUT = 65536, TRIES = 10 }; /* TRIES: of BTREE_TRIES each */

static struct active_common common = { .port = 7178 };
static unsigned long keys = 10000, mib = 64, repeat, alone;
static const struct active_app app;

/* --- server ------------------------------------------------------------------------------- */

static void tree_fill(void *memory)
{
	btree_fill(memory, keys);
}

static int serve(char **words)
{
	const struct warp_active_region_attr attr = {
		.name = "btree",
		.size = btree_fill_size(keys) + (mib << 20),
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
	};
	char what[40];

	snprintf(what, sizeof(what), "%lu keys", keys);
	return active_app_serve(&app, &attr, tree_fill, what);
}

/* --- client ------------------------------------------------------------------------------- */

struct side {
	struct place place;
	struct btree_args args;
	const char *function;
	unsigned long value;
	bool found;
	struct btree_pair *pairs; /* of a range */
	size_t count, room;
};

/* The place is the first member, so that this finds the rest */
static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	struct side *s = (struct side *)place;
	struct btree_pair *more = s->pairs;

	if (s->count == s->room) {
		more = realloc(s->pairs, (2 * s->room + 64) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->pairs = more;
		s->room = 2 * s->room + 64;
	}
	s->pairs[s->count++] = *pair;
	return 0;
}

static void begin(struct side *s)
{
	s->args.tree = s->place.end.region.addr;
	s->args.size = s->place.end.region.size;
	s->place.operations = 0;
	s->count = 0;
}

static int one_sided(void *arg)
{
	struct side *s = arg;
	unsigned long next;
	int ret;

	begin(s);
	if (!strcmp(s->function, "put"))
		return btree_put(&s->place, &s->args);
	if (!strcmp(s->function, "range")) {
		ret = place_load(&s->place, s->args.tree + BTREE_ROOT_AT, &s->args.root);
		if (!ret)
			ret = btree_range(&s->place, &s->args, &next);
		return ret > 0 ? -ENOMEM : ret;
	}
	ret = btree_get(&s->place, &s->args, &s->value);
	s->found = ret == 1;
	return ret < 0 ? ret : 0;
}

static int run(struct side *s, const struct btree_args *args, void *output, size_t room,
	       struct warp_active_result *result)
{
	unsigned int rights = strcmp(s->function, "put") ? WARP_ACTIVE_READ : 7;
	int ret;

	s->place.operations++;
	ret = active_end_run(&s->place.end, s->function, rights, args, sizeof(*args), output, room,
			     result);
	if (!ret && (int64_t)result->value < 0)
		ret = (int)(int64_t)result->value;
	return ret;
}

/* As many runs as the output makes necessary, on the tree as the first one saw it */
static int range_active(struct side *s)
{
	static unsigned long output[OUTPUT / 8];
	struct btree_args args = s->args;
	struct warp_active_result result;
	int ret;

	args.root = 0;
	do {
		ret = run(s, &args, output, sizeof(output), &result);
		args.root = output[0];
		for (size_t i = 1; !ret && i + 1 < result.output / 8; i += 2) {
			struct btree_pair pair = { output[i], output[i + 1] };

			ret = btree_give(&s->place, &pair) ? -ENOMEM : 0;
			args.pair.key = pair.key + 1;
		}
		if (!ret && result.value && result.output < OUTPUT / 2)
			ret = PLACE_DAMAGED;
	} while (!ret && result.value);
	return ret;
}

static int active(void *arg)
{
	struct side *s = arg;
	struct warp_active_result result;
	int ret;

	begin(s);
	if (!strcmp(s->function, "range"))
		return range_active(s);
	ret = run(s, &s->args, &s->value, sizeof(s->value), &result);
	s->found = !ret && result.value == 1;
	return ret;
}

/* Others may be quicker at the root again and again: the later try comes at another time */
static int once(void *arg)
{
	unsigned int seed = (unsigned int)getpid();
	int ret = PLACE_AGAIN;

	for (int i = 0; i < TRIES && ret == PLACE_AGAIN; i++) {
		if (i)
			usleep((unsigned int)rand_r(&seed) % (1000u << i));
		ret = alone ? one_sided(arg) : active(arg);
	}
	return ret;
}

static int ask(struct side *s)
{
	double us = 0;
	int ret = active_app_ask(&app, &s->place.end, "btree", once, s, repeat, &us);

	for (size_t i = 0; i < s->count && !ret; i++)
		printf("%lu %lu\n", s->pairs[i].key, s->pairs[i].value);
	free(s->pairs);
	if (ret)
		return ret;
	if (!strcmp(s->function, "get") && !s->found) {
		fprintf(stderr, "warp-btree: %lu: no such key\n", s->args.pair.key);
		return APP_ABSENT;
	}
	if (s->found)
		printf("%lu\n", s->value);
	if (repeat)
		printf("%s, %lu round trips, %.1f us\n", alone ? "one-sided" : "active",
		       s->place.operations, us);
	return APP_OK;
}

/* --- command line ------------------------------------------------------------------------- */

static int with_numbers(const char *function, char **words, int count)
{
	struct side s = { .function = function };

	if (endpoint_number(words[0], 0, ~0ul, &s.args.pair.key) ||
	    (count > 1 && endpoint_number(words[1], 0, ~0ul, &s.args.pair.value)))
		return active_app_wrong(&app, "keys and values are numbers");
	return ask(&s);
}

static int get(char **words)
{
	return with_numbers("get", words, 1);
}

static int put(char **words)
{
	return with_numbers("put", words, 2);
}

static int range(char **words)
{
	return with_numbers("range", words, 2);
}

static const struct active_verb verbs[] = {
	{ "serve", "", 0, serve },
	{ "get", "KEY", 1, get },
	{ "put", "KEY NUMBER", 2, put },
	{ "range", "FIRST LAST", 2, range },
	{ 0 },
};

static const struct active_option options[] = {
	{ 'n', "KEYS", "the keys there are at first: 1 to KEYS (10000)", &keys, 0, 1 << 24, NULL },
	{ 'm', "MIB", "memory for what is put (64)", &mib, 0, 1 << 16, NULL },
	{ '1', NULL, "one-sided: by RDMA alone, without a program at the server", &alone, 0, 0,
	  NULL },
	{ 'r', "TIMES", "do it so often more, and tell the median time", &repeat, 1, 10000000,
	  NULL },
	{ 0 },
};

static const struct active_app app = { "warp-btree",	 &common,	  verbs,
				       options,		 "no such key, ", active_object,
				       active_object_end };

int main(int argc, char **argv)
{
	return active_app_main(&app, argc, argv);
}
