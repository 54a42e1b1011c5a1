/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The places of an endpoint: several interfaces, going over from one to the next, migration, and
 * taking over a dead endpoint's name. docs/amudp-wire.md, sections 8 and 9.
 *
 * Peers know an endpoint by its name, so slots, sequence numbers and saved answers stay as they
 * are whatever happens here; what the old place swallowed is sent again.
 */
#include "am/path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "am/address.h"
#include "am/env.h"
#include "am/lock.h"
#include "am/move.h"
#include "am/queue.h"
#include "am/window.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/siphash.h"

#define LOOK_NS (5 * BASE_NS_PER_MS)
#define SEPARATORS " ,"
#define TELLABLE 64 /* the first addresses of PATHS: reported when no machine has them */

bool am_path_shared;

int am_path_add(struct amudp_ep *ep, uint32_t ip, uint32_t receive_bytes)
{
	struct am_nic_config config = { .receive_bytes = receive_bytes };
	struct am_nic **nic = &ep->nics[ep->num_nics];
	char spelled[AM_ENV_NAME_MAX];
	const char *want = am_env_find("NIC", spelled);
	int ret = -EOPNOTSUPP;

	if (ep->num_nics == AM_MAX_PATHS)
		return -ENOSPC;
	config.name.sin_family = AF_INET;
	config.name.sin_addr.s_addr = ip;
	if (want && !strcasecmp(want, am_xdp_ops.name))
		ret = am_xdp_ops.create(nic, &config);
	/* the driver has said why; UDP is always there */
	if (ret < 0)
		ret = am_udp_ops.create(nic, &config);
	if (ret < 0)
		return ret;
	am_env_tell("NIC", "%s", (*nic)->ops->name);
	ep->num_nics++;
	am_window_share(ep);
	return 0;
}

static int nic_add(struct amudp_ep *ep, uint32_t ip)
{
	return am_path_add(ep, ip, ep->nics[0]->receive_bytes);
}

static bool has_address(const struct amudp_ep *ep, uint32_t ip)
{
	int i;

	for (i = 0; i < ep->num_nics; i++) {
		if (ep->nics[i]->name.sin_addr.s_addr == ip)
			return true;
	}
	return false;
}

static void paths_changed(struct amudp_ep *ep)
{
	if (ep->num_nics > 1)
		ep->path_due = 0;
	if (ep->depth)
		am_move_announce(ep);
	else
		ep->move_serial++; /* told when the peers are known */
}

int AMUDP_AddPath(ep_t ep, uint32_t ip)
{
	int ret;

	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	am_lock_take(ep->lock);
	ret = nic_add(ep, ip);
	if (ret == 0)
		paths_changed(ep);
	am_lock_drop(ep->lock);
	if (ret < 0)
		am_return_error(AM_ERR_RESOURCE, "no socket on this address, or four paths");
	return AM_OK;
}

static const char *list_find(void)
{
	char spelled[AM_ENV_NAME_MAX];
	const char *list = am_env_find("PATHS", spelled);

	return list ? list : "";
}

static void missed_warn(uint64_t bits)
{
	char *copy = strdup(list_find()), *save, *word;

	for (word = copy ? strtok_r(copy, SEPARATORS, &save) : NULL; word && bits;
	     word = strtok_r(NULL, SEPARATORS, &save), bits >>= 1) {
		if (bits & 1)
			base_warn("am: PATHS names %s, which no machine here has", word);
	}
	free(copy);
}

/* One list serves all ranks: each takes the addresses that are its machine's. */
void am_path_open_all(struct amudp_ep *ep)
{
	const char *list = am_env_get("PATHS");
	char *copy = list ? strdup(list) : NULL, *save, *word;
	uint32_t ip;
	int n = 0;

	for (word = copy ? strtok_r(copy, SEPARATORS, &save) : NULL; word;
	     word = strtok_r(NULL, SEPARATORS, &save), n++) {
		ip = inet_addr(word);
		if (has_address(ep, ip))
			continue;
		if (am_address_is_ours(ip))
			nic_add(ep, ip);
		else if (n < TELLABLE)
			ep->paths_missed |= 1ull << n;
	}
	free(copy);
	if (!am_path_shared)
		missed_warn(ep->paths_missed);
	if (ep->num_nics > 1)
		paths_changed(ep);
}

struct am_path_missed am_path_missed(const struct amudp_ep *ep)
{
	static const struct base_siphash_key nobody = { 0 };
	const char *list = list_find();

	return (struct am_path_missed){ base_siphash(&nobody, list, strlen(list)),
					ep->paths_missed };
}

void am_path_missed_tell(const struct am_path_missed *all, int n, int ours)
{
	uint64_t bits = all[ours].bits;
	int i;

	for (i = 0; i < n; i++) {
		if (all[i].list != all[ours].list)
			continue;
		if (i < ours)
			return;
		bits &= all[i].bits;
	}
	missed_warn(bits);
}

void am_path_check(struct amudp_ep *ep, uint64_t now)
{
	struct am_nic *nic = ep->nics[ep->nic];
	int i;

	if (ep->num_nics < 2) {
		ep->path_due = BASE_NEVER;
		return;
	}
	ep->path_due = now + LOOK_NS;
	if (nic->ops->state(nic) == 0)
		return;
	for (i = 0; i < ep->num_nics; i++) {
		if (ep->nics[i]->ops->state(ep->nics[i]) < 0)
			continue;
		base_info("am: path %d is down, path %d takes over, by %s", ep->nic, i,
			  ep->nics[i]->ops->name);
		ep->nic = i;
		am_move_announce(ep);
		return;
	}
}

static void nic_remove(struct amudp_ep *ep, struct am_nic *nic)
{
	int i;

	for (i = 0; i < ep->num_nics && ep->nics[i] != nic; i++)
		continue;
	if (i == ep->num_nics)
		return;
	nic->ops->destroy(nic);
	memmove(ep->nics + i, ep->nics + i + 1,
		(size_t)(ep->num_nics - i - 1) * sizeof(struct am_nic *));
	ep->num_nics--;
	if (ep->nic > i)
		ep->nic--;
}

void am_path_left(struct amudp_ep *ep)
{
	if (ep->leaving)
		nic_remove(ep, ep->leaving);
	ep->leaving = NULL;
}

int AMUDP_MigrateEndpoint(ep_t ep, uint32_t ip)
{
	int ret;

	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	am_lock_take(ep->lock);
	am_queue_flush(ep);
	ret = ep->leaving ? -EBUSY : nic_add(ep, ip);
	if (ret == 0) {
		ep->leaving = ep->nics[ep->nic];
		ep->nic = ep->num_nics - 1;
		paths_changed(ep);
	}
	am_lock_drop(ep->lock);
	if (ret < 0)
		am_return_error(AM_ERR_RESOURCE, "no socket there, or it is moving already");
	return AM_OK;
}

int AMUDP_TakeName(ep_t ep, en_t name)
{
	if (!am_endpoint_valid(ep) || name.sin_family != AF_INET || !name.sin_port)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no name");
	if (ep->depth || !base_list_empty(&ep->peers))
		am_return_error(AM_ERR_RESOURCE, "before anything is mapped");
	ep->name = name;
	ep->move_serial++;
	return AM_OK;
}
