/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The system call bpf(), as far as it is needed here. Headers of the C library may be older than
 * arenas, so their numbers stand here.
 */
#include "bpfkernel/system.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"

enum { XDP_GENERIC = 1 << 1, XDP_NATIVE = 1 << 2 }; /* linux/if_link.h */
enum { POPULATE_WRITE = 23 };			    /* of madvise() */
enum { MAP_ARENA = 33, MARGIN = 64 << 10, LOG_ROOM = 1 << 18 };

#define FOUR_GIB (1ull << 32)

static int system_bpf(int command, union bpf_attr *attr)
{
	long ret = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return ret < 0 ? -errno : (int)ret;
}

/* --- the arena ------------------------------------------------------------------------------ */

static int arena_map(size_t pages, uint64_t addr)
{
	union bpf_attr attr = { .map_type = (uint32_t)MAP_ARENA,
				.map_name = "warp_arena",
				.max_entries = (uint32_t)pages,
				.map_flags = BPF_F_MMAPABLE,
				.map_extra = addr };
	int fd = system_bpf(BPF_MAP_CREATE, &attr);

	return fd == -EINVAL ? -EOPNOTSUPP : fd;
}

/* A place with the margin on both sides, all in the same 4 GiB; the reservation keeps it free */
static uint8_t *place_reserve(void)
{
	uint8_t *at = mmap(NULL, 2 * FOUR_GIB, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = (size_t)(-(uintptr_t)at & (FOUR_GIB - 1));
	if (before)
		munmap(at, before);
	munmap(at + before + FOUR_GIB, FOUR_GIB - before);
	return at + before;
}

int bpfkernel_arena_create(size_t size, struct bpfkernel_arena *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *place;
	void *memory;
	int fd;

	size = base_align_up(size, page);
	if (!size || size > FOUR_GIB - 2 * MARGIN)
		return -E2BIG;
	place = place_reserve();
	if (!place)
		return -ENOMEM;
	fd = arena_map(size / page, (uintptr_t)place + MARGIN);
	memory = fd < 0 ? MAP_FAILED
			: mmap(place + MARGIN, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			       fd, 0);
	if (memory == MAP_FAILED) {
		int ret = fd < 0 ? fd : -errno;

		munmap(place, FOUR_GIB);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	munmap(place, MARGIN);
	munmap(place + MARGIN + size, FOUR_GIB - MARGIN - size);
	*out = (struct bpfkernel_arena){ fd, memory, size };
	return 0;
}

int bpfkernel_arena_fill(const struct bpfkernel_arena *arena, size_t at, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), from = base_align_down(at, page);

	if (!size)
		return 0;
	return madvise(arena->memory + from, base_align_up(at + size, page) - from, POPULATE_WRITE)
		       ? -ENOMEM
		       : 0;
}

void bpfkernel_arena_destroy(struct bpfkernel_arena *arena)
{
	munmap(arena->memory, arena->size);
	close(arena->fd);
}

/* --- programs ------------------------------------------------------------------------------- */

static int program_load(const char *name, const struct ebpf_insn *insns, size_t count, char *log)
{
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_XDP,
				.insns = (uintptr_t)insns,
				.insn_cnt = (uint32_t)count,
				.license = (uintptr_t) "Dual BSD/GPL",
				.log_buf = (uintptr_t)log,
				.log_size = log ? LOG_ROOM : 0,
				.log_level = log ? 1 : 0 };

	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	return system_bpf(BPF_PROG_LOAD, &attr);
}

/* The reason is the last line but that which tells how much was looked at. */
static void reason_take(char *log, char *text, size_t room)
{
	char *end = strstr(log, "\nprocessed "), *line;

	if (end)
		*end = 0;
	line = strrchr(log, '\n');
	snprintf(text, room, "the kernel: %s", line ? line + 1 : log);
}

int bpfkernel_program_load(const char *name, const struct ebpf_insn *insns, size_t count,
			   char *text, size_t room)
{
	int fd = program_load(name, insns, count, NULL), again;
	char *log;

	if (fd >= 0)
		return fd;
	snprintf(text, room, "the kernel: %s", strerror(-fd));
	log = calloc(1, LOG_ROOM);
	if (!log)
		return fd;
	again = program_load(name, insns, count, log);
	if (again < 0 && *log)
		reason_take(log, text, room);
	free(log);
	return again;
}

int bpfkernel_program_test(int fd, struct bpfkernel_test *test)
{
	union bpf_attr attr = { .test = { .prog_fd = (uint32_t)fd,
					  .data_in = (uintptr_t)test->in,
					  .data_size_in = (uint32_t)test->in_len,
					  .data_out = (uintptr_t)test->out,
					  .data_size_out = (uint32_t)test->out_len,
					  .repeat = test->repeat } };
	int ret = system_bpf(BPF_PROG_TEST_RUN, &attr);

	test->verdict = attr.test.retval;
	test->ns = attr.test.duration;
	test->out_len = attr.test.data_size_out;
	return ret;
}

/* --- maps and links ------------------------------------------------------------------------- */

static int map_create(const char *name, uint32_t type, size_t key_size, size_t value_size,
		      unsigned int entries, uint32_t flags)
{
	union bpf_attr attr = { .map_type = type,
				.key_size = (uint32_t)key_size,
				.value_size = (uint32_t)value_size,
				.max_entries = entries,
				.map_flags = flags };

	snprintf(attr.map_name, sizeof(attr.map_name), "%s", name);
	return system_bpf(BPF_MAP_CREATE, &attr);
}

int bpfkernel_keys_create(size_t key_size, unsigned int entries)
{
	return map_create("warp_keys", BPF_MAP_TYPE_HASH, key_size, sizeof(uint32_t), entries, 0);
}

int bpfkernel_programs_create(unsigned int entries)
{
	return map_create("warp_programs", BPF_MAP_TYPE_PROG_ARRAY, sizeof(uint32_t),
			  sizeof(uint32_t), entries, 0);
}

int bpfkernel_memory_create(size_t size)
{
	return map_create("warp_memory", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), size, 1,
			  BPF_F_MMAPABLE);
}

void *bpfkernel_memory_map(int fd, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

int bpfkernel_map_set(int fd, const void *key, uint32_t value)
{
	union bpf_attr attr = { .map_fd = (uint32_t)fd,
				.key = (uintptr_t)key,
				.value = (uintptr_t)&value };

	return system_bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int bpfkernel_map_remove(int fd, const void *key)
{
	union bpf_attr attr = { .map_fd = (uint32_t)fd, .key = (uintptr_t)key };

	return system_bpf(BPF_MAP_DELETE_ELEM, &attr);
}

/*
 * Linux waits for all programs when an element of a map of maps changes, so that who changed it
 * knows that none has the old one (since 5.0).
 */
int bpfkernel_wait(void)
{
	int inner = map_create("warp_inner", BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0), outer, ret;
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS,
				.key_size = 4,
				.value_size = 4,
				.max_entries = 1,
				.inner_map_fd = (uint32_t)inner };

	if (inner < 0)
		return inner;
	outer = system_bpf(BPF_MAP_CREATE, &attr);
	ret = outer < 0 ? outer : bpfkernel_map_set(outer, &(uint32_t){ 0 }, (uint32_t)inner);
	if (outer >= 0)
		close(outer);
	close(inner);
	return ret;
}

int bpfkernel_attach(int program, unsigned int interface, bool native)
{
	union bpf_attr attr = { .link_create = { .prog_fd = (uint32_t)program,
						 .target_ifindex = interface,
						 .attach_type = BPF_XDP,
						 .flags = native ? XDP_NATIVE : XDP_GENERIC } };

	return system_bpf(BPF_LINK_CREATE, &attr);
}
