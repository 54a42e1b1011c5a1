/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The translation table: small numbers for the endpoints a program talks to.
 *
 * Entries of one name share a peer. The table is fixed once AM_SetExpectedResources has been
 * called, for slots and windows are then laid out.
 */
#include <limits.h>
#include <stdlib.h>

#include "am/endpoint.h"
#include "am/move.h"
#include "am/window.h"
#include "base/bits.h"

static int table_check(const struct amudp_ep *ep, int index)
{
	if (!am_endpoint_valid(ep))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	if (index < 0 || index >= ep->num_translations)
		am_return_error(AM_ERR_BAD_ARG, "no such index");
	return AM_OK;
}

static int entry_check(const struct amudp_ep *ep, int index)
{
	int ret = table_check(ep, index);

	if (ret == AM_OK && !ep->translations[index].peer)
		am_return_error(AM_ERR_RESOURCE, "the entry is not in use");
	return ret;
}

/* The lowest entry that leads to the peer is what a handler sees as the source's index. */
static void peer_index_find(struct amudp_ep *ep, struct am_peer *peer)
{
	int i;

	peer->index = -1;
	for (i = 0; i < ep->num_translations && peer->index < 0; i++) {
		if (ep->translations[i].peer == peer)
			peer->index = i;
	}
}

int AM_Map(ep_t ea, int index, en_t name, tag_t tag)
{
	struct am_peer *peer;
	int ret = table_check(ea, index);

	if (ret != AM_OK)
		return ret;
	if (ea->depth)
		am_return_error(AM_ERR_RESOURCE, "the table is fixed");
	if (ea->translations[index].peer)
		am_return_error(AM_ERR_RESOURCE, "the entry is in use");
	peer = am_peer_find(ea, name.sin_addr.s_addr, name.sin_port);
	if (!peer && am_peer_create(&peer, ea, &name) < 0)
		am_return_error(AM_ERR_RESOURCE, "no memory");
	peer->local = name.sin_port == ea->name.sin_port &&
		      name.sin_addr.s_addr == ea->name.sin_addr.s_addr;
	peer->translations++;
	if (peer->index < 0 || index < peer->index)
		peer->index = index;
	ea->translations[index] = (struct am_translation){ .peer = peer, .tag = tag, .name = name };
	return AM_OK;
}

int AM_MapAny(ep_t ea, int *index, en_t name, tag_t tag)
{
	int i, ret;

	if (!am_endpoint_valid(ea) || !index)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	for (i = 0; i < ea->num_translations && ea->translations[i].peer; i++)
		continue;
	if (i == ea->num_translations)
		am_return_error(AM_ERR_RESOURCE, "all entries are in use");
	ret = AM_Map(ea, i, name, tag);
	if (ret == AM_OK)
		*index = i;
	return ret;
}

int AM_UnMap(ep_t ea, int index)
{
	struct am_peer *peer;
	int ret = entry_check(ea, index);

	if (ret != AM_OK)
		return ret;
	if (ea->depth)
		am_return_error(AM_ERR_RESOURCE, "the table is fixed");
	peer = ea->translations[index].peer;
	ea->translations[index].peer = NULL;
	if (--peer->translations == 0)
		am_peer_destroy(peer);
	else
		peer_index_find(ea, peer);
	return AM_OK;
}

int AM_GetTranslationInuse(ep_t ea, int index)
{
	int ret = table_check(ea, index);

	if (ret != AM_OK)
		return ret;
	return ea->translations[index].peer ? AM_OK : AM_ERR_RESOURCE;
}

int AM_GetTranslationTag(ep_t ea, int index, tag_t *tag)
{
	int ret = entry_check(ea, index);

	if (ret != AM_OK)
		return ret;
	if (!tag)
		am_return_error(AM_ERR_BAD_ARG, "no place for the answer");
	*tag = ea->translations[index].tag;
	return AM_OK;
}

int AMUDP_SetTranslationTag(ep_t ea, int index, tag_t tag)
{
	int ret = entry_check(ea, index);

	if (ret == AM_OK)
		ea->translations[index].tag = tag;
	return ret;
}

int AM_GetTranslationName(ep_t ea, int index, en_t *name)
{
	int ret = entry_check(ea, index);

	if (ret != AM_OK)
		return ret;
	if (!name)
		am_return_error(AM_ERR_BAD_ARG, "no place for the answer");
	*name = ea->translations[index].name;
	return AM_OK;
}

int AM_GetNumTranslations(ep_t ea, int *ntrans)
{
	if (!am_endpoint_valid(ea) || !ntrans)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint or no place for the answer");
	*ntrans = ea->num_translations;
	return AM_OK;
}

int AM_SetNumTranslations(ep_t ea, int ntrans)
{
	struct am_translation *table;
	int i;

	if (!am_endpoint_valid(ea) || ntrans < 1)
		am_return_error(AM_ERR_BAD_ARG, "no endpoint, or a table of nothing");
	if (ntrans > AMUDP_MAX_NUMTRANSLATIONS || ea->depth)
		am_return_error(AM_ERR_RESOURCE, "too many entries, or the table is fixed");
	for (i = ntrans; i < ea->num_translations; i++) {
		if (ea->translations[i].peer)
			am_return_error(AM_ERR_RESOURCE, "an entry beyond is in use");
	}
	table = realloc(ea->translations, (size_t)ntrans * sizeof(*table));
	if (!table)
		am_return_error(AM_ERR_RESOURCE, "no memory");
	if (ntrans > ea->num_translations)
		memset(table + ea->num_translations, 0,
		       (size_t)(ntrans - ea->num_translations) * sizeof(*table));
	ea->translations = table;
	ea->num_translations = ntrans;
	return AM_OK;
}

static int mapped_peers(const struct amudp_ep *ep)
{
	struct base_list *node, *next;
	int n = 0;

	base_list_foreach(node, next, &ep->peers)
		n++;
	return n;
}

int AM_SetExpectedResources(ep_t ea, int n_endpoints, int n_outstanding_requests)
{
	if (!am_endpoint_valid(ea))
		am_return_error(AM_ERR_BAD_ARG, "no endpoint");
	if (n_outstanding_requests < 1 || n_outstanding_requests > AMUDP_MAX_NETWORKDEPTH)
		am_return_error(AM_ERR_BAD_ARG, "1 to 1024 outstanding requests");
	if (ea->depth)
		am_return_error(AM_ERR_RESOURCE, "once per endpoint");
	ea->depth = n_outstanding_requests;
	am_window_expect(ea, mapped_peers(ea));
	if (ea->move_serial)
		am_move_announce(ea);
	return AM_OK;
}
