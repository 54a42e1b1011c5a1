/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server: it registers memory, tells the client where it is, and then makes no call on the
 * socket until the client says, in that memory, that it has finished.
 */
#include "ddp.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct ddp_table table;

static int listener_open(const char *host, const char *port, int *out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *addr;
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	char service[NI_MAXSERV];
	int err = getaddrinfo(host, port, &hints, &addr), fd, on = 1, status;

	if (err) {
		fprintf(stderr, "warp-ddp: %s: %s\n", host, gai_strerror(err));
		return 3;
	}
	fd = socket(addr->ai_family, addr->ai_socktype, addr->ai_protocol);
	status = fd < 0 ? ddp_failed("socket") : ddp_mode_set(fd);
	if (!status && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
			bind(fd, addr->ai_addr, addr->ai_addrlen) || listen(fd, 1) ||
			getsockname(fd, (struct sockaddr *)&name, &len)))
		status = ddp_failed("listen");
	freeaddrinfo(addr);
	if (status)
		return status;
	getnameinfo((struct sockaddr *)&name, len, NULL, 0, service, sizeof(service),
		    NI_NUMERICSERV);
	printf("listening on port %s\n", service);
	fflush(stdout);
	*out = fd;
	return 0;
}

/* The progress of the program is not needed for the client's operations */
static void compute(void)
{
	struct timespec pause = { 0, 1000000 };

	while (!__atomic_load_n(&table.finished, __ATOMIC_ACQUIRE)) /* pairs with the client */
		nanosleep(&pause, NULL);
}

static int serve(int fd)
{
	struct ddp_place place = { .to = (uintptr_t)&table, .length = sizeof(table) };
	unsigned int access = DDP_ACCESS_REMOTE_WRITE | DDP_ACCESS_REMOTE_READ |
			      DDP_ACCESS_REMOTE_ATOMIC;
	int status;

	table.counter = 40;
	if (ddp_register(fd, &table, sizeof(table), access, &place.stag))
		return ddp_failed("DDP_REG_MR");
	status = ddp_info_print(fd, "server");
	if (status)
		return status;
	if (ddp_message_send(fd, &place, sizeof(place)))
		return ddp_failed("DDP_CMSG_SEND");
	compute();
	printf("the client wrote \"%.*s\", the counter is %llu\n", (int)sizeof(table.text),
	       table.text, (unsigned long long)table.counter);
	if (setsockopt(fd, SOL_DDP, DDP_DEREG_MR, &place.stag, sizeof(place.stag)))
		return ddp_failed("DDP_DEREG_MR");
	return write(fd, "bye", 3) == 3 ? 0 : ddp_failed("write");
}

int ddp_server(const char *host, const char *port)
{
	int listener, fd, status = listener_open(host, port, &listener);

	if (status)
		return status;
	fd = accept(listener, NULL, NULL);
	close(listener);
	if (fd < 0)
		return ddp_failed("accept");
	status = serve(fd);
	close(fd);
	return status;
}
