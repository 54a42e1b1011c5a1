/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server whose only door is the protocol of 2010: one region of 64 KiB. It prints its port, and
 * ends with its input. With "refusals" it tries what must be refused instead.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <warp/active.h>

static int refusals(struct warp_active_server *server, struct warp_active_region *region)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_active_region_attr attr = { .name = "less", .size = 4096, .rights = 7 };
	struct warp_active_region *less;
	struct sockaddr_storage addr;

	if (warp_active_export(server, &attr, &less))
		return 1;
	if (warp_active_udp_serve(server, region, (void *)&any, sizeof(any)) != -EINVAL ||
	    warp_active_udp_serve(server, region, (void *)&any6, sizeof(any6)) != -EINVAL ||
	    warp_active_udp_serve(server, less, (void *)&at, sizeof(at)) != -EINVAL ||
	    warp_active_udp_serve(server, NULL, (void *)&at, sizeof(at)) != -EINVAL ||
	    warp_active_udp_addr(server, &addr) != -ENOTCONN)
		return 2;
	if (warp_active_udp_serve(server, region, (void *)&at, sizeof(at)) ||
	    warp_active_udp_serve(server, region, (void *)&at, sizeof(at)) != -EALREADY)
		return 3;
	warp_active_server_destroy(server);
	return 0;
}

int main(int argc, char **argv)
{
	const struct warp_active_server_attr attr = { .time_ms = 700 };
	struct warp_active_region_attr memory = { .name = "memory", .size = 1 << 16, .rights = 15 };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct warp_active_server *server;
	struct warp_active_region *region;
	struct sockaddr_storage addr;
	char octet;

	if (warp_active_server_create(&attr, &server) ||
	    warp_active_export(server, &memory, &region))
		return 1;
	if (argc > 1 && !strcmp(argv[1], "refusals"))
		return refusals(server, region);
	if (warp_active_udp_serve(server, region, (void *)&at, sizeof(at)) ||
	    warp_active_udp_addr(server, &addr))
		return 1;
	printf("port %u\n", ntohs(((struct sockaddr_in *)(void *)&addr)->sin_port));
	fflush(stdout);
	while (read(0, &octet, 1) == 1)
		;
	warp_active_server_destroy(server);
	return 0;
}
