/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-list: a linked list at a server, followed in two ways: with an RDMA Read for each hop, or
 * with a program that the client sends. The first node stands at the beginning of the region.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "active_end.h"
#include "endpoint.h"
#include "list_node.h"

enum { PORT = 7176, NODES_MAX = 1 << 24, OK = 0, USAGE = 2, FAILED = 3 };

struct options {
	const char *host;
	struct sockaddr_storage addr;
	uint16_t port;
	unsigned long nodes, hops, repeat, value, spin_us;
};

static const char usage[] = "usage: warp-list serve [-a ADDRESS] [-p PORT] [-n NODES]\n"
			    "       warp-list walk -a ADDRESS [-p PORT] [-k HOPS] [-r TIMES]\n"
			    "       warp-list append -a ADDRESS [-p PORT] [-v VALUE] [-r TIMES]\n"
			    "  -a ADDRESS   serve: where to listen (all IPv4 addresses); else: the "
			    "server\n"
			    "  -p PORT      TCP port (7176); serve: 0 takes a free one\n"
			    "  -n NODES     how long the list is at first (1001)\n"
			    "  -k HOPS      how far to go (64)\n"
			    "  -r TIMES     do it so often, and tell the median (1000; append: 1)\n"
			    "  -v VALUE     of the new node (0)\n"
			    "  -s US        look for input so long before sleeping: shorter times, "
			    "more work (0)\n"
			    "  -h, --help   this text;  --version\n"
			    "exit status: 0 done, 2 usage, 3 failed\n";

/* The object that the build made of list.bpf.c */
__asm__(".section .rodata\n"
	"list_object: .incbin \"" OBJECT "\"\n"
	"list_object_end: .byte 0\n"
	".previous\n");
extern const unsigned char list_object[], list_object_end[];

static int complain(const char *what, int err)
{
	fprintf(stderr, "warp-list: %s: %s\n", what, strerror(-err));
	return FAILED;
}

/* --- server ------------------------------------------------------------------------------- */

/* In an order that is not that of the addresses, as after some time in use */
static void list_fill(struct list_node *node, unsigned long count)
{
	unsigned long base = (unsigned long)node, at = 0, step = 7919;

	while (count % step == 0)
		step += 2;
	for (unsigned long i = 0; i < count; i++) {
		unsigned long next = (at + step) % count;

		node[at].value = i;
		node[at].next = i + 1 < count ? base + next * sizeof(*node) : 0;
		at = next;
	}
}

static int list_export(struct warp_active_server *server, const struct options *opt)
{
	size_t size = opt->nodes * sizeof(struct list_node);
	const struct warp_active_region_attr attr = {
		.name = "list",
		.size = size + (1 << 20),
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
		.flags = WARP_ACTIVE_HEAP,
		.heap_offset = size,
	};
	struct warp_active_region *region;
	int ret = warp_active_export(server, &attr, &region);

	if (!ret)
		list_fill(warp_active_region_memory(region), opt->nodes);
	return ret;
}

static int serve(const struct options *opt)
{
	const struct warp_active_server_attr attr = { .spin_us = (unsigned int)opt->spin_us };
	struct warp_active_server *server;
	struct sockaddr_storage at;
	int ret = warp_active_server_create(&attr, &server);

	if (ret)
		return complain("no server", ret);
	ret = list_export(server, opt);
	if (!ret)
		ret = warp_active_server_listen(server, (const struct sockaddr *)&opt->addr,
						endpoint_addr_len(&opt->addr));
	if (!ret)
		ret = warp_active_server_addr(server, &at);
	if (!ret) {
		printf("port %u, %lu nodes\n", endpoint_port(&at), opt->nodes);
		fflush(stdout);
		while (!endpoint_stopped())
			pause();
	}
	warp_active_server_destroy(server);
	return ret ? complain("serve", ret) : OK;
}

/* --- client ------------------------------------------------------------------------------- */

struct side {
	struct active_end end;
	const struct options *opt;
	unsigned long value;
};

static int one_sided(void *arg)
{
	struct side *s = arg;
	const struct warp_active_region_info *list = &s->end.region;
	struct list_node node = { 0, list->addr };
	struct warp_active_result result;
	int ret = 0;

	for (unsigned long i = 0; i <= s->opt->hops && !ret; i++) {
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
	const struct list_walk args = { s->end.region.addr, s->opt->hops, 0 };
	struct warp_active_result result;
	int ret = active_end_run(&s->end, "walk", WARP_ACTIVE_READ, &args, sizeof(args), NULL, 0,
				 &result);

	if (!ret)
		s->value = result.value;
	return ret;
}

static int walk(struct side *s)
{
	static const struct {
		const char *name;
		int (*way)(void *);
	} ways[] = { { "one-sided", one_sided }, { "active", active } };
	double us = 0;
	int ret = 0;

	for (int i = 0; i < 2 && !ret; i++) {
		ret = active_end_time(ways[i].way, s, s->opt->repeat, &us);
		if (!ret)
			printf("%-10s value %lu, %.1f us\n", ways[i].name, s->value, us);
	}
	return ret;
}

static int append(struct side *s)
{
	const struct list_walk args = { s->end.region.addr, 0, s->opt->value };
	struct warp_active_result result;
	unsigned long hops = 0;
	int ret = 0;

	for (unsigned long i = 0; i < s->opt->repeat && !ret; i++) {
		ret = active_end_run(&s->end, "append", 7, &args, sizeof(args), NULL, 0, &result);
		hops = result.value;
		if (!ret && !hops)
			ret = -ENOMEM;
	}
	if (!ret)
		printf("the new node is %lu hops away\n", hops);
	return ret;
}

static int ask(const struct options *opt, int (*verb)(struct side *))
{
	struct side s = { .opt = opt };
	int ret = active_end_open(&s.end, &opt->addr, (unsigned int)opt->spin_us, "list",
				  list_object, (size_t)(list_object_end - list_object));

	if (!ret)
		ret = verb(&s);
	active_end_close(&s.end);
	return ret ? complain(opt->host, ret) : OK;
}

/* --- command line ------------------------------------------------------------------------- */

static int parse_one(struct options *opt, int c)
{
	static const struct {
		int c;
		unsigned long min, max;
	} rows[] = { { 'p', 0, 65535 },	   { 'n', 2, NODES_MAX }, { 'k', 0, NODES_MAX },
		     { 'r', 1, 10000000 }, { 'v', 0, ~0ul },	  { 's', 0, 1000000 } };
	unsigned long value = 0;

	if (c == 'a') {
		opt->host = optarg;
		return 0;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].c == c && endpoint_number(optarg, rows[i].min, rows[i].max, &value)) {
			fprintf(stderr, "warp-list: %s is no value for -%c\n", optarg, c);
			return -1;
		}
	switch (c) {
	case 'p':
		opt->port = (uint16_t)value;
		return 0;
	case 'n':
		opt->nodes = value;
		return 0;
	case 'k':
		opt->hops = value;
		return 0;
	case 'r':
		opt->repeat = value;
		return 0;
	case 'v':
		opt->value = value;
		return 0;
	case 's':
		opt->spin_us = value;
		return 0;
	}
	return -1;
}

/* 0, or the status to exit with plus one */
static int parse(struct options *opt, int argc, char **argv)
{
	static const struct option names[] = { { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'V' },
					       { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "a:p:n:k:r:v:s:h", names, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			printf(c == 'h' ? usage : "warp-list %s\n", warp_version());
			return OK + 1;
		}
		if (parse_one(opt, c))
			return USAGE + 1;
	}
	return 0;
}

static int wrong(const char *what)
{
	fprintf(stderr, "warp-list: %s\n%s", what, usage);
	return USAGE;
}

int main(int argc, char **argv)
{
	struct options opt = { .port = PORT, .nodes = 1001, .hops = 64 };
	const char *verb, *host;
	int ret = parse(&opt, argc, argv);

	if (ret)
		return ret - 1;
	verb = optind < argc ? argv[optind++] : "";
	if (strcmp(verb, "serve") && strcmp(verb, "walk") && strcmp(verb, "append"))
		return wrong("one of serve, walk, append is needed");
	if (optind < argc)
		return wrong("too many words");
	if (strcmp(verb, "serve") && !opt.host)
		return wrong("-a is needed");
	if (!opt.repeat)
		opt.repeat = *verb == 'w' ? 1000 : 1;
	host = opt.host ? opt.host : "0.0.0.0";
	ret = endpoint_resolve(host, opt.port, &opt.addr);
	if (ret) {
		fprintf(stderr, "warp-list: %s: %s\n", host, gai_strerror(ret));
		return USAGE;
	}
	endpoint_catch_signals();
	if (!strcmp(verb, "serve"))
		return serve(&opt);
	return ask(&opt, *verb == 'w' ? walk : append);
}
