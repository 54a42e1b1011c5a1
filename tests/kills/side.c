/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bystanders: each end of the connection that suffers has another one, to a third process that
 * sends back what it gets. Whatever happens to the first, this one goes on to its orderly end.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ledger.h"

#define PING 64
#define SERVED 4 /* one that comes again is another one */

static struct sockaddr_in loopback(uint32_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

int side_connect(struct ledger *l, int role)
{
	struct sockaddr_in a = loopback(ledger_load(&l->side_port));
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		abort();
	ledger_store(&l->side[role].opened, 1);
	return fd;
}

/* --- who pings --- */

static size_t sent, heard; /* octets */

static void ping_send(struct ledger *l, int role, int fd)
{
	uint8_t ping[PING];

	if (sent != heard)
		return;
	pattern_put(ROLES + role, sent, ping, PING);
	if (send(fd, ping, PING, MSG_NOSIGNAL) != PING)
		ledger_store(&l->side[role].wrong, 1);
	sent += PING;
}

static void pong_take(struct ledger *l, int role, int fd)
{
	struct side *s = &l->side[role];
	uint8_t pong[PING];
	ssize_t n = recv(fd, pong, sent - heard, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || pattern_check(ROLES + role, heard, pong, (size_t)n) != (size_t)n) {
		ledger_store(&s->wrong, 1);
		return;
	}
	heard += (size_t)n;
	if (heard < sent)
		return;
	ledger_store(&s->pings, s->pings + 1);
	if (ledger_load(&l->killed))
		ledger_store(&s->after, s->after + 1);
}

void side_step(struct ledger *l, int role, int fd)
{
	ping_send(l, role, fd);
	pong_take(l, role, fd);
}

void side_rest(struct ledger *l, int role, int fd)
{
	while (sent != heard && !l->side[role].wrong) {
		poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 1000);
		pong_take(l, role, fd);
	}
}

void side_resume(struct ledger *l, int role)
{
	sent = heard = (size_t)l->side[role].pings * PING;
}

/* Ten more, if the other one lives, and its end */
void side_finish(struct ledger *l, int role, int fd)
{
	struct side *s = &l->side[role];
	uint32_t last = s->pings + 10;
	char c;

	while (s->pings < last && !s->wrong) {
		struct pollfd p = { fd, POLLIN, 0 };

		side_step(l, role, fd);
		if (sent != heard)
			poll(&p, 1, 1000);
	}
	shutdown(fd, SHUT_WR);
	if (recv(fd, &c, 1, 0) != 0)
		ledger_store(&s->wrong, 2);
	close(fd);
	ledger_store(&s->closed, 1);
}

/* --- who answers --- */

/* False when it has ended */
static bool answer(int fd)
{
	uint8_t octets[4096];
	ssize_t n = recv(fd, octets, sizeof(octets), MSG_DONTWAIT);

	if (n > 0)
		return send(fd, octets, (size_t)n, MSG_NOSIGNAL) == n;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static int listen_somewhere(uint32_t *port)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		abort();
	ledger_store(port, (uint32_t)ntohs(a.sin_port));
	return fd;
}

void side_serve(struct ledger *l)
{
	struct pollfd p[SERVED + 1] = { { listen_somewhere(&l->side_port), POLLIN, 0 } };
	int n = 1, open = 0;

	while (!ledger_load(&l->over) || open) {
		poll(p, (nfds_t)n, 20);
		for (int i = 1; i < n; i++) {
			if (p[i].fd < 0 || !p[i].revents || answer(p[i].fd))
				continue;
			close(p[i].fd);
			p[i].fd = -1;
			open--;
		}
		if (p[0].revents && n <= SERVED) {
			p[n++] = (struct pollfd){ accept(p[0].fd, NULL, NULL), POLLIN, 0 };
			open++;
		}
	}
}
