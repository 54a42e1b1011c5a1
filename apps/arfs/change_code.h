/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_CHANGE_CODE_H
#define APPS_ARFS_CHANGE_CODE_H

/*
 * What changes are made of, for programs: the lock and the undo log, blocks and inodes, the
 * entries of directories.
 *
 * A program takes the lock, and begins and ends one change after another. It may stop anywhere: by
 * its fuel, its client's death, or the server's. Whoever takes the lock next, or the server when it
 * starts, undoes the change that has not ended (arfs_undo_all).
 *
 * Blocks that a change frees are not used again in it, for their content is in no log. Therefore a
 * change allocates first and frees last.
 */

#include "place_program.h"

#define ARFS_FAR static __attribute__((noinline)) /* a frame of its own */

enum { ARFS_TRIM_STEP = 256 }; /* blocks that one change frees */

/* --- words and the log --- */

static inline volatile uint64_t *arfs_word(const struct arfs_place *p, uint64_t at)
{
	return (volatile uint64_t *)(p->base + at);
}

/* The volatile accesses keep their order: the entry, the count, and the word */
ARFS_FAR void arfs_word_set(struct arfs_place *p, uint64_t at, uint64_t value)
{
	volatile struct arfs_super *s = arfs_super(p);
	uint64_t n = s->undo;
	volatile struct arfs_undo *log =
		(volatile struct arfs_undo *)(p->base + (uint64_t)s->undo_at * ARFS_BLOCK);

	if (n >= ARFS_UNDO_MAX)	   /* a damaged store: nothing may be changed without the log */
		warp_unlock(~0ul); /* which ends the run */
	log[n].at = at;
	log[n].was = *arfs_word(p, at);
	s->undo = n + 1;
	*arfs_word(p, at) = value;
}

static inline void arfs_half_set(struct arfs_place *p, uint64_t at, uint32_t value)
{
	uint64_t word = *arfs_word(p, at & ~7ull);
	unsigned int shift = at & 4 ? 32 : 0;

	arfs_word_set(p, at & ~7ull, (word & ~(0xffffffffull << shift)) | (uint64_t)value << shift);
}

static inline uint64_t arfs_offset(const struct arfs_place *p, const volatile void *at)
{
	return (unsigned long)at - p->base;
}

/* Sets a member of 4 or of 8 bytes */
#define ARFS_SET(p, member, value)                                                      \
	(sizeof(member) == 8 ? arfs_word_set((p), arfs_offset((p), &(member)), (value)) \
			     : arfs_half_set((p), arfs_offset((p), &(member)), (uint32_t)(value)))

ARFS_FAR void arfs_undo_all(struct arfs_place *p)
{
	volatile struct arfs_super *s = arfs_super(p);
	volatile struct arfs_undo *log =
		(volatile struct arfs_undo *)(p->base + (uint64_t)s->undo_at * ARFS_BLOCK);

	if (s->undo > ARFS_UNDO_MAX)
		s->undo = 0;
	for (uint64_t n = s->undo; n; n--) {
		*arfs_word(p, log[n - 1].at) = log[n - 1].was;
		s->undo = n - 1;
	}
	s->seq = (s->seq | 1) + 1;
}

static inline void arfs_begin(struct arfs_place *p)
{
	volatile struct arfs_super *s = arfs_super(p);

	s->seq |= 1;
}

/* A negative @ret undoes what the change did */
ARFS_FAR int arfs_end(struct arfs_place *p, int ret)
{
	volatile struct arfs_super *s = arfs_super(p);

	if (ret < 0) {
		arfs_undo_all(p);
		return ret;
	}
	s->undo = 0;
	s->seq = (s->seq | 1) + 1;
	return ret;
}

/* --- blocks --- */

static inline uint64_t arfs_bitmap_offset(const struct arfs_place *p, uint32_t block)
{
	return (uint64_t)arfs_super(p)->bitmap_at * ARFS_BLOCK + block / 64 * 8;
}

/* The lowest bit that is 0 of a word that has one */
static inline unsigned int arfs_bit_free(uint64_t word)
{
	unsigned int n = 0;

	word = ~word;
	for (unsigned int half = 32; half; half /= 2)
		if (!(word & ((1ull << half) - 1))) {
			word >>= half;
			n += half;
		}
	return n;
}

/* A free block, @near if that is one: its number, or 0 */
ARFS_FAR uint32_t arfs_block_search(struct arfs_place *p, uint32_t near)
{
	const struct arfs_super *s = arfs_super(p);
	uint32_t words = (s->blocks + 63) / 64;

	if (near && near < s->blocks &&
	    !(*arfs_word(p, arfs_bitmap_offset(p, near)) >> near % 64 & 1))
		return near;
	near = s->next_block < s->blocks ? s->next_block / 64 : 0;
	for (uint32_t i = 0; i < words; i++) {
		uint32_t word = (near + i) % words;
		uint64_t bits = *arfs_word(p, arfs_bitmap_offset(p, word * 64));

		if (~bits)
			return word * 64 + arfs_bit_free(bits);
	}
	return 0;
}

ARFS_FAR int arfs_block_take(struct arfs_place *p, struct arfs_inode *i, uint32_t near,
			     uint32_t *block)
{
	struct arfs_super *s = arfs_super(p);
	uint32_t b = s->free_blocks ? arfs_block_search(p, near) : 0;
	uint64_t at = arfs_bitmap_offset(p, b);

	if (!b)
		return -ENOSPC;
	arfs_word_set(p, at, *arfs_word(p, at) | 1ull << b % 64);
	ARFS_SET(p, s->free_blocks, s->free_blocks - 1);
	ARFS_SET(p, i->blocks, i->blocks + 1);
	s->next_block = b + 1;
	*block = b;
	return 0;
}

ARFS_FAR void arfs_block_give(struct arfs_place *p, struct arfs_inode *i, uint32_t block)
{
	struct arfs_super *s = arfs_super(p);
	uint64_t at = arfs_bitmap_offset(p, block);

	arfs_word_set(p, at, *arfs_word(p, at) & ~(1ull << block % 64));
	ARFS_SET(p, s->free_blocks, s->free_blocks + 1);
	ARFS_SET(p, i->blocks, i->blocks - 1);
}

static inline void *arfs_block(const struct arfs_place *p, uint32_t block)
{
	return (void *)(p->base + (uint64_t)block * ARFS_BLOCK);
}

/* The block of numbers that the word at @at names; a new one if there is none */
static inline int arfs_numbers(struct arfs_place *p, struct arfs_inode *i, uint32_t *at,
			       uint32_t *block)
{
	int ret;

	*block = *at;
	if (*block)
		return 0;
	ret = arfs_block_take(p, i, 0, block);
	if (ret)
		return ret;
	warp_fill(arfs_block(p, *block), 0, ARFS_BLOCK);
	ARFS_SET(p, *at, *block);
	return 0;
}

/* Where the number of a file's block stands; blocks of numbers are made for it */
ARFS_FAR int arfs_map_place(struct arfs_place *p, struct arfs_inode *i, uint64_t index,
			    uint32_t **out)
{
	uint32_t block = 0;
	int ret;

	if (index < ARFS_DIRECT) {
		*out = &i->direct[index];
		return 0;
	}
	index -= ARFS_DIRECT;
	if (index < ARFS_PER_BLOCK) {
		ret = arfs_numbers(p, i, &i->indirect, &block);
	} else {
		index -= ARFS_PER_BLOCK;
		ret = arfs_numbers(p, i, &i->twice, &block);
		if (!ret)
			ret = arfs_numbers(
				p, i, (uint32_t *)arfs_block(p, block) + index / ARFS_PER_BLOCK,
				&block);
		index %= ARFS_PER_BLOCK;
	}
	*out = (uint32_t *)arfs_block(p, block) + index;
	return ret;
}

/* The block number @index of the file; a new one, with zeros, if there is none */
ARFS_FAR int arfs_map_make(struct arfs_place *p, struct arfs_inode *i, uint64_t index,
			   uint32_t *block)
{
	uint32_t *at, near = 0;
	int ret = arfs_map_place(p, i, index, &at);

	if (ret)
		return ret;
	*block = *at;
	if (*block)
		return 0;
	if (index)
		ret = arfs_map(p, i, index - 1, &near);
	if (!ret)
		ret = arfs_block_take(p, i, near ? near + 1 : 0, block);
	if (ret)
		return ret;
	warp_fill(arfs_block(p, *block), 0, ARFS_BLOCK);
	ARFS_SET(p, *at, *block);
	return 0;
}

/* --- inodes --- */

ARFS_FAR int arfs_inode_take(struct arfs_place *p, uint32_t *inode)
{
	struct arfs_super *s = arfs_super(p);
	uint32_t n = s->free_inode;

	if (n) {
		ARFS_SET(p, s->free_inode, arfs_inode(p, n)->next);
	} else {
		n = s->fresh_inode;
		if (n >= s->inodes)
			return -ENOSPC;
		ARFS_SET(p, s->fresh_inode, n + 1);
	}
	ARFS_SET(p, s->free_inodes, s->free_inodes - 1);
	*inode = n;
	return 0;
}

static inline void arfs_inode_give(struct arfs_place *p, uint32_t inode)
{
	struct arfs_super *s = arfs_super(p);
	struct arfs_inode *i = arfs_inode(p, inode);

	ARFS_SET(p, i->mode, 0);
	ARFS_SET(p, i->generation, i->generation + 1);
	ARFS_SET(p, i->next, s->free_inode);
	ARFS_SET(p, s->free_inode, inode);
	ARFS_SET(p, s->free_inodes, s->free_inodes + 1);
}

/* --- blocks behind the end of a file, a few in each change --- */

/* Frees the block that the word at @at names */
static inline void arfs_unmap(struct arfs_place *p, struct arfs_inode *i, uint32_t *at)
{
	uint32_t block = *at;

	if (!block)
		return;
	ARFS_SET(p, *at, 0);
	arfs_block_give(p, i, block);
}

/* Of the numbers from @from on in a block of them: how many were freed */
ARFS_FAR uint32_t arfs_numbers_trim(struct arfs_place *p, struct arfs_inode *i, uint32_t block,
				    uint32_t from, uint32_t most)
{
	uint32_t *numbers = (uint32_t *)arfs_block(p, block), n = 0;

	for (uint32_t k = from; k < ARFS_PER_BLOCK && n < most; k++)
		if (numbers[k]) {
			arfs_unmap(p, i, &numbers[k]);
			n++;
		}
	return n;
}

/* What the words of the inode itself name, @keep blocks stay */
static inline uint32_t arfs_trim_near(struct arfs_place *p, struct arfs_inode *i, uint64_t keep)
{
	uint32_t n = 0;

	for (uint64_t k = keep; k < ARFS_DIRECT; k++)
		if (i->direct[k]) {
			arfs_unmap(p, i, &i->direct[k]);
			n++;
		}
	if (!i->indirect || keep >= ARFS_DIRECT + ARFS_PER_BLOCK)
		return n;
	keep = keep > ARFS_DIRECT ? keep - ARFS_DIRECT : 0;
	n += arfs_numbers_trim(p, i, i->indirect, (uint32_t)keep, ARFS_TRIM_STEP - n);
	if (n < ARFS_TRIM_STEP && !keep)
		arfs_unmap(p, i, &i->indirect);
	return n;
}

static inline uint32_t arfs_trim_far(struct arfs_place *p, struct arfs_inode *i, uint64_t keep,
				     uint32_t most)
{
	uint64_t first = ARFS_DIRECT + ARFS_PER_BLOCK;
	uint32_t *outer = (uint32_t *)arfs_block(p, i->twice), n = 0, from;

	keep = keep > first ? keep - first : 0;
	for (uint64_t k = keep / ARFS_PER_BLOCK; i->twice && k < ARFS_PER_BLOCK && n < most; k++) {
		if (!outer[k])
			continue;
		from = k == keep / ARFS_PER_BLOCK ? (uint32_t)(keep % ARFS_PER_BLOCK) : 0;
		n += arfs_numbers_trim(p, i, outer[k], from, most - n);
		if (n < most && !from)
			arfs_unmap(p, i, &outer[k]);
	}
	if (n < most && !keep)
		arfs_unmap(p, i, &i->twice);
	return n;
}

/* One change: 1 if there is more to free */
ARFS_FAR int arfs_trim_step(struct arfs_place *p, uint32_t inode)
{
	struct arfs_super *s = arfs_super(p);
	struct arfs_inode *i = arfs_inode(p, inode);
	uint64_t keep = (i->size + ARFS_BLOCK - 1) / ARFS_BLOCK;
	uint32_t n;

	arfs_begin(p);
	n = arfs_trim_near(p, i, keep);
	if (n < ARFS_TRIM_STEP)
		n += arfs_trim_far(p, i, keep, ARFS_TRIM_STEP - n);
	if (n < ARFS_TRIM_STEP) {
		ARFS_SET(p, s->trim, 0);
		if (!i->nlink && !i->kept)
			arfs_inode_give(p, inode);
	}
	arfs_end(p, 0);
	return n >= ARFS_TRIM_STEP;
}

/* What superblock.trim names is freed, and the inode with it if it has no name */
ARFS_FAR void arfs_trim(struct arfs_place *p)
{
	uint32_t inode = arfs_super(p)->trim;

	if (inode && inode < arfs_inodes(p))
		while (arfs_trim_step(p, inode))
			;
}

/* --- the lock --- */

/* Behind it the store is as the last change left it */
ARFS_FAR void arfs_lock(struct arfs_place *p)
{
	long ret;

	p->base = (unsigned long)warp_region(0);
	do
		ret = warp_lock(0);
	while (ret < 0);
	if (!ret)
		return;
	arfs_undo_all(p);
	arfs_trim(p);
}

static inline void arfs_unlock(void)
{
	warp_unlock(0);
}

/* --- entries of directories --- */

/* Not in the log: nothing leads there yet, or the entry has no inode yet */
static inline void arfs_name_write(struct arfs_entry *e, const char *name, uint32_t len)
{
	warp_copy(e->name, name, len);
	e->pad = 0;
}

/* The second word of an entry */
static inline uint64_t arfs_entry_word(uint32_t length, uint32_t name_len, uint32_t type)
{
	return length | (uint64_t)name_len << 16 | (uint64_t)type << 24;
}

static inline uint64_t arfs_entry_first(uint32_t inode, uint32_t hash)
{
	return inode | (uint64_t)hash << 32;
}

/* An entry in what is left behind @e, or in @e itself, which is not used */
static inline void arfs_entry_put(struct arfs_place *p, struct arfs_entry *e, const char *name,
				  uint32_t len, uint64_t inode_type)
{
	uint32_t inode = (uint32_t)inode_type, type = (uint32_t)(inode_type >> 32);
	uint64_t first = arfs_entry_first(inode, arfs_hash(name, len));
	uint32_t used = arfs_entry_length(e->name_len), all = e->length;
	struct arfs_entry *to = (struct arfs_entry *)((char *)e + used);

	if (!e->inode) {
		arfs_name_write(e, name, len);
		arfs_word_set(p, arfs_offset(p, e) + 8, arfs_entry_word(all, len, type));
		arfs_word_set(p, arfs_offset(p, e), first);
		return;
	}
	arfs_name_write(to, name, len);
	((volatile uint64_t *)to)[1] = arfs_entry_word(all - used, len, type);
	((volatile uint64_t *)to)[0] = first;
	arfs_word_set(p, arfs_offset(p, e) + 8, arfs_entry_word(used, e->name_len, e->type));
}

/* An entry of the block with room for another one of @need bytes, or 0; negative: damaged */
ARFS_FAR long arfs_room_find(struct arfs_place *p, uint32_t block, uint32_t need)
{
	char *start = (char *)arfs_block(p, block);
	uint32_t at = 0;

	while (at < ARFS_BLOCK) {
		const struct arfs_entry *e = (const struct arfs_entry *)(const void *)(start + at);
		uint32_t used;

		if (!arfs_entry_good(e, at))
			return ARFS_DAMAGED;
		used = e->inode ? arfs_entry_length(e->name_len) : 0;
		if (e->length >= used + need)
			return (long)(start + at);
		at += e->length;
	}
	return 0;
}

/* A name that is not there yet; @inode_type: the inode, and the type in the upper half */
ARFS_FAR int arfs_entry_add(struct arfs_place *p, struct arfs_inode *dir, const char *name,
			    uint32_t len, uint64_t inode_type)
{
	uint64_t blocks = dir->size / ARFS_BLOCK;
	uint32_t block = 0;
	int ret;

	for (uint64_t n = 0; n < blocks; n++) {
		long room;

		ret = arfs_map(p, dir, n, &block);
		room = ret     ? ret
		       : block ? arfs_room_find(p, block, arfs_entry_length(len))
			       : ARFS_DAMAGED;
		if (room < 0 && room > -4096)
			return (int)room;
		if (room) {
			arfs_entry_put(p, (struct arfs_entry *)room, name, len, inode_type);
			return 0;
		}
	}
	ret = arfs_map_make(p, dir, blocks, &block);
	if (ret)
		return ret;
	*(volatile uint64_t *)((char *)arfs_block(p, block) + 8) = ARFS_BLOCK;
	arfs_entry_put(p, (struct arfs_entry *)arfs_block(p, block), name, len, inode_type);
	ARFS_SET(p, dir->size, (blocks + 1) * ARFS_BLOCK);
	return 0;
}

static inline void arfs_entry_remove(struct arfs_place *p, const struct arfs_found *found)
{
	const struct arfs_entry *e = (const struct arfs_entry *)(p->base + found->at);
	const struct arfs_entry *b = (const struct arfs_entry *)(p->base + found->before);

	if (found->before)
		arfs_word_set(p, found->before + 8,
			      arfs_entry_word((uint32_t)b->length + e->length, b->name_len,
					      b->type));
	else
		arfs_word_set(p, found->at, 0);
}

/* 1: it has no entry; or an error */
ARFS_FAR int arfs_dir_empty(struct arfs_place *p, const struct arfs_inode *dir)
{
	uint64_t blocks = dir->size / ARFS_BLOCK;

	for (uint64_t n = 0; n < blocks; n++) {
		uint32_t block = 0, at = 0;
		int ret = arfs_map(p, dir, n, &block);

		if (ret || !block)
			return ret ? ret : ARFS_DAMAGED;
		while (at < ARFS_BLOCK) {
			const struct arfs_entry *e =
				(const struct arfs_entry *)((char *)arfs_block(p, block) + at);

			if (!arfs_entry_good(e, at))
				return ARFS_DAMAGED;
			if (e->inode)
				return -ENOTEMPTY;
			at += e->length;
		}
	}
	return 1;
}

#endif
