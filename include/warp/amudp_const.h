/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The constants of Active Messages 2 over UDP, for headers that want nothing else: every name
 * begins with AM_, AMUDP or amudp_, and nothing is included.
 */
#ifndef WARP_AMUDP_CONST_H
#define WARP_AMUDP_CONST_H

#ifndef AMUDP
#define AMUDP 1
#endif

/* What clients of AMX ask of how they are built; it is the same to this library. */
#if !defined(AMX_DEBUG) && !defined(AMX_NDEBUG)
#if defined(AMUDP_DEBUG) || defined(GASNET_DEBUG)
#define AMX_DEBUG 1
#elif defined(AMUDP_NDEBUG) || defined(GASNET_NDEBUG)
#define AMX_NDEBUG 1
#endif
#endif

/* The version of AMUDP whose interface this is: its names, types and values. */
#define AMUDP_LIBRARY_VERSION_MAJOR 3
#define AMUDP_LIBRARY_VERSION_MINOR 21
#define AMUDP_LIBRARY_VERSION 3.21
#define AMUDP_LIBRARY_VERSION_STR "3.21"

typedef enum { AM_NOEVENTS, AM_NOTEMPTY, AM_NUMEVENTMASKS } amudp_eventmask_t;
typedef enum { AM_SEQ, AM_PAR, AM_NUM_BUNDLE_MODES } amudp_bundle_mode_t;

#define AM_ALL 1  /* an endpoint with this tag takes any message */
#define AM_NONE 0 /* ... and with this one, none */

/* what the calls return */
#define AM_OK 0
#define AM_ERR_NOT_INIT 1
#define AM_ERR_BAD_ARG 2
#define AM_ERR_RESOURCE 3
#define AM_ERR_NOT_SENT 4
#define AM_ERR_IN_USE 5

/* opcode of a returned message, the second argument of handler 0 */
#define AM_REQUEST_M 1
#define AM_REQUEST_IM 2
#define AM_REQUEST_XFER_M 3
#define AM_REPLY_M 4
#define AM_REPLY_IM 5
#define AM_REPLY_XFER_M 6
#define AM_GET_XFER_M 7

#define AMUDP_MAX_SHORT 16
#define AMUDP_MAX_MEDIUM 65000
#define AMUDP_MAX_LONG 65000	 /* bytes that any build of AMUDP takes in one transfer */
#define AMUDP_MAX_XFER (1 << 30) /* bytes that this one takes */
#define AMUDP_MAX_NUMHANDLERS 256
#define AMUDP_INIT_NUMTRANSLATIONS 256
#define AMUDP_MAX_NUMTRANSLATIONS (1 << 20)
#define AMUDP_MAX_SEGLENGTH ((uintptr_t)-1)
#define AMUDP_MAX_BUNDLES 255
#define AMUDP_MAX_NETWORKDEPTH 1024
#define AMUDP_DEFAULT_NETWORKDEPTH 128
#define AMUDP_MAX_RECVDEPTH 65534
#define AMUDP_MAX_SPMDPROCS (1 << 20)

#define AM_MaxShort() AMUDP_MAX_SHORT
#define AM_MaxMedium() AMUDP_MAX_MEDIUM
#define AM_MaxLong() AMUDP_MAX_LONG
#define AM_MaxNumHandlers() AMUDP_MAX_NUMHANDLERS
#define AM_MaxNumTranslations(p) (*(p) = AMUDP_MAX_NUMTRANSLATIONS, AM_OK)
#define AMUDP_MaxXfer() AMUDP_MAX_XFER

#endif
