/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs one program in three regions, two of which end where a page ends that nothing may touch,
 * and keeps what it came to.
 */
#include "engines.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "generate.h"

static const size_t sizes[ENGINES_MEMORY] = { GENERATED_SIZE, GENERATED_READONLY_SIZE,
					      GENERATED_FAR_SIZE };

/* Changes all that it may, by what it is given */
static int mix(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	*result = arg[0] ^ arg[1] * 3 ^ arg[2] * 5 ^ arg[3] * 7 ^ arg[4] * 11;
	if (*result % 13 == 0)
		ebpf_run_charge(run, *result % 64);
	return 0;
}

static int refuse(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	void *at;
	int ret = ebpf_run_memory(run, arg[0], arg[1] % 32, EBPF_MAY_READ, &at);

	return arg[2] % 4 ? ret : -EPROTO;
}

static const struct ebpf_helper helpers[] = {
	{ "mix", GENERATED_HELPER, 5, mix },
	{ "refuse", GENERATED_HELPER_FAILS, 3, refuse },
	{ "output", 1, 2, ebpf_helper_output },
};
const struct ebpf_helpers engines_helpers = { helpers, sizeof(helpers) / sizeof(helpers[0]) };

int engines_open(struct engines_end *end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	memset(end, 0, sizeof(*end));
	for (int i = 0; i < ENGINES_MEMORY; i++) {
		uint8_t *at = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED || mprotect(at + page, page, PROT_READ | PROT_WRITE))
			return -ENOMEM;
		/* the second at its page's beginning, the others at its end */
		end->memory[i] = at + page + (i == 1 ? 3 : page - sizes[i]);
	}
	return 0;
}

void engines_close(struct engines_end *end)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < ENGINES_MEMORY; i++)
		if (end->memory[i])
			munmap((void *)(((uintptr_t)end->memory[i] & ~(page - 1)) - page),
			       3 * page);
}

static void memory_fill(struct engines_end *end, uint64_t seed)
{
	for (int i = 0; i < ENGINES_MEMORY; i++)
		for (size_t j = 0; j < sizes[i]; j++)
			end->memory[i][j] = (uint8_t)generate_random(&seed);
	memset(end->output, 0, sizeof(end->output));
}

static void execute(struct engines_end *end, struct ebpf_run *run, const struct ebpf_object *obj,
		    const struct ebpf_params *params, uint64_t fuel, uint64_t slice)
{
	if (ebpf_run_start(run, obj, params))
		return;
	do {
		uint64_t now = fuel < slice ? fuel : slice;

		fuel -= now;
		ebpf_run_continue(run, now, &end->result);
	} while (end->result.status == EBPF_FUEL && fuel);
}

/* One in four runs twice: the second run begins with what the first one has left */
void engines_run(struct engines_end *end, const struct ebpf_insn *insns, size_t count,
		 unsigned int flags, uint64_t seed, uint64_t fuel, uint64_t slice)
{
	const struct ebpf_region regions[] = {
		{ end->memory[0], GENERATED_REGION, sizes[0], 0,
		  EBPF_MAY_READ | EBPF_MAY_WRITE | EBPF_MAY_ATOMIC },
		{ end->memory[1], GENERATED_READONLY, sizes[1], 0, EBPF_MAY_READ },
		{ end->memory[2], GENERATED_FAR, sizes[2], 0, EBPF_MAY_READ | EBPF_MAY_WRITE },
	};
	struct ebpf_params params = { .arg = { 1, 2, 3, 4, 5 },
				      .regions = regions,
				      .count = ENGINES_MEMORY,
				      .output = end->output,
				      .output_room = sizeof(end->output) };
	struct ebpf_object *obj = NULL;
	struct ebpf_run *run = NULL;

	memset(&end->result, 0, sizeof(end->result));
	end->refused = ebpf_object_assemble(insns, count, &engines_helpers, flags, &obj, &end->err);
	if (end->refused)
		return;
	if (!ebpf_run_create(&run))
		for (int i = 0; i <= !(seed % 4); i++) {
			memory_fill(end, seed);
			execute(end, run, obj, &params, fuel, slice);
		}
	ebpf_run_destroy(run);
	ebpf_object_destroy(obj);
}

const char *engines_differ(const struct engines_end *a, const struct engines_end *b)
{
	const struct ebpf_result *x = &a->result, *y = &b->result;

	if (a->refused != b->refused)
		return "verdict";
	if (x->status != y->status)
		return "status";
	if (x->pc != y->pc)
		return "instruction";
	if (x->value != y->value)
		return "value";
	if (x->addr != y->addr || x->len != y->len || x->rights != y->rights)
		return "address";
	if (x->error != y->error || x->output != y->output)
		return "error or output";
	if (x->fuel != y->fuel)
		return "fuel";
	for (int i = 0; i < ENGINES_MEMORY; i++)
		if (memcmp(a->memory[i], b->memory[i], sizes[i]))
			return "memory";
	return memcmp(a->output, b->output, sizeof(a->output)) ? "output" : NULL;
}
