/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_WIRE_CODEC_H
#define ACTIVE_WIRE_CODEC_H

/*
 * Messages of Active RDMA as octets and as structs (docs/active-wire.md). No I/O, no memory of
 * its own: what is read points into the octets that it was read from.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wire/active.h>

struct active_span {
	const uint8_t *at;
	size_t len;
};

/* The members that a type does not have are 0 */
struct active_message {
	enum active_type type;
	uint64_t id;
	const uint8_t *hash;   /* LOAD, RUN, INSTALL */
	uint32_t size, offset; /* LOAD */
	struct active_span part;
	uint64_t fuel; /* RUN: what it may use; answers: what it used */
	uint32_t deadline, output_room;
	struct active_span grants; /* RUN: encoded, 8 octets each */
	struct active_span name, args;
	uint32_t window;	    /* WELCOME */
	struct active_span regions; /* encoded, by active_region_next() */
	unsigned int region_count;
	enum active_code code; /* LOADED, RESULT */
	uint32_t pc, len;
	uint64_t value, addr;
	unsigned int rights;
	struct active_span text, output;
};

struct active_grant {
	uint32_t region, rights;
};

struct active_region_info {
	uint64_t addr, size;
	uint32_t stag;
	unsigned int rights;
	struct active_span name;
};

/* -EPROTO: not one whole message of this protocol; @out is then untouched */
int active_message_read(const void *octets, size_t len, struct active_message *out);
/* The number of octets written, or -EMSGSIZE: over a limit of the protocol, or no @room */
int active_message_write(const struct active_message *m, void *to, size_t room);
/* The same without the output, which is to follow: how many octets are before it */
int active_message_write_front(const struct active_message *m, void *to, size_t room);

/* Grant number @i of a RUN; @i is below m->grants.len / 8 */
struct active_grant active_grant_get(const struct active_message *m, size_t i);
void active_grant_put(uint8_t to[8], const struct active_grant *grant);
/*
 * The next region of a WELCOME that was read; *rest is m->regions at first. False behind the
 * last
 */
bool active_region_next(struct active_span *rest, struct active_region_info *out);
/* The number of octets written, or -EMSGSIZE */
int active_region_put(const struct active_region_info *region, void *to, size_t room);

const char *active_code_text(enum active_code code);

#endif
