/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The backing file of ARFS: a new one, its mapping, and what is done when a server starts.
 *
 * A kill of the server does not lose what its threads had written into the mapping, for the pages
 * are the kernel's. What can be left is the beginning of one change, and the undo log has that.
 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store_fault.h"

int store_bad(struct store_fault *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return -EBADMSG;
}

/* --- a new one --- */

static uint32_t blocks_for(uint64_t count, uint32_t per_block)
{
	return (uint32_t)((count + per_block - 1) / per_block);
}

static void super_fill(struct arfs_super *s, uint32_t blocks, uint64_t id)
{
	*s = (struct arfs_super){ .magic = ARFS_MAGIC,
				  .version = ARFS_VERSION,
				  .block = ARFS_BLOCK,
				  .id = id,
				  .blocks = blocks };
	s->inodes = blocks_for(blocks / ARFS_BLOCKS_PER_INODE, ARFS_INODES_PER_BLOCK) *
		    ARFS_INODES_PER_BLOCK;
	s->undo_at = 1;
	s->bitmap_at = s->undo_at + ARFS_UNDO_BLOCKS;
	s->inodes_at = s->bitmap_at + blocks_for(blocks, ARFS_BLOCK * 8);
	s->data_at = s->inodes_at + s->inodes / ARFS_INODES_PER_BLOCK;
	s->free_blocks = blocks - s->data_at;
	s->free_inodes = s->inodes - ARFS_ROOT - 1;
	s->fresh_inode = ARFS_ROOT + 1;
	s->next_block = s->data_at;
}

static void bits_set(uint8_t *map, uint64_t from, uint64_t to)
{
	for (; from < to && from % 8; from++)
		map[from / 8] |= (uint8_t)(1 << from % 8);
	if (from < to)
		memset(map + from / 8, 0xff, (to - from) / 8);
	for (from = to > from ? to / 8 * 8 : to; from < to; from++)
		map[from / 8] |= (uint8_t)(1 << from % 8);
}

int store_format(void *memory, size_t size, uint64_t id, uint32_t uid, uint32_t gid, uint64_t now)
{
	uint64_t blocks = size / ARFS_BLOCK;
	struct arfs_super *s = memory;
	struct arfs_inode *root;
	uint8_t *map;

	if (blocks < ARFS_BLOCKS_MIN || blocks > UINT32_MAX - ARFS_BLOCK * 8)
		return -EINVAL;
	super_fill(s, (uint32_t)blocks, id);
	map = (uint8_t *)memory + (size_t)s->bitmap_at * ARFS_BLOCK;
	bits_set(map, 0, s->data_at);
	/* The last word has bits for blocks that do not exist */
	bits_set(map, blocks, (blocks + 63) / 64 * 64);
	root = (struct arfs_inode *)(void *)((uint8_t *)memory +
					     (size_t)s->inodes_at * ARFS_BLOCK) +
	       ARFS_ROOT;
	*root = (struct arfs_inode){ .mode = S_IFDIR | 0755,
				     .nlink = 2,
				     .uid = uid,
				     .gid = gid,
				     .atime = now,
				     .mtime = now,
				     .ctime = now,
				     .parent = ARFS_ROOT };
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * A page of the mapping for which the disk has no room would end the server with SIGBUS, so all of
 * the file is there from the beginning
 */
static int file_reserve(int fd, uint64_t size)
{
	return -posix_fallocate(fd, 0, (off_t)size);
}

static int file_fill(int fd, uint64_t size)
{
	uint64_t id;
	void *memory;
	int ret;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -errno;
	ret = file_reserve(fd, size);
	if (ret)
		return ret;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ret = store_format(memory, size, id, getuid(), getgid(), now_ns());
	if (!ret && msync(memory, size, MS_SYNC))
		ret = -errno;
	munmap(memory, size);
	return ret;
}

int store_create(const char *path, uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), ret;

	if (fd < 0)
		return -errno;
	ret = file_fill(fd, size / ARFS_BLOCK * ARFS_BLOCK);
	if (!ret && fsync(fd))
		ret = -errno;
	close(fd);
	if (ret)
		unlink(path);
	return ret;
}

/* --- its mapping --- */

static int file_map(int fd, struct store *out, struct store_fault *fault)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < ARFS_BLOCKS_MIN * ARFS_BLOCK)
		return store_bad(fault, "it is too small, or no file");
	out->size = (size_t)st.st_size;
	out->memory = mmap(NULL, out->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return out->memory == MAP_FAILED ? -errno : 0;
}

/*
 * The descriptor stays open, for the lock is its. Room is reserved only of a store, and of one that
 * nobody else serves: it may write to the file
 */
int store_open(const char *path, bool reserve, struct store *out, struct store_fault *fault)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	*out = (struct store){ 0 };
	ret = file_map(fd, out, fault);
	if (ret) {
		close(fd);
		return ret;
	}
	ret = store_super_check(out->memory, out->size, fault);
	if (!ret && reserve)
		ret = file_reserve(fd, out->size);
	if (!ret)
		ret = store_recover(out->memory, out->size, &out->undone, fault);
	if (ret) {
		munmap(out->memory, out->size);
		close(fd);
	}
	return ret;
}

void store_close(struct store *s)
{
	munmap(s->memory, s->size);
}

/* --- the superblock and the undo log --- */

int store_super_check(const void *memory, size_t size, struct store_fault *fault)
{
	struct arfs_super s, want;

	if (size < ARFS_BLOCKS_MIN * ARFS_BLOCK)
		return store_bad(fault, "it is too small");
	memcpy(&s, memory, sizeof(s));
	if (s.magic != ARFS_MAGIC)
		return store_bad(fault, "it is no ARFS");
	if (s.version != ARFS_VERSION || s.block != ARFS_BLOCK)
		return store_bad(fault, "it is of version %u, with blocks of %u bytes", s.version,
				 s.block);
	if (s.blocks < ARFS_BLOCKS_MIN || s.blocks > size / ARFS_BLOCK)
		return store_bad(fault, "its %u blocks are not in the file", s.blocks);
	super_fill(&want, s.blocks, s.id);
	if (s.inodes != want.inodes || s.undo_at != want.undo_at || s.bitmap_at != want.bitmap_at ||
	    s.inodes_at != want.inodes_at || s.data_at != want.data_at || s.data_at >= s.blocks)
		return store_bad(fault, "its parts are not where they belong");
	return 0;
}

int store_recover(void *memory, size_t size, uint32_t *undone, struct store_fault *fault)
{
	struct arfs_super *s = memory;
	const struct arfs_undo *log =
		(const void *)((const uint8_t *)memory + (size_t)s->undo_at * ARFS_BLOCK);
	uint64_t end = (uint64_t)s->blocks * ARFS_BLOCK, n = s->undo;
	/* The log itself, and what no change writes to */
	uint64_t low = offsetof(struct arfs_super, free_blocks);
	uint64_t kept = (uint64_t)s->undo_at * ARFS_BLOCK;
	uint64_t kept_end = (uint64_t)s->bitmap_at * ARFS_BLOCK;

	if (n > ARFS_UNDO_MAX)
		return store_bad(fault, "its undo log has %llu entries", (unsigned long long)n);
	for (uint64_t k = 0; k < n; k++) {
		uint64_t at = log[k].at;

		if (at < low || at % 8 || at > end - 8 || (at >= kept && at < kept_end))
			return store_bad(fault, "its undo log names offset 0x%llx",
					 (unsigned long long)at);
	}
	*undone = (uint32_t)n;
	for (; n; n--)
		memcpy((uint8_t *)memory + log[n - 1].at, &log[n - 1].was, 8);
	s->undo = 0;
	s->seq += s->seq & 1;
	return 0;
}
