/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which addresses a job uses: MASTERIP, a name or an address of the console's machine, and
 * WORKERIP, an address of the worker's machine or a subnet in which it has one. One WORKERIP serves
 * workers on many machines when it is a subnet.
 */
#include "am/job_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "am/address.h"
#include "am/env.h"
#include "base/fdutil.h"

static void address_tell(const char *name, uint32_t address)
{
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &address, text, sizeof(text));
	am_env_tell(name, "%s", text);
}

static int name_resolve(const char *spelled, const char *name, uint32_t *out)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	int ret = getaddrinfo(name, NULL, &hints, &found);

	if (ret != 0) {
		fprintf(stderr,
			"*** AMUDP: %s=%s: the value must be an IPv4 address, or a name "
			"that has one: %s\n",
			spelled, name, gai_strerror(ret));
		return -EHOSTUNREACH;
	}
	*out = ((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr;
	freeaddrinfo(found);
	return 0;
}

/* The address from which other machines are reached; nothing is sent. */
static uint32_t outward(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(to);

	to.sin_addr.s_addr = inet_addr("192.0.2.1");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&to, &len) < 0)
		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	base_fd_close(fd);
	return to.sin_addr.s_addr;
}

int am_address_of_console(bool local, uint32_t *out)
{
	char spelled[AM_ENV_NAME_MAX];
	const char *name = am_env_find("MASTERIP", spelled);
	int ret = 0;

	if (name && *name)
		ret = name_resolve(spelled, name, out);
	else
		*out = local ? htonl(INADDR_LOOPBACK) : outward();
	if (ret == 0)
		address_tell("MASTERIP", *out);
	return ret;
}

struct subnet {
	uint32_t address;
	uint32_t mask; /* 0: that of the interface */
};

static int subnet_parse(const char *text, struct subnet *out)
{
	char address[INET_ADDRSTRLEN], *end = NULL;
	const char *slash = strchrnul(text, '/');
	long bits = *slash ? strtol(slash + 1, &end, 10) : 0;

	if ((size_t)(slash - text) >= sizeof(address) ||
	    (*slash && (!slash[1] || *end || bits < 1 || bits > 32)))
		return -EINVAL;
	snprintf(address, sizeof(address), "%.*s", (int)(slash - text), text);
	out->mask = *slash ? htonl(UINT32_MAX << (32 - bits)) : 0;
	return inet_pton(AF_INET, address, &out->address) == 1 ? 0 : -EINVAL;
}

static bool is_in(const struct subnet *subnet, const struct ifaddrs *i)
{
	uint32_t address = ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr;
	uint32_t mask = subnet->mask;

	if (!mask && i->ifa_netmask)
		mask = ((struct sockaddr_in *)i->ifa_netmask)->sin_addr.s_addr;
	return mask && (address & mask) == (subnet->address & mask);
}

/* By one call: lines of several workers must not mix. */
static int value_refuse(const char *spelled, const char *value, const struct ifaddrs *all)
{
	char text[INET_ADDRSTRLEN], has[1024] = "";
	const struct ifaddrs *i;
	size_t used = 0;

	for (i = all; i && used < sizeof(has) - sizeof(text) - 1; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		inet_ntop(AF_INET, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text,
			  sizeof(text));
		used += (size_t)snprintf(has + used, sizeof(has) - used, " %s", text);
	}
	fprintf(stderr,
		"*** AMUDP: %s=%s: the value must be an address of this machine, or a "
		"subnet in which it has one, as 10.1.0.0/16; it has%s\n",
		spelled, value, has);
	return -EADDRNOTAVAIL;
}

static int subnet_find(const struct subnet *subnet, const struct ifaddrs *all, uint32_t *out)
{
	const struct ifaddrs *i;

	for (i = all; i; i = i->ifa_next) {
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
		    is_in(subnet, i)) {
			*out = ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

int am_address_of_worker(uint32_t *address)
{
	char spelled[AM_ENV_NAME_MAX];
	const char *value = am_env_find("WORKERIP", spelled);
	struct subnet subnet;
	struct ifaddrs *all;
	int ret;

	if (!value || !*value) {
		address_tell("WORKERIP", *address);
		return 0;
	}
	if (getifaddrs(&all) < 0)
		return -errno;
	ret = subnet_parse(value, &subnet);
	if (ret == 0 && !subnet.mask && am_address_is_ours(subnet.address))
		*address = subnet.address;
	else if (ret == 0)
		ret = subnet_find(&subnet, all, address);
	if (ret < 0)
		ret = value_refuse(spelled, value, all);
	else
		address_tell("WORKERIP", *address);
	freeifaddrs(all);
	return ret;
}
