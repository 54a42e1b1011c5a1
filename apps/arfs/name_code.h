/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_NAME_CODE_H
#define APPS_ARFS_NAME_CODE_H

/* Changes of names, each under the lock and between arfs_begin() and arfs_end(). */

#include "change_code.h"

static inline const char *arfs_name(const struct arfs_ask *ask)
{
	return (const char *)(ask + 1);
}

static inline const char *arfs_other_name(const struct arfs_ask *ask)
{
	return arfs_name(ask) + ask->name_len;
}

static inline uint64_t arfs_inode_type(uint32_t inode, uint32_t mode)
{
	return inode | (uint64_t)(mode >> 12 & 15) << 32;
}

static inline int arfs_is_dir(const struct arfs_inode *i)
{
	return (i->mode & ARFS_TYPE) == ARFS_DIR;
}

/* The directory that the client means, to be changed */
static inline int arfs_dir_get(struct arfs_place *p, uint64_t node, struct arfs_inode **out)
{
	const struct arfs_inode *i;
	int ret = arfs_dir_see(p, node, &i);

	if (!ret)
		*out = (struct arfs_inode *)i;
	return ret;
}

ARFS_FAR int arfs_find(struct arfs_place *p, const struct arfs_inode *dir, const char *name,
		       uint32_t len, struct arfs_found *out)
{
	int ret = len > ARFS_NAME_MAX ? -ENAMETOOLONG : arfs_dir_find(p, dir, name, len, out);

	return ret ? ret : out->inode && out->inode < arfs_inodes(p) ? 0 : ARFS_DAMAGED;
}

static inline void arfs_touch(struct arfs_place *p, struct arfs_inode *i, uint64_t now)
{
	ARFS_SET(p, i->mtime, now);
	ARFS_SET(p, i->ctime, now);
}

/* --- a new name --- */

/* Fills a new inode in; its words go into the log, for it may be one of the list of free ones */
static inline void arfs_inode_fill(struct arfs_place *p, uint32_t inode, const struct arfs_ask *ask,
				   const struct arfs_inode *dir)
{
	struct arfs_inode *i = arfs_inode(p, inode);
	uint64_t at = arfs_offset(p, i);
	uint32_t gid = dir->mode & 02000 ? dir->gid : ask->gid, mode = ask->mode;
	int is_dir = (mode & ARFS_TYPE) == ARFS_DIR;

	if (is_dir)
		mode |= dir->mode & 02000;
	for (uint32_t k = 0; k < sizeof(*i); k += 8)
		if (k != __builtin_offsetof(struct arfs_inode, generation) && *arfs_word(p, at + k))
			arfs_word_set(p, at + k, 0);
	ARFS_SET(p, i->mode, mode);
	ARFS_SET(p, i->nlink, is_dir ? 2 : 1);
	ARFS_SET(p, i->uid, ask->uid);
	ARFS_SET(p, i->gid, gid);
	ARFS_SET(p, i->rdev, ask->rdev);
	if (!i->generation)
		ARFS_SET(p, i->generation, 1);
	ARFS_SET(p, i->atime, ask->now);
	arfs_touch(p, i, ask->now);
}

/* What a symbolic link leads to */
static inline int arfs_target_write(struct arfs_place *p, struct arfs_inode *i,
				    const struct arfs_ask *ask)
{
	uint32_t block = 0;
	int ret;

	if (!ask->other_len || ask->other_len > ARFS_TARGET_MAX)
		return -ENAMETOOLONG;
	ret = arfs_map_make(p, i, 0, &block);
	if (ret)
		return ret;
	warp_copy(arfs_block(p, block), arfs_other_name(ask), ask->other_len);
	ARFS_SET(p, i->size, ask->other_len);
	return 0;
}

ARFS_FAR int arfs_make_new(struct arfs_place *p, const struct arfs_ask *ask, struct arfs_inode *dir,
			   uint32_t *inode)
{
	struct arfs_inode *i;
	int ret = arfs_is_dir(dir) && dir->nlink >= ARFS_LINK_MAX ? -EMLINK
								  : arfs_inode_take(p, inode);

	if (ret)
		return ret;
	i = arfs_inode(p, *inode);
	arfs_inode_fill(p, *inode, ask, dir);
	if ((i->mode & ARFS_TYPE) == ARFS_SYMLINK)
		ret = arfs_target_write(p, i, ask);
	if (!ret)
		ret = arfs_entry_add(p, dir, arfs_name(ask), ask->name_len,
				     arfs_inode_type(*inode, i->mode));
	if (ret)
		return ret;
	if (arfs_is_dir(i)) {
		ARFS_SET(p, i->parent, (uint32_t)ask->node);
		ARFS_SET(p, dir->nlink, dir->nlink + 1);
	}
	arfs_touch(p, dir, ask->now);
	return 0;
}

/* A new file of any kind; or the one that is there, if the client does not mind */
ARFS_FAR int arfs_make(struct arfs_place *p, const struct arfs_ask *ask, struct arfs_changed *out)
{
	struct arfs_inode *dir;
	struct arfs_found found;
	int ret = arfs_dir_get(p, ask->node, &dir);

	if (ret)
		return ret;
	if (!dir->nlink)
		return -ENOENT;
	ret = arfs_find(p, dir, arfs_name(ask), ask->name_len, &found);
	if (!ret && (ask->flags & ARFS_EXCLUSIVE))
		return -EEXIST;
	if (ret == -ENOENT)
		ret = arfs_make_new(p, ask, dir, &found.inode);
	if (!ret)
		arfs_attr_of(arfs_inode(p, found.inode), found.inode, &out->attr);
	return ret;
}

/* Another name, in the directory ask->other, for the file ask->node */
ARFS_FAR int arfs_link(struct arfs_place *p, const struct arfs_ask *ask, struct arfs_changed *out)
{
	const struct arfs_inode *seen;
	struct arfs_inode *i, *dir;
	struct arfs_found found;
	int ret = arfs_inode_see(p, ask->node, &seen);

	if (ret)
		return ret;
	i = (struct arfs_inode *)seen;
	ret = arfs_dir_get(p, ask->other, &dir);
	if (ret)
		return ret;
	if (arfs_is_dir(i))
		return -EPERM;
	if (!i->nlink)
		return -ENOENT;
	if (i->nlink >= ARFS_LINK_MAX)
		return -EMLINK;
	ret = arfs_find(p, dir, arfs_name(ask), ask->name_len, &found);
	if (ret != -ENOENT)
		return ret ? ret : -EEXIST;
	ret = arfs_entry_add(p, dir, arfs_name(ask), ask->name_len,
			     arfs_inode_type((uint32_t)ask->node, i->mode));
	if (ret)
		return ret;
	ARFS_SET(p, i->nlink, i->nlink + 1);
	ARFS_SET(p, i->ctime, ask->now);
	arfs_touch(p, dir, ask->now);
	arfs_attr_of(i, (uint32_t)ask->node, &out->attr);
	return 0;
}

/* --- a name less --- */

/*
 * The inode has lost a name, or a directory its only one. Without one it is trimmed behind this
 * change; or it is an orphan, whose node the client is told, until it is released.
 */
ARFS_FAR void arfs_name_lost(struct arfs_place *p, const struct arfs_ask *ask, uint32_t inode,
			     struct arfs_changed *out)
{
	struct arfs_super *s = arfs_super(p);
	struct arfs_inode *i = arfs_inode(p, inode);
	uint32_t left = arfs_is_dir(i) ? 0 : i->nlink - 1;

	ARFS_SET(p, i->nlink, left);
	ARFS_SET(p, i->ctime, ask->now);
	if (left)
		return;
	if ((ask->flags & ARFS_KEEP) && !arfs_is_dir(i)) {
		ARFS_SET(p, i->next, s->orphan);
		ARFS_SET(p, s->orphan, inode);
		ARFS_SET(p, i->kept, 1);
		out->orphan = arfs_node(inode, i->generation);
		return;
	}
	ARFS_SET(p, i->size, 0);
	ARFS_SET(p, s->trim, inode);
}

/* unlink, and rmdir if @dirs */
ARFS_FAR int arfs_remove(struct arfs_place *p, const struct arfs_ask *ask, int dirs,
			 struct arfs_changed *out)
{
	struct arfs_inode *dir, *i;
	struct arfs_found found;
	int ret = arfs_dir_get(p, ask->node, &dir);

	if (!ret)
		ret = arfs_find(p, dir, arfs_name(ask), ask->name_len, &found);
	if (ret)
		return ret;
	i = arfs_inode(p, found.inode);
	if (arfs_is_dir(i) != dirs)
		return dirs ? -ENOTDIR : -EISDIR;
	ret = dirs ? arfs_dir_empty(p, i) : 1;
	if (ret < 0)
		return ret;
	arfs_entry_remove(p, &found);
	if (dirs)
		ARFS_SET(p, dir->nlink, dir->nlink - 1);
	arfs_touch(p, dir, ask->now);
	arfs_name_lost(p, ask, found.inode, out);
	return 0;
}

/* --- another name --- */

/* -EINVAL: @inode is above the directory @dir, or is it */
ARFS_FAR int arfs_not_above(struct arfs_place *p, uint32_t inode, uint32_t dir)
{
	for (uint32_t n = ARFS_DEPTH_MAX; n; n--) {
		if (dir == inode)
			return -EINVAL;
		if (dir == ARFS_ROOT)
			return 0;
		if (!dir || dir >= arfs_inodes(p))
			break;
		dir = arfs_inode(p, dir)->parent;
	}
	return ARFS_DAMAGED;
}

/* What stands at both ends of a rename */
struct arfs_ends {
	struct arfs_inode *from, *to; /* the directories */
	struct arfs_found source, target;
	int exists; /* the target */
};

static inline int arfs_ends_find(struct arfs_place *p, const struct arfs_ask *ask,
				 struct arfs_ends *e)
{
	int ret = arfs_dir_get(p, ask->node, &e->from);

	if (!ret)
		ret = arfs_dir_get(p, ask->other, &e->to);
	if (!ret)
		ret = arfs_find(p, e->from, arfs_name(ask), ask->name_len, &e->source);
	if (ret)
		return ret;
	ret = arfs_find(p, e->to, arfs_other_name(ask), ask->other_len, &e->target);
	e->exists = !ret;
	return ret == -ENOENT ? 0 : ret;
}

/* May the source take the target's place? */
static inline int arfs_ends_check(struct arfs_place *p, const struct arfs_ask *ask,
				  const struct arfs_ends *e)
{
	const struct arfs_inode *i = arfs_inode(p, e->source.inode), *old;
	int ret = arfs_is_dir(i) ? arfs_not_above(p, e->source.inode, (uint32_t)ask->other) : 0;

	if (ret)
		return ret;
	if (ask->flags & ARFS_EXCHANGE) {
		if (!e->exists)
			return -ENOENT;
		return e->target.type == 4 ? arfs_not_above(p, e->target.inode, (uint32_t)ask->node)
					   : 0;
	}
	if (!e->exists)
		return e->to->nlink ? 0 : -ENOENT;
	if (ask->flags & ARFS_NOREPLACE)
		return -EEXIST;
	old = arfs_inode(p, e->target.inode);
	if (arfs_is_dir(old) && !arfs_is_dir(i))
		return -EISDIR;
	if (arfs_is_dir(i) && !arfs_is_dir(old))
		return -ENOTDIR;
	ret = arfs_is_dir(old) ? arfs_dir_empty(p, old) : 0;
	return ret < 0 ? ret : 0;
}

/* The entry leads to another inode */
static inline void arfs_entry_turn(struct arfs_place *p, const struct arfs_found *found,
				   const struct arfs_found *to)
{
	const struct arfs_entry *e = (const struct arfs_entry *)(p->base + found->at);

	arfs_word_set(p, found->at + 8, arfs_entry_word(e->length, e->name_len, to->type));
	arfs_word_set(p, found->at, arfs_entry_first(to->inode, e->hash));
}

/* A directory has come from @from to @to, whose number is @parent */
static inline void arfs_dir_moved(struct arfs_place *p, struct arfs_inode *from,
				  struct arfs_inode *to, uint32_t inode, uint32_t parent)
{
	struct arfs_inode *i = arfs_inode(p, inode);

	if (!arfs_is_dir(i) || from == to)
		return;
	ARFS_SET(p, from->nlink, from->nlink - 1);
	ARFS_SET(p, to->nlink, to->nlink + 1);
	ARFS_SET(p, i->parent, parent);
}

static inline int arfs_exchange(struct arfs_place *p, const struct arfs_ask *ask,
				struct arfs_ends *e)
{
	arfs_entry_turn(p, &e->source, &e->target);
	arfs_entry_turn(p, &e->target, &e->source);
	arfs_dir_moved(p, e->from, e->to, e->source.inode, (uint32_t)ask->other);
	arfs_dir_moved(p, e->to, e->from, e->target.inode, (uint32_t)ask->node);
	ARFS_SET(p, arfs_inode(p, e->target.inode)->ctime, ask->now);
	return 0;
}

/* The source is looked for again: its entry may have a new one before it */
ARFS_FAR int arfs_move(struct arfs_place *p, const struct arfs_ask *ask, struct arfs_ends *e,
		       struct arfs_changed *out)
{
	int ret = 0;

	if (e->exists)
		arfs_entry_turn(p, &e->target, &e->source);
	else
		ret = arfs_entry_add(p, e->to, arfs_other_name(ask), ask->other_len,
				     e->source.inode | (uint64_t)e->source.type << 32);
	if (!ret)
		ret = arfs_find(p, e->from, arfs_name(ask), ask->name_len, &e->source);
	if (ret)
		return ret;
	arfs_entry_remove(p, &e->source);
	arfs_dir_moved(p, e->from, e->to, e->source.inode, (uint32_t)ask->other);
	if (!e->exists)
		return 0;
	if (arfs_is_dir(arfs_inode(p, e->target.inode)))
		ARFS_SET(p, e->to->nlink, e->to->nlink - 1);
	arfs_name_lost(p, ask, e->target.inode, out);
	return 0;
}

ARFS_FAR int arfs_rename(struct arfs_place *p, const struct arfs_ask *ask, struct arfs_changed *out)
{
	struct arfs_ends e;
	int ret = arfs_ends_find(p, ask, &e);

	if (ret)
		return ret;
	/* Two names of one file stay, says POSIX */
	if (e.exists && e.source.inode == e.target.inode)
		return ask->flags & ARFS_NOREPLACE ? -EEXIST : 0;
	ret = arfs_ends_check(p, ask, &e);
	if (ret)
		return ret;
	ret = ask->flags & ARFS_EXCHANGE ? arfs_exchange(p, ask, &e) : arfs_move(p, ask, &e, out);
	if (ret)
		return ret;
	arfs_touch(p, e.from, ask->now);
	arfs_touch(p, e.to, ask->now);
	ARFS_SET(p, arfs_inode(p, e.source.inode)->ctime, ask->now);
	return 0;
}

#endif
