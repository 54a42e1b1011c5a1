/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ARFS read by RDMA alone: the code of read_code.h, for which each look is a round trip. What the
 * store holds is not trusted: offsets are checked by the server's end of the connection, lengths
 * here.
 */
#include <errno.h>
#include <string.h>

#include "link.h"
#include "read_code.h"

enum { READS_MAX = 16, READ_PART = 65536 };

struct arfs_place {
	const struct link *link;
	int error;
	struct {
		uint64_t seq;
		struct arfs_inode inode;
		uint32_t number;
		char block[ARFS_BLOCK];
	} slots;
	char *list; /* where entries go */
	size_t room, used;
};

static void *slot_of(struct arfs_place *p, enum arfs_slot slot)
{
	switch (slot) {
	case ARFS_SLOT_SUPER:
		return &p->slots.seq;
	case ARFS_SLOT_INODE:
		return &p->slots.inode;
	case ARFS_SLOT_NUMBER:
		return &p->slots.number;
	default:
		return p->slots.block;
	}
}

static inline const void *arfs_see(struct arfs_place *p, enum arfs_slot slot, uint64_t offset,
				   uint32_t len)
{
	struct warp_active_access read = {
		.op = WARP_ACTIVE_OP_READ, .offset = offset, .buffer = slot_of(p, slot), .len = len
	};

	if (offset > p->link->region.size || len > p->link->region.size - offset) {
		p->error = ARFS_DAMAGED;
		return NULL;
	}
	p->error = link_access(p->link, &read, NULL);
	return p->error ? NULL : read.buffer;
}

static inline int arfs_error(const struct arfs_place *p)
{
	return p->error ? p->error : -EIO;
}

static inline int arfs_same(const char *a, const char *b, uint32_t len)
{
	return !memcmp(a, b, len);
}

static inline uint64_t arfs_inodes_at(const struct arfs_place *p)
{
	return (uint64_t)p->link->super.inodes_at * ARFS_BLOCK;
}

static inline uint32_t arfs_inodes(const struct arfs_place *p)
{
	return p->link->super.inodes;
}

static inline int arfs_list_give(struct arfs_place *p, const struct arfs_listed *head,
				 const char *name)
{
	size_t len = (sizeof(*head) + head->name_len + 7) & ~(size_t)7;

	if (len > p->room - p->used)
		return -1;
	memcpy(p->list + p->used, head, sizeof(*head));
	memcpy(p->list + p->used + sizeof(*head), name, head->name_len);
	p->used += len;
	return 0;
}

/* --- nothing changed meanwhile --- */

static int seq_see(struct arfs_place *p, uint64_t *seq)
{
	const uint64_t *at =
		arfs_see(p, ARFS_SLOT_SUPER, offsetof(struct arfs_super, seq), sizeof(*at));

	if (!at)
		return arfs_error(p);
	*seq = *at;
	return 0;
}

static int place_begin(struct arfs_place *p, const struct link *link, uint64_t *seq)
{
	int ret;

	*p = (struct arfs_place){ .link = link };
	ret = seq_see(p, seq);
	return ret ? ret : *seq % 2 ? -EAGAIN : 0;
}

/* What was found is good, an error too, or -EAGAIN */
static long place_end(struct arfs_place *p, uint64_t seq, long found)
{
	uint64_t now;
	int ret;

	if (found == -ECONNRESET)
		return found;
	ret = seq_see(p, &now);
	return ret ? ret : now != seq ? -EAGAIN : found;
}

int one_sided_lookup(const struct link *l, uint64_t dir, const char *name, struct arfs_attr *out)
{
	struct arfs_place p;
	uint64_t seq;
	int ret = place_begin(&p, l, &seq);

	if (ret)
		return ret;
	ret = arfs_lookup(&p, dir, name, (uint32_t)strlen(name), out);
	return (int)place_end(&p, seq, ret);
}

int one_sided_getattr(const struct link *l, uint64_t node, struct arfs_attr *out)
{
	struct arfs_place p;
	uint64_t seq;
	int ret = place_begin(&p, l, &seq);

	return ret ? ret : (int)place_end(&p, seq, arfs_getattr(&p, node, out));
}

long one_sided_list(const struct link *l, uint64_t dir, uint64_t offset, void *to, size_t room)
{
	struct arfs_place p;
	uint64_t seq;
	int ret = place_begin(&p, l, &seq);

	if (ret)
		return ret;
	p.list = to;
	p.room = room;
	ret = arfs_list(&p, dir, offset);
	return place_end(&p, seq, ret ? ret : (long)p.used);
}

/* --- the bytes of a file --- */

/* Reads of memory in the store, many at once */
struct reads {
	struct warp_active_request *under_way[READS_MAX];
	unsigned int count;
};

static int reads_finish(struct reads *r, int ret)
{
	for (unsigned int i = 0; i < r->count; i++) {
		int one = warp_active_wait(r->under_way[i], -1, NULL);

		ret = ret ? ret : one;
	}
	r->count = 0;
	return ret;
}

static int reads_begin(struct arfs_place *p, struct reads *r, uint64_t offset, void *to, size_t len)
{
	const struct warp_active_access read = { .op = WARP_ACTIVE_OP_READ,
						 .region = p->link->region.number,
						 .offset = offset,
						 .buffer = to,
						 .len = len };
	int ret = r->count == READS_MAX ? reads_finish(r, 0) : 0;

	if (ret)
		return ret;
	if (offset > p->link->region.size || len > p->link->region.size - offset)
		return ARFS_DAMAGED;
	ret = warp_active_access(p->link->client, &read, &r->under_way[r->count]);
	r->count += !ret;
	return ret;
}

/* From @at on, blocks that follow one another in the store too: how many bytes, at @offset or 0 */
static int piece_find(struct arfs_place *p, const struct arfs_inode *i, uint64_t at, size_t most,
		      uint64_t *offset, size_t *len)
{
	uint32_t first, next;
	int ret = arfs_map(p, i, at / ARFS_BLOCK, &first);

	*offset = first ? (uint64_t)first * ARFS_BLOCK + at % ARFS_BLOCK : 0;
	*len = ARFS_BLOCK - at % ARFS_BLOCK;
	for (uint32_t n = 1; !ret && *len < most && *len < READ_PART - ARFS_BLOCK; n++) {
		ret = arfs_map(p, i, at / ARFS_BLOCK + n, &next);
		if (ret || next != (first ? first + n : 0))
			break;
		*len += ARFS_BLOCK;
	}
	*len = *len < most ? *len : most;
	return ret;
}

static long bytes_read(struct arfs_place *p, uint64_t node, uint64_t offset, char *to, size_t len)
{
	const struct arfs_inode *i;
	struct reads reads = { .count = 0 };
	int ret = arfs_inode_see(p, node, &i);
	size_t done = 0, n;

	if (ret)
		return ret;
	if ((i->mode & ARFS_TYPE) == ARFS_DIR)
		return -EISDIR;
	if (offset >= i->size)
		return 0;
	len = len < i->size - offset ? len : i->size - offset;
	while (done < len && !ret) {
		uint64_t at;

		ret = piece_find(p, i, offset + done, len - done, &at, &n);
		if (!ret && at)
			ret = reads_begin(p, &reads, at, to + done, n);
		else if (!ret)
			memset(to + done, 0, n);
		done += ret ? 0 : n;
	}
	ret = reads_finish(&reads, ret);
	return ret ? ret : (long)done;
}

long one_sided_read(const struct link *l, uint64_t node, uint64_t offset, void *to, size_t len)
{
	struct arfs_place p;
	uint64_t seq;
	int ret = place_begin(&p, l, &seq);

	return ret ? ret : place_end(&p, seq, bytes_read(&p, node, offset, to, len));
}
