/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Generated programs by the interpreter and, rewritten, by the kernel. Whatever can be seen must be
 * the same, but for two things: the kernel's code counts fuel by the loop, so it ends sooner; and a
 * helper that refuses an address ends there as an access does.
 *
 *	compare_arena [FIRST [COUNT]]
 *
 * By default a short row of seeds; with WARPSOCK_LONG in the environment a hundred thousand.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate.h"
#include "kernel_generated.h"

enum { SHORT = 1500, LONG = 100000, FUEL = 100000, KERNEL_FUEL = 10000000 };

struct counts {
	uint64_t same[8], refused, too_much;
};

static struct ebpf_insn insns[GENERATED_MAX];

static const char *ends_differ(struct kernel_engine *k, const struct engines_end *want,
			       bool helper_called)
{
	struct ebpf_result got = kernel_engine_result(k);
	const struct ebpf_result *w = &want->result;
	bool refused = w->status == EBPF_HELPER &&
		       (got.status == EBPF_ADDRESS || got.status == EBPF_RIGHTS);

	if (got.status != w->status && !refused)
		return "status";
	if (got.status == EBPF_FUEL)
		return NULL;
	if (got.status == EBPF_DONE ? got.value != w->value : got.pc != w->pc)
		return "value or instruction";
	if (!refused &&
	    (got.status == EBPF_ADDRESS || got.status == EBPF_RIGHTS || got.status == EBPF_ALIGN) &&
	    (got.addr != w->addr || got.len != w->len || got.rights != w->rights))
		return "address";
	if (got.output != w->output ||
	    memcmp((uint8_t *)k->block + sizeof(*k->block), want->output, got.output))
		return "output";
	if (w->status == EBPF_DONE && !helper_called && KERNEL_FUEL - got.fuel < FUEL - w->fuel)
		return "fuel: less than was executed";
	return kernel_generated_same(k, want) ? NULL : "memory";
}

/* Helpers of the interpreter take fuel of their own. */
static bool helper_called(size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (insns[i].code == EBPF_CALL_CODE && !ebpf_is_local_call(&insns[i]))
			return true;
	return false;
}

static void program_print(size_t count)
{
	char text[64];

	for (size_t i = 0; i < count; i++) {
		printf("# %4zu: %s\n", i,
		       ebpf_insn_text(&insns[i], &insns[i + 1], text, sizeof(text)));
		i += insns[i].code == EBPF_LDDW;
	}
}

static bool difference_say(struct kernel_engine *k, const struct engines_end *end, uint64_t seed,
			   size_t count, const char *what)
{
	struct ebpf_result r = kernel_engine_result(k);

	printf("not ok 1 - the kernel's code agrees\n# program %llu, different: %s\n",
	       (unsigned long long)seed, what);
	printf("# interpreter: status %d, pc %u, value 0x%llx, address 0x%llx\n",
	       (int)end->result.status, end->result.pc, (unsigned long long)end->result.value,
	       (unsigned long long)end->result.addr);
	printf("# kernel: status %d, pc %u, value 0x%llx, address 0x%llx; %s\n", (int)r.status,
	       r.pc, (unsigned long long)r.value, (unsigned long long)r.addr, k->text);
	program_print(count);
	return false;
}

/* The kernel's own limits, and what cannot be in an arena, are no difference. */
static bool not_for_kernel(int error, struct counts *counts)
{
	counts->refused += error == -EOPNOTSUPP;
	counts->too_much += error == -E2BIG || error == -ENOSPC;
	return error == -EOPNOTSUPP || error == -E2BIG || error == -ENOSPC;
}

static bool program_agrees(struct kernel_engine *k, struct engines_end ends[2], uint64_t seed,
			   struct counts *counts)
{
	static const uint64_t arg[] = { 1, 2, 3, 4, 5 };
	size_t count = generate(seed, GENERATE_FOR_ENGINES, insns);
	struct ebpf_object *object;
	const char *what;
	int fd, ret;

	/* The first run does nothing, so it shows the memory as it was */
	engines_run(&ends[0], insns, count, EBPF_LOAD_NO_JIT, seed, 0, 1);
	engines_run(&ends[1], insns, count, EBPF_LOAD_NO_JIT, seed, FUEL, FUEL);
	if (ends[1].refused)
		return true;
	if (ebpf_object_assemble(insns, count, &engines_helpers, EBPF_LOAD_NO_JIT, &object,
				 &ends[0].err))
		return false;
	fd = kernel_engine_load(k, object, 0);
	ebpf_object_destroy(object);
	if (fd < 0)
		return not_for_kernel(fd, counts) ||
		       difference_say(k, &ends[1], seed, count, "the kernel does not take it");
	kernel_generated_memory(k, &ends[0]);
	ret = kernel_engine_run(
		k, fd, arg, ends[1].result.status == EBPF_FUEL ? FUEL - GENERATED_MAX : KERNEL_FUEL,
		1, NULL);
	close(fd);
	what = ret ? "it does not run" : ends_differ(k, &ends[1], helper_called(count));
	counts->same[ends[1].result.status]++;
	return !what || difference_say(k, &ends[1], seed, count, what);
}

static bool all_agree(struct kernel_engine *k, uint64_t first, uint64_t count)
{
	struct engines_end ends[2];
	struct counts counts = { 0 };
	bool good = !engines_open(&ends[0]) && !engines_open(&ends[1]);

	for (uint64_t seed = first; good && seed < first + count; seed++)
		good = program_agrees(k, ends, seed, &counts);
	engines_close(&ends[0]);
	engines_close(&ends[1]);
	for (int i = 0; i < 7; i++)
		printf("# %s: %llu\n", ebpf_status_text((enum ebpf_status)i),
		       (unsigned long long)counts.same[i]);
	printf("# refused: %llu, too much for the kernel: %llu\n",
	       (unsigned long long)counts.refused, (unsigned long long)counts.too_much);
	if (good && counts.refused + counts.too_much > count / 2) {
		puts("not ok 1 - most programs can go into the kernel");
		return false;
	}
	return good;
}

int main(int argc, char **argv)
{
	const char *asked = getenv("WARPSOCK_LONG");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : asked && *asked ? LONG : SHORT;
	struct kernel_engine k;
	int ret = kernel_engine_open(&k);
	bool good;

	puts("1..1");
	if (ret) {
		printf("ok 1 - the kernel's code agrees # SKIP no BPF arena: %s\n", strerror(-ret));
		return 0;
	}
	kernel_generated(&k);
	good = all_agree(&k, first, count);
	kernel_engine_close(&k);
	if (good)
		printf("ok 1 - the kernel's code agrees on %llu programs\n",
		       (unsigned long long)count);
	return !good;
}
