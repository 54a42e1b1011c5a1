/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another endpoint, as this one sees it: name, path, window, and both halves of its slots.
 *
 * A peer is known by its name, which its packets carry; the path is where they really come from
 * and may change when it moves. The incarnation tells a process from a later one of that name.
 */
#include "am/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "am/bulk.h"
#include "am/endpoint.h"
#include "am/env.h"
#include "am/gather.h"
#include "am/move.h"
#include "am/queue.h"
#include "am/slot.h"
#include "base/bits.h"
#include "base/fdutil.h"

#define WINDOW_INITIAL (64 * 1024) /* until the peer says */
#define UDP_IP_HEADERS 28
#define MTU_FALLBACK 1500
#define PACKET_MIN 700 /* a fragment of the least size, with the longest head */

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

/* A socket to ask the kernel by what it thinks of the path; it sends nothing. Or -1 */
static int path_ask(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* What one packet to this address may be long, by the kernel's idea of the path. */
static uint32_t path_mtu(const struct sockaddr_in *to)
{
	int fd = path_ask(to);
	int mtu = 0;
	socklen_t len = sizeof(mtu);

	if (getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len) < 0 || mtu < 576)
		mtu = MTU_FALLBACK;
	base_fd_close(fd);
	return (uint32_t)mtu;
}

/*
 * Is the address one of this host's? To those the kernel speaks from the same address. bind()
 * would be no answer: where net.ipv4.ip_nonlocal_bind is set it takes all. Of a second address in
 * one subnet it speaks from the first: such a one is not found, and has its checksums.
 */
static bool path_is_near(const struct sockaddr_in *to)
{
	struct sockaddr_in source = { 0 };
	socklen_t len = sizeof(source);
	bool near;
	int fd;

	if (ntohl(to->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET)
		return true;
	fd = path_ask(to);
	near = getsockname(fd, (struct sockaddr *)&source, &len) == 0 &&
	       source.sin_addr.s_addr == to->sin_addr.s_addr;
	base_fd_close(fd);
	return near;
}

static uint32_t frame_max_of(const struct amudp_ep *ep, const struct sockaddr_in *to)
{
	uint32_t datagram = base_min(path_mtu(to) - UDP_IP_HEADERS, (uint32_t)AM_WIRE_MAX_DATAGRAM);
	int64_t limit = am_env_int("MAX_PACKET", AM_WIRE_MAX_DATAGRAM);

	if (ep->num_nics && ep->nics[ep->nic]->datagram_max)
		datagram = base_min(datagram, ep->nics[ep->nic]->datagram_max);
	if (limit >= PACKET_MIN)
		datagram = (uint32_t)base_min((int64_t)datagram, limit);
	return datagram - (uint32_t)sizeof(struct am_wire_packet);
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
	peer->frame_max = frame_max_of(ep, &peer->path);
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

void am_peer_path_set(struct am_peer *peer, const struct sockaddr_in *path)
{
	peer->path = *path;
	peer->path.sin_family = AF_INET;
	peer->near = path_is_near(&peer->path);
	peer->takes_unsealed = false;
}

static void rx_slots_forget(struct am_peer *peer)
{
	struct am_rx_slot *rx;
	int i;

	for (i = 0; peer->rx && i < peer->ep->depth; i++) {
		rx = &peer->rx[i];
		am_bulk_destroy(rx->bulk);
		am_gather_destroy(rx->gather);
		am_queue_retire(peer->ep, &rx->reply);
		rx->bulk = NULL;
		rx->gather = NULL;
		/* a handler that runs now must not find its slot taken by another */
		if (rx->state == AM_RX_RUNNING)
			rx->orphan = true;
		else
			memset(rx, 0, sizeof(*rx));
	}
}

static void tx_slot_renew(struct am_peer *peer, struct am_tx_slot *slot, uint64_t now)
{
	am_gather_destroy(slot->gather);
	slot->gather = NULL;
	slot->received = false;
	if (slot->state == AM_TX_REFUSING) {
		am_slot_release(peer->ep, peer, slot);
		return;
	}
	am_bulk_destroy(slot->bulk);
	slot->bulk = NULL;
	am_slot_send(peer->ep, peer, slot, now);
}

void am_peer_renew(struct am_peer *peer, uint32_t incarnation)
{
	struct base_list again, *node;
	bool first = peer->incarnation == 0;

	peer->incarnation = incarnation;
	peer->move_serial = 0;
	peer->takes_unsealed = false;
	if (first)
		return;
	am_move_forgotten(peer->ep, peer);
	rx_slots_forget(peer);
	base_list_init(&again);
	while ((node = base_list_pop_front(&peer->waiting)))
		base_list_push_back(&again, node);
	while ((node = base_list_pop_front(&again))) {
		base_list_push_back(&peer->waiting, node);
		tx_slot_renew(peer, base_list_entry(node, struct am_tx_slot, node),
			      peer->ep->last_poll);
	}
}
