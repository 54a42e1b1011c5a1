/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Markers of a half-connection, for mpa_tx.c and mpa_rx.c. A place in the stream is known by its
 * phase: octets since the last marker position, 0 where a marker stands. FPDUs begin at
 * multiples of 4, so a phase is one too.
 */
#ifndef MPA_MPA_MARKER_H
#define MPA_MPA_MARKER_H

#include <stdbool.h>

#include <wire/iwarp.h>

/* FPDU octets between two markers */
#define MPA_MARKER_ROOM (MPA_MARKER_EVERY - MPA_MARKER_LEN)

/*
 * Octets until the next marker; 0: it is due. The mask keeps the answer in range for a phase
 * that was damaged in shared memory.
 */
static inline __u32 mpa_marker_gap(__u16 phase)
{
	return -(__u32)phase & MPA_MARKER_ROOM;
}

/* The reverse of mpa_marker_gap */
static inline __u16 mpa_marker_phase(__u32 gap)
{
	return (MPA_MARKER_EVERY - gap) % MPA_MARKER_EVERY;
}

/*
 * Markers that belong to an FPDU whose first octet, marker or not, stands @gap octets before a
 * marker position and which has @body octets (length, ULPDU and pad) before its CRC: a marker
 * right before the CRC is its own, one right behind the CRC is the next FPDU's.
 */
static inline __u32 mpa_marker_count(__u32 gap, __u32 body)
{
	return gap > body ? 0 : (body - gap) / MPA_MARKER_ROOM + 1;
}

/* Where ULPDU_Length stands: behind the marker when the FPDU begins with one */
static inline __u32 mpa_marker_start(__u32 gap)
{
	return gap ? 0 : MPA_MARKER_LEN;
}

void mpa_marker_put(__u8 *at, __u16 fpduptr);

/* Do the @count markers of the FPDU at @p point at its start? */
bool mpa_marker_check(const __u8 *p, __u32 gap, __u32 count);

/* Closes the gaps that markers leave in the @len octets of the ULPDU; returns its first octet */
__u8 *mpa_marker_squeeze(__u8 *p, __u32 gap, __u32 len);

#endif
