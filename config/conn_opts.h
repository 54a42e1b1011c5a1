/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a connection is made: the user's options (config_load()), what a rule says, and what the
 * program has set by SOL_DDP, which goes first. Each socket has a copy, and so has its stream.
 */
#ifndef CONFIG_CONN_OPTS_H
#define CONFIG_CONN_OPTS_H

#include <stdbool.h>
#include <stdint.h>

/* The longest name of a provider */
#define CONFIG_PROVIDER_MAX 15

enum config_transport {
	CONFIG_USE_TCP,
	CONFIG_USE_AUTO, /* DDP where the peer speaks it */
	CONFIG_USE_DDP,	 /* only DDP: a peer that speaks plain TCP is refused by a reset */
};

struct conn_opts {
	enum config_transport mode;
	bool mode_set;				/* by the program: no rule is asked */
	bool provider_set;			/* likewise, and a rule says nothing of it */
	bool no_crc;				/* do not ask for one on each FPDU; the peer may */
	bool markers;				/* ask for them in what the peer sends */
	bool detour;				/* to another port than the peer's (llp/mapper.h) */
	char provider[CONFIG_PROVIDER_MAX + 1]; /* empty: by the route, or the default one */
	uint32_t ring;				/* bytes, 8 KiB to 64 MiB; 0: 512 KiB */
	uint16_t credits; /* messages that a peer of rsockets may send at once; 0: 384 */
	uint16_t maps;	  /* slots for mappings of the peer's, up to STREAM_SLOTS */
};

#endif
