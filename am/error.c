/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the library tells errors: what a call found wrong, by its code and, if wanted, in words; and
 * what ends the program.
 */
#include "am/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
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

static const char *const status_names[] = {
	[EBADARGS] = "EBADARGS",	 [EBADENTRY] = "EBADENTRY",
	[EBADTAG] = "EBADTAG",		 [EBADHANDLER] = "EBADHANDLER",
	[EBADSEGOFF] = "EBADSEGOFF",	 [EBADLENGTH] = "EBADLENGTH",
	[EBADENDPOINT] = "EBADENDPOINT", [ECONGESTION] = "ECONGESTION",
	[EUNREACHABLE] = "EUNREACHABLE", [EREPLYREJECTED] = "EREPLYREJECTED",
};

static const char *const opcode_names[] = {
	[AM_REQUEST_M] = "AM_REQUEST_M",
	[AM_REQUEST_IM] = "AM_REQUEST_IM",
	[AM_REQUEST_XFER_M] = "AM_REQUEST_XFER_M",
	[AM_REPLY_M] = "AM_REPLY_M",
	[AM_REPLY_IM] = "AM_REPLY_IM",
	[AM_REPLY_XFER_M] = "AM_REPLY_XFER_M",
	[AM_GET_XFER_M] = "AM_GET_XFER_M",
};

static const char *name_of(const char *const *names, size_t count, int n)
{
	return n > 0 && (size_t)n < count ? names[n] : "unknown";
}

const char *am_status_name(int status)
{
	return name_of(status_names, base_array_size(status_names), status);
}

const char *am_opcode_name(int opcode)
{
	return name_of(opcode_names, base_array_size(opcode_names), opcode);
}

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
