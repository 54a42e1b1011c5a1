/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the library tells errors: what a call found wrong, by its code and, if wanted, in words; and
 * what ends the program.
 */
#include "am/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/warp/amudp.h"

int AMUDP_VerboseErrors;
int AMUDP_PoliteSync;
int AMUDP_SilentMode;
const char *AMUDP_ProcessLabel = "*";
int am_init_count;

static const char *const error_names[] = {
	[AM_OK] = "AM_OK",
	[AM_ERR_NOT_INIT] = "AM_ERR_NOT_INIT",
	[AM_ERR_BAD_ARG] = "AM_ERR_BAD_ARG",
	[AM_ERR_RESOURCE] = "AM_ERR_RESOURCE",
	[AM_ERR_NOT_SENT] = "AM_ERR_NOT_SENT",
	[AM_ERR_IN_USE] = "AM_ERR_IN_USE",
};

int am_error(int code, const char *function, const char *what)
{
	if (AMUDP_VerboseErrors)
		fprintf(stderr, "%s: %s returns %s: %s\n", AMUDP_ProcessLabel, function,
			error_names[code], what);
	return code;
}

void AMUDP_FatalErr(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "*** FATAL ERROR(%s): %s\n", AMUDP_ProcessLabel, text);
	fflush(stderr);
	abort();
}
