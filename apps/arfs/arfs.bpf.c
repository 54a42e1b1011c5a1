/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ARFS's programs: what a client asks of the file system, beside its store. Each takes a struct
 * arfs_ask and what stands behind it (ask.h), and returns a negative error number or what its
 * comment says.
 */
#include "file_code.h"

/* --- reads: -EAGAIN, and output that is no good, if others changed something meanwhile --- */

static inline uint64_t read_begin(struct arfs_place *p, const struct arfs_ask *ask)
{
	if (ask->flags & ARFS_LOCKED)
		arfs_lock(p);
	p->base = (unsigned long)warp_region(0);
	return ((volatile struct arfs_super *)arfs_super(p))->seq;
}

static inline long read_end(struct arfs_place *p, const struct arfs_ask *ask, uint64_t seq,
			    long ret)
{
	if (ask->flags & ARFS_LOCKED) {
		arfs_unlock();
		return ret;
	}
	if (seq % 2 || ((volatile struct arfs_super *)arfs_super(p))->seq != seq)
		return -EAGAIN;
	return ret;
}

static inline long attr_give(long ret, const struct arfs_attr *attr)
{
	return ret || warp_output(attr, sizeof(*attr)) >= 0 ? ret : -EINVAL;
}

/* 0, and a struct arfs_attr */
long lookup(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_attr attr = { 0 };
	struct arfs_place p;
	uint64_t seq = read_begin(&p, ask);
	long ret = arfs_lookup(&p, ask->node, arfs_name(ask), ask->name_len, &attr);

	return attr_give(read_end(&p, ask, seq, ret), &attr);
}

/* 0, and a struct arfs_attr */
long getattr(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_attr attr = { 0 };
	struct arfs_place p;
	uint64_t seq = read_begin(&p, ask);
	long ret = arfs_getattr(&p, ask->node, &attr);

	return attr_give(read_end(&p, ask, seq, ret), &attr);
}

/*
 * 0, and struct arfs_listed, with attributes or without, from offset on, as many as there is room
 * for
 */
long readdir(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_place p;
	uint64_t seq = read_begin(&p, ask);

	p.plus = ask->flags & ARFS_PLUS;
	return read_end(&p, ask, seq, arfs_list(&p, ask->node, ask->offset));
}

/* How many bytes, and these; of a symbolic link, its target */
long read(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_place p;
	uint64_t seq = read_begin(&p, ask);

	return read_end(&p, ask, seq, arfs_read(&p, ask->node, ask->offset, ask->size));
}

/* 0, and a struct arfs_space */
long space(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_place p = { (unsigned long)warp_region(0) };
	const struct arfs_super *s = arfs_super(&p);
	const struct arfs_space space = { s->id, s->blocks - s->data_at, s->free_blocks, s->inodes,
					  s->free_inodes };

	return warp_output(&space, sizeof(space)) < 0 ? -EINVAL : 0;
}

/* --- changes --- */

static inline void change_begin(struct arfs_place *p)
{
	arfs_lock(p);
	arfs_begin(p);
}

/* What has lost its last name, or what is behind a new end, is freed by changes of their own */
static inline long change_end(struct arfs_place *p, int ret)
{
	ret = arfs_end(p, ret);
	arfs_trim(p);
	arfs_unlock();
	return ret;
}

/* What a change does between change_begin() and change_end() */
typedef int arfs_change(struct arfs_place *p, const struct arfs_ask *ask,
			struct arfs_changed *changed);

/* Always inline, so that no call is by a pointer. 0, and a struct arfs_changed */
static inline __attribute__((always_inline)) long change(const struct arfs_ask *ask,
							 arfs_change *what)
{
	struct arfs_changed changed = { 0 };
	struct arfs_place p;
	long ret;

	change_begin(&p);
	ret = change_end(&p, what(&p, ask, &changed));
	return ret || warp_output(&changed, sizeof(changed)) >= 0 ? ret : -EINVAL;
}

static inline int unlink_one(struct arfs_place *p, const struct arfs_ask *ask,
			     struct arfs_changed *changed)
{
	return arfs_remove(p, ask, 0, changed);
}

static inline int rmdir_one(struct arfs_place *p, const struct arfs_ask *ask,
			    struct arfs_changed *changed)
{
	return arfs_remove(p, ask, 1, changed);
}

long create(const struct arfs_ask *ask, unsigned long len)
{
	return change(ask, arfs_make);
}

long link(const struct arfs_ask *ask, unsigned long len)
{
	return change(ask, arfs_link);
}

long unlink(const struct arfs_ask *ask, unsigned long len)
{
	return change(ask, unlink_one);
}

long rmdir(const struct arfs_ask *ask, unsigned long len)
{
	return change(ask, rmdir_one);
}

long rename(const struct arfs_ask *ask, unsigned long len)
{
	return change(ask, arfs_rename);
}

long setattr(const struct arfs_ask *ask, unsigned long len)
{
	return change(ask, arfs_setattr);
}

/* 0, and a struct arfs_written */
long write(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_written written = { 0 };
	struct arfs_place p;
	long ret;

	change_begin(&p);
	ret = change_end(&p, arfs_write(&p, ask, &written));
	return ret || warp_output(&written, sizeof(written)) >= 0 ? ret : -EINVAL;
}

/* The client has closed a file that has no name */
long release(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_place p;

	change_begin(&p);
	return change_end(&p, arfs_release(&p, ask));
}

/* Ends what was left half done, and frees all files without a name if the flag says so */
long mend(const struct arfs_ask *ask, unsigned long len)
{
	struct arfs_place p;
	long ret = 0;

	arfs_lock(&p);
	arfs_undo_all(&p);
	arfs_trim(&p);
	while (!ret && (ask->flags & ARFS_REAP_ALL) && arfs_super(&p)->orphan) {
		arfs_begin(&p);
		ret = arfs_end(&p, arfs_orphan_take(&p, arfs_super(&p)->orphan));
		arfs_trim(&p);
	}
	arfs_unlock();
	return ret;
}

/* All that was changed before is in the backing file behind this */
long fsync(const struct arfs_ask *ask, unsigned long len)
{
	long ret;

	while ((ret = warp_sync(0)) > 0)
		;
	return ret;
}
