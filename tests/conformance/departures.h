/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What siw does otherwise than a case wants, or is not asked: departures.c.
 */
#ifndef CONFORMANCE_DEPARTURES_H
#define CONFORMANCE_DEPARTURES_H

#include <stdbool.h>
#include <stddef.h>

/* Of a case: siw may depart from one, and the others are to hold */
enum part {
	AS_INITIATOR = 1 << 0,
	AS_RESPONDER = 1 << 1,
	REV_0 = 1 << 2,
	REV_1 = 1 << 3,	 /* a Reply of revision 1 */
	BEHIND = 1 << 4, /* octets behind a Reply */
	MARKERS = 1 << 5,
	WISHES = 1 << 6, /* of revision, CRC, markers: the end's own */
	TOLD = 1 << 7,	 /* what its program is told */
	EVENTS = 1 << 8,
	HEADERS = 1 << 9,  /* of an FPDU with a wrong CRC, or in a Terminate */
	PLACED = 1 << 10,  /* nothing is, before the CRC is judged */
	NEW_OPS = 1 << 11, /* immediate data, atomics */
	INVALIDATES = 1 << 12,
};

/*
 * A case that must fail over siw, and how: its words must begin with @shows, in which | parts those
 * that chance chooses from. With @part set the departure lies there: all others must hold.
 */
struct departing {
	unsigned char number;
	const char *shows; /* NULL: it is not asked */
	unsigned int part; /* 0: the whole case */
};

struct departure {
	const char *name, *what;
	const char *where;	       /* file and function in Linux's drivers/infiniband/sw/siw */
	const struct departing *cases; /* ends with number 0 */
};

/* The @i-th; NULL: there are no more */
const struct departure *departure_at(size_t i);
/* The @i-th of a case, with what becomes of it; NULL: no more, and with none the case must hold */
const struct departure *departure_of(unsigned int number, size_t i, const struct departing **how);
/* All parts of a case in which siw departs; 0: all of it, or nothing */
unsigned int departure_parts(unsigned int number);
const char *departure_part_text(unsigned int part);

#endif
