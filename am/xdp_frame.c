/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ethernet, IPv4 and UDP headers of frames that bypass the kernel: RFC 791, RFC 768, RFC 1071.
 *
 * A datagram's UDP checksum is computed when sending, for receivers may insist on it. It is not
 * checked when receiving: a peer on the same host's other end of a virtual wire leaves it to
 * hardware that is not there. The packet's own checksum covers the bytes.
 */
#include "am/xdp_frame.h"

#include <arpa/inet.h>

#include "base/bits.h"

void am_xdp_header_init(struct am_xdp_header *h, const struct sockaddr_in *name)
{
	h->ether.h_proto = htons(ETH_P_IP);
	h->ip.version = 4;
	h->ip.ihl = 5;
	h->ip.ttl = 64;
	h->ip.protocol = IPPROTO_UDP;
	h->ip.frag_off = htons(IP_DF);
	h->ip.saddr = name->sin_addr.s_addr;
	h->udp.source = name->sin_port;
}

static uint64_t sum_add(uint64_t sum, const uint8_t *p, size_t n)
{
	uint32_t word, words[4];
	uint64_t sums[4] = { 0 };
	uint16_t half;
	int i;

	/* four sums beside each other, which a compiler turns into vectors */
	for (; n >= sizeof(words); p += sizeof(words), n -= sizeof(words)) {
		memcpy(words, p, sizeof(words));
		for (i = 0; i < 4; i++)
			sums[i] += words[i];
	}
	sum += sums[0] + sums[1] + sums[2] + sums[3];
	for (; n >= 4; p += 4, n -= 4) {
		memcpy(&word, p, 4);
		sum += word;
	}
	if (n >= 2) {
		memcpy(&half, p, 2);
		sum += half;
		p += 2;
		n -= 2;
	}
	if (n)
		sum += htons((uint16_t)(*p << 8));
	return sum;
}

static uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint16_t udp_checksum(const struct am_xdp_header *h, const uint8_t *data, size_t n)
{
	uint64_t sum = sum_add(0, (const uint8_t *)&h->ip.saddr, 8);
	uint16_t folded;

	sum += htons(IPPROTO_UDP);
	sum += h->udp.len;
	sum = sum_add(sum, (const uint8_t *)&h->udp, sizeof(h->udp));
	folded = sum_fold(sum_add(sum, data, n));
	return folded ? folded : 0xFFFF; /* 0 would say that there is none */
}

uint32_t am_xdp_frame_put(uint8_t *p, const struct am_xdp_header *template, const uint8_t *mac,
			  uint16_t id, const struct am_datagram *d)
{
	struct am_xdp_header h = *template;
	uint8_t *data = p + sizeof(h);
	uint32_t i, at = 0;

	for (i = 0; i < d->count; i++) {
		memcpy(data + at, d->iov[i].iov_base, d->iov[i].iov_len);
		at += (uint32_t)d->iov[i].iov_len;
	}
	memcpy(h.ether.h_dest, mac, ETH_ALEN);
	h.ip.id = htons(id);
	h.ip.tot_len = htons((uint16_t)(sizeof(h.ip) + sizeof(h.udp) + at));
	h.ip.daddr = d->to.sin_addr.s_addr;
	h.ip.check = sum_fold(sum_add(0, (const uint8_t *)&h.ip, sizeof(h.ip)));
	h.udp.dest = d->to.sin_port;
	h.udp.len = htons((uint16_t)(sizeof(h.udp) + at));
	h.udp.check = udp_checksum(&h, data, at);
	memcpy(p, &h, sizeof(h));
	return (uint32_t)sizeof(h) + at;
}

bool am_xdp_frame_parse(uint8_t *p, uint32_t n, struct am_arrival *out)
{
	struct am_xdp_header h;
	uint32_t ip, udp;

	if (n < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	ip = ntohs(h.ip.tot_len);
	udp = ntohs(h.udp.len);
	if (h.ether.h_proto != htons(ETH_P_IP) || h.ip.version != 4 || h.ip.ihl != 5 ||
	    h.ip.protocol != IPPROTO_UDP || (h.ip.frag_off & htons(IP_MF | IP_OFFMASK)) ||
	    ip < sizeof(h.ip) + sizeof(h.udp) || ip > n - sizeof(h.ether) || udp < sizeof(h.udp) ||
	    udp > ip - sizeof(h.ip))
		return false;
	out->from = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = h.udp.source };
	out->from.sin_addr.s_addr = h.ip.saddr;
	out->data = p + sizeof(h);
	out->length = udp - (uint32_t)sizeof(h.udp);
	return true;
}
