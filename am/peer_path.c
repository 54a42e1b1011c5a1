/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The path to a peer: what the kernel says of its address, and how long packets to it may be.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "am/endpoint.h"
#include "am/env.h"
#include "base/bits.h"
#include "base/fdutil.h"

#define UDP_IP_HEADERS 28
#define MTU_FALLBACK 1500
#define PACKET_MIN 700 /* a fragment of the least size, with the longest head */

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

uint32_t am_peer_frame_max(const struct amudp_ep *ep, const struct sockaddr_in *to)
{
	uint32_t datagram = base_min(path_mtu(to) - UDP_IP_HEADERS, (uint32_t)AM_WIRE_MAX_DATAGRAM);
	int64_t limit = am_env_int("MAX_PACKET", AM_WIRE_MAX_DATAGRAM);

	if (ep->num_nics && ep->nics[ep->nic]->datagram_max)
		datagram = base_min(datagram, ep->nics[ep->nic]->datagram_max);
	if (limit >= PACKET_MIN)
		datagram = (uint32_t)base_min((int64_t)datagram, limit);
	return datagram - (uint32_t)sizeof(struct am_wire_packet);
}

void am_peer_path_set(struct am_peer *peer, const struct sockaddr_in *path)
{
	peer->path = *path;
	peer->path.sin_family = AF_INET;
	peer->near = path_is_near(&peer->path);
	peer->takes_unsealed = false;
}
