/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of this machine: which there are, and which one an endpoint has.
 */
#include "am/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/fdutil.h"
#include "include/warp/amudp.h"

static uint32_t udp_interface; /* network order; 0: choose */

int AMUDP_SetUDPInterface(uint32_t ip)
{
	udp_interface = ip;
	return AM_OK;
}

/* An address that other machines may reach: the first that is not the loopback's. */
uint32_t am_address_choose(void)
{
	struct ifaddrs *all, *i;
	uint32_t ip = htonl(INADDR_LOOPBACK);

	if (udp_interface)
		return udp_interface;
	if (getifaddrs(&all) < 0)
		return ip;
	for (i = all; i; i = i->ifa_next) {
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
		    !(i->ifa_flags & IFF_LOOPBACK)) {
			ip = ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr;
			break;
		}
	}
	freeifaddrs(all);
	return ip;
}

bool am_address_is_ours(uint32_t address)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = address };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ours = bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0;

	base_fd_close(fd);
	return ours;
}
