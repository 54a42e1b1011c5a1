/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client of the rsockets library itself, for what sockets do not have: it maps NUMBER buffers
 * into the peer, says so with one octet, waits for one, writes 64 octets to what the peer has
 * mapped at 5000, and says so with one octet.
 *
 *	script_iomap ADDR PORT NUMBER
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint8_t memory[16][100];

static int wrong(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

static int map(int s, int number)
{
	for (int i = 0; i < number; i++) {
		memset(memory[i], 'a' + i, sizeof(memory[i]));
		if (riomap(s, memory[i], sizeof(memory[i]), PROT_WRITE, 0, 1000 * i) < 0)
			return wrong("riomap");
	}
	return 0;
}

static int work(int s, int number)
{
	char octet = 'm';

	if (map(s, number))
		return 1;
	if (rsend(s, &octet, 1, 0) != 1 || rrecv(s, &octet, 1, 0) != 1)
		return wrong("the first octet");
	if (riowrite(s, memory[1], 64, 5000, 0) != 64)
		return wrong("riowrite");
	if (rsend(s, &octet, 1, 0) != 1)
		return wrong("the second octet");
	for (int i = 0; i < number; i++) /* rclose would look for them for ever */
		if (riounmap(s, memory[i], sizeof(memory[i])))
			return wrong("riounmap");
	return rclose(s) ? wrong("close") : 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int slots = 4, s = rsocket(AF_INET, SOCK_STREAM, 0);

	if (argc != 4 || s < 0)
		return wrong("socket");
	inet_pton(AF_INET, argv[1], &a.sin_addr);
	a.sin_port = htons((uint16_t)atoi(argv[2]));
	if (rsetsockopt(s, SOL_RDMA, RDMA_IOMAPSIZE, &slots, sizeof(slots)) ||
	    rconnect(s, (struct sockaddr *)&a, sizeof(a)))
		return wrong("connect");
	return work(s, atoi(argv[3]));
}
