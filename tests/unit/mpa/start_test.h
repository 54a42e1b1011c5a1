/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of start-up share.
 */
#ifndef TESTS_UNIT_MPA_START_TEST_H
#define TESTS_UNIT_MPA_START_TEST_H

#include "mpa_test.h"

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"

/* What siw asks for unless told otherwise; and a client of the peer-to-peer model */
#define SIW_RTR (MPA_RTR_WRITE | MPA_RTR_READ)
#define SIW                                                                          \
	{                                                                            \
		.rev = 2, .want = MPA_F_ENHANCED, .rtr = SIW_RTR, .ird = 4, .ord = 8 \
	}
#define P2P                                                                                 \
	{                                                                                   \
		.rev = 2, .want = MPA_F_CRC | MPA_F_P2P, .rtr = SIW_RTR, .ird = 4, .ord = 8 \
	}

static const struct mpa_config start_siw = SIW;

/* A connection that waits for a frame; an initiator has sent its Request */
static inline struct mpa_conn start_conn(enum mpa_role role, struct mpa_config config)
{
	uint8_t out[MPA_START_MAX];
	struct mpa_conn c;
	size_t len;

	mpa_conn_init(&c, role, &config);
	if (role == MPA_INITIATOR)
		cr_assert_eq(mpa_start_request_put(&c, NULL, 0, out, &len), 0);
	return c;
}

static inline int start_get(struct mpa_conn *c, const uint8_t *p, size_t n, struct mpa_startup *in,
			    size_t *used)
{
	if (c->role == MPA_INITIATOR)
		return mpa_start_reply_get(c, p, n, in, used);
	return mpa_start_request_get(c, p, n, in, used);
}

#endif
