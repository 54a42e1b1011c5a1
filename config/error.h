/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_ERROR_H
#define CONFIG_ERROR_H

#include <stddef.h>

/*
 * What is wrong with something that a user wrote: one line without its newline, for the launcher
 * to print and for the interposer to log. All of it is printable ASCII, but for a path in it.
 */
struct config_error {
	char text[512];
};

/* Makes a line; a longer one is cut. */
void config_error_set(struct config_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define CONFIG_QUOTE_MAX 64
/* The @n bytes at @p in quotes, shortened and escaped, to be shown in an error. Returns @out. */
const char *config_quote(const char *p, size_t n, char out[CONFIG_QUOTE_MAX]);

#endif
