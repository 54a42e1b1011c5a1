/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ARFS without a mount: a program that stops at any of its instructions leaves the store as it was,
 * for the next program, and for a server that starts; and a store with anything in it harms nobody.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <warp/active.h>

#include "apps/arfs/ask.h"
#include "apps/arfs/client.h"
#include "apps/arfs/store.h"

enum { SIZE = 1 << 20, ARGS = 16384, BIG = 12288 };

extern const unsigned char active_object[], active_object_end[];

static uint8_t *memory;
static struct warp_active_server *server;
static struct warp_active_client *c;
static struct warp_active_object *object;
static struct client *client;
static struct store_fault fault;
static uint8_t args[ARGS];

static void open_all(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct warp_active_region_attr attr = {
		.name = "arfs",
		.size = SIZE,
		.rights = WARP_ACTIVE_READ | WARP_ACTIVE_WRITE | WARP_ACTIVE_RUN,
	};
	struct client_attr client_attr = { .wait_ms = 100 };
	struct warp_active_region *region;

	cr_assert_not(warp_active_server_create(NULL, &server));
	cr_assert_not(warp_active_export(server, &attr, &region));
	memory = warp_active_region_memory(region);
	cr_assert_not(store_format(memory, SIZE, 1, 0, 0, 1));
	cr_assert_not(warp_active_server_listen(server, (void *)&at, sizeof(at)));
	cr_assert_not(warp_active_server_addr(server, &client_attr.addr));
	cr_assert_not(warp_active_connect((void *)&client_attr.addr, sizeof(at), NULL, &c));
	cr_assert_not(warp_active_object_create(
		active_object, (size_t)(active_object_end - active_object), &object));
	cr_assert_not(client_open(&client_attr, &client));
}

static void close_all(void)
{
	client_close(client);
	cr_assert_not(warp_active_disconnect(c));
	warp_active_object_destroy(object);
	warp_active_server_destroy(server);
}

TestSuite(arfs, .init = open_all, .fini = close_all, .timeout = 100);

/* A change with two names, and so much fuel: the code, and what it returned into *value */
static enum warp_active_code change(const char *what, struct arfs_ask ask, const char *name,
				    const char *other, uint64_t fuel, long *value)
{
	const struct warp_active_grant grant = { 0, WARP_ACTIVE_READ | WARP_ACTIVE_WRITE };
	uint8_t output[4096];
	struct warp_active_run run = { .object = object,
				       .function = what,
				       .args = args,
				       .grants = &grant,
				       .grant_count = 1,
				       .fuel = fuel,
				       .output = output,
				       .output_room = sizeof(output) };
	struct warp_active_result result;

	ask.name_len = (uint32_t)strlen(name);
	ask.other_len = (uint32_t)strlen(other);
	memcpy(args, &ask, sizeof(ask));
	memcpy(args + sizeof(ask), name, ask.name_len);
	memcpy(args + sizeof(ask) + ask.name_len, other, ask.other_len);
	run.args_len = sizeof(ask) + ask.name_len + ask.other_len + ask.size;
	cr_assert_not(warp_active_run(c, &run, &result));
	*value = (long)result.value;
	return result.code;
}

static uint64_t node_of(const char *name)
{
	struct arfs_attr a;

	return client_lookup(client, ARFS_ROOT, name, &a) ? 0 : a.node;
}

static void make(const char *name, uint32_t mode)
{
	const struct arfs_ask ask = { .node = ARFS_ROOT, .mode = mode };
	struct arfs_changed changed;

	cr_assert_not(client_change(client, "create", &ask, name, NULL, &changed));
}

/* A server that starts with this memory has a whole store */
static void recovered_check(const char *what, uint64_t fuel)
{
	static uint8_t copy[SIZE];
	uint32_t undone;

	memcpy(copy, memory, SIZE);
	cr_assert_not(store_recover(copy, SIZE, &undone, &fault), "%s", fault.text);
	/* A file that is being trimmed counts as one that is whole */
	cr_assert_not(store_check(copy, SIZE, &fault), "%s, fuel %llu: %s", what,
		      (unsigned long long)fuel, fault.text);
}

/*
 * Stops the change everywhere, and then lets it be. One that stopped between its end and that of
 * its program is done, and @done is what the next one says then.
 */
static void stopped(const char *what, struct arfs_ask ask, const char *name, const char *other,
		    long done)
{
	long value = -1;

	for (uint64_t fuel = 1; fuel < 1000000; fuel += 1 + fuel / 150) {
		if (change(what, ask, name, other, fuel, &value) == WARP_ACTIVE_OK) {
			cr_assert(fuel > 100 && (!value || value == done), "%s: %ld", what, value);
			cr_assert_not(store_check(memory, SIZE, &fault), "%s: %s", what,
				      fault.text);
			return;
		}
		recovered_check(what, fuel);
		/* The next one is the change again, or each second time another client's */
		if (fuel % 2)
			continue;
		cr_assert_not(client_simple(client, "mend", 0, 0));
		cr_assert_not(store_check(memory, SIZE, &fault), "%s, fuel %llu: %s", what,
			      (unsigned long long)fuel, fault.text);
	}
	cr_assert_fail("%s does not end", what);
}

Test(arfs, a_change_stops_anywhere)
{
	struct arfs_ask ask = { .node = ARFS_ROOT,
				.mode = S_IFREG | 0644,
				.flags = ARFS_EXCLUSIVE };

	make("dir", S_IFDIR | 0755);
	stopped("create", ask, "file", "", -EEXIST);
	ask.mode = S_IFLNK | 0777;
	stopped("create", ask, "symlink", "where it leads to", -EEXIST);
	ask = (struct arfs_ask){ .node = node_of("file"), .offset = 45000, .size = BIG };
	stopped("write", ask, "", "", 0);
	ask.offset = 1 << 23; /* by way of two blocks of numbers */
	stopped("write", ask, "", "", 0);
	ask = (struct arfs_ask){ .node = node_of("file"), .other = ARFS_ROOT };
	stopped("link", ask, "second", "", -EEXIST);
	ask = (struct arfs_ask){ .node = ARFS_ROOT, .other = node_of("dir") };
	stopped("rename", ask, "second", "inside", -ENOENT);
	ask.other = ARFS_ROOT;
	stopped("rename", ask, "file", "symlink", -ENOENT);
	ask = (struct arfs_ask){ .node = node_of("symlink"), .set = ARFS_SET_SIZE, .size = 10 };
	stopped("setattr", ask, "", "", 0);
	make("other", S_IFDIR | 0755);
	ask = (struct arfs_ask){ .node = ARFS_ROOT, .other = node_of("other") };
	stopped("rename", ask, "dir", "dir", -ENOENT);
}

Test(arfs, a_removal_stops_anywhere)
{
	static const char data[40000];
	struct arfs_ask ask = { .node = ARFS_ROOT };

	make("file", S_IFREG | 0644);
	cr_assert_eq(client_write(client, node_of("file"), 0, 0, data, sizeof(data)), sizeof(data));
	stopped("unlink", ask, "file", "", -ENOENT);
	cr_assert_not(client_simple(client, "mend", 0, ARFS_REAP_ALL));
	cr_assert_not(store_check(memory, SIZE, &fault), "%s", fault.text);
	cr_assert_eq(((struct arfs_super *)(void *)memory)->trim, 0);
}

/* What anybody can ask of anything */
static void all_calls(void)
{
	static char to[70000];
	struct arfs_attr a;
	struct arfs_changed changed;
	struct arfs_ask ask = { .node = ARFS_ROOT, .other = ARFS_ROOT, .mode = S_IFREG | 0644 };

	client_lookup(client, ARFS_ROOT, "file", &a);
	client_getattr(client, 2 | 1ull << 32, &a);
	client_list(client, ARFS_ROOT, 0, 0, to, sizeof(to));
	client_read(client, 2 | 1ull << 32, 0, to, sizeof(to));
	client_change(client, "create", &ask, "new", NULL, &changed);
	client_change(client, "rename", &ask, "file", "other", &changed);
	client_write(client, 2 | 1ull << 32, 4000, 0, to, 10000);
	client_change(client, "unlink", &ask, "other", NULL, &changed);
	client_simple(client, "mend", 0, ARFS_REAP_ALL);
}

static void words_spoil(unsigned int *seed, size_t from, size_t to, int count)
{
	for (int i = 0; i < count; i++) {
		uint64_t word = (uint64_t)rand_r(seed) << (rand_r(seed) % 40);

		memcpy(memory + from + (size_t)rand_r(seed) % (to - from) / 8 * 8, &word,
		       sizeof(word));
	}
}

/*
 * Rubbish in the superblock, in inodes, or anywhere: calls of clients end, and the server's own
 * code says what it thinks of it.
 */
Test(arfs, rubbish_harms_nobody)
{
	static uint8_t good[SIZE], copy[SIZE];
	const struct arfs_super *s = (const void *)good;
	unsigned int seed = 1;
	uint32_t undone;
	int damaged = 0;

	make("file", S_IFREG | 0644);
	client_write(client, node_of("file"), 0, 0, good, 60000);
	make("dir", S_IFDIR | 0755);
	memcpy(good, memory, SIZE);
	for (int i = 0; i < 60; i++) {
		memcpy(memory, good, SIZE);
		if (i % 3 == 0)
			words_spoil(&seed, 48, sizeof(*s), 3);
		else if (i % 3 == 1)
			words_spoil(&seed, s->inodes_at * ARFS_BLOCK + 128,
				    s->inodes_at * ARFS_BLOCK + 512, 10);
		else
			words_spoil(&seed, 48, s->data_at * ARFS_BLOCK + 65536, 2000);
		all_calls();
		memcpy(copy, memory, SIZE);
		damaged += store_super_check(copy, SIZE, &fault) ||
			   store_recover(copy, SIZE, &undone, &fault) ||
			   store_check(copy, SIZE, &fault);
	}
	cr_assert(damaged > 40, "%d", damaged);
	memcpy(memory, good, SIZE);
	cr_assert_neq(node_of("file"), 0);
}

/* Both ways of reading give the same */
Test(arfs, one_sided_reads)
{
	struct client_attr attr = { .one_sided = true };
	static char data[200000], back[200000], one[4096], two[4096];
	struct client *alone;
	struct arfs_attr a, b;
	long len;

	cr_assert_not(warp_active_server_addr(server, &attr.addr));
	cr_assert_not(client_open(&attr, &alone));
	make("file", S_IFREG | 0644);
	make("dir", S_IFDIR | 0755);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 4096);
	cr_assert_eq(client_write(client, node_of("file"), 100, 0, data, sizeof(data) - 100),
		     sizeof(data) - 100);
	cr_assert_not(client_lookup(client, ARFS_ROOT, "file", &a));
	cr_assert_not(client_lookup(alone, ARFS_ROOT, "file", &b));
	cr_assert_not(memcmp(&a, &b, sizeof(a)));
	cr_assert_eq(client_lookup(alone, ARFS_ROOT, "none", &b), -ENOENT);
	cr_assert_eq(client_read(alone, a.node, 100, back, sizeof(back)), sizeof(data) - 100);
	cr_assert_not(memcmp(back, data, sizeof(data) - 100));
	len = client_list(client, ARFS_ROOT, 0, 0, one, sizeof(one));
	cr_assert_eq(client_list(alone, ARFS_ROOT, 0, 0, two, sizeof(two)), len);
	cr_assert(len > 0 && !memcmp(one, two, (size_t)len));
	cr_assert_eq(client_list(alone, ARFS_ROOT, 0, ARFS_PLUS, two, sizeof(two)), -EOPNOTSUPP);
	client_close(alone);
}

/* Entries come with what getattr says of them */
Test(arfs, lists_with_attributes)
{
	static char plain[4096], plus[8192] __attribute__((aligned(8)));
	long len, with, at = 0, n = 0;
	struct arfs_attr a;

	make("file", S_IFREG | 0644);
	make("a directory", S_IFDIR | 0755);
	cr_assert_eq(client_write(client, node_of("file"), 0, 0, plain, 777), 777);
	len = client_list(client, ARFS_ROOT, 0, 0, plain, sizeof(plain));
	with = client_list(client, ARFS_ROOT, 0, ARFS_PLUS, plus, sizeof(plus));
	while (at < len) {
		const struct arfs_listed *e = (const void *)(plain + at);
		const char *same = plus + at + n++ * (long)sizeof(a);
		long size = (long)((sizeof(*e) + e->name_len + 7) & ~7ul);

		cr_assert_not(client_getattr(
			client, ((const struct arfs_attr *)(const void *)same)->node, &a));
		cr_assert_eq((uint32_t)a.node, e->inode);
		cr_assert_not(memcmp(same, &a, sizeof(a)));
		cr_assert_not(memcmp(same + sizeof(a), e, (size_t)size));
		at += size;
	}
	cr_assert(n == 2 && with == len + n * (long)sizeof(a));
}

/* Reads of any length, at any offset, up to the end and beyond */
Test(arfs, reads_of_many_parts)
{
	enum { SIZE = 9 * ARFS_READ_MAX + 1000 };
	static char data[SIZE], back[SIZE + 5000];
	uint64_t node;

	make("file", S_IFREG | 0644);
	node = node_of("file");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 4096);
	cr_assert_eq(client_write(client, node, 0, 0, data, sizeof(data)), sizeof(data));
	for (size_t offset = 0; offset <= SIZE; offset += ARFS_READ_MAX / 2 + 3)
		for (size_t len = 1000; len <= sizeof(back); len = len * 3 + 1) {
			size_t want = SIZE - offset < len ? SIZE - offset : len;

			memset(back, 0, sizeof(back));
			cr_assert_eq(client_read(client, node, offset, back, len), (long)want);
			cr_assert_not(memcmp(back, data + offset, want));
			cr_assert_eq(back[want], 0);
		}
	cr_assert_eq(client_read(client, node + 1, 0, back, sizeof(back)), -ESTALE);
}
