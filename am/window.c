/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Windows: how much each peer may have unanswered here.
 */
#include "am/window.h"

#include "am/endpoint.h"
#include "base/bits.h"

/*
 * Half of the kernel's buffer is shared out to the peers as the bytes they may have unanswered
 * here; the other half is for the answers to our own requests, which we bound ourselves. Of several
 * paths any may be the next.
 */
static uint32_t half_of_buffer(const struct amudp_ep *ep)
{
	uint32_t bytes = UINT32_MAX;
	int i;

	for (i = 0; i < ep->num_nics; i++)
		bytes = base_min(bytes, ep->nics[i]->receive_bytes);
	return bytes / 2;
}

void am_window_share(struct amudp_ep *ep)
{
	uint32_t kib;

	if (!ep->expected)
		return;
	kib = half_of_buffer(ep) / (uint32_t)ep->expected / 1024;
	ep->window_kib = (uint16_t)base_min(base_max(kib, 4u), (uint32_t)UINT16_MAX);
}

void am_window_expect(struct amudp_ep *ep, int peers)
{
	int depth = ep->depth * base_min(base_max(peers - 1, 1), 4);

	ep->expected = base_max(peers, 1);
	am_window_share(ep);
	if (ep->options.send_depth == 0)
		ep->options.send_depth =
			base_min(depth, (int)(half_of_buffer(ep) / am_window_cost(0)));
}
