/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Markers (RFC 5044 sections 4.2 and 4.3): four octets at each 512th octet of a half-connection,
 * markers counted, from the first octet behind the start-up frame on. Each says how far back the
 * FPDU around it begins; 0 stands only between two FPDUs.
 *
 * A marker's reserved half is not looked at, and neither are the two low bits of FPDUPTR
 * (erratum 1427); the CRC covers both as they came. The pointer is compared modulo 2^16, for an
 * FPDU longer than any sender may make it has markers further away than the field can say.
 */
#include "mpa/mpa_marker.h"

#include <string.h>

#include "base/bits.h"

#define FPDUPTR_MASK 0xFFFC

void mpa_marker_put(__u8 *at, __u16 fpduptr)
{
	base_put_be16(at + offsetof(struct mpa_marker, reserved), 0);
	base_put_be16(at + offsetof(struct mpa_marker, fpduptr), fpduptr);
}

bool mpa_marker_check(const __u8 *p, __u32 gap, __u32 count)
{
	const __u32 start = mpa_marker_start(gap);

	for (__u32 at = gap; count > 0; count--, at += MPA_MARKER_EVERY) {
		__u32 back = at < start ? 0 : at - start;
		__u32 said = base_get_be16(p + at + offsetof(struct mpa_marker, fpduptr));

		if ((said ^ back) & FPDUPTR_MASK)
			return false;
	}
	return true;
}

__u8 *mpa_marker_squeeze(__u8 *p, __u32 gap, __u32 len)
{
	const __u32 first = mpa_marker_start(gap) + MPA_LEN_FIELD;
	__u32 at = gap ? gap : MPA_MARKER_EVERY;
	__u32 done = at - first;

	for (; done < len; done += MPA_MARKER_ROOM, at += MPA_MARKER_EVERY)
		memmove(p + first + done, p + at + MPA_MARKER_LEN,
			base_min(len - done, (__u32)MPA_MARKER_ROOM));
	return p + first;
}
