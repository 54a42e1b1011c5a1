/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Server and client of Active RDMA in one process: what is asked, and what is answered.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <warp/rdma.h>

#include "tests/unit/active/one_client.h"

TestSuite(active_serve, .init = open_all, .fini = close_all, .timeout = 60);

Test(active_serve, a_value)
{
	struct warp_active_result r = RUN("sum", { 0x0102, 0x03 }, 2);

	CHECK(r, WARP_ACTIVE_OK);
	cr_assert_eq(r.value, 6);
	cr_assert(r.fuel > 16 && r.fuel < 1000 && !r.text[0] && !r.output);
	r = RUN(NULL, { 7 }, 1);
	cr_assert_eq(r.value, 7);
	r = RUN("sum");
	CHECK(r, WARP_ACTIVE_OK);
	cr_assert_eq(world_stats(&w).loads, 1);
	cr_assert_eq(world_stats(&w).objects, 1);
}

/* The object is sent once, whoever asks for it */
Test(active_serve, an_object_is_sent_once)
{
	struct warp_active_client *other = world_client(&w);

	for (int i = 0; i < 5; i++)
		CHECK(RUN("sum"), WARP_ACTIVE_OK);
	CHECK(world_run(&w, other, &(const struct world_call){ "sum" }), WARP_ACTIVE_OK);
	cr_assert_eq(world_stats(&w).loads, 1);
	cr_assert_not(warp_active_disconnect(other));
}

static struct warp_active_result output_of(const char *function, const void *args, size_t len,
					   void *output, size_t room)
{
	const struct warp_active_run run = { .object = w.object,
					     .function = function,
					     .args = args,
					     .args_len = len,
					     .output = output,
					     .output_room = room };
	struct warp_active_result r;

	cr_assert_not(warp_active_run(c, &run, &r));
	return r;
}

Test(active_serve, output)
{
	static uint8_t args[16384], output[65536];
	struct warp_active_result r;

	for (size_t i = 0; i < sizeof(args); i++)
		args[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t len = 1; len <= sizeof(args); len += len < 600 ? 37 : 2579) {
		memset(output, 0, len);
		r = output_of("echo", args, len, output, sizeof(output));
		CHECK(r, WARP_ACTIVE_OK);
		cr_assert(r.output == len && r.value == len);
		cr_assert_arr_eq(output, args, len);
	}
	r = output_of("echo", args, sizeof(args), output, sizeof(output));
	cr_assert_eq(r.output, sizeof(args));
}

Test(active_serve, output_has_a_limit)
{
	static uint8_t output[65536];
	struct warp_active_result r = output_of("flood", NULL, 0, output, sizeof(output));

	CHECK(r, WARP_ACTIVE_OK);
	cr_assert(r.value == 655 && r.output == 65500 && output[65499] == 'x');
	r = output_of("flood", NULL, 0, output, 250);
	cr_assert(r.value == 2 && r.output == 200);
	r = output_of("flood", NULL, 0, NULL, 0);
	cr_assert(r.value == 0 && r.output == 0);
}

Test(active_serve, memory)
{
	uint64_t table = world_region(c, WORLD_TABLE).addr;

	CHECK(RUN("poke", { table + 8, 42 }, 2, 1), WARP_ACTIVE_OK);
	cr_assert_eq(RUN("peek", { table + 8 }, 1, 1).value, 42);
	cr_assert_eq(RUN("add", { table + 8, 3 }, 2, 1).value, 42);
	cr_assert_eq(RUN("peek", { table + 8 }, 1, 1, WARP_ACTIVE_READ).value, 45);
	cr_assert_eq(RUN("where", { 0, 0 }, 2, 1).value, table);
	cr_assert_eq(RUN("where", { 0, 1 }, 2, 1).value, 1 << 16);
	cr_assert_eq(RUN("where", { 1, 0 }, 2, 1).value, 0);
	cr_assert_eq(RUN("where", { 1, 1 }, 2, 1).value, 0);
}

/* One-sided operations and programs see the same memory */
Test(active_serve, one_sided)
{
	uint64_t number = 5, table = world_region(c, WORLD_TABLE).addr;
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_FETCH_ADD,
					 .offset = 64,
					 .value = 10 };
	struct warp_active_request *r;
	struct warp_active_result result;

	cr_assert_not(world_access(c, WARP_ACTIVE_OP_WRITE, WORLD_TABLE, 64, &number, 8));
	cr_assert_eq(RUN("add", { table + 64, 2 }, 2, 1).value, 5);
	cr_assert_not(warp_active_access(c, &op, &r));
	cr_assert_not(warp_active_wait(r, -1, &result));
	cr_assert_eq(result.value, 7);
	op.op = WARP_ACTIVE_OP_COMPARE_SWAP;
	op.compare = 17;
	op.value = 100;
	cr_assert_not(warp_active_access(c, &op, &r));
	cr_assert_not(warp_active_wait(r, -1, &result));
	cr_assert_eq(result.value, 17);
	cr_assert_not(world_access(c, WARP_ACTIVE_OP_READ, WORLD_TABLE, 64, &number, 8));
	cr_assert_eq(number, 100);
	cr_assert_eq(RUN("peek", { table + 64 }, 1, 1).value, 100);
}

/* Memory of the program's own is read into without a copy */
Test(active_serve, one_sided_without_a_copy)
{
	static uint8_t big[200000];
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_READ, .len = 1 << 16 };
	struct warp_active_request *r;
	struct warp_mr *mr;

	cr_assert_not(warp_mr_register(warp_active_pd(c), big, sizeof(big), WARP_ACCESS_LOCAL_WRITE,
				       &mr));
	memset(big, 0x77, sizeof(big));
	cr_assert_not(world_access(c, WARP_ACTIVE_OP_WRITE, WORLD_TABLE, 0, big, 1 << 16));
	memset(big, 0, sizeof(big));
	op.buffer = big + 100;
	op.stag = warp_mr_stag(mr);
	cr_assert_not(warp_active_access(c, &op, &r));
	cr_assert_not(warp_active_wait(r, -1, NULL));
	cr_assert(!big[99] && big[100] == 0x77 && big[65635] == 0x77 && !big[65636]);
	op.region = WORLD_HEAP;
	op.len = 200001;
	cr_assert_not(warp_active_access(c, &op, &r));
	cr_assert_neq(warp_active_wait(r, -1, NULL), 0);
	cr_assert_not(warp_mr_deregister(mr));
}

Test(active_serve, errors_say_what_happened)
{
	uint64_t table = world_region(c, WORLD_TABLE).addr;
	struct warp_active_result r = RUN("peek", { 0x4440 }, 1, 1);

	CHECK(r, WARP_ACTIVE_ADDRESS);
	cr_assert(r.addr == 0x4440 && r.len == 8 && r.rights == WARP_ACTIVE_READ);
	cr_assert(strstr(r.text, "read of 8 bytes at 0x4440") && strstr(r.text, "active.bpf.c"));
	r = RUN("peek", { table + (1 << 16) - 7 }, 1, 1);
	CHECK(r, WARP_ACTIVE_ADDRESS);
	r = RUN("poke", { table, 1 }, 2, 1, WARP_ACTIVE_READ);
	CHECK(r, WARP_ACTIVE_RIGHTS);
	cr_assert(r.addr == table && r.rights == WARP_ACTIVE_WRITE);
	r = RUN("add", { table + 4, 1 }, 2, 1);
	CHECK(r, WARP_ACTIVE_ALIGN);
	r = RUN("peek", { table }, 1);
	CHECK(r, WARP_ACTIVE_ADDRESS);
	r = RUN("touch", { 1, table + 8, 1 << 16 }, 3, 1);
	CHECK(r, WARP_ACTIVE_HELPER);
	cr_assert_eq(r.addr, table + 8);
}

Test(active_serve, what_runs_cannot_have)
{
	struct warp_active_result r = RUN("sum", { 0 }, 0, WORLD_RAW + 1, WARP_ACTIVE_READ);

	CHECK(r, WARP_ACTIVE_RIGHTS);
	cr_assert(strstr(r.text, "raw is not for programs"), "%s", r.text);
	r = RUN("sum", { 0 }, 0, WORLD_CONSTANTS + 1, WARP_ACTIVE_WRITE);
	CHECK(r, WARP_ACTIVE_RIGHTS);
	r = RUN("sum", { 0 }, 0, 6);
	CHECK(r, WARP_ACTIVE_MALFORMED);
	r = RUN("missing");
	CHECK(r, WARP_ACTIVE_NO_FUNCTION);
	cr_assert(strstr(r.text, "missing"));
}

Test(active_serve, fuel)
{
	struct warp_active_result r = RUN("spin", { 0 }, 0, 0, 0, 1000);

	CHECK(r, WARP_ACTIVE_FUEL);
	cr_assert(r.fuel == 1000 && strstr(r.text, "fuel"), "%s", r.text);
	r = RUN("spin", { 0 }, 0, 0, 0, 30000000);
	CHECK(r, WARP_ACTIVE_FUEL);
	cr_assert_eq(r.fuel, 30000000);
	r = RUN("steps", { 1000 }, 1);
	cr_assert(r.value == 1000 && r.fuel >= 3000);
	r = RUN("steps", { 1000 }, 1, 0, 0, r.fuel);
	CHECK(r, WARP_ACTIVE_OK);
	r = RUN("steps", { 1000 }, 1, 0, 0, r.fuel - 1);
	CHECK(r, WARP_ACTIVE_FUEL);
	r = RUN("steps", { 2000000 }, 1); /* many turns */
	CHECK(r, WARP_ACTIVE_OK);
	cr_assert_eq(r.value, 2000000);
}

Test(active_serve, deadline)
{
	double begin = world_now();
	struct warp_active_result r = RUN("spin", { 0 }, 0, 0, 0, 0, 50000);

	CHECK(r, WARP_ACTIVE_FUEL);
	cr_assert(strstr(r.text, "the time is used up"), "%s", r.text);
	cr_assert(world_now() - begin > 0.045 && world_now() - begin < 5);
}

Test(active_serve, helpers_for_memory)
{
	uint64_t table = world_region(c, WORLD_TABLE).addr;
	struct warp_active_result r = RUN("helpers");

	CHECK(r, WARP_ACTIVE_OK);
	cr_assert_eq(r.value, 127, "%llx", (unsigned long long)r.value);
	for (uint64_t which = 0; which < 5; which++) {
		r = RUN("touch", { which, 0x5000, 16 }, 3, 1);
		if (which) /* there is no room for output, which comes first */
			CHECK(r, WARP_ACTIVE_HELPER);
		r = RUN("touch", { which, 0x5000, 0 }, 3, 1);
		CHECK(r, WARP_ACTIVE_OK);
		r = RUN("touch", { which, table, 16 }, 3, 1);
		CHECK(r, WARP_ACTIVE_OK);
	}
	for (uint64_t which = 1; which < 5; which++) {
		r = RUN("touch", { which, table, (1 << 20) + 1 }, 3, 1);
		CHECK(r, WARP_ACTIVE_HELPER);
		cr_assert(strstr(r.text, "too long"), "%s", r.text);
	}
	for (uint64_t which = 1; which < 3; which++) {
		r = RUN("touch", { which, table, 16 }, 3, 1, WARP_ACTIVE_READ);
		CHECK(r, WARP_ACTIVE_HELPER);
	}
}

Test(active_serve, heap)
{
	struct warp_active_region_info heap = world_region(c, WORLD_HEAP);
	uint64_t first;

	for (uint64_t i = 1; i <= 100; i++)
		cr_assert_neq(RUN("push", { i }, 1, WORLD_HEAP + 1).value, 0);
	cr_assert_eq(world_stats(&w).heap_bytes, 6400);
	/* the client can follow the list itself, for pointers are tagged offsets */
	cr_assert_not(world_access(c, WARP_ACTIVE_OP_READ, WORLD_HEAP, 0, &first, 8));
	cr_assert(first >= heap.addr + 64 && first < heap.addr + heap.size);
	cr_assert_eq(RUN("walk", { first, 1000 }, 2, WORLD_HEAP + 1).value, 5050);
	cr_assert_eq(RUN("walk", { first, 3 }, 2, WORLD_HEAP + 1).value, 297);
	cr_assert_eq(RUN("clear", { 0 }, 0, WORLD_HEAP + 1).value, 100);
	cr_assert_eq(world_stats(&w).heap_bytes, 0);
}

Test(active_serve, heap_refuses)
{
	uint64_t at = RUN("take", { 0, 100 }, 2, WORLD_HEAP + 1).value;

	cr_assert_neq(at, 0);
	CHECK(RUN("take", { 0, 100 }, 2, WORLD_TABLE + 1), WARP_ACTIVE_HELPER);
	CHECK(RUN("take", { 1, 100 }, 2, WORLD_HEAP + 1), WARP_ACTIVE_HELPER);
	CHECK(RUN("take", { 0, 100 }, 2, WORLD_HEAP + 1, WARP_ACTIVE_READ), WARP_ACTIVE_HELPER);
	cr_assert_eq(RUN("take", { 0, 2 << 20 }, 2, WORLD_HEAP + 1).value, 0);
	cr_assert_eq((int64_t)RUN("give", { at }, 1, WORLD_HEAP + 1, WARP_ACTIVE_READ).value,
		     -EINVAL);
	cr_assert_eq((int64_t)RUN("give", { at + 64 }, 1, WORLD_HEAP + 1).value, -EINVAL);
	cr_assert_eq((int64_t)RUN("give", { at }, 1, WORLD_TABLE + 1).value, -EINVAL);
	cr_assert_eq(RUN("give", { at }, 1, WORLD_HEAP + 1).value, 0);
	cr_assert_eq((int64_t)RUN("give", { at }, 1, WORLD_HEAP + 1).value, -EINVAL);
}

/* A program that nobody may send: the reason comes with the source line */
Test(active_serve, refused_objects)
{
	size_t len;
	void *bytes = world_file("refused.object", &len);
	struct warp_active_object *object;
	struct warp_active_run run = { 0 };
	struct warp_active_result r;

	cr_assert_not(warp_active_object_create(bytes, len, &object));
	run.object = object;
	for (int i = 0; i < 2; i++) {
		cr_assert_not(warp_active_run(c, &run, &r));
		CHECK(r, WARP_ACTIVE_REFUSED);
		cr_assert(strstr(r.text, "refused.bpf.c:"), "%s", r.text);
	}
	warp_active_object_destroy(object);
	cr_assert_not(warp_active_object_create("this is no object", 17, &object));
	run.object = object;
	cr_assert_not(warp_active_run(c, &run, &r));
	CHECK(r, WARP_ACTIVE_REFUSED);
	warp_active_object_destroy(object);
	free(bytes);
	CHECK(RUN("sum"), WARP_ACTIVE_OK);
}

/* An object of several parts, and two at once */
Test(active_serve, large_objects)
{
	size_t len;
	uint8_t *bytes = world_file("active.object", &len), *big = calloc(1, 1 << 20);
	struct warp_active_object *object[2];
	struct warp_active_request *request[2];

	memcpy(big, bytes, len);
	for (int i = 0; i < 2; i++) {
		struct warp_active_run run = { .function = "sum" };

		big[(1 << 20) - 1] = (uint8_t)(i + 1);
		cr_assert_not(warp_active_object_create(big, 1 << 20, &object[i]));
		run.object = object[i];
		cr_assert_not(warp_active_start(c, &run, &request[i]));
	}
	for (int i = 0; i < 2; i++) {
		CHECK(world_wait(request[i]), WARP_ACTIVE_OK);
		warp_active_object_destroy(object[i]);
	}
	cr_assert_eq(world_stats(&w).objects, 2);
	free(bytes);
	free(big);
}

Test(active_serve, objects_that_are_too_large)
{
	uint8_t *big = calloc(1, (1 << 20) + 1);
	struct warp_active_object *object;
	struct warp_active_run run = { 0 };
	struct warp_active_result r;

	cr_assert_not(warp_active_object_create(big, (1 << 20) + 1, &object));
	run.object = object;
	cr_assert_not(warp_active_run(c, &run, &r));
	CHECK(r, WARP_ACTIVE_REFUSED);
	cr_assert(strstr(r.text, "1048576"));
	warp_active_object_destroy(object);
	free(big);
	cr_assert_eq(warp_active_object_create("", 0, &object), -EINVAL);
	cr_assert_eq(warp_active_object_create("x", (32 << 20) + 1, &object), -E2BIG);
	cr_assert_eq(warp_active_object_open("/nowhere", &object), -ENOENT);
	cr_assert_eq(warp_active_object_open("/tmp", &object), -EINVAL);
}

/* More than the window, in any order */
Test(active_serve, many_at_once)
{
	enum { MANY = 300 };
	static struct world_call calls[MANY];
	struct warp_active_request *requests[MANY];

	for (int i = 0; i < MANY; i++) {
		calls[i] = (struct world_call){ "steps", { (uint64_t)i * 100 }, 1 };
		requests[i] = world_start(&w, c, &calls[i]);
	}
	for (int i = MANY; i--;) {
		struct warp_active_result r = world_wait(requests[i]);

		CHECK(r, WARP_ACTIVE_OK);
		cr_assert_eq(r.value, (uint64_t)i * 100);
	}
}

Test(active_serve, poll_for_event_loops)
{
	enum { MANY = 50 };
	static struct world_call calls[MANY];
	struct warp_active_request *done[8];
	struct pollfd fd = { .fd = warp_active_fd(c), .events = POLLIN };
	uint64_t sum = 0;
	int got = 0;

	for (uint64_t i = 0; i < MANY; i++) {
		struct warp_active_request *r;

		calls[i] = (struct world_call){ "steps", { i * 1000 }, 1 };
		r = world_start(&w, c, &calls[i]);
		warp_active_context_set(r, &calls[i]);
	}
	while (got < MANY) {
		int n = warp_active_poll(c, done, 8);

		for (int i = 0; i < n; i++) {
			struct world_call *call = warp_active_context(done[i]);
			struct warp_active_result r = world_wait(done[i]);

			cr_assert_eq(r.value, call->args[0]);
			sum += r.value;
		}
		got += n;
		if (!n)
			cr_assert_eq(poll(&fd, 1, 10000), 1);
	}
	cr_assert_eq(sum, 1000 * MANY * (MANY - 1) / 2);
	cr_assert_eq(warp_active_poll(c, done, 8), 0);
}

Test(active_serve, cancel)
{
	static struct world_call spin = { "spin" };
	struct warp_active_request *r[8];

	CHECK(RUN("sum"), WARP_ACTIVE_OK);
	for (int i = 0; i < 8; i++) /* more than are under way at once: some wait */
		r[i] = world_start(&w, c, &spin);
	cr_assert_eq(warp_active_wait(r[0], 20, NULL), -ETIMEDOUT);
	for (int i = 0; i < 8; i++)
		cr_assert_not(warp_active_cancel(r[i]));
	for (int i = 0; i < 8; i++)
		CHECK(world_wait(r[i]), WARP_ACTIVE_CANCELLED);
	CHECK(RUN("sum"), WARP_ACTIVE_OK);
}

Test(active_serve, drop)
{
	static struct world_call spin = { "spin" }, sum = { "sum" };
	static uint8_t output[65536];
	struct warp_active_run run = { .object = w.object, .function = "flood" };
	struct warp_active_request *r;

	run.output = output;
	run.output_room = sizeof(output);
	CHECK(RUN("sum"), WARP_ACTIVE_OK);
	for (int i = 0; i < 100; i++) {
		warp_active_drop(world_start(&w, c, &sum));
		warp_active_drop(world_start(&w, c, &spin));
		cr_assert_not(warp_active_start(c, &run, &r));
		warp_active_drop(r);
	}
	memset(output, 0, sizeof(output));
	CHECK(RUN("sum"), WARP_ACTIVE_OK);
	cr_assert_eq(output[0], 0);
	r = world_start(&w, c, &sum);
	cr_assert_eq(warp_active_disconnect(c), -EBUSY);
	warp_active_drop(r);
	r = world_start(&w, c, &spin);
	warp_active_drop(r); /* and the connection ends with it under way */
}

Test(active_serve, what_tokens_give)
{
	struct warp_active_client *reader, *nothing, *no = NULL;
	uint64_t number = 1, table;
	struct warp_active_result r;

	cr_assert_not(world_connect(&w, "reader", &reader));
	cr_assert_not(world_connect(&w, "nothing", &nothing));
	cr_assert_eq(world_connect(&w, "no", &no), -ECONNREFUSED);
	cr_assert(world_region(reader, 0).rights == (WARP_ACTIVE_READ | WARP_ACTIVE_RUN));
	table = world_region(reader, 0).addr;
	r = world_run(&w, reader, &(const struct world_call){ "peek", { table }, 1, 1, 1 });
	CHECK(r, WARP_ACTIVE_OK);
	r = world_run(&w, reader, &(const struct world_call){ "poke", { table, 1 }, 2, 1 });
	CHECK(r, WARP_ACTIVE_RIGHTS);
	cr_assert_not(world_access(reader, WARP_ACTIVE_OP_READ, 0, 0, &number, 8));
	cr_assert_eq(number, 0);
	cr_assert_eq(world_access(reader, WARP_ACTIVE_OP_WRITE, 0, 0, &number, 8), -EACCES);
	r = world_run(&w, nothing, &(const struct world_call){ "sum" });
	CHECK(r, WARP_ACTIVE_RIGHTS);
	cr_assert_eq(world_stats(&w).refused, 1);
	cr_assert_eq(world_stats(&w).clients, 3);
	cr_assert_not(warp_active_disconnect(reader));
	cr_assert_not(warp_active_disconnect(nothing));
}

Test(active_serve, regions_by_name)
{
	struct warp_active_region_info info;

	cr_assert_not(warp_active_region_find(c, "raw", &info));
	cr_assert(info.number == WORLD_RAW && info.size == 4096 && info.stag && info.rights == 3);
	cr_assert_not(warp_active_region_find(c, "code", &info));
	cr_assert(info.number == WORLD_CODE && !info.stag);
	cr_assert_eq(world_access(c, WARP_ACTIVE_OP_READ, WORLD_CODE, 0, &info, 8), -EACCES);
	cr_assert_eq(warp_active_region_find(c, "none", &info), -ENOENT);
	cr_assert_eq(warp_active_region_get(c, 5, &info), -ENOENT);
}

static void *wait_long(void *arg)
{
	struct warp_active_result r;

	usleep(30000); /* so that the other one is at it */
	r = world_wait(arg);
	return r.code == WARP_ACTIVE_FUEL ? NULL : arg;
}

/* Who waits goes on when the one that does the work for both gives up */
Test(active_serve, a_wait_that_gives_up)
{
	struct warp_active_request *first, *second;
	pthread_t thread;
	void *bad;

	CHECK(RUN("sum"), WARP_ACTIVE_OK);
	first = world_start(&w, c, &(const struct world_call){ "spin", .timeout_us = 500000 });
	second = world_start(&w, c, &(const struct world_call){ "spin", .timeout_us = 300000 });
	cr_assert_not(pthread_create(&thread, NULL, wait_long, second));
	cr_assert_eq(warp_active_wait(first, 100, NULL), -ETIMEDOUT);
	pthread_join(thread, &bad);
	cr_assert_null(bad);
	CHECK(world_wait(first), WARP_ACTIVE_FUEL);
}

Test(active_serve, wrong_servers)
{
	static const struct warp_active_server_attr rows[] = {
		{ .window = 257 },    { .window = 4, .at_once = 5 },
		{ .clients = 65537 }, { .clients = 65536, .window = 256 },
		{ .workers = 65 },    { .object_max = (32 << 20) + 1 },
	};
	static uint8_t own[4096];
	struct warp_active_region_attr region = { .name = "a", .size = 4096, .rights = 15 };
	struct warp_active_server *server;
	struct warp_active_region *out;
	struct sockaddr_storage addr;
	char name[257] = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(warp_active_server_create(&rows[i], &server), -EINVAL, "row %zu", i);
	cr_assert_eq(warp_active_server_create(
			     &(const struct warp_active_server_attr){ .provider = "none" },
			     &server),
		     -ENODEV);
	cr_assert_not(warp_active_server_create(NULL, &server));
	cr_assert_eq(warp_active_server_addr(server, &addr), -ENOTCONN);
	cr_assert_not(warp_active_export(server, &region, &out));
	cr_assert_eq(warp_active_export(server, &region, &out), -EEXIST);
	region.name = "b";
	region.rights = 16;
	cr_assert_eq(warp_active_export(server, &region, &out), -EINVAL);
	region.rights = 15;
	region.flags = 8;
	cr_assert_eq(warp_active_export(server, &region, &out), -EINVAL);
	region.flags = WARP_ACTIVE_HEAP;
	region.heap_offset = 4096;
	cr_assert_eq(warp_active_export(server, &region, &out), -EINVAL);
	region.flags = 0;
	region.memory = own;
	cr_assert_not(warp_active_export(server, &region, &out));
	cr_assert_eq(warp_active_region_memory(out), own);
	region.name = "c";
	region.memory = own + 4095;
	cr_assert_eq(warp_active_export(server, &region, &out), -EINVAL);
	region.memory = NULL;
	region.name = memset(name, 'x', 256);
	cr_assert_eq(warp_active_export(server, &region, &out), -EINVAL);
	region.name = "c";
	region.size = 0;
	cr_assert_eq(warp_active_export(server, &region, &out), -EINVAL);
	region.size = 1;
	for (int i = 2; i < 128; i++) {
		snprintf(name, sizeof(name), "region %d", i);
		region.name = name;
		cr_assert_not(warp_active_export(server, &region, &out), "%d", i);
	}
	region.name = "one more";
	cr_assert_eq(warp_active_export(server, &region, &out), -E2BIG);
	warp_active_server_destroy(server);
}

Test(active_serve, wrong_arguments)
{
	static uint8_t big[70000];
	struct warp_active_run run = { .object = w.object };
	struct warp_active_access op = { .op = WARP_ACTIVE_OP_READ, .buffer = big, .len = 8 };
	struct warp_active_grant grants[65] = { { 0, 1 } };
	struct warp_active_request *r;
	char name[257] = { 0 };

	cr_assert_eq(warp_active_start(NULL, &run, &r), -EINVAL);
	cr_assert_eq(warp_active_start(c, NULL, &r), -EINVAL);
	run.args_len = 8;
	cr_assert_eq(warp_active_start(c, &run, &r), -EINVAL);
	run.args = big;
	run.args_len = 16385;
	cr_assert_eq(warp_active_start(c, &run, &r), -EINVAL);
	run.args_len = 0;
	run.grants = grants;
	run.grant_count = 65;
	cr_assert_eq(warp_active_start(c, &run, &r), -EINVAL);
	run.grant_count = 0;
	run.output = big;
	run.output_room = 65537;
	cr_assert_eq(warp_active_start(c, &run, &r), -EINVAL);
	run.output_room = 0;
	run.function = memset(name, 'x', 256);
	cr_assert_eq(warp_active_start(c, &run, &r), -EINVAL);
	op.offset = (1 << 16) - 7;
	cr_assert_eq(warp_active_access(c, &op, &r), -EINVAL);
	op.offset = UINT64_MAX;
	cr_assert_eq(warp_active_access(c, &op, &r), -EINVAL);
	op.offset = 4;
	op.op = WARP_ACTIVE_OP_FETCH_ADD;
	cr_assert_eq(warp_active_access(c, &op, &r), -EINVAL);
	op.op = (enum warp_active_op)4;
	cr_assert_eq(warp_active_access(c, &op, &r), -EINVAL);
	op.op = WARP_ACTIVE_OP_WRITE;
	op.len = 65537;
	cr_assert_eq(warp_active_access(c, &op, &r), -EINVAL);
	op.len = 8;
	op.region = WORLD_CONSTANTS;
	cr_assert_eq(warp_active_access(c, &op, &r), -EACCES);
	op.region = 5;
	cr_assert_eq(warp_active_access(c, &op, &r), -EINVAL);
	grants[1] = grants[0];
	run.function = NULL;
	run.grants = grants;
	run.grant_count = 2; /* the same one twice */
	cr_assert_not(warp_active_start(c, &run, &r));
	CHECK(world_wait(r), WARP_ACTIVE_MALFORMED);
}
