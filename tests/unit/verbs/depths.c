/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many Reads a peer takes and makes, by what the drivers say of a Request and a Reply.
 */
#include <criterion/criterion.h>

#include "verbs/verbs_conn.h"

enum { CHELSIO = 0x1425, INTEL = 0x8086, QLOGIC = 0x1077, SIW = 0x626d74 };

/* Ours are IRD 16 and ORD 16, the peer's 4 and 8; what the driver tells are two numbers */
static const struct {
	const char *name;
	uint32_t vendor;
	bool active, roce;
	uint8_t responder_resources, initiator_depth;
	uint16_t peer_ird, peer_ord;
	uint8_t ord;
} rows[] = {
	{ "cxgb4, Reply", CHELSIO, true, false, 8, 4, 4, 8, 4 },
	{ "cxgb4, Request", CHELSIO, false, false, 8, 4, 4, 8, 4 },
	{ "siw, Reply", SIW, true, false, 4, 8, 4, 8, 4 },
	{ "siw, Request", SIW, false, false, 8, 4, 4, 8, 4 },
	{ "qedr, Reply", QLOGIC, true, false, 4, 8, 4, 8, 4 },
	{ "qedr, Request", QLOGIC, false, false, 8, 4, 4, 8, 4 },
	/* Its ORD came down to the peer's IRD, its IRD is what the peer has to keep to */
	{ "irdma, Reply", INTEL, true, false, 4, 16, 4, 16, 4 },
	{ "irdma, Request", INTEL, false, false, 0, 16, WARP_DEPTH_NONE, WARP_DEPTH_NONE, 16 },
	{ "irdma over RoCE, Reply", INTEL, true, true, 8, 4, 4, 8, 4 },
	{ "irdma over RoCE, Request", INTEL, false, true, 8, 4, 4, 8, 4 },
};

Test(verbs_depths, of_the_peer)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verbs_device device = { .iwarp = !rows[i].roce,
					       .attr.vendor_id = rows[i].vendor };
		struct verbs_conn c = { .dev = &device,
					.active = rows[i].active,
					.ird = 16,
					.ord = 16,
					.peer_ird = WARP_DEPTH_NONE,
					.peer_ord = WARP_DEPTH_NONE };
		struct rdma_conn_param param = {
			.responder_resources = rows[i].responder_resources,
			.initiator_depth = rows[i].initiator_depth,
			.private_data = "pd",
			.private_data_len = 2,
		};

		verbs_attr_ways(&device);
		verbs_cm_peer_param(&c, &param);
		cr_expect_eq(c.peer_ird, rows[i].peer_ird, "%s: %u", rows[i].name, c.peer_ird);
		cr_expect_eq(c.peer_ord, rows[i].peer_ord, "%s: %u", rows[i].name, c.peer_ord);
		cr_expect_eq(c.ord, rows[i].ord, "%s: %u", rows[i].name, c.ord);
		cr_expect_eq(c.peer_pd_len, 2, "%s", rows[i].name);
	}
}
