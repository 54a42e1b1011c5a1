/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs that are looked at before their turn: octets that TCP has, but not all before them.
 */
#ifndef MPA_MPA_AHEAD_H
#define MPA_MPA_AHEAD_H

#include "mpa/mpa.h"

/* The first octets of an FPDU, which hold its length and a tagged header, a marker included */
#define MPA_AHEAD_HEAD (MPA_LEN_FIELD + DDP_TAGGED_LEN + MPA_MARKER_LEN)

/*
 * As mpa_rx_fpdu() of the FPDU that would begin at @p, @phase octets behind a marker position, if
 * it were next. Nothing changes of @c. Without CRC nothing tells that it is one: -EINVAL.
 */
int mpa_ahead_look(const struct mpa_conn *c, __u16 phase, __u8 *p, size_t n, struct mpa_fpdu *out);

/*
 * An FPDU of @used octets that was looked at has its turn; @head are its first octets as they came.
 * out->ulpdu has the tagged header alone, out->len the length of all.
 */
void mpa_ahead_take(struct mpa_conn *c, __u8 *head, __u32 used, struct mpa_fpdu *out);

/* How far before a marker the FPDU around it, or right behind it, begins */
__u32 mpa_ahead_back(const __u8 *marker);

#endif
