/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program on this host: its object, files as its regions, and the functions that a server has.
 *
 * A region stands at the address at which the program sees it, as at a server. What the program
 * writes there is its own, and the file stays as it is.
 */
#include "apps/active/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <warp/active.h>

#include "apps/warpsock/command.h"

enum { OBJECT_MAX = 32 << 20 };

static int file_read(const char *path, uint8_t **bytes, size_t *len)
{
	FILE *f = fopen(path, "re");
	int err = 0;

	*bytes = malloc(OBJECT_MAX);
	if (!f || !*bytes)
		err = errno;
	else
		*len = fread(*bytes, 1, OBJECT_MAX, f);
	if (f && (ferror(f) || (!err && fgetc(f) != EOF)))
		err = EFBIG;
	if (f)
		fclose(f);
	return err ? complain(path, strerror(err)) : DONE;
}

int local_object(const char *path, unsigned int flags, struct ebpf_object **out)
{
	struct ebpf_error err = { .pc = EBPF_NO_PC };
	size_t len = 0;
	uint8_t *bytes = NULL;
	int ret = file_read(path, &bytes, &len);

	if (!ret && ebpf_object_load(bytes, len, &active_helpers, flags, out, &err)) {
		complain(path, err.text);
		ret = REFUSED;
	}
	free(bytes);
	return ret;
}

static int region_map(struct region_word *r)
{
	int fd = open(r->file, O_RDONLY | O_CLOEXEC);
	int place = r->addr ? MAP_FIXED_NOREPLACE : 0;
	struct stat st;
	void *at = MAP_FAILED;

	if (fd < 0)
		return complain(r->file, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size) {
		close(fd);
		return complain(r->file, "no file with bytes in it");
	}
	r->size = (size_t)st.st_size;
	at = mmap((void *)(uintptr_t)r->addr, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | place,
		  fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return complain(r->file, r->addr ? "this process has something at that address"
						 : strerror(errno));
	r->memory = at;
	r->addr = (uintptr_t)at;
	return DONE;
}

static int regions_open(struct local *l, struct given *g)
{
	for (size_t i = 0; i < g->region_count; i++) {
		struct region_word *r = &g->regions[i];
		int ret =
			*r->file ? region_map(r)
				 : command_wrong(g->command, "%s needs a file: NAME=FILE", r->name);

		if (ret)
			return ret;
		l->files[i] = (struct warp_active_region){ .memory = r->memory, .size = r->size };
		l->views[i] = (struct active_view){ &l->files[i], r->rights, NULL };
		l->regions[i] = active_region_ebpf(&l->views[i], r->rights);
		l->call.views[i] = &l->views[i];
		l->call.rights[i] = r->rights;
	}
	l->call.count = g->region_count;
	l->call.heap_used = &l->heap_used;
	return DONE;
}

static int params_fill(struct local *l, struct given *g)
{
	l->params = (struct ebpf_params){ .arg = { ACTIVE_ARGS_ADDR, g->args_len },
					  .regions = l->regions,
					  .count = g->region_count,
					  .output = l->output,
					  .output_room = sizeof(l->output),
					  .cookie = &l->call };
	if (g->args_len)
		l->regions[l->params.count++] = (struct ebpf_region){
			.host = g->args,
			.addr = ACTIVE_ARGS_ADDR,
			.size = g->args_len,
			.rights = EBPF_MAY_READ | EBPF_MAY_WRITE,
		};
	if (ebpf_object_entry(l->object, g->function, &l->params.entry))
		return complain(g->function, "the object has no such function");
	return DONE;
}

int local_open(struct local *l, struct given *g, unsigned int flags)
{
	int ret;

	memset(l, 0, sizeof(*l));
	ret = local_object(g->object, flags, &l->object);
	if (!ret)
		ret = regions_open(l, g);
	if (!ret)
		ret = args_fill(g);
	if (!ret)
		ret = params_fill(l, g);
	if (!ret && ebpf_run_create(&l->run))
		ret = complain("a run", strerror(ENOMEM));
	return ret;
}

int local_start(struct local *l)
{
	int ret;

	active_locks_break(&l->call);
	ret = ebpf_run_start(l->run, l->object, &l->params);

	return ret ? complain("a run", ret == -EINVAL ? "the regions overlap" : strerror(-ret))
		   : DONE;
}

void local_close(struct local *l, const struct given *g)
{
	ebpf_run_destroy(l->run);
	ebpf_object_destroy(l->object);
	for (size_t i = 0; i < g->region_count; i++)
		if (g->regions[i].memory)
			munmap(g->regions[i].memory, g->regions[i].size);
}
