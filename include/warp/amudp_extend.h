/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What AMUDP adds to Active Messages 2: statistics, callbacks, switches. */
#ifndef WARP_AMUDP_EXTEND_H
#define WARP_AMUDP_EXTEND_H

#include "amudp.h"

#if defined(__cplusplus)
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef uint64_t amx_tick_t; /* of latencies: microseconds */

/* Arrays are by category. Received counts include retransmissions; latencies are in us. */
typedef struct {
	uint64_t RequestsSent[amudp_NumCategories];
	uint64_t RepliesSent[amudp_NumCategories];
	uint64_t RequestsRetransmitted[amudp_NumCategories];
	uint64_t RepliesRetransmitted[amudp_NumCategories];
	uint64_t RepliesSquashed[amudp_NumCategories];
	uint64_t RequestsReceived[amudp_NumCategories];
	uint64_t RepliesReceived[amudp_NumCategories];
	uint64_t ReturnedMessages;
	uint64_t OutOfOrderRequests;
	uint64_t OutOfOrderReplies;
	amx_tick_t RequestMinLatency;
	amx_tick_t RequestMaxLatency;
	amx_tick_t RequestSumLatency;
	uint64_t RequestDataBytesSent[amudp_NumCategories];
	uint64_t ReplyDataBytesSent[amudp_NumCategories];
	uint64_t RequestTotalBytesSent[amudp_NumCategories];
	uint64_t ReplyTotalBytesSent[amudp_NumCategories];
	uint64_t TotalBytesSent;
} amudp_stats_t;

/* What the published statistics cannot tell. */
typedef struct {
	uint64_t NeedlessRetransmissions; /* the first copy's answer came after all */
	uint64_t FragmentsSent;
	uint64_t FragmentsRetransmitted;
	uint64_t PacketsSent;
	uint64_t PacketsReceived;
	uint64_t SystemCallsSend;
	uint64_t SystemCallsReceive;
	uint64_t BadPackets; /* malformed, or of another version */
	uint64_t BadChecksums;
	uint64_t Strangers; /* another job's nonce, or an unknown source */
	uint64_t StaleIncarnations;
	uint64_t FaultsDropped;
	uint64_t FaultsDuplicated;
	uint64_t FaultsReordered;
	uint64_t FaultsDelayed;
	uint64_t FaultsCorrupted;
	uint64_t LatencySamples;    /* requests that RequestSumLatency is the sum of */
	uint64_t QuestionsSent;	    /* for answers that were late */
	uint64_t QuestionsAnswered; /* by a reply's retransmission */
	uint64_t ArrivalsDropped;   /* by the kernel, when too many were not looked at */
} amudp_xstats_t;

extern const amudp_stats_t AMUDP_initial_stats;
int AMUDP_GetEndpointStatistics(ep_t ep, amudp_stats_t *stats);
int AMUDP_ResetEndpointStatistics(ep_t ep);
int AMUDP_AggregateStatistics(amudp_stats_t *runningsum, amudp_stats_t *newvalues);
const char *AMUDP_DumpStatistics(void *fp, amudp_stats_t *stats, int globalanalysis);
int AMUDP_GetEndpointExtendedStatistics(ep_t ep, amudp_xstats_t *stats);

extern int AMUDP_VerboseErrors; /* say on stderr what a call found wrong */
extern int AMUDP_PoliteSync;	/* waits sleep at once instead of spinning first */
extern int AMUDP_SilentMode;	/* told to workers; there are no notices to leave out */
extern const char *AMUDP_ProcessLabel;
void AMUDP_FatalErr(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

typedef void (*AMUDP_preHandlerCallback_t)(amudp_category_t cat, int isReq, int handlerId,
					   void *token, void *buf, size_t nbytes, int numargs,
					   uint32_t *args);
typedef void (*AMUDP_postHandlerCallback_t)(amudp_category_t cat, int isReq);
int AMUDP_SetHandlerCallbacks(ep_t ep, AMUDP_preHandlerCallback_t preHandlerCallback,
			      AMUDP_postHandlerCallback_t postHandlerCallback);

/* Endpoints allocated afterwards are bound to this address, network byte order. */
int AMUDP_SetUDPInterface(uint32_t ip);
int AMUDP_SetTranslationTag(ep_t ea, int index, tag_t tag);
int AMUDP_GetSourceId(void *token, int *srcid);
/* Of the message whose handler runs: its handler, its category, and 1 for a request. */
int AMUDP_GetTokenInfo(void *token, handler_t *handler, amudp_category_t *category, int *isrequest);
int AMUDP_enEqual(en_t a, en_t b); /* 1: the same name */

/*
 * The word that stands before names of variables, for a program whose users know another one than
 * AMUDP: with GASNET, GASNET_X goes before AMUDP_X, and that before X. Letters, digits and
 * underscores. Environment: AMUDP_ENV_PREFIX, for programs that do not call this.
 */
int AMUDP_SetEnvPrefix(const char *prefix);

/*
 * Another place where the endpoint can be reached: an address of this machine, network byte
 * order. When the link of the one in use goes down, the endpoint goes over to the next and tells
 * its peers. Environment: AMUDP_PATHS, for every rank the addresses of all machines.
 */
int AMUDP_AddPath(ep_t ep, uint32_t ip);
/* Goes to this address, tells the peers, and closes the old place when all of them know. */
int AMUDP_MigrateEndpoint(ep_t ep, uint32_t ip);
/*
 * The endpoint stands in for a dead one of this name, before it maps anything. Its peers send it
 * what they have no answer for; it runs each such request at most once.
 */
int AMUDP_TakeName(ep_t ep, en_t name);

/*
 * What carries the endpoint's packets: "udp", or "xdp" where AMUDP_NIC=xdp asked for it and it
 * could be had. Why not is said on stderr.
 */
const char *AMUDP_GetNic(ep_t ep);

/*
 * Hold requests back until n of them stand together, a call waits, or AMUDP_Flush; 0 sends each
 * at once, which is the default. Environment: AMUDP_BATCH.
 */
int AMUDP_SetBatch(ep_t ep, int n);
int AMUDP_Flush(ep_t ep);

/*
 * Prints a line for each endpoint that runs now in any process of this user, to the FILE or to
 * stdout when NULL; returns their number. Environment: AMUDP_LIVE=0 keeps an endpoint out.
 */
int AMUDP_DumpLive(void *fp);

/* The endpoint's job: packets of any other are dropped. Before AM_SetExpectedResources. */
int AMUDP_SetJobNonce(ep_t ep, uint64_t nonce);

#pragma GCC visibility pop
#if defined(__cplusplus)
}
#endif

#include "amudp_amx.h"

#endif
