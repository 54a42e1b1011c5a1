/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Active Messages 2 over UDP: the published interface. Names, types and values are those that
 * programs for AMUDP know; docs/amudp.md says what is new. Compiles as C99 and as C++, and
 * includes no <stdbool.h>: programs have variables named false.
 */
#ifndef WARP_AMUDP_H
#define WARP_AMUDP_H

#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "amudp_const.h"

#if defined(__cplusplus)
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef uint64_t tag_t;
typedef uint8_t handler_t;
typedef struct sockaddr_in en_t; /* an endpoint's global name */
typedef uint32_t amudp_node_t;	 /* an index into a translation table */
typedef int op_t;
typedef struct amudp_eb *eb_t;
typedef struct amudp_ep *ep_t;

/* Handlers take (token, a0..) when short, (token, buf, nbytes, a0..) when medium or long. */
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*amudp_handler_fn_t)();
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

typedef enum {
	amudp_Short = 0,
	amudp_Medium = 1,
	amudp_Long = 2,
	amudp_NumCategories = 3
} amudp_category_t;

/* status of a returned message, the first argument of handler 0 */
#define EBADARGS 1
#define EBADENTRY 2
#define EBADTAG 3
#define EBADHANDLER 4
#define EBADSEGOFF 5
#define EBADLENGTH 6
#define EBADENDPOINT 7
#define ECONGESTION 8
#define EUNREACHABLE 9
#define EREPLYREJECTED 10

int AM_Init(void);
int AM_Startup(void); /* the report's name for AM_Init */
int AM_Terminate(void);
int AM_MaxSegLength(uintptr_t *length);

int AM_AllocateBundle(int type, eb_t *endb);
int AM_FreeBundle(eb_t bundle);
int AM_AllocateEndpoint(eb_t bundle, ep_t *endp, en_t *endpoint_name);
int AM_FreeEndpoint(ep_t ea);
int AM_MoveEndpoint(ep_t ea, eb_t from_bundle, eb_t to_bundle);

int AM_GetSeg(ep_t ea, void **addr, uintptr_t *nbytes);
int AM_SetSeg(ep_t ea, void *addr, uintptr_t nbytes);
int AM_GetTag(ep_t ea, tag_t *tag);
int AM_SetTag(ep_t ea, tag_t tag);

int AM_Map(ep_t ea, int index, en_t name, tag_t tag);
int AM_MapAny(ep_t ea, int *index, en_t name, tag_t tag);
int AM_UnMap(ep_t ea, int index);
int AM_GetTranslationInuse(ep_t ea, int index);
int AM_GetTranslationTag(ep_t ea, int index, tag_t *tag);
int AM_GetTranslationName(ep_t ea, int index, en_t *name);
int AM_GetNumTranslations(ep_t ea, int *ntrans);
int AM_SetNumTranslations(ep_t ea, int ntrans);
int AM_SetExpectedResources(ep_t ea, int n_endpoints, int n_outstanding_requests);

int AM_GetNumHandlers(ep_t ea, int *n);
int AM_SetNumHandlers(ep_t ea, int n);
int _AM_SetHandler(ep_t ea, handler_t handler, amudp_handler_fn_t function);
int _AM_SetHandlerAny(ep_t ea, handler_t *handler, amudp_handler_fn_t function);
#define AM_SetHandler(ea, h, fn) _AM_SetHandler((ea), (h), (amudp_handler_fn_t)(fn))
#define AM_SetHandlerAny(ea, ph, fn) _AM_SetHandlerAny((ea), (ph), (amudp_handler_fn_t)(fn))

int AM_GetEventMask(eb_t eb, int *mask);
int AM_SetEventMask(eb_t eb, int mask);
int AM_WaitSema(eb_t eb);
int AM_Poll(eb_t bundle);

int AM_GetSourceEndpoint(void *token, en_t *name);
int AM_GetDestEndpoint(void *token, ep_t *endp);
int AM_GetMsgTag(void *token, tag_t *tag);

#pragma GCC visibility pop
#if defined(__cplusplus)
}
#endif

#include "amudp_extend.h"
#include "amudp_message.h"

#endif
