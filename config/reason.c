/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reason codes as words. Numbers may come from another version of this code, through shared
 * state or a report, so each gets some words.
 */
#include "config/reason.h"

#include <errno.h>
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
	.advice = "",
};

static const struct {
	int error;
	enum config_reason reason;
} errors[] = {
	{ ETIMEDOUT, CONFIG_REASON_PROBE_TIMEOUT },
	{ ECONNREFUSED, CONFIG_REASON_REFUSED },
	{ EHOSTUNREACH, CONFIG_REASON_UNREACHABLE },
	{ EPROTONOSUPPORT, CONFIG_REASON_PEER_PARAMETERS },
	{ ECONNRESET, CONFIG_REASON_PEER_CLOSED },
	{ EPIPE, CONFIG_REASON_PEER_CLOSED },
	{ ENOMEM, CONFIG_REASON_NO_MEMORY },
	{ ENODEV, CONFIG_REASON_PROVIDER_UNAVAILABLE },
	{ EPROTO, CONFIG_REASON_PEER_NOT_MPA },
	/* What else they may come of; the first row of an error is the reason that it stands for */
	{ ECONNREFUSED, CONFIG_REASON_UNREACHABLE },
	{ ETIMEDOUT, CONFIG_REASON_UNREACHABLE },
	{ ENETUNREACH, CONFIG_REASON_UNREACHABLE },
	{ ECONNRESET, CONFIG_REASON_PROBE_TIMEOUT },
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

const char *config_reason_advice(unsigned int number)
{
	return reason_find(number)->advice;
}

enum config_reason config_reason_of_error(int error)
{
	for (size_t i = 0; i < base_array_size(errors); i++)
		if (errors[i].error == error)
			return errors[i].reason;
	return CONFIG_REASON_PEER_NOT_MPA;
}

int config_reason_error_at(unsigned int i, enum config_reason *out)
{
	if (i >= base_array_size(errors))
		return 0;
	*out = errors[i].reason;
	return errors[i].error;
}
