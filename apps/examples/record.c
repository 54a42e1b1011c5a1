/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records as text: what a layout says of them becomes names and numbers.
 *
 * A record is as it stands in memory or in a file, so its fields need not be aligned.
 */
#include "record.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t number_get(const struct bpfgen_field *f, const uint8_t *at)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < f->length; i++)
		value |= (uint64_t)at[f->big_endian ? f->length - 1 - i : i] << 8 * i;
	if (f->type >= BPFGEN_S8 && f->length < 8) /* its sign */
		value = (value ^ 1ull << (8 * f->length - 1)) - (1ull << (8 * f->length - 1));
	return value;
}

static void field_print(const struct bpfgen_field *f, const uint8_t *record)
{
	const uint8_t *at = record + f->offset;

	if (f->type == BPFGEN_PAD)
		return;
	if (f->type == BPFGEN_TEXT)
		printf("  %s \"%.*s\"", f->name, (int)f->length, (const char *)at);
	else if (f->type >= BPFGEN_S8)
		printf("  %s %" PRId64, f->name, (int64_t)number_get(f, at));
	else
		printf("  %s %" PRIu64, f->name, number_get(f, at));
}

void record_print(const struct bpfgen_layout *layout, const uint8_t *record)
{
	for (size_t i = 0; i < layout->count; i++)
		field_print(&layout->fields[i], record);
}
