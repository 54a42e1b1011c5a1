/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The corpus of hostile programs in the kernel: each ends as it does in user space, and the bytes
 * of the arena around the regions stay as they are.
 */
#include "arena.h"

#include "tests/bpf/corpus.h"
#include "tests/bpf/kernel_generated.h"

/* Where a helper refuses, code that stands for it makes an access that goes wrong */
static bool ended_so(int want, enum ebpf_status got)
{
	return want == EBPF_HELPER ? got == EBPF_ADDRESS || got == EBPF_RIGHTS : (int)got == want;
}

static void one_run(struct kernel_engine *k, const struct hostile *h, struct engines_end *end)
{
	static const uint64_t arg[] = { 1, 2, 3, 4, 5 };
	struct ebpf_object *object;
	int fd;

	cr_assert_eq(ebpf_object_assemble(h->insns, h->count, &engines_helpers, EBPF_LOAD_NO_JIT,
					  &object, &end->err),
		     0, "%s", h->name);
	fd = kernel_engine_load(k, object, 0);
	ebpf_object_destroy(object);
	if (fd == -EOPNOTSUPP)
		return;
	cr_assert_geq(fd, 0, "%s: %s", h->name, k->text);
	engines_run(end, h->insns, h->count, EBPF_LOAD_NO_JIT, 1, 0, 1);
	kernel_generated_memory(k, end);
	engines_run(end, h->insns, h->count, EBPF_LOAD_NO_JIT, 1, 10000, 777);
	cr_assert_eq(kernel_engine_run(k, fd, arg, 10000, 1, NULL), 0);
	close(fd);
	cr_expect(ended_so(h->want, kernel_engine_result(k).status), "%s: %s", h->name,
		  ebpf_status_text(kernel_engine_result(k).status));
	if (h->want != EBPF_FUEL)
		cr_expect(kernel_generated_same(k, end), "%s: memory", h->name);
}

Test(bpfkernel_hostile, every_program_is_contained, .timeout = 60)
{
	struct kernel_engine *k = kernel_open();
	struct engines_end end;
	size_t run = 0;

	kernel_generated(k);
	cr_assert(!engines_open(&end));
	for (size_t i = 0; i < hostile_count; i++)
		if (hostile_corpus[i].want != HOSTILE_REFUSED) {
			one_run(k, &hostile_corpus[i], &end);
			run++;
		}
	cr_assert_geq(run, 60);
	engines_close(&end);
	kernel_engine_close(k);
}
