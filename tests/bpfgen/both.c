/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs what bpfgen/ makes by both engines of bpf/, with a bound on the fuel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bpfgen/both.h"

enum { FUEL = 20000000, REGIONS = 4 };

static char why[600];

static const struct ebpf_helper list[] = { { "output", 1, 2, ebpf_helper_output } };
static const struct ebpf_helpers helpers = { list, 1 };

const char *both_open(struct both *b, const struct bpfgen_code *c)
{
	struct ebpf_error err;

	memset(b, 0, sizeof(*b));
	if (ebpf_run_create(&b->run))
		return "out of memory";
	for (unsigned int i = 0; i < 2; i++)
		if (bpfgen_code_object(c, &helpers, i ? 0 : EBPF_LOAD_NO_JIT, &b->obj[i], &err)) {
			snprintf(why, sizeof(why), "refused: %s", err.text);
			both_close(b);
			return why;
		}
	return NULL;
}

void both_close(struct both *b)
{
	ebpf_object_destroy(b->obj[0]);
	ebpf_object_destroy(b->obj[1]);
	ebpf_run_destroy(b->run);
	memset(b->obj, 0, sizeof(b->obj));
	b->run = NULL;
}

static void regions_clear(const struct ebpf_region *regions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (regions[i].rights & EBPF_MAY_WRITE)
			memset(regions[i].host, 0, regions[i].size);
}

static bool same(const struct ebpf_result *a, const struct ebpf_result *b)
{
	return a->status == b->status && a->value == b->value && a->fuel == b->fuel &&
	       a->output == b->output && a->addr == b->addr && a->pc == b->pc;
}

/* The regions' contents behind the first engine and the second one */
static bool regions_same(uint8_t *const before[REGIONS], const struct ebpf_region *regions,
			 size_t count)
{
	bool good = true;

	for (size_t i = 0; i < count; i++) {
		good &= !memcmp(before[i], regions[i].host, regions[i].size);
		free(before[i]);
	}
	return good;
}

const char *both_run(struct both *b, const char *entry, const uint64_t arg[5],
		     const struct ebpf_region *regions, size_t count, uint64_t *value)
{
	static uint8_t output[BOTH_ROOM];
	struct ebpf_result result[2];
	uint8_t *memory[REGIONS];
	char text[300];

	for (int i = 0; i < 2; i++) {
		struct ebpf_params params = { .regions = regions,
					      .count = count,
					      .output = i ? b->output : output,
					      .output_room = BOTH_ROOM };

		memcpy(params.arg, arg, sizeof(params.arg));
		regions_clear(regions, count);
		if (count > REGIONS || ebpf_object_entry(b->obj[i], entry, &params.entry) ||
		    ebpf_run_start(b->run, b->obj[i], &params))
			return "cannot be started";
		ebpf_run_continue(b->run, FUEL, &result[i]);
		for (size_t j = 0; j < count && !i; j++) {
			memory[j] = malloc(regions[j].size);
			memcpy(memory[j], regions[j].host, regions[j].size);
		}
	}
	if (!regions_same(memory, regions, count) || !same(&result[0], &result[1]) ||
	    memcmp(output, b->output, result[0].output) != 0)
		return "the engines differ";
	*value = result[0].value;
	b->output_len = result[0].output;
	if (result[0].status == EBPF_DONE)
		return NULL;
	snprintf(why, sizeof(why), "%s",
		 ebpf_result_text(&result[0], b->obj[0], text, sizeof(text)));
	return why;
}
