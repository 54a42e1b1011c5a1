/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs made to do harm. Each must be refused by the verifier, or end as it says here, by both
 * engines alike, with not a byte touched outside of its regions: behind and before those are
 * pages that nobody may touch.
 */
#include <criterion/criterion.h>

#include "tests/bpf/corpus.h"
#include "tests/bpf/engines.h"

Test(bpf_hostile, every_program_is_refused_or_contained, .timeout = 60)
{
	struct engines_end by[2];

	cr_assert_geq(hostile_count, 100);
	cr_assert(!engines_open(&by[0]) && !engines_open(&by[1]));
	for (size_t i = 0; i < hostile_count; i++) {
		const struct hostile *h = &hostile_corpus[i];
		const char *what;

		engines_run(&by[0], h->insns, h->count, EBPF_LOAD_NO_JIT, i, 10000, 777);
		engines_run(&by[1], h->insns, h->count, 0, i, 10000, 777);
		what = engines_differ(&by[0], &by[1]);
		cr_expect_null(what, "%s: different %s", h->name, what);
		if (h->want == HOSTILE_REFUSED)
			cr_expect(by[1].refused, "%s: taken", h->name);
		else
			cr_expect(!by[1].refused && (int)by[1].result.status == h->want, "%s: %s",
				  h->name,
				  by[1].refused ? by[1].err.text
						: ebpf_status_text(by[1].result.status));
	}
	engines_close(&by[0]);
	engines_close(&by[1]);
}
