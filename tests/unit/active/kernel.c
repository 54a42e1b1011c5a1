/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs in the kernel: memory, arguments and output, errors, places, and datagrams.
 */
#include <string.h>
#include <wire/active.h>

#include "active/client.h"
#include "base/bits.h"
#include "kernel_world.h"

TestSuite(active_kernel, .init = open_all, .fini = close_all, .timeout = 60);

/* The server and one-sided operations see what programs in the kernel write, and the other way */
Test(active_kernel, it_is_the_same_memory)
{
	struct warp_active_place *poke = install("poke"), *peek = install("peek");
	const struct warp_active_access read = {
		.op = WARP_ACTIVE_OP_READ, .offset = 64, .buffer = &(uint64_t){ 0 }, .len = 8
	};
	struct warp_active_request *request;

	cr_assert_eq(RUN(poke, base + 64, 42).code, WARP_ACTIVE_OK);
	cr_assert_eq(((uint64_t *)base)[8], 42);
	cr_assert_not(warp_active_access(c, &read, &request));
	cr_assert_not(warp_active_wait(request, -1, NULL));
	cr_assert_eq(*(uint64_t *)read.buffer, 42);
	((uint64_t *)base)[8] = 43;
	cr_assert_eq(RUN(peek, base + 64).value, 43);
	warp_active_place_close(poke);
	warp_active_place_close(peek);
}

Test(active_kernel, arguments_and_output_of_all_lengths)
{
	struct warp_active_place *echo = install("echo"), *sum = install("sum");
	uint8_t args[WARP_ACTIVE_PLACE_MAX + 8], output[WARP_ACTIVE_PLACE_MAX];
	struct warp_active_result r;
	uint64_t want = 0;

	for (size_t i = 0; i < sizeof(args); i++)
		args[i] = (uint8_t)(i * 7 + i / 256 + 1);
	for (size_t len = 0; len <= WARP_ACTIVE_PLACE_MAX; len += len < 40 ? 1 : 41) {
		memset(output, 0, sizeof(output));
		cr_assert_not(warp_active_place_run(echo, args, len, output, len, WAIT_MS, &r));
		cr_assert(r.code == WARP_ACTIVE_OK && r.value == len && r.output == len, "%zu",
			  len);
		cr_assert_arr_eq(output, args, len);
		/* No more than the caller takes */
		cr_assert_not(warp_active_place_run(echo, args, len, output, len / 2, WAIT_MS, &r));
		cr_assert_eq((int64_t)r.value, len ? -E2BIG : 0);
		cr_assert_not(warp_active_place_run(sum, args, len, NULL, 0, WAIT_MS, &r));
		want = 0;
		for (size_t i = 0; i < len; i++)
			want += args[i];
		cr_assert_eq(r.value, want);
	}
	cr_assert_eq(warp_active_place_run(echo, args, WARP_ACTIVE_PLACE_MAX + 1, NULL, 0, WAIT_MS,
					   &r),
		     -EINVAL);
	warp_active_place_close(echo);
	warp_active_place_close(sum);
}

/* What one run gave by output, no other one finds: neither in its output nor behind it */
Test(active_kernel, output_does_not_stay)
{
	struct warp_active_place *echo = install("echo"), *sum = install("sum");
	uint8_t args[512], output[512];
	struct warp_active_result r;

	memset(args, 0xee, sizeof(args));
	cr_assert_not(warp_active_place_run(echo, args, 512, output, 512, WAIT_MS, &r));
	cr_assert_eq(r.output, 512);
	memset(output, 0, sizeof(output));
	cr_assert_not(warp_active_place_run(sum, NULL, 0, output, 512, WAIT_MS, &r));
	cr_assert_eq(r.output, 0);
	cr_assert_not(warp_active_place_run(echo, args, 3, output, 512, WAIT_MS, &r));
	cr_assert_eq(r.output, 3);
	warp_active_place_close(echo);
	warp_active_place_close(sum);
}

Test(active_kernel, errors_have_their_place)
{
	struct warp_active_place *poke = install("poke"), *peek = install("peek"), *reader;
	struct warp_active_result r = RUN(peek, base + SIZE - 4);

	cr_assert_eq(r.code, WARP_ACTIVE_ADDRESS);
	cr_assert(r.addr == base + SIZE - 4 && r.len == 8 && r.rights == WARP_ACTIVE_READ && r.pc);
	cr_assert(strstr(r.text, ": read of 8 bytes at 0x") && strstr(r.text, "return *(const u64 "
									      "*)args[0];"),
		  "%s", r.text);
	cr_assert_eq(RUN(peek, (uintptr_t)warp_active_region_memory(constants)).code,
		     WARP_ACTIVE_ADDRESS);
	cr_assert_eq(RUN(peek, 0x8000000400000000).code, WARP_ACTIVE_ADDRESS);
	cr_assert_eq(RUN(poke, base + SIZE, 1).code, WARP_ACTIVE_ADDRESS);
	warp_active_place_close(poke);
	warp_active_place_close(peek);
	cr_assert_eq(
		try_install(c, "poke", &(const struct warp_active_grant){ 1, 1 }, 1, &reader).code,
		WARP_ACTIVE_OK);
	r = RUN(reader, (uintptr_t)warp_active_region_memory(constants), 1);
	cr_assert_eq(r.code, WARP_ACTIVE_RIGHTS);
	warp_active_place_close(reader);
}

Test(active_kernel, fuel)
{
	struct warp_active_place *spin, *steps = install("steps");
	const struct warp_active_run run = { .object = object, .function = "spin", .fuel = 5000 };
	struct warp_active_result r;

	cr_assert_not(warp_active_install(c, &run, &spin, &r));
	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s", r.text);
	r = RUN(spin, 0);
	cr_assert_eq(r.code, WARP_ACTIVE_FUEL);
	cr_assert(r.fuel >= 5000 && r.fuel < 5100);
	warp_active_place_close(spin);
	r = RUN(steps, 1000);
	cr_assert(r.code == WARP_ACTIVE_OK && r.value == 1000 && r.fuel > 3000 && r.fuel < 20000);
	cr_assert_eq(RUN(steps, 1000000).code, WARP_ACTIVE_FUEL);
	warp_active_place_close(steps);
}

Test(active_kernel, helpers)
{
	struct warp_active_place *helpers = install("helpers"), *where = install("where");

	cr_assert_eq(RUN(helpers, 0).value, 127);
	cr_assert_eq(RUN(where, 0, 0).value, base);
	cr_assert_eq(RUN(where, 0, 1).value, SIZE);
	cr_assert_eq(RUN(where, 1, 0).value, 0);
	warp_active_place_close(helpers);
	warp_active_place_close(where);
}

/* Whatever a helper is given, it does not reach the blocks of runs */
Test(active_kernel, helpers_have_the_rights_of_their_program)
{
	struct warp_active_place *touch;
	struct warp_active_result r;

	touch = install("touch");
	for (uint64_t helper = 0; helper < 5; helper++) {
		const uint64_t args[] = { helper, 0x8000000400000000, 8 };
		uint8_t output[64];

		cr_assert_not(warp_active_place_run(touch, args, sizeof(args), output,
						    sizeof(output), WAIT_MS, &r));
		cr_assert(r.code == WARP_ACTIVE_ADDRESS && !r.output, "helper %d", (int)helper);
	}
	warp_active_place_close(touch);
}

Test(active_kernel, what_cannot_be_there_is_refused)
{
	const struct warp_active_grant not_there = { 2, 1 }, none = { 9, 1 };
	struct warp_active_client *reader = connected("reader");

	refused(c, "push", &all_table, WARP_ACTIVE_REFUSED,
		"the kernel has nothing for warp_alloc");
	refused(c, "peek", &not_there, WARP_ACTIVE_REFUSED, "region plain is not in the kernel");
	refused(c, "nothing", &all_table, WARP_ACTIVE_NO_FUNCTION, "nothing");
	refused(c, "peek", &none, WARP_ACTIVE_MALFORMED, "no region 9");
	refused(reader, "poke", &all_table, WARP_ACTIVE_RIGHTS, "does not have the rights");
	cr_assert_not(warp_active_disconnect(reader));
}

Test(active_kernel, places_are_counted_and_end_with_their_client)
{
	struct warp_active_client *other = connected("all");
	struct warp_active_place *mine[3], *place, *last;
	struct warp_active_result r;

	for (int i = 0; i < 3; i++)
		mine[i] = install("sum");
	refused(c, "sum", &all_table, WARP_ACTIVE_BUSY, "too many programs");
	cr_assert_eq(try_install(other, "sum", &all_table, 1, &place).code, WARP_ACTIVE_OK);
	refused(other, "sum", &all_table, WARP_ACTIVE_BUSY, "too many programs");
	cr_assert_eq(RUN(place, 0).code, WARP_ACTIVE_OK);
	cr_assert_not(warp_active_disconnect(other));
	/* The server sees the end of the connection, and the key is no one's */
	for (int i = 0; i < 100 && !warp_active_place_run(place, NULL, 0, NULL, 0, WAIT_MS, &r);
	     i++)
		usleep(10000);
	cr_assert_eq(warp_active_place_run(place, NULL, 0, NULL, 0, WAIT_MS, &r), -ECONNREFUSED);
	warp_active_place_close(place);
	other = connected("all");
	cr_assert_eq(try_install(other, "sum", &all_table, 1, &last).code, WARP_ACTIVE_OK);
	cr_assert_eq(RUN(last, 0).code, WARP_ACTIVE_OK);
	warp_active_place_close(last);
	cr_assert_not(warp_active_disconnect(other));
	for (int i = 0; i < 3; i++)
		warp_active_place_close(mine[i]);
}

Test(active_kernel, there_is_one_door)
{
	struct warp_active_kernel_attr attr = kernel_attr();
	struct warp_active_region_attr in = {
		.name = "large", .size = 3 * SIZE, .rights = 15, .flags = WARP_ACTIVE_IN_KERNEL
	};
	struct warp_active_server *second;
	struct warp_active_region *r;

	cr_assert_eq(warp_active_kernel_serve(server, &attr), -EALREADY);
	cr_assert_eq(warp_active_export(server, &in, &r), -ENOMEM);
	in.memory = &in;
	cr_assert_eq(warp_active_export(server, &in, &r), -EINVAL);
	cr_assert_not(warp_active_server_create(NULL, &second));
	cr_assert_eq(warp_active_kernel_serve(second, &attr), -EADDRINUSE);
	attr.interface = "none";
	cr_assert_eq(warp_active_kernel_serve(second, &attr), -ENODEV);
	attr.interface = NULL;
	cr_assert_eq(warp_active_kernel_serve(second, &attr), -EINVAL);
	in.memory = NULL;
	cr_assert_eq(warp_active_export(second, &in, &r), -ENOTCONN);
	warp_active_server_destroy(second);
}

/* --- datagrams that are made by hand -------------------------------------------------------- */

/* What comes back: octets, or a negative errno */
static int asked(const void *ask, size_t len, void *told, size_t room)
{
	const struct timeval limit = { .tv_usec = 300000 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), n;

	cr_assert(!connect(fd, (const struct sockaddr *)&at, sizeof(at)) &&
		  !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	cr_assert_eq(send(fd, ask, len, 0), (ssize_t)len);
	n = (int)recv(fd, told, room, 0);
	n = n < 0 ? -errno : n;
	close(fd);
	return n;
}

static void key_take(uint8_t key[ACTIVE_WIRE_KEY])
{
	struct active_wire_place place;
	const struct warp_active_run run = {
		.object = object, .function = "echo", .output = &place, .output_room = sizeof(place)
	};
	struct warp_active_result r;

	cr_assert_not(active_install(c, &run, &r));
	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s", r.text);
	cr_assert(place.addr == at.sin_addr.s_addr && place.port == at.sin_port);
	cr_assert_eq(base_get_be64(&place.fuel), 100000);
	memcpy(key, place.key, ACTIVE_WIRE_KEY);
}

Test(active_kernel, what_is_no_request_goes_to_the_network)
{
	static const struct {
		const char *name;
		size_t offset;
		uint8_t flip;
	} wrong[] = {
		{ "magic", 0, 1 },
		{ "version", 1, 1 },
		{ "type", 2, 1 },
		{ "zero", 3, 1 },
		{ "arguments", 4, 1 },
		{ "key", 16, 1 },
		{ "key's end", 31, 1 },
		{ "output", 40, 1 },
		{ "17 of arguments", 7, 5 ^ 17 },
		{ "17 of output", 43, 16 ^ 17 },
	};
	struct {
		struct active_wire_ask head;
		uint8_t data[ACTIVE_WIRE_DATA_MAX + 8];
	} ask = { .head = { ACTIVE_WIRE_MAGIC, ACTIVE_WIRE_VERSION, ACTIVE_ASK, 0 } }, told;
	const struct active_wire_told *head = (const void *)&told;

	key_take(ask.head.key);
	base_put_be32(&ask.head.args, 16);
	base_put_be32(&ask.head.output, 16);
	base_put_be64(&ask.head.id, 0x1122334455667788);
	memcpy(ask.data, "hello, arguments", 16);
	cr_assert_eq(asked(&ask, 80, &told, sizeof(told)), 80);
	cr_assert_arr_eq(told.data, "hello, arguments", 16);
	base_put_be32(&ask.head.args, 5);
	cr_assert_eq(asked(&ask, 80, &told, sizeof(told)), 80);
	cr_assert_eq(base_get_be32(&head->code), 0);
	cr_assert_eq(base_get_be64(&head->id), 0x1122334455667788);
	cr_assert_eq(base_get_be32(&head->output), 5);
	cr_assert_arr_eq(told.data, "hello\0\0\0\0\0\0\0\0\0\0", 16);
	for (size_t i = 0; i < base_array_size(wrong); i++) {
		((uint8_t *)&ask)[wrong[i].offset] ^= wrong[i].flip;
		cr_expect_eq(asked(&ask, 80, &told, sizeof(told)), -ECONNREFUSED, "%s",
			     wrong[i].name);
		((uint8_t *)&ask)[wrong[i].offset] ^= wrong[i].flip;
	}
	for (size_t len = 0; len < 80; len += 8)
		cr_expect_eq(asked(&ask, len, &told, sizeof(told)), -ECONNREFUSED, "%zu", len);
	cr_expect_eq(asked(&ask, 81, &told, sizeof(told)), -ECONNREFUSED);
	cr_expect_eq(asked(&ask, 64 + 1032, &told, sizeof(told)), -ECONNREFUSED);
	cr_expect_eq(asked(&ask, 64 + 1024, &told, sizeof(told)), 64 + 1024);
}
