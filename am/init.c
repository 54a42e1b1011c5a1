/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Beginning and end of the library, and the variadic forms of its calls.
 */
#include <stdarg.h>

#include "am/bundle.h"

int AM_Init(void)
{
	am_init_count++;
	return AM_OK;
}

int AM_Startup(void)
{
	return AM_Init();
}

int AM_Terminate(void)
{
	if (!am_init_count)
		am_return_error(AM_ERR_NOT_INIT, "AM_Init comes first");
	if (--am_init_count == 0)
		am_bundles_free();
	return AM_OK;
}

int AM_MaxSegLength(uintptr_t *length)
{
	if (!length)
		am_return_error(AM_ERR_BAD_ARG, "no place for the answer");
	*length = AMUDP_MAX_SEGLENGTH;
	return AM_OK;
}

/* The variadic forms of the calls in request_tx.c and reply_tx.c. */
#define FORWARD(name, params, args)          \
	int AMUDP_##name params              \
	{                                    \
		va_list argptr;              \
		int ret;                     \
                                             \
		va_start(argptr, numargs);   \
		ret = AMUDP_##name##VA args; \
		va_end(argptr);              \
		return ret;                  \
	}

FORWARD(Request, (ep_t ep, amudp_node_t dest, handler_t handler, int numargs, ...),
	(ep, dest, handler, numargs, argptr))
FORWARD(RequestI,
	(ep_t ep, amudp_node_t dest, handler_t handler, void *src, int nbytes, int numargs, ...),
	(ep, dest, handler, src, nbytes, numargs, argptr))
FORWARD(RequestXfer,
	(ep_t ep, amudp_node_t dest, handler_t handler, void *src, int nbytes,
	 uintptr_t dest_offset, int async, int numargs, ...),
	(ep, dest, handler, src, nbytes, dest_offset, async, numargs, argptr))
FORWARD(GetXfer,
	(ep_t ep, amudp_node_t dest, uintptr_t source_offset, handler_t handler,
	 uintptr_t dest_offset, int nbytes, int async, int numargs, ...),
	(ep, dest, source_offset, handler, dest_offset, nbytes, async, numargs, argptr))
FORWARD(Reply, (void *token, handler_t handler, int numargs, ...),
	(token, handler, numargs, argptr))
FORWARD(ReplyI, (void *token, handler_t handler, void *src, int nbytes, int numargs, ...),
	(token, handler, src, nbytes, numargs, argptr))
FORWARD(ReplyXfer,
	(void *token, handler_t handler, void *src, int nbytes, uintptr_t dest_offset, int numargs,
	 ...),
	(token, handler, src, nbytes, dest_offset, numargs, argptr))
