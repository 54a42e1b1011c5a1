/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs in the kernel: arenas, what stays of a run, and what clients cost.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "active/kernel_arena.h"
#include "active/kernel_code.h"
#include "base/bits.h"
#include "bpfgen/code.h"
#include "kernel_world.h"

TestSuite(active_kernel, .init = open_all, .fini = close_all, .timeout = 60);

/* --- arenas --------------------------------------------------------------------------------- */

static struct warp_active_region_info info_of(struct warp_active_client *client, const char *name)
{
	struct warp_active_region_info info;

	cr_assert_not(warp_active_region_find(client, name, &info));
	return info;
}

static struct warp_active_place *install_at(struct warp_active_client *client, const char *function,
					    uint32_t number)
{
	const struct warp_active_grant grant = { number, 7 };
	struct warp_active_place *place;
	struct warp_active_result r = try_install(client, function, &grant, 1, &place);

	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s: %s", function, r.text);
	return place;
}

/* How many arenas the server has; the accounts of its clients are a map of this process, too */
static unsigned int arena_count(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	char line[512];

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "bpf-map") != NULL;
	fclose(f);
	return n - 1;
}

Test(active_kernel, clients_have_arenas_of_their_own)
{
	struct warp_active_client *a = connected("own"), *b = connected("own");
	struct warp_active_region_info mine = info_of(a, "mine"), too = info_of(a, "mine too"),
				       other = info_of(b, "mine");
	struct warp_active_place *poke = install_at(a, "poke", mine.number),
				 *peek = install_at(b, "peek", other.number);
	const struct warp_active_grant both[] = { { mine.number, 7 }, { too.number, 7 } },
				       mixed[] = { { mine.number, 7 }, { 0, 7 } };
	struct warp_active_place *place;
	struct warp_active_result r;

	cr_assert_eq(arena_count(), 4);
	cr_assert_neq(mine.addr >> 32, other.addr >> 32);
	cr_assert_eq(mine.addr >> 32, too.addr >> 32);
	cr_assert_eq(RUN(poke, mine.addr, 7).code, WARP_ACTIVE_OK);
	cr_assert_eq(*(uint64_t *)mine.addr, 7);
	cr_assert_eq(RUN(poke, other.addr, 8).code, WARP_ACTIVE_ADDRESS);
	r = RUN(peek, other.addr);
	cr_assert(r.code == WARP_ACTIVE_OK && !r.value);
	r = try_install(a, "poke", both, 2, &place);
	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s", r.text);
	cr_assert_eq(RUN(place, too.addr, 9).code, WARP_ACTIVE_OK);
	cr_assert_eq(*(uint64_t *)too.addr, 9);
	warp_active_place_close(place);
	r = try_install(a, "poke", mixed, 2, &place);
	cr_assert(r.code == WARP_ACTIVE_REFUSED && strstr(r.text, "several arenas"), "%s", r.text);
	cr_assert_not(warp_active_disconnect(a));
	for (int i = 0; i < 100 && arena_count() > 3; i++)
		usleep(10000);
	cr_assert_eq(arena_count(), 3);
	cr_assert_eq(RUN(peek, other.addr).code, WARP_ACTIVE_OK);
	cr_assert_not(warp_active_disconnect(b));
	warp_active_place_close(poke);
	warp_active_place_close(peek);
}

/* The reader has not the constants, which are in the table's arena */
Test(active_kernel, what_lies_in_an_arena_its_clients_may_read)
{
	struct warp_active_client *reader = connected("reader");
	const struct warp_active_grant granted = { 0, 1 }, in_1 = { 1, 1 };
	struct warp_active_place *place;
	struct warp_active_result r;

	refused(reader, "sum", &granted, WARP_ACTIVE_REFUSED, "a region that the client may not");
	r = try_install(reader, "peek", &in_1, 1, &place);
	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s", r.text);
	cr_assert_eq(RUN(place, (uintptr_t)warp_active_region_memory(open_to_all)).code,
		     WARP_ACTIVE_OK);
	warp_active_place_close(place);
	/* Without a region: in an arena of its own */
	cr_assert_eq(arena_count(), 2);
	r = try_install(reader, "sum", NULL, 0, &place);
	cr_assert_eq(r.code, WARP_ACTIVE_OK, "%s", r.text);
	cr_assert_eq(arena_count(), 3);
	cr_assert_eq(RUN(place, 5, 1).value, 6);
	warp_active_place_close(place);
	cr_assert_not(warp_active_disconnect(reader));
}

/* Nor any of its own that it may not read, and be it that a program has no region at all */
Test(active_kernel, what_lies_in_its_own_arena_a_client_may_read)
{
	struct warp_active_client *blind = connected("blind");
	struct warp_active_place *place;
	struct warp_active_result r = try_install(blind, "sum", NULL, 0, &place);

	cr_assert(r.code == WARP_ACTIVE_REFUSED && strstr(r.text, "a region that the client may "
								  "not"),
		  "%s", r.text);
	cr_assert_not(warp_active_disconnect(blind));
}

/* Each client could have one otherwise, with memory for each processor */
Test(active_kernel, an_arena_without_regions_is_there_for_programs)
{
	struct warp_active_place *place;
	struct warp_active_result r;

	cr_assert_eq(arena_count(), 2);
	r = try_install(c, "take", NULL, 0, &place);
	cr_assert(r.code == WARP_ACTIVE_REFUSED && strstr(r.text, "nothing for warp_alloc"), "%s",
		  r.text);
	cr_assert_eq(arena_count(), 2);
}

Test(active_kernel, a_region_comes_to_no_program)
{
	struct warp_active_region_attr attr = {
		.name = "late", .size = SIZE, .rights = 15, .flags = WARP_ACTIVE_IN_KERNEL
	};
	struct warp_active_place *place = install("sum");
	struct warp_active_region *r;

	cr_assert_eq(warp_active_export(server, &attr, &r), -EBUSY);
	attr.arena = 7;
	cr_assert_eq(warp_active_export(server, &attr, &r), 0);
	attr.flags = 0;
	attr.name = "later";
	cr_assert_eq(warp_active_export(server, &attr, &r), -EINVAL);
	warp_active_place_close(place);
}

/* What is refused has taken nothing */
Test(active_kernel, a_region_that_is_refused_takes_no_memory)
{
	struct warp_active_region_attr attr = { .name = "heap",
						.size = 4 * SIZE,
						.rights = 15,
						.flags = WARP_ACTIVE_IN_KERNEL | WARP_ACTIVE_HEAP,
						.heap_offset = 4 * SIZE,
						.arena = 6 };
	struct warp_active_region *r;

	cr_assert_eq(warp_active_export(server, &attr, &r), -EINVAL);
	attr.heap_offset = 0;
	cr_assert_eq(warp_active_export(server, &attr, &r), 0);
}

static struct warp_active_region *odd_export(const char *name)
{
	const struct warp_active_region_attr attr = { .name = name,
						      .size = SIZE + 1,
						      .rights = 15,
						      .flags = WARP_ACTIVE_IN_KERNEL,
						      .arena = 5 };
	struct warp_active_region *r;

	cr_assert_eq(warp_active_export(server, &attr, &r), 0);
	return r;
}

/* Up to a power of two, so that the engine's check of an access is one mask */
Test(active_kernel, behind_a_region_is_nothing)
{
	struct warp_active_region *a = odd_export("a"), *b = odd_export("b");
	unsigned char there[2 * SIZE / 4096];

	cr_assert(a->room == 2 * SIZE && b->memory == a->memory + a->room + 4096);
	cr_assert_not(mincore(a->memory, a->room, there));
	for (size_t i = 0; i < sizeof(there); i++)
		cr_assert_eq(there[i] & 1, i <= SIZE / 4096, "page %zu", i);
}

/* They are zero but for what is counted */
static void blocks_check(const char *function)
{
	static const uint8_t zeros[sizeof(struct active_kernel_block)];
	const struct active_kernel_block *blocks = active_arena_blocks(table->arena);

	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++) {
		struct active_kernel_block copy = blocks[i];

		copy.block.own[ACTIVE_KERNEL_RUNS] = copy.block.own[ACTIVE_KERNEL_FUEL] = 0;
		cr_assert_arr_eq((uint8_t *)&copy, zeros, sizeof(zeros), "%s", function);
	}
}

/* Whatever has run, and however it ended */
Test(active_kernel, nothing_of_a_run_stays)
{
	static const char *const functions[] = {
		"echo", "sum", "helpers", "steps", "peek", "touch"
	};
	uint8_t args[WARP_ACTIVE_PLACE_MAX], output[512];
	struct warp_active_result r;

	memset(args, 0xee, sizeof(args));
	for (size_t i = 0; i < base_array_size(functions); i++) {
		struct warp_active_place *place = install(functions[i]);

		for (size_t len = 32; len <= sizeof(args); len += 124) {
			cr_assert_not(warp_active_place_run(place, args, len, output,
							    sizeof(output), WAIT_MS, &r));
			blocks_check(functions[i]);
		}
		cr_assert_neq(r.code == WARP_ACTIVE_OK, i > 2);
		warp_active_place_close(place);
		cr_assert_not(warp_active_disconnect(c));
		c = connected("all");
	}
}

/* --- what it costs --------------------------------------------------------------------------- */

Test(active_kernel, what_is_there_is_counted)
{
	struct warp_active_client *own = connected("own");
	struct warp_active_place *sum = install("sum"),
				 *peek = install_at(own, "peek", info_of(own, "mine").number);
	uint64_t at_mine = info_of(own, "mine").addr;
	struct warp_active_stats stats;

	for (int i = 0; i < 10; i++)
		RUN(sum, 0);
	for (int i = 0; i < 5; i++)
		RUN(peek, at_mine);
	warp_active_server_query(server, &stats);
	cr_assert(stats.kernel_programs == 2 && stats.kernel_runs == 15);
	cr_assert(stats.kernel_fuel > 10 * 8 && stats.kernel_fuel < 10 * 100);
	cr_assert_not(warp_active_disconnect(own));
	for (int i = 0; i < 100 && stats.kernel_programs > 1; i++) {
		usleep(10000);
		warp_active_server_query(server, &stats);
	}
	/* Those of arenas that are gone, too */
	cr_assert(stats.kernel_programs == 1 && stats.kernel_runs == 15);
	warp_active_place_close(sum);
	warp_active_place_close(peek);
}

/* One with many loops, in each of which either way may be gone: Linux looks at it for long */
static struct warp_active_object *slow_object(void)
{
	struct warp_active_object *slow;
	struct bpfgen_code *c;
	struct bpfgen_error err;
	size_t len;
	void *elf;

	cr_assert_not(bpfgen_code_create(&c));
	bpfgen_function(c, bpfgen_label(c), "slow");
	bpfgen_alu(c, EBPF_MOV, 6, 1);
	bpfgen_alu_imm(c, EBPF_MOV, 0, 0);
	for (int i = 0; i < 150; i++) {
		unsigned int again = bpfgen_label(c);

		bpfgen_alu_imm(c, EBPF_MOV, 3, 0);
		bpfgen_here(c, again);
		for (int j = 0; j < 6; j++) {
			unsigned int other = bpfgen_label(c);

			bpfgen_load(c, EBPF_DW, 4, 6, (int16_t)(8 * j));
			bpfgen_if_imm(c, EBPF_JSET, 4, 1 << j, other);
			bpfgen_alu(c, EBPF_ADD, 0, 4);
			bpfgen_here(c, other);
		}
		bpfgen_alu_imm(c, EBPF_ADD, 3, 1);
		bpfgen_if(c, EBPF_JLT, 3, 4, again);
	}
	bpfgen_exit(c);
	cr_assert_eq(bpfgen_code_finish(c, &err), 0, "%s", err.text);
	cr_assert_not(bpfgen_code_elf(c, &elf, &len));
	cr_assert_not(warp_active_object_create(elf, len, &slow));
	free(elf);
	bpfgen_code_destroy(c);
	return slow;
}

static void *slow_install(void *arg)
{
	const struct warp_active_run run = { .object = arg };
	struct warp_active_result *r = calloc(1, sizeof(*r));
	struct warp_active_place *place = NULL;

	warp_active_install(c, &run, &place, r);
	warp_active_place_close(place);
	return r;
}

Test(active_kernel, a_client_has_one_program_put_there_at_a_time)
{
	struct warp_active_client *other = connected("all");
	struct warp_active_object *slow = slow_object();
	struct warp_active_result *r;
	struct warp_active_place *place;
	struct warp_active_stats stats;
	pthread_t thread;

	cr_assert_not(pthread_create(&thread, NULL, slow_install, slow));
	do
		warp_active_server_query(server, &stats);
	while (!stats.kernel_programs);
	refused(c, "sum", &all_table, WARP_ACTIVE_BUSY, "another program is being put");
	cr_assert_eq(try_install(other, "sum", &all_table, 1, &place).code, WARP_ACTIVE_OK);
	cr_assert_not(pthread_join(thread, (void **)&r));
	cr_assert_eq(r->code, WARP_ACTIVE_OK, "%s", r->text);
	warp_active_place_close(place);
	warp_active_place_close(install("sum"));
	free(r);
	warp_active_object_destroy(slow);
	cr_assert_not(warp_active_disconnect(other));
}

enum { RATE = 1000000 };

static void open_with_rate(void)
{
	rate = RATE;
	open_all();
}

TestSuite(active_kernel_rate, .init = open_with_rate, .fini = close_all, .timeout = 60);

/* A run that goes far beyond a window's part is paid by those behind it */
Test(active_kernel_rate, long_runs_are_paid)
{
	struct warp_active_place *steps = install("steps");
	double begin = world_now(), end;
	uint64_t fuel = 0, longest = 0;

	for (end = begin; end < begin + 1; end = world_now()) {
		struct warp_active_result r = RUN(steps, 8000);

		fuel += r.fuel;
		longest = base_max(longest, r.fuel);
	}
	cr_assert_gt(longest, 2 * RATE / 60);
	cr_assert((double)fuel < RATE * (end - begin) + (double)(2 * longest + RATE / 60), "%u",
		  (unsigned int)fuel);
	warp_active_place_close(steps);
}

/* The first program of another client is at the place of one that has gone */
Test(active_kernel_rate, a_client_pays_for_itself)
{
	struct warp_active_client *first = connected("all"), *second;
	struct warp_active_place *steps = install_at(first, "steps", 0);
	struct warp_active_stats stats;

	while (RUN(steps, 8000).code == WARP_ACTIVE_OK)
		;
	warp_active_place_close(steps);
	cr_assert_not(warp_active_disconnect(first));
	do
		warp_active_server_query(server, &stats);
	while (stats.kernel_programs);
	second = connected("all");
	steps = install_at(second, "steps", 0);
	cr_assert_eq(RUN(steps, 1).code, WARP_ACTIVE_OK);
	warp_active_place_close(steps);
	cr_assert_not(warp_active_disconnect(second));
}

/* All programs of a client have one limit, and other clients have theirs */
Test(active_kernel_rate, a_client_has_so_much_in_a_second)
{
	struct warp_active_place *steps = install("steps"), *sum = install("sum");
	struct warp_active_client *other = connected("all");
	struct warp_active_place *others = install_at(other, "steps", 0);
	struct warp_active_result r = { 0 };
	double begin = world_now(), end;
	unsigned int busy = 0;
	uint64_t fuel = 0;

	for (end = begin; end < begin + 1; end = world_now()) {
		bool had = r.code == WARP_ACTIVE_OK;

		r = RUN(steps, 500);
		fuel += r.fuel;
		if (r.code == WARP_ACTIVE_OK)
			continue;
		cr_assert_eq(r.code, WARP_ACTIVE_BUSY);
		cr_assert(!r.fuel && !r.value && !strcmp(r.text, "the client's rate is used up"));
		/* The window may end just now */
		if (!had || RUN(sum, 0).code != WARP_ACTIVE_BUSY)
			continue;
		busy++;
		cr_assert_eq(RUN(others, 1).code, WARP_ACTIVE_OK);
	}
	cr_assert_gt(busy, 0);
	/* A window is 17 ms, and the run that reaches the limit is over it */
	cr_assert(fuel > RATE / 4 && (double)fuel < RATE * 1.3 * (end - begin), "%u",
		  (unsigned int)fuel);
	warp_active_place_close(steps);
	warp_active_place_close(sum);
	warp_active_place_close(others);
	cr_assert_not(warp_active_disconnect(other));
}

/* --- the end ------------------------------------------------------------------------------- */

static const struct sockaddr_in another = { .sin_family = AF_INET,
					    .sin_port = 0x851c, /* 7301 */
					    .sin_addr.s_addr = 0x0100007f };

/* Another server can have the interface, though a child of the first one lives */
Test(active_kernel, a_child_does_not_keep_the_door)
{
	struct warp_active_kernel_attr attr = kernel_attr();
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child) {
		pause();
		_exit(0);
	}
	attr.addr = (const struct sockaddr *)&another;
	usleep(50000);
	cr_assert_not(warp_active_disconnect(c));
	warp_active_server_destroy(server);
	c = NULL;
	cr_assert_not(warp_active_server_create(NULL, &server));
	cr_expect_eq(warp_active_kernel_serve(server, &attr), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
