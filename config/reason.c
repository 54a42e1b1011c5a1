/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reason codes as words. Numbers may come from another version of this code, through shared
 * state or a report, so each gets some words.
 */
#include "config/reason.h"

#include <stddef.h>

#include "base/bits.h"

static const struct config_reason_row rows[] = {
#define X(name, number, group, text, advice) \
	{ CONFIG_REASON_##name, CONFIG_REASON_##group, #name, text, advice },
	CONFIG_REASON_LIST(X)
#undef X
};

static const struct config_reason_row unknown = {
	.name = "UNKNOWN",
	.text = "This reason is not known here.",
};

static const struct config_reason_row *reason_find(unsigned int number)
{
	for (size_t i = 0; i < base_array_size(rows); i++)
		if (rows[i].number == number)
			return &rows[i];
	return &unknown;
}

const struct config_reason_row *config_reason_at(unsigned int i)
{
	return i < base_array_size(rows) ? &rows[i] : NULL;
}

const char *config_reason_name(unsigned int number)
{
	return reason_find(number)->name;
}

const char *config_reason_text(unsigned int number)
{
	return reason_find(number)->text;
}
