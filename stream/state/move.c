/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes that leave their file. The folder of the states has a limit, which other programs share:
 * 64 MiB in a container. Where half of it is used, or all, what a connection needs next lies in
 * shared memory without a name, at the same addresses: then children have it, too, and a program
 * that is executed is served by a relay.
 *
 * That can be done only while one process has the file: memory that two have mapped cannot change
 * under one of them. So the names of the slab go first, all of them.
 */
#include "stream/state/memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"
#include "base/runfile.h"

#define PAGE 4096u

/* What is guarded by one lock, and moves at once */
struct part {
	uint8_t *at;
	size_t len;
	uint64_t bit; /* of stream_slab.moved */
};

static struct part part_of(const struct stream_slab *slab, uint8_t *block, size_t at)
{
	static const size_t begins[] = {
		offsetof(struct stream_block, in),
		offsetof(struct stream_block, rest),
		offsetof(struct stream_block, hold),
		offsetof(struct stream_block, chunk),
	};
	unsigned int i = 0;
	size_t chunk;

	if (at >= begins[3]) {
		chunk = (at - begins[3]) / slab->chunk;
		return (struct part){ block + begins[3] + chunk * slab->chunk, slab->chunk,
				      8ull << chunk };
	}
	while (at >= begins[i + 1])
		i++;
	return (struct part){ block + begins[i], begins[i + 1] - begins[i], 1ull << i };
}

/* A page that has no memory holds nothing */
static void pages_copy(uint8_t *to, uint8_t *from, size_t len)
{
	for (size_t at = 0; at < len; at += PAGE)
		if (!base_runfile_reserve(from + at, PAGE))
			memcpy(to + at, from + at, PAGE);
}

/* The kernel counts a page that takes another one's place as none more */
static int page_replace(uint8_t *page)
{
	uint8_t octets[PAGE];
	bool full = !base_runfile_reserve(page, PAGE);
	int saved = errno;
	long done;

	if (full)
		memcpy(octets, page, PAGE);
	base_runfile_release(page, PAGE);
	done = syscall(SYS_mmap, page, PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	errno = saved;
	/* The place that was given back a moment ago is there still, as a rule */
	if (full && (done != -1 || !base_runfile_reserve(page, PAGE)))
		memcpy(page, octets, PAGE);
	return done == -1 ? -ENOMEM : 0;
}

static int pages_replace(const struct part *part)
{
	int err = 0;

	for (size_t at = 0; at < part->len && !err; at += PAGE)
		err = page_replace(part->at + at);
	return err;
}

static int part_replace(const struct part *part)
{
	uint8_t *fresh;
	int saved = errno, err = base_map_create_sparse(part->len, (void **)&fresh);
	long done;

	/* Two at once may be more than the process may have (RLIMIT_AS) */
	if (err)
		return pages_replace(part);
	pages_copy(fresh, part->at, part->len);
	base_runfile_release(part->at, part->len);
	done = syscall(SYS_mremap, fresh, part->len, part->len, MREMAP_MAYMOVE | MREMAP_FIXED,
		       part->at);
	errno = saved;
	return done == -1 ? -ENOMEM : 0;
}

int stream_part_move(void *p)
{
	struct stream_slab *slab = stream_slab_close(p);
	size_t off, size;
	struct part part;
	uint32_t block;
	int err;

	if (!slab)
		return -ENOENT;
	off = (size_t)((uint8_t *)p - slab->blocks);
	size = stream_file_block(slab->chunk);
	block = (uint32_t)(off / size);
	part = part_of(slab, slab->blocks + block * size, off % size);
	if (__atomic_load_n(&slab->moved[block], __ATOMIC_RELAXED) & part.bit)
		return 0;
	err = part_replace(&part);
	if (!err)
		__atomic_fetch_or(&slab->moved[block], part.bit, __ATOMIC_RELAXED);
	return err;
}
