/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-arfs-server: a file system in a file, for clients of Active RDMA.
 *
 * The server knows the store only before its first client comes: it recovers and checks it. From
 * then on it serves a region, and what happens there is done by the programs of its clients. One of
 * these is the server itself (struct tidy): it frees what clients that died had kept open.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <warp/active.h>

#include "apps/examples/endpoint.h"
#include "client.h"
#include "store.h"

enum status { DONE, DAMAGED, USAGE, FAILED };
enum { MIB = 1 << 20, TIDY_MS = 1000 };

static struct {
	const char *host;
	unsigned long port, spin_us, force, read_only;
} options = { .host = "0.0.0.0", .port = 7190 };

static int complain(const char *what, int err)
{
	fprintf(stderr, "warp-arfs-server: %s: %s\n", what, strerror(-err));
	return FAILED;
}

static int complain_of(const char *path, int err, const struct store_fault *fault)
{
	if (err != -EBADMSG && err != -EBUSY)
		return complain(path, err);
	fprintf(stderr, "warp-arfs-server: %s: %s\n", path,
		err == -EBUSY ? "another process serves or checks it" : fault->text);
	return err == -EBUSY ? FAILED : DAMAGED;
}

static void usage(FILE *to)
{
	fputs("usage: warp-arfs-server make FILE MIB\n"
	      "       warp-arfs-server check FILE\n"
	      "       warp-arfs-server serve [OPTION..] FILE\n"
	      "  -a ADDRESS    where to listen (all IPv4 addresses)\n"
	      "  -p PORT       TCP port (7190); 0 takes a free one\n"
	      "  -r            clients can only read\n"
	      "  -f            serve a damaged file system, too\n"
	      "  -s US         look for input so long before sleeping: shorter times, more work "
	      "(0)\n"
	      "  -h, --help    this text;  --version\n"
	      "exit status: 0 done, 1 the file system is damaged, 2 usage, 3 failed\n",
	      to);
}

static int wrong(const char *text)
{
	fprintf(stderr, "warp-arfs-server: %s\n", text);
	usage(stderr);
	return USAGE;
}

/* --- make and check --- */

static int make(char **words)
{
	unsigned long mib;
	int ret;

	if (endpoint_number(words[1], 1, 1ul << 23, &mib))
		return wrong("a size is a number of MiB from 1 to 8388608");
	ret = store_create(words[0], (uint64_t)mib * MIB);
	return ret ? complain(words[0], ret) : DONE;
}

static int checked(const struct store *s, const char *path)
{
	struct store_fault fault;
	int ret = store_check(s->memory, s->size, &fault);

	return ret ? complain_of(path, ret, &fault) : DONE;
}

static void space_print(const struct store *s)
{
	const struct arfs_super *super = (const void *)s->memory;

	printf("%u of %u blocks free, %u of %u inodes; %u words undone\n", super->free_blocks,
	       super->blocks - super->data_at, super->free_inodes, super->inodes, s->undone);
}

static int check(char **words)
{
	struct store_fault fault;
	struct store s;
	int ret = store_open(words[0], false, &s, &fault);

	if (ret)
		return complain_of(words[0], ret, &fault);
	ret = checked(&s, words[0]);
	if (!ret)
		space_print(&s);
	store_close(&s);
	return ret;
}

/* --- serve --- */

/* The server's own client, and a thread that uses it while no other client is there */
struct tidy {
	struct warp_active_server *server;
	struct client *client;
	pthread_t thread;
	bool stop; /* atomic */
};

static void *tidy_loop(void *arg)
{
	struct tidy *t = arg;
	unsigned int before = 0;

	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		struct warp_active_stats stats;

		warp_active_server_query(t->server, &stats);
		/* A client that comes now has nothing open yet */
		if (stats.clients == 1 && before != 1)
			client_simple(t->client, "mend", 0, ARFS_REAP_ALL);
		before = stats.clients;
		usleep(TIDY_MS * 1000);
	}
	return NULL;
}

/* What the last server's end left is done before the port is told */
static int tidy_start(struct tidy *t, const struct sockaddr_storage *at)
{
	const struct client_attr attr = { .addr = *at };
	int ret = client_open(&attr, &t->client);

	if (!ret)
		ret = client_simple(t->client, "mend", 0, ARFS_REAP_ALL);
	if (!ret)
		ret = -pthread_create(&t->thread, NULL, tidy_loop, t);
	if (ret && t->client)
		client_close(t->client);
	return ret;
}

static void tidy_end(struct tidy *t)
{
	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED);
	pthread_join(t->thread, NULL);
	client_close(t->client);
}

/* Its own client reaches an address of any kind by way of loopback */
static void any_to_loopback(struct sockaddr_storage *at)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)at;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)at;

	if (at->ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (at->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
		v6->sin6_addr = in6addr_loopback;
}

static int listen_at(struct warp_active_server *server, const struct store *s,
		     struct sockaddr_storage *at)
{
	const struct warp_active_region_attr attr = {
		.name = "arfs",
		.memory = s->memory,
		.size = s->size,
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_RUN |
			  (options.read_only ? 0u : (unsigned int)WARP_ACTIVE_WRITE),
	};
	struct warp_active_region *region;
	int ret = warp_active_export(server, &attr, &region);

	if (!ret)
		ret = warp_active_server_listen(server, (const struct sockaddr *)at,
						endpoint_addr_len(at));
	return ret ? ret : warp_active_server_addr(server, at);
}

static int serve_until_signal(struct warp_active_server *server, const struct store *s,
			      struct sockaddr_storage *at)
{
	struct tidy tidy = { .server = server };
	int ret = listen_at(server, s, at);

	if (ret)
		return ret;
	any_to_loopback(at);
	if (!options.read_only)
		ret = tidy_start(&tidy, at);
	if (ret)
		return ret;
	printf("port %u, ", endpoint_port(at));
	space_print(s);
	fflush(stdout);
	while (!endpoint_stopped())
		pause();
	if (!options.read_only)
		tidy_end(&tidy);
	return 0;
}

static int store_serve(const struct store *s)
{
	const struct warp_active_server_attr attr = { .spin_us = (unsigned int)options.spin_us };
	struct warp_active_server *server;
	struct sockaddr_storage at;
	int ret = endpoint_resolve(options.host, (uint16_t)options.port, &at);

	if (ret) {
		fprintf(stderr, "warp-arfs-server: %s: %s\n", options.host, gai_strerror(ret));
		return USAGE;
	}
	endpoint_catch_signals();
	ret = warp_active_server_create(&attr, &server);
	if (ret)
		return complain("no server", ret);
	ret = serve_until_signal(server, s, &at);
	warp_active_server_destroy(server);
	return ret ? complain("serve", ret) : DONE;
}

static int serve(char **words)
{
	struct store_fault fault;
	struct store s;
	int ret = store_open(words[0], !options.read_only, &s, &fault);

	if (ret)
		return complain_of(words[0], ret, &fault);
	ret = checked(&s, words[0]);
	if (!ret || (ret == DAMAGED && options.force))
		ret = store_serve(&s);
	store_close(&s);
	return ret;
}

/* --- command line --- */

static const struct verb {
	const char *name;
	int words;
	int (*run)(char **words);
} verbs[] = { { "make", 2, make }, { "check", 1, check }, { "serve", 1, serve }, { 0 } };

static int number_take(const char *text, unsigned long max, unsigned long *out)
{
	return endpoint_number(text, 0, max, out) ? wrong("no value for this option") : DONE;
}

static int option_take(int letter)
{
	switch (letter) {
	case 'a':
		options.host = optarg;
		return DONE;
	case 'p':
		return number_take(optarg, 65535, &options.port);
	case 's':
		return number_take(optarg, 1000000, &options.spin_us);
	case 'r':
		options.read_only = 1;
		return DONE;
	case 'f':
		options.force = 1;
		return DONE;
	default:
		return wrong("no such option");
	}
}

int main(int argc, char **argv)
{
	static const struct option names[] = { { "help", no_argument, NULL, 'h' },
					       { "version", no_argument, NULL, 'V' },
					       { 0 } };
	const struct verb *v = verbs;
	int letter, ret = DONE;

	while (!ret && (letter = getopt_long(argc, argv, "a:p:s:rfh", names, NULL)) != -1) {
		if (letter == 'h')
			usage(stdout);
		if (letter == 'V')
			printf("warp-arfs-server %s\n", warp_version());
		if (letter == 'h' || letter == 'V')
			return DONE;
		ret = option_take(letter);
	}
	if (ret)
		return ret;
	while (v->name && (optind == argc || strcmp(v->name, argv[optind])))
		v++;
	if (!v->name)
		return wrong("one of make, check, serve is needed");
	if (argc - optind - 1 != v->words)
		return wrong(argc - optind - 1 > v->words ? "too many words" : "too few words");
	return v->run(argv + optind + 1);
}
