/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-hash: a hash table at a server, used in two ways: by RDMA alone, and by a program that the
 * client sends. The table's code is hash_code.h for both.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "active_end.h"
#include "endpoint.h"
#include "hash_code.h"

enum { PORT = 7177, ENTRIES_MAX = 1 << 24, OK = 0, ABSENT = 1, USAGE = 2, FAILED = 3 };

struct options {
	const char *host;
	struct sockaddr_storage addr;
	uint16_t port;
	unsigned long entries, repeat, spin_us;
	bool one_sided;
};

static const char usage[] = "usage: warp-hash serve [-a ADDRESS] [-p PORT] [-n ENTRIES]\n"
			    "       warp-hash get -a ADDRESS [-p PORT] [-1] [-r TIMES] KEY\n"
			    "       warp-hash put -a ADDRESS [-p PORT] [-1] [-r TIMES] KEY NUMBER\n"
			    "  -a ADDRESS   serve: where to listen (all IPv4 addresses); else: the "
			    "server\n"
			    "  -p PORT      TCP port (7177); serve: 0 takes a free one\n"
			    "  -n ENTRIES   how many entries there is room for (10000)\n"
			    "  -1           one-sided: by RDMA alone, without a program at the "
			    "server\n"
			    "  -r TIMES     do it so often more, and tell the median time\n"
			    "  -s US        look for input so long before sleeping: shorter times, "
			    "more work (0)\n"
			    "  -h, --help   this text;  --version\n"
			    "exit status: 0 done, 1 no such key, 2 usage, 3 failed\n";

/* The object that the build made of hash.bpf.c */
__asm__(".section .rodata\n"
	"hash_object: .incbin \"" OBJECT "\"\n"
	"hash_object_end: .byte 0\n"
	".previous\n");
extern const unsigned char hash_object[], hash_object_end[];

static int complain(const char *what, int err)
{
	fprintf(stderr, "warp-hash: %s: %s\n", what, strerror(-err));
	return FAILED;
}

/* --- server: it exports memory, and knows nothing more of the table ------------------------ */

static int table_export(struct warp_active_server *server, const struct options *opt)
{
	const struct warp_active_region_attr attr = {
		.name = "hash",
		.size = HASH_ENTRIES_AT + opt->entries * sizeof(struct hash_entry),
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_ATOMIC |
			  WARP_ACTIVE_RUN,
	};
	struct warp_active_region *region;
	int ret = warp_active_export(server, &attr, &region);

	if (!ret)
		*(unsigned long *)warp_active_region_memory(region) = HASH_ENTRIES_AT;
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
	ret = table_export(server, opt);
	if (!ret)
		ret = warp_active_server_listen(server, (const struct sockaddr *)&opt->addr,
						endpoint_addr_len(&opt->addr));
	if (!ret)
		ret = warp_active_server_addr(server, &at);
	if (!ret) {
		printf("port %u, %lu entries\n", endpoint_port(&at), opt->entries);
		fflush(stdout);
		while (!endpoint_stopped())
			pause();
	}
	warp_active_server_destroy(server);
	return ret ? complain("serve", ret) : OK;
}

/* --- client: the table's memory by RDMA ---------------------------------------------------- */

struct hash_place {
	struct active_end end;
	struct hash_args args;
	const struct options *opt;
	bool put, found;
	unsigned long value, operations;
};

static int access_do(struct hash_place *place, struct warp_active_access *op, unsigned long addr,
		     unsigned long *old)
{
	const struct warp_active_region_info *region = &place->end.region;
	struct warp_active_result result;
	int ret;

	op->region = region->number;
	op->offset = addr - region->addr;
	place->operations++;
	ret = active_end_access(&place->end, op, &result);
	if (!ret && old)
		*old = result.value;
	return ret;
}

static inline int hash_load(struct hash_place *place, unsigned long addr, void *to,
			    unsigned long len)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_READ, .buffer = to, .len = len };

	return access_do(place, &op, addr, NULL);
}

static inline int hash_store(struct hash_place *place, unsigned long addr, const void *from,
			     unsigned long len)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_WRITE,
					 .buffer = (void *)(uintptr_t)from,
					 .len = len };

	return access_do(place, &op, addr, NULL);
}

static inline int hash_swap(struct hash_place *place, unsigned long addr, unsigned long *old,
			    unsigned long value)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_COMPARE_SWAP,
					 .compare = *old,
					 .value = value };

	return access_do(place, &op, addr, old);
}

static inline int hash_take(struct hash_place *place, unsigned long addr, unsigned long add,
			    unsigned long *old)
{
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_FETCH_ADD, .value = add };

	return access_do(place, &op, addr, old);
}

static int one_sided(void *arg)
{
	struct hash_place *place = arg;
	int ret;

	place->operations = 0;
	ret = place->put ? hash_put(place, &place->args)
			 : hash_get(place, &place->args, &place->value);
	place->found = place->put || ret == 1;
	return ret < 0 ? ret : 0;
}

static int active(void *arg)
{
	struct hash_place *place = arg;
	struct warp_active_result result;
	int ret = active_end_run(&place->end, place->put ? "put" : "get",
				 place->put ? 7 : WARP_ACTIVE_READ, &place->args,
				 sizeof(place->args), &place->value, sizeof(place->value), &result);

	place->operations = 1;
	if (ret)
		return ret;
	place->found = place->put || result.value == 1;
	return (int64_t)result.value < 0 ? (int)(int64_t)result.value : 0;
}

static int ask(struct hash_place *place, const struct options *opt)
{
	int (*way)(void *) = opt->one_sided ? one_sided : active;
	double us = 0;
	int ret = active_end_open(&place->end, &opt->addr, (unsigned int)opt->spin_us, "hash",
				  hash_object, (size_t)(hash_object_end - hash_object));

	place->args.table = place->end.region.addr;
	place->args.size = place->end.region.size;
	if (!ret)
		ret = opt->repeat ? active_end_time(way, place, opt->repeat, &us) : way(place);
	active_end_close(&place->end);
	if (ret)
		return complain(opt->host, ret);
	if (!place->found) {
		fprintf(stderr, "warp-hash: %s: no such key\n", place->args.entry.key);
		return ABSENT;
	}
	if (!place->put)
		printf("%lu\n", place->value);
	if (opt->repeat)
		printf("%s, %lu round trips, %.1f us\n", opt->one_sided ? "one-sided" : "active",
		       place->operations, us);
	return OK;
}

/* --- command line ------------------------------------------------------------------------- */

static int number(int c, unsigned long min, unsigned long max, unsigned long *out)
{
	if (!endpoint_number(optarg, min, max, out))
		return 0;
	fprintf(stderr, "warp-hash: %s is no value for -%c\n", optarg, c);
	return -1;
}

static int parse_one(struct options *opt, int c)
{
	unsigned long value = 0;
	int ret;

	switch (c) {
	case 'a':
		opt->host = optarg;
		return 0;
	case '1':
		opt->one_sided = true;
		return 0;
	case 'p':
		ret = number(c, 0, 65535, &value);
		opt->port = (uint16_t)value;
		return ret;
	case 'n':
		return number(c, 1, ENTRIES_MAX, &opt->entries);
	case 'r':
		return number(c, 1, 10000000, &opt->repeat);
	case 's':
		return number(c, 0, 1000000, &opt->spin_us);
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

	while ((c = getopt_long(argc, argv, "a:p:n:r:s:1h", names, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return OK + 1;
		}
		if (c == 'V') {
			printf("warp-hash %s\n", warp_version());
			return OK + 1;
		}
		if (parse_one(opt, c))
			return USAGE + 1;
	}
	return 0;
}

static const char *words_wrong(const char *verb, const struct options *opt, char **words, int n)
{
	bool serves = !strcmp(verb, "serve"), puts = !strcmp(verb, "put");

	if (!serves && !puts && strcmp(verb, "get"))
		return "one of serve, get, put is needed";
	if (n != (serves ? 0 : puts ? 2 : 1))
		return "too many words, or too few";
	if (!serves && !opt->host)
		return "-a is needed";
	if (n && (!*words[0] || strlen(words[0]) > 47))
		return "a key has 1 to 47 bytes";
	return NULL;
}

static int wrong(const char *what)
{
	fprintf(stderr, "warp-hash: %s\n%s", what, usage);
	return USAGE;
}

int main(int argc, char **argv)
{
	struct options opt = { .port = PORT, .entries = 10000 };
	struct hash_place place = { .opt = &opt };
	const char *verb, *what, *host;
	int ret = parse(&opt, argc, argv), n;

	if (ret)
		return ret - 1;
	verb = optind < argc ? argv[optind++] : "";
	n = argc - optind;
	what = words_wrong(verb, &opt, argv + optind, n);
	if (what)
		return wrong(what);
	if (n)
		memcpy(place.args.entry.key, argv[optind], strlen(argv[optind]));
	place.put = n == 2;
	if (place.put && endpoint_number(argv[optind + 1], 0, ~0ul, &place.args.entry.value))
		return wrong("the value is a number");
	host = opt.host ? opt.host : "0.0.0.0";
	ret = endpoint_resolve(host, opt.port, &opt.addr);
	if (ret) {
		fprintf(stderr, "warp-hash: %s: %s\n", host, gai_strerror(ret));
		return USAGE;
	}
	endpoint_catch_signals();
	return *verb == 's' ? serve(&opt) : ask(&place, &opt);
}
