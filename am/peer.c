/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another endpoint, as this one sees it: name, path, window, and both halves of its slots.
 *
 * A peer is known by its name, which its packets carry; the path is where they really come from
 * and may change when it moves (peer_path.c). The incarnation tells a process from a later one of
 * that name (peer_renew.c).
 */
#include "am/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "am/bulk.h"
#include "am/endpoint.h"
#include "am/gather.h"
#include "base/bits.h"

#define WINDOW_INITIAL (64 * 1024) /* until the peer says */

static uint32_t hash_of(uint32_t addr, uint16_t port)
{
	uint64_t h = ((uint64_t)addr << 16 | port) * 0x9E3779B97F4A7C15ull;

	return (uint32_t)(h >> 40) % AM_PEER_HASH;
}

struct am_peer *am_peer_find(struct amudp_ep *ep, uint32_t addr, uint16_t port)
{
	struct am_peer *peer = ep->hash[hash_of(addr, port)];

	while (peer && (peer->name.sin_addr.s_addr != addr || peer->name.sin_port != port))
		peer = peer->hash_next;
	return peer;
}

int am_peer_create(struct am_peer **out, struct amudp_ep *ep, const struct sockaddr_in *name)
{
	struct am_peer *peer = calloc(1, sizeof(*peer));
	uint32_t h = hash_of(name->sin_addr.s_addr, name->sin_port);

	if (!peer)
		return -ENOMEM;
	peer->ep = ep;
	peer->name = *name;
	peer->name.sin_family = AF_INET;
	am_peer_path_set(peer, &peer->name);
	peer->frame_max = am_peer_frame_max(ep, &peer->path);
	peer->window = WINDOW_INITIAL;
	peer->queued = -1;
	peer->index = -1;
	am_rtt_init(&peer->rtt);
	base_list_init(&peer->waiting);
	base_list_init(&peer->active);
	base_list_init(&peer->free);
	base_list_push_back(&ep->peers, &peer->node);
	peer->hash_next = ep->hash[h];
	ep->hash[h] = peer;
	*out = peer;
	return 0;
}

static void slots_destroy(struct am_peer *peer)
{
	int i;

	for (i = 0; peer->tx && i < peer->ep->depth; i++) {
		am_bulk_destroy(peer->tx[i].bulk);
		am_gather_destroy(peer->tx[i].gather);
		am_message_uninit(&peer->tx[i].message);
	}
	for (i = 0; peer->rx && i < peer->ep->depth; i++) {
		am_bulk_destroy(peer->rx[i].bulk);
		am_gather_destroy(peer->rx[i].gather);
		am_message_uninit(&peer->rx[i].reply);
	}
	free(peer->tx);
	free(peer->rx);
}

void am_peer_destroy(struct am_peer *peer)
{
	struct am_peer **at;

	if (!peer)
		return;
	at = &peer->ep->hash[hash_of(peer->name.sin_addr.s_addr, peer->name.sin_port)];
	while (*at != peer)
		at = &(*at)->hash_next;
	*at = peer->hash_next;
	base_list_remove(&peer->node);
	base_list_remove(&peer->active);
	slots_destroy(peer);
	free(peer);
}

int am_peer_tx_ready(struct am_peer *peer)
{
	int i;

	if (peer->tx)
		return 0;
	peer->tx = calloc((size_t)peer->ep->depth, sizeof(*peer->tx));
	if (!peer->tx)
		return -ENOMEM;
	for (i = 0; i < peer->ep->depth; i++) {
		peer->tx[i].index = (uint16_t)i;
		base_list_push_back(&peer->free, &peer->tx[i].node);
	}
	return 0;
}

int am_peer_rx_ready(struct am_peer *peer)
{
	if (peer->rx)
		return 0;
	peer->rx = calloc((size_t)peer->ep->depth, sizeof(*peer->rx));
	return peer->rx ? 0 : -ENOMEM;
}

void am_peer_window_set(struct am_peer *peer, uint16_t kib)
{
	peer->window = base_max((uint32_t)kib * 1024, 4096u);
}
