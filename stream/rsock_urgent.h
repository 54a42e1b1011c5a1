/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Urgent octets (urgent.c). Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_URGENT_H
#define STREAM_RSOCK_URGENT_H

/* In send.c; of what is held, as stream_held() */
/* No lock. Room of the peer's for octets of which the last one is urgent, or not */
uint64_t stream_urgent_room(const struct stream *s, bool urgent);
/* rx lock. The last octet that was placed is urgent, and about to be delivered */
void stream_urgent_arrive(struct stream *s);
/*
 * No lock. How many octets one read may take now, behind *@over (0 or 1) that are left out. @stop:
 * it has some already, or asks: then none where the urgent one is next
 */
uint64_t stream_urgent_reach(const struct stream *s, bool stop, uint32_t *over);
bool stream_urgent_next(const struct stream *s);
/* rx lock. Octets were read: the urgent one may be among them */
void stream_urgent_passed(struct stream *s);
/* No lock. Of *@there octets one is taken off that does not count */
unsigned int stream_urgent_levels(const struct stream *s, uint64_t *there);

#endif
