/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints: made, told what the program wants of them, destroyed.
 */
#include "am/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "am/address.h"
#include "am/env.h"
#include "am/live.h"
#include "am/lock.h"
#include "am/path.h"
#include "am/queue.h"
#include "base/bits.h"
#include "base/clock.h"

#define RECEIVE_BYTES (8u << 20)
#define RECEIVE_BYTES_MAX (64u << 20)

static uint64_t microseconds(const char *name, int64_t fallback)
{
	int64_t us = am_env_int(name, fallback);

	return us <= 0 ? BASE_NEVER : (uint64_t)us * BASE_NS_PER_US;
}

static void options_read(struct am_options *o)
{
	o->timeout_initial = microseconds("REQUESTTIMEOUT_INITIAL", 100000);
	o->timeout_max = microseconds("REQUESTTIMEOUT_MAX", 30000000);
	o->backoff = (uint32_t)base_max(am_env_int("REQUESTTIMEOUT_BACKOFF", 2), 1);
	o->send_depth = (int)am_env_int("SENDDEPTH", 0);
	o->spin = (uint64_t)base_max(am_env_int("SPIN", 50), 0) * BASE_NS_PER_US;
	o->checksum = am_env_choice("CHECKSUM");
	o->batch = (int)am_env_int("BATCH", 0);
}

/* Grows with time, so that a later endpoint of the same name is a later one. */
static uint32_t incarnation_next(void)
{
	static uint32_t last;
	struct timespec ts;
	uint32_t now;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = (uint32_t)(ts.tv_sec * 64 + ts.tv_nsec / (1000000000 / 64));
	if ((int32_t)(now - last) <= 0)
		now = last + 1;
	last = base_max(now, 1u);
	return last;
}

static void endpoint_init(struct amudp_ep *ep)
{
	static uint32_t made;

	ep->magic = AM_ENDPOINT_MAGIC;
	ep->incarnation = incarnation_next();
	ep->num_handlers = AMUDP_MAX_NUMHANDLERS;
	ep->next_deadline = BASE_NEVER;
	ep->gather_due = BASE_NEVER;
	ep->move_due = BASE_NEVER;
	ep->path_due = BASE_NEVER;
	ep->receive_max = 1;
	ep->window_kib = 64;
	ep->stats = AMUDP_initial_stats;
	am_retransmit_init(&ep->retransmit);
	base_list_init(&ep->peers);
	base_list_init(&ep->active);
	base_list_init(&ep->bulks);
	base_list_init(&ep->gathers);
	options_read(&ep->options);
	am_fault_init(&ep->fault, am_live_rank == UINT32_MAX ? made++ : am_live_rank);
}

static void returned_by_default(int status, op_t opcode, void *token)
{
	char ip[INET_ADDRSTRLEN] = "";
	en_t name = { .sin_port = 0 };
	int rank = -1;

	AM_GetSourceEndpoint(token, &name);
	AMUDP_GetSourceId(token, &rank);
	inet_ntop(AF_INET, &name.sin_addr, ip, sizeof(ip));
	AMUDP_FatalErr("a message was returned (%s, %s) from %s:%u, translation %d, and handler 0 "
		       "is not set",
		       am_status_name(status), am_opcode_name(opcode), ip,
		       (unsigned int)ntohs(name.sin_port), rank);
}

/* RECVDEPTH is in datagrams, which may be of the greatest length. */
static uint32_t receive_bytes_wanted(void)
{
	int64_t depth = am_env_int("RECVDEPTH", 0);

	if (depth <= 0)
		return RECEIVE_BYTES;
	depth = base_min(depth, AMUDP_MAX_RECVDEPTH);
	return (uint32_t)base_min(depth * AM_WIRE_MAX_DATAGRAM, (int64_t)RECEIVE_BYTES_MAX);
}

static int nic_open(struct amudp_ep *ep)
{
	int ret = am_path_add(ep, am_address_choose(), receive_bytes_wanted());

	if (ret < 0)
		return ret;
	ep->name = ep->nics[0]->name;
	am_path_open_all(ep);
	return 0;
}

void am_endpoint_destroy(struct amudp_ep *ep)
{
	struct base_list *node, *next;

	am_live_unpublish(ep);
	base_list_foreach(node, next, &ep->peers)
		am_peer_destroy(base_list_entry(node, struct am_peer, node));
	while (ep->num_nics > 0) {
		struct am_nic *nic = ep->nics[--ep->num_nics];

		nic->ops->destroy(nic);
	}
	am_fault_uninit(&ep->fault);
	free(ep->translations);
	ep->magic = 0;
	free(ep);
}

int am_endpoint_create(struct amudp_ep **out)
{
	struct amudp_ep *ep = calloc(1, sizeof(*ep));
	int ret = -ENOMEM;

	if (!ep)
		return ret;
	endpoint_init(ep);
	ep->handlers[0] = (amudp_handler_fn_t)returned_by_default;
	ep->num_translations = AMUDP_INIT_NUMTRANSLATIONS;
	ep->translations = calloc(AMUDP_INIT_NUMTRANSLATIONS, sizeof(*ep->translations));
	if (ep->translations)
		ret = nic_open(ep);
	if (ret < 0) {
		am_endpoint_destroy(ep);
		return ret;
	}
	am_live_publish(ep);
	*out = ep;
	return 0;
}

int AM_GetSeg(ep_t ea, void **addr, uintptr_t *nbytes)
{
	if (!am_endpoint_valid(ea) || !addr || !nbytes)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	*addr = ea->segment;
	*nbytes = ea->segment_len;
	return AM_OK;
}

/* From nowhere for as long as it can be: all of the address space, offsets are addresses. */
static bool is_segment(const void *addr, uintptr_t nbytes)
{
	if (!nbytes)
		return true;
	if (!addr)
		return nbytes == AMUDP_MAX_SEGLENGTH;
	return nbytes - 1 <= UINTPTR_MAX - (uintptr_t)addr;
}

int AM_SetSeg(ep_t ea, void *addr, uintptr_t nbytes)
{
	if (!am_endpoint_valid(ea) || !is_segment(addr, nbytes))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint, no memory, or beyond its end");
	ea->segment = addr;
	ea->segment_len = nbytes;
	return AM_OK;
}

int AM_GetTag(ep_t ea, tag_t *tag)
{
	if (!am_endpoint_valid(ea) || !tag)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	*tag = ea->tag;
	return AM_OK;
}

int AM_SetTag(ep_t ea, tag_t tag)
{
	if (!am_endpoint_valid(ea))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	ea->tag = tag;
	return AM_OK;
}

int AMUDP_SetJobNonce(ep_t ep, uint64_t nonce)
{
	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	if (ep->depth)
		am_return_error(AM_ERR_RESOURCE, "the job cannot change any more");
	ep->nonce = nonce;
	return AM_OK;
}

const char *AMUDP_GetNic(ep_t ep)
{
	return am_endpoint_valid(ep) ? ep->nics[ep->nic]->ops->name : NULL;
}

int AMUDP_SetBatch(ep_t ep, int n)
{
	if (!am_endpoint_valid(ep) || n < 0)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint, or fewer than none");
	ep->options.batch = n;
	return AM_OK;
}

int AMUDP_Flush(ep_t ep)
{
	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	am_lock_take(ep->lock);
	am_queue_flush(ep);
	am_lock_drop(ep->lock);
	return AM_OK;
}
