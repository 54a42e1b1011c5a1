/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA devices, as the kernel shows them in /sys, and whether this user can open them.
 *
 * What is wrong is looked for from the outside in: port, interface, address, device file. Only
 * where nothing is found the device is opened, as a program would, which has the last word.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <warp/rdma.h>

#include "apps/warpsock/doctor.h"

#define CLASS "/sys/class/infiniband"
#define MAC_LEN 6

/* enum rdma_node_type of the kernel, which /sys shows */
enum node { NODE_CA = 1, NODE_RNIC = 4 };

struct device {
	const char *name;
	char netdev[IFNAMSIZ];
	unsigned int node;
	bool active, addressed, named;
	unsigned int before; /* troubles that were told of others */
};

/* --- what it is --- */

static const char *transport_of(const struct device *d)
{
	char text[DOCTOR_TEXT];

	if (d->node == NODE_RNIC)
		return "iWARP";
	if (d->node != NODE_CA)
		return "of another kind";
	doctor_line(text, CLASS "/%s/ports/1/link_layer", d->name);
	return strcmp(text, "Ethernet") ? "InfiniBand" : "RoCE";
}

/* Of one without hardware there is no driver to be seen: then what it says of itself */
static void driver_of(const struct device *d, char out[DOCTOR_TEXT])
{
	char path[DOCTOR_PATH], target[DOCTOR_TEXT];
	ssize_t n;

	doctor_path(path, CLASS "/%s/device/driver", d->name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		const char *slash;

		target[n] = '\0';
		slash = strrchr(target, '/');
		snprintf(out, DOCTOR_TEXT, "driver %.200s", slash ? slash + 1 : target);
	} else if (!doctor_line(out, CLASS "/%s/node_desc", d->name)) {
		snprintf(out, DOCTOR_TEXT, "driver unknown");
	}
}

/* --- its network interface --- */

static void first(const char *name, void *ctx)
{
	char *out = ctx;

	if (!out[0])
		snprintf(out, IFNAMSIZ, "%s", name);
}

/* The GID of an iWARP device begins with its interface's hardware address */
static void netdev_by_mac(const char *gid, char out[IFNAMSIZ])
{
	unsigned int word[3];
	struct ifaddrs *all;

	if (sscanf(gid, "%x:%x:%x", &word[0], &word[1], &word[2]) != 3 || getifaddrs(&all))
		return;
	for (struct ifaddrs *a = all; a && !out[0]; a = a->ifa_next) {
		const struct sockaddr_ll *ll = (const struct sockaddr_ll *)(void *)a->ifa_addr;
		bool same = ll && ll->sll_family == AF_PACKET && ll->sll_halen == MAC_LEN;

		for (unsigned int i = 0; same && i < 3; i++)
			same = ll->sll_addr[2 * i] == word[i] >> 8 &&
			       ll->sll_addr[2 * i + 1] == (word[i] & 0xff);
		if (same)
			snprintf(out, IFNAMSIZ, "%s", a->ifa_name);
	}
	freeifaddrs(all);
}

static void netdev_find(struct device *d)
{
	char text[DOCTOR_TEXT], folder[DOCTOR_TEXT];

	d->netdev[0] = '\0';
	if (doctor_line(text, CLASS "/%s/ports/1/gid_attrs/ndevs/0", d->name))
		snprintf(d->netdev, sizeof(d->netdev), "%.*s", IFNAMSIZ - 1, text);
	/* Linux 6.12 names that of an iWARP device to other namespaces, too */
	if (!if_nametoindex(d->netdev))
		d->netdev[0] = '\0';
	snprintf(folder, sizeof(folder), CLASS "/%.60s/device/net", d->name);
	if (!d->netdev[0])
		doctor_each(folder, first, d->netdev);
	if (!d->netdev[0] && d->node == NODE_RNIC &&
	    doctor_line(text, CLASS "/%s/ports/1/gids/0", d->name))
		netdev_by_mac(text, d->netdev);
}

static bool address_put(const struct ifaddrs *a)
{
	char text[INET6_ADDRSTRLEN];
	const void *at;

	if (!a->ifa_addr)
		return false;
	if (a->ifa_addr->sa_family == AF_INET)
		at = &((const struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr;
	else if (a->ifa_addr->sa_family == AF_INET6)
		at = &((const struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr;
	else
		return false;
	printf(" %s", inet_ntop(a->ifa_addr->sa_family, at, text, sizeof(text)));
	return true;
}

static void addresses_put(struct device *d)
{
	struct ifaddrs *all;

	d->addressed = false;
	if (!d->netdev[0] || getifaddrs(&all))
		return;
	printf("    interface %s", d->netdev);
	for (struct ifaddrs *a = all; a; a = a->ifa_next)
		if (!strcmp(a->ifa_name, d->netdev))
			d->addressed |= address_put(a);
	putchar('\n');
	freeifaddrs(all);
}

/* --- ports, and what is wrong --- */

static void port_put(const char *number, void *ctx)
{
	struct device *d = ctx;
	char state[DOCTOR_TEXT];
	const char *words;

	doctor_line(state, CLASS "/%s/ports/%s/state", d->name, number);
	words = strchr(state, ':'); /* "4: ACTIVE" */
	words = words ? words + 1 + strspn(words + 1, " ") : "state unknown";
	printf(", port %s %s", number, words);
	d->active |= !strcmp(words, "ACTIVE");
}

/* One of the table that is not all zeros; that of iWARP is made of the hardware address */
static void gid_look(const char *index, void *ctx)
{
	struct device *d = ctx;
	char gid[DOCTOR_TEXT];

	if (doctor_line(gid, CLASS "/%s/ports/1/gids/%s", d->name, index))
		d->named |= gid[strspn(gid, "0:")] != '\0';
}

struct uverbs {
	const char *device;
	char name[DOCTOR_TEXT];
};

static void node_match(const char *uverbs, void *ctx)
{
	struct uverbs *n = ctx;
	char device[DOCTOR_TEXT];

	if (doctor_line(device, "/sys/class/infiniband_verbs/%s/ibdev", uverbs) &&
	    !strcmp(device, n->device))
		snprintf(n->name, sizeof(n->name), "/dev/infiniband/%.200s", uverbs);
}

static void file_judge(const struct device *d)
{
	struct uverbs n = { .device = d->name };
	char path[DOCTOR_PATH];

	doctor_each("/sys/class/infiniband_verbs", node_match, &n);
	if (!n.name[0]) {
		doctor_trouble("the kernel's module ib_uverbs is not loaded: modprobe ib_uverbs");
		return;
	}
	doctor_path(path, "%s", n.name);
	if (access(path, F_OK))
		doctor_trouble("%s is missing: udev makes it, a container must be given it",
			       n.name);
	else if (access(path, R_OK | W_OK))
		doctor_trouble("%s cannot be opened: %s", n.name, strerror(errno));
}

/* As a program does; not with a made-up root, whose devices nobody has */
static void open_judge(const struct device *d)
{
	char name[DOCTOR_TEXT];
	struct warp_device *dev;
	int err;

	if (*doctor_root || doctor_troubles > d->before)
		return;
	snprintf(name, sizeof(name), "verbs:%.200s", d->name);
	err = warp_device_open(name, &dev);
	if (!err)
		warp_device_close(dev);
	else if (err == -ENOPKG)
		doctor_trouble("libibverbs or librdmacm is not installed: libibverbs1, librdmacm1");
	else
		doctor_trouble("it cannot be opened: %s%s", strerror(-err),
			       err == -ENODEV ? " (is ibverbs-providers installed?)" : "");
}

static void judge(const struct device *d)
{
	if (d->node != NODE_RNIC && d->node != NODE_CA)
		doctor_trouble("its transport is not supported: only iWARP, RoCE and InfiniBand");
	if (!d->active)
		doctor_trouble("no port is active: is the cable in, is the interface up?");
	if (!d->netdev[0])
		doctor_trouble("it has no network interface here: in another namespace, perhaps");
	else if (!d->addressed)
		doctor_trouble("%s has no address: ip address add", d->netdev);
	if (!d->named)
		doctor_trouble("it has no GID, by which peers would know it");
	file_judge(d);
	open_judge(d);
	if (doctor_troubles == d->before)
		puts("    can be used");
}

static void device_put(const char *name, void *ctx)
{
	struct device d = { .name = name, .before = doctor_troubles };
	char text[DOCTOR_TEXT], ports[DOCTOR_TEXT], gids[DOCTOR_TEXT];

	/* "4: RNIC" */
	if (doctor_line(text, CLASS "/%s/node_type", name))
		sscanf(text, "%u", &d.node);
	driver_of(&d, text);
	printf("  %-10s %s, %s", name, transport_of(&d), text);
	snprintf(ports, sizeof(ports), CLASS "/%.60s/ports", name);
	doctor_each(ports, port_put, &d);
	putchar('\n');
	snprintf(gids, sizeof(gids), CLASS "/%.60s/ports/1/gids", name);
	doctor_each(gids, gid_look, &d);
	netdev_find(&d);
	addresses_put(&d);
	judge(&d);
}

unsigned int doctor_devices(void)
{
	return doctor_each(CLASS, device_put, NULL);
}
