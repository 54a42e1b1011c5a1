/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-store: a key-value store at a server, used in two ways: by RDMA alone, and by a program that
 * the client sends. The store's code is store_code.h for both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "active_app.h"
#include "place_rdma.h"
#include "store_code.h"

enum { TRIES = 100 };

static struct active_common common = { .port = 7180 };
static unsigned long mib = 64, repeat, alone;
static const struct active_app app;

/* --- server ------------------------------------------------------------------------------- */

/* Slots and lists are zero; what was never used begins behind the buckets */
static void store_fill(void *memory)
{
	unsigned long *head = memory;

	head[(STORE_POOL_AT + POOL_FREE_AT) / 8] =
		STORE_BUCKETS_AT + store_buckets(mib << 20) * STORE_SLOTS * 8;
}

static int serve(char **words)
{
	const struct warp_active_region_attr attr = {
		.name = "store",
		.size = mib << 20,
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
	};
	char what[40];

	snprintf(what, sizeof(what), "%lu MiB", mib);
	return active_app_serve(&app, &attr, store_fill, what);
}

/* --- client ------------------------------------------------------------------------------- */

struct side {
	struct place place;
	const char *function;
	int (*code)(struct place *place, const struct store_args *args, void *buffer);
	struct store_args *args;
	size_t args_len, length; /* of the value that was given */
	int result;
	unsigned long value[POOL_BLOCK_MAX / 8], buffer[POOL_BLOCK_MAX / 8];
};

/* The place is the first member, so that this finds the rest */
static inline long store_give(struct place *place, const void *from, unsigned long len)
{
	struct side *s = (struct side *)place;

	memcpy(s->value, from, len);
	s->length = len;
	return 0;
}

static int one_sided(struct side *s)
{
	s->length = 0;
	return s->code(&s->place, s->args, s->buffer);
}

static int active(struct side *s)
{
	struct warp_active_result result;
	int ret = active_end_run(&s->place.end, s->function,
				 *s->function == 'g' ? WARP_ACTIVE_READ : 7, s->args, s->args_len,
				 s->value, sizeof(s->value), &result);

	s->place.operations++;
	s->length = result.output;
	return ret ? ret : (int)(int64_t)result.value;
}

static int once(void *arg)
{
	struct side *s = arg;
	int ret = PLACE_AGAIN;

	s->args->store = s->place.end.region.addr;
	s->args->size = s->place.end.region.size;
	s->place.operations = 0;
	for (int i = 0; i < TRIES && ret == PLACE_AGAIN; i++)
		ret = alone ? one_sided(s) : active(s);
	s->result = ret;
	return ret < 0 ? ret : 0;
}

static int ask(struct side *s, const char *key)
{
	double us = 0;
	int ret = active_app_ask(&app, &s->place.end, "store", once, s, repeat, &us);

	if (ret)
		return ret;
	if (!s->result && *s->function != 'p') {
		fprintf(stderr, "warp-store: %s: no such key\n", key);
		return APP_ABSENT;
	}
	if (*s->function == 'g') {
		fwrite(s->value, 1, s->length, stdout);
		putchar('\n');
	}
	if (repeat)
		printf("%s, %lu round trips, %.1f us\n", alone ? "one-sided" : "active",
		       s->place.operations, us);
	return APP_OK;
}

static int with_key(struct side *s, const char *key, const char *value)
{
	size_t len = strlen(key), length = strlen(value);
	int ret;

	if (!len || len >= STORE_KEY)
		return active_app_wrong(&app, "a key has 1 to 55 bytes");
	if (length > STORE_VALUE_MAX)
		return active_app_wrong(&app, "a value has up to 8128 bytes");
	s->args_len = sizeof(*s->args) + (length + 7) / 8 * 8;
	s->args = calloc(1, s->args_len);
	if (!s->args)
		return active_app_complain(&app, "arguments", -ENOMEM);
	memcpy(s->args->record.key, key, len);
	memcpy(s->args + 1, value, length);
	s->args->record.length = length;
	ret = ask(s, key);
	free(s->args);
	return ret;
}

static int get(char **words)
{
	struct side s = { .function = "get", .code = store_get };

	return with_key(&s, words[0], "");
}

static int put(char **words)
{
	struct side s = { .function = "put", .code = store_put };

	return with_key(&s, words[0], words[1]);
}

static int delete (char **words)
{
	struct side s = { .function = "delete", .code = store_delete };

	return with_key(&s, words[0], "");
}

/* --- command line ------------------------------------------------------------------------- */

static const struct active_verb verbs[] = {
	{ "serve", "", 0, serve },
	{ "get", "KEY", 1, get },
	{ "put", "KEY VALUE", 2, put },
	{ "delete", "KEY", 1, delete },
	{ 0 },
};

static const struct active_option options[] = {
	{ 'm', "MIB", "memory for keys and values (64)", &mib, 1, 1 << 16, NULL },
	{ '1', NULL, "one-sided: by RDMA alone, without a program at the server", &alone, 0, 0,
	  NULL },
	{ 'r', "TIMES", "do it so often more, and tell the median time", &repeat, 1, 10000000,
	  NULL },
	{ 0 },
};

static const struct active_app app = { "warp-store",	 &common,	  verbs,
				       options,		 "no such key, ", active_object,
				       active_object_end };

int main(int argc, char **argv)
{
	return active_app_main(&app, argc, argv);
}
