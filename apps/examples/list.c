/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-list: a linked list at a server, followed in two ways: with an RDMA Read for each hop, or
 * with a program that the client sends. The first node stands at the beginning of the region.
 */
#include <errno.h>
#include <stdio.h>

#include "active_app.h"
#include "list_node.h"

enum { NODES_MAX = 1 << 24 };

static struct active_common common = { .port = 7176 };
static unsigned long nodes = 1001, hops = 64, repeat, new_value;
static const struct active_app app;

/* --- server ------------------------------------------------------------------------------- */

/* In an order that is not that of the addresses, as after some time in use */
static void list_fill(void *memory)
{
	struct list_node *node = memory;
	unsigned long base = (unsigned long)node, at = 0, step = 7919;

	while (nodes % step == 0)
		step += 2;
	for (unsigned long i = 0; i < nodes; i++) {
		unsigned long next = (at + step) % nodes;

		node[at].value = i;
		node[at].next = i + 1 < nodes ? base + next * sizeof(*node) : 0;
		at = next;
	}
}

static int serve(char **words)
{
	size_t size = nodes * sizeof(struct list_node);
	const struct warp_active_region_attr attr = {
		.name = "list",
		.size = size + (1 << 20),
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
		.flags = WARP_ACTIVE_HEAP,
		.heap_offset = size,
	};
	char what[40];

	snprintf(what, sizeof(what), "%lu nodes", nodes);
	return active_app_serve(&app, &attr, list_fill, what);
}

/* --- client ------------------------------------------------------------------------------- */

struct side {
	struct active_end end;
	unsigned long value;
};

static int one_sided(void *arg)
{
	struct side *s = arg;
	const struct warp_active_region_info *list = &s->end.region;
	struct list_node node = { 0, list->addr };
	struct warp_active_result result;
	int ret = 0;

	for (unsigned long i = 0; i <= hops && !ret; i++) {
		const struct warp_active_access read = { .op = WARP_ACTIVE_OP_READ,
							 .region = list->number,
							 .offset = node.next - list->addr,
							 .buffer = &node,
							 .len = sizeof(node) };

		ret = node.next ? active_end_access(&s->end, &read, &result) : -ERANGE;
	}
	s->value = node.value;
	return ret;
}

static int active(void *arg)
{
	struct side *s = arg;
	const struct list_walk args = { s->end.region.addr, hops, 0 };
	struct warp_active_result result;
	int ret = active_end_run(&s->end, "walk", WARP_ACTIVE_READ, &args, sizeof(args), NULL, 0,
				 &result);

	if (!ret)
		s->value = result.value;
	return ret;
}

static int walk(char **words)
{
	static const struct {
		const char *name;
		int (*way)(void *);
	} ways[] = { { "one-sided", one_sided }, { "active", active } };
	struct side s = { 0 };
	double us = 0;
	int ret = 0;

	for (int i = 0; i < 2 && !ret; i++) {
		ret = active_app_ask(&app, &s.end, "list", ways[i].way, &s, repeat ? repeat : 1000,
				     &us);
		if (!ret)
			printf("%-10s value %lu, %.1f us\n", ways[i].name, s.value, us);
	}
	return ret;
}

static int append_one(void *arg)
{
	struct side *s = arg;
	const struct list_walk args = { s->end.region.addr, 0, new_value };
	struct warp_active_result result = { 0 };
	int ret = active_end_run(&s->end, "append", 7, &args, sizeof(args), NULL, 0, &result);

	s->value = result.value;
	return ret ? ret : s->value ? 0 : -ENOMEM;
}

static int append(char **words)
{
	struct side s = { 0 };
	double us = 0;
	int ret =
		active_app_ask(&app, &s.end, "list", append_one, &s, repeat ? repeat - 1 : 0, &us);

	if (!ret)
		printf("the new node is %lu hops away\n", s.value);
	return ret;
}

/* --- command line ------------------------------------------------------------------------- */

static const struct active_verb verbs[] = {
	{ "serve", "", 0, serve },
	{ "walk", "", 0, walk },
	{ "append", "", 0, append },
	{ 0 },
};

static const struct active_option options[] = {
	{ 'n', "NODES", "how long the list is at first (1001)", &nodes, 2, NODES_MAX, NULL },
	{ 'k', "HOPS", "how far to go (64)", &hops, 0, NODES_MAX, NULL },
	{ 'r', "TIMES", "do it so often, and tell the median (1000; append: 1)", &repeat, 1,
	  10000000, NULL },
	{ 'v', "VALUE", "of the new node (0)", &new_value, 0, ~0ul, NULL },
	{ 0 },
};

static const struct active_app app = { "warp-list",   &common,		verbs, options, NULL,
				       active_object, active_object_end };

int main(int argc, char **argv)
{
	return active_app_main(&app, argc, argv);
}
