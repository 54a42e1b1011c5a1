/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Errors as a user reads them. What the user wrote is quoted so that a terminal and a log line
 * survive it, and so that nothing in it is invisible: all but printable ASCII is escaped, and a
 * long word is cut.
 */
#include "config/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* an escape, the mark of a cut, a quote and the NUL must still fit */
#define QUOTE_ROOM (CONFIG_QUOTE_MAX - 9)

void config_error_set(struct config_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}

static size_t octet_put(char *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";

	if (c >= 0x20 && c < 0x7f) {
		out[0] = (char)c;
		return 1;
	}
	out[0] = '\\';
	out[1] = 'x';
	out[2] = hex[c >> 4];
	out[3] = hex[c & 15];
	return 4;
}

const char *config_quote(const char *p, size_t n, char out[CONFIG_QUOTE_MAX])
{
	size_t at = 0, i;

	out[at++] = '"';
	for (i = 0; i < n && at < QUOTE_ROOM; i++)
		at += octet_put(out + at, (unsigned char)p[i]);
	if (i < n) {
		memcpy(out + at, "...", 3);
		at += 3;
	}
	out[at++] = '"';
	out[at] = 0;
	return out;
}
