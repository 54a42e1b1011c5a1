/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-hash: a hash table at a server, used in two ways: by RDMA alone, and by a program that the
 * client sends. The table's code is hash_code.h for both.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "active_app.h"
#include "endpoint.h"
#include "hash_code.h"
#include "place_rdma.h"

static struct active_common common = { .port = 7177 };
static unsigned long entries = 10000, repeat, alone;
static const struct active_app app;

/* --- server: it exports memory, and knows nothing more of the table ------------------------ */

static void table_fill(void *memory)
{
	*(unsigned long *)memory = HASH_ENTRIES_AT;
}

static int serve(char **words)
{
	const struct warp_active_region_attr attr = {
		.name = "hash",
		.size = HASH_ENTRIES_AT + entries * sizeof(struct hash_entry),
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
	};
	char what[40];

	snprintf(what, sizeof(what), "%lu entries", entries);
	return active_app_serve(&app, &attr, table_fill, what);
}

/* --- client ------------------------------------------------------------------------------- */

struct side {
	struct place place;
	struct hash_args args;
	bool put, found;
	unsigned long value;
};

static void args_fill(struct side *s)
{
	s->args.table = s->place.end.region.addr;
	s->args.size = s->place.end.region.size;
}

static int one_sided(void *arg)
{
	struct side *s = arg;
	int ret;

	args_fill(s);
	s->place.operations = 0;
	ret = s->put ? hash_put(&s->place, &s->args) : hash_get(&s->place, &s->args, &s->value);
	s->found = s->put || ret == 1;
	return ret < 0 ? ret : 0;
}

static int active(void *arg)
{
	struct side *s = arg;
	struct warp_active_result result;
	int ret;

	args_fill(s);
	ret = active_end_run(&s->place.end, s->put ? "put" : "get", s->put ? 7 : WARP_ACTIVE_READ,
			     &s->args, sizeof(s->args), &s->value, sizeof(s->value), &result);

	s->place.operations = 1;
	if (ret)
		return ret;
	s->found = s->put || result.value == 1;
	return (int64_t)result.value < 0 ? (int)(int64_t)result.value : 0;
}

static int ask(struct side *s)
{
	double us = 0;
	int ret = active_app_ask(&app, &s->place.end, "hash", alone ? one_sided : active, s, repeat,
				 &us);

	if (ret)
		return ret;
	if (!s->found) {
		fprintf(stderr, "warp-hash: %s: no such key\n", s->args.entry.key);
		return APP_ABSENT;
	}
	if (!s->put)
		printf("%lu\n", s->value);
	if (repeat)
		printf("%s, %lu round trips, %.1f us\n", alone ? "one-sided" : "active",
		       s->place.operations, us);
	return APP_OK;
}

static bool key_take(struct side *s, const char *word)
{
	size_t len = strlen(word);

	if (!len || len >= sizeof(s->args.entry.key))
		return false;
	memcpy(s->args.entry.key, word, len);
	return true;
}

static int get(char **words)
{
	struct side s = { .put = false };

	return key_take(&s, words[0]) ? ask(&s) : active_app_wrong(&app, "a key has 1 to 47 bytes");
}

static int put(char **words)
{
	struct side s = { .put = true };

	if (!key_take(&s, words[0]))
		return active_app_wrong(&app, "a key has 1 to 47 bytes");
	if (endpoint_number(words[1], 0, ~0ul, &s.args.entry.value))
		return active_app_wrong(&app, "the value is a number");
	return ask(&s);
}

/* --- command line ------------------------------------------------------------------------- */

static const struct active_verb verbs[] = {
	{ "serve", "", 0, serve },
	{ "get", "KEY", 1, get },
	{ "put", "KEY NUMBER", 2, put },
	{ 0 },
};

static const struct active_option options[] = {
	{ 'n', "ENTRIES", "how many entries there is room for (10000)", &entries, 1, 1 << 24,
	  NULL },
	{ '1', NULL, "one-sided: by RDMA alone, without a program at the server", &alone, 0, 0,
	  NULL },
	{ 'r', "TIMES", "do it so often more, and tell the median time", &repeat, 1, 10000000,
	  NULL },
	{ 0 },
};

static const struct active_app app = { "warp-hash",	 &common,	  verbs,
				       options,		 "no such key, ", active_object,
				       active_object_end };

int main(int argc, char **argv)
{
	return active_app_main(&app, argc, argv);
}
