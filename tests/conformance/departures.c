/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of cases over a device, which is siw of Linux 6.1: those where it does otherwise
 * than the case wants, which must fail there as long as it does, and those that it is not asked.
 */
#include "suite.h"

#define CASES(...)              \
	(const unsigned char[]) \
	{                       \
		__VA_ARGS__, 0  \
	}

static const struct departure departures[] = {
	{ "loose",
	  "siw gives bits of a Request back in its Reply, and what is no frame has an answer or "
	  "none, "
	  "but not the end",
	  true, CASES(3, 4, 8, 9, 15) },
	{ "own-start",
	  "siw asks for revision 2 and, as initiator, for no CRC, nor ever for markers, and "
	  "rejects a "
	  "Reply that has C or M where it did not ask",
	  true, CASES(7, 12, 14, 34, 35, 36, 37, 42, 46, 47, 48, 49, 50, 51, 52, 53, 57) },
	{ "untold",
	  "a program of a device is not told revision, CRC, MULPDU, Terminate, solicited event, or "
	  "what "
	  "was invalidated",
	  true, CASES(16, 32, 54, 58, 87, 88, 90, 111, 113, 127) },
	{ "depths", "IRD and ORD have eight bits in librdmacm, and siw bounds of its own", true,
	  CASES(19, 23, 24, 25) },
	{ "gate", "as responder siw sends before the first FPDU has come", true, CASES(33) },
	{ "late-crc", "siw judges headers, and places octets, before it has the CRC", true,
	  CASES(43, 44, 45, 114) },
	{ "codes", "siw's Terminate has another code or other headers, or there is none", true,
	  CASES(60, 72, 73, 75, 84, 89, 95, 98, 105, 108, 110, 112) },
	{ "segments", "siw wants PAD and CRC of an FPDU in one TCP segment", true, CASES(56) },
	{ "invalidate", "siw's library loses the STag that a Send is to invalidate", true,
	  CASES(64, 85) },
	{ "7306", "siw has neither atomics nor immediate data", true,
	  CASES(103, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124) },
	{ "pad", "siw does not clear PAD, which may be zero all the same", false, CASES(40) },
	{ "long", "siw's ULPDU_Length may exceed 64768, or not", false, CASES(55, 92, 96) },
	{ "slow",
	  "siw waits ten seconds for a Request, and a peer that goes meanwhile takes its listener "
	  "along",
	  false, CASES(5) },
	{ "oops",
	  "siw tells of private data that it has not taken in: a NULL pointer, or octets behind it",
	  false, CASES(10, 11, 13, 18, 20) },
	{ "rtr", "a peer that asks for an RTR and goes without one is a BUG in iw_cm", false,
	  CASES(26, 28, 29, 30, 129) },
};

const struct departure *departure_at(size_t i)
{
	return i < sizeof(departures) / sizeof(departures[0]) ? &departures[i] : NULL;
}

const struct departure *departure_of(unsigned int number)
{
	for (size_t i = 0; departure_at(i); i++)
		for (const unsigned char *at = departures[i].cases; *at; at++)
			if (*at == number)
				return &departures[i];
	return NULL;
}
