/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The JIT for x86-64: makes machine code of an object once, and runs it.
 *
 * The code is written, then made executable and read-only, never both writable and executable. It
 * is the same for all threads; all that changes is in the run. When it stops at a site the run
 * looks for the window that is missing, or lets the interpreter go on to the next instruction at
 * which code begins.
 */
#include "bpf/jit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int code_map(struct ebpf_jit *jit, const struct x86 *c)
{
	void *at = mmap(NULL, c->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	memcpy(at, c->code, c->len);
	if (mprotect(at, c->len, PROT_READ | PROT_EXEC)) {
		munmap(at, c->len);
		return -EPERM;
	}
	jit->code = at;
	jit->size = c->len;
	return 0;
}

static int make(const struct ebpf_object *obj, struct ebpf_jit *jit)
{
	struct jit_making m = { .obj = obj, .jit = jit };
	int ret = -ENOMEM;

	jit->entry = calloc(obj->count, sizeof(*jit->entry));
	jit->landing = calloc(obj->count, sizeof(*jit->landing));
	m.begin = calloc(obj->count, sizeof(*m.begin));
	m.paid = calloc(obj->count, sizeof(*m.paid));
	for (int i = 0; i < 4; i++) /* of a single access; those behind are found as they come */
		jit->spans[i] = (uint8_t)(1 << i);
	m.meetings = calloc(obj->count, sizeof(*m.meetings));
	m.blocks = calloc(obj->count, sizeof(*m.blocks));
	if (jit->entry && jit->landing && m.begin && m.paid && m.meetings && m.blocks)
		ret = jit_compile(&m);
	if (!ret)
		ret = code_map(jit, &m.c);
	free(m.c.code);
	free(m.begin);
	free(m.paid);
	free(m.meetings);
	free(m.blocks);
	free(m.refunds.list);
	free(m.jumps.list);
	free(m.paid_jumps.list);
	free(m.exits.list);
	return ret;
}

int ebpf_jit_create(const struct ebpf_object *obj, struct ebpf_jit **out)
{
	static uint64_t last; /* atomic: objects are loaded by several threads */
	struct ebpf_jit *jit = calloc(1, sizeof(*jit));
	int ret;

	if (!jit)
		return -ENOMEM;
	jit->number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	ret = make(obj, jit);
	if (ret)
		ebpf_jit_destroy(jit);
	else
		*out = jit;
	return ret;
}

void ebpf_jit_destroy(struct ebpf_jit *jit)
{
	if (!jit)
		return;
	if (jit->code)
		munmap(jit->code, jit->size);
	free(jit->entry);
	free(jit->landing);
	free(jit->sites);
	free(jit);
}

size_t ebpf_jit_size(const struct ebpf_jit *jit)
{
	return jit->size;
}

void ebpf_jit_reset(const struct ebpf_jit *jit, struct ebpf_run *run,
		    const struct ebpf_region *regions, size_t count)
{
	const struct ebpf_before before = { regions, run->windows_of == jit->number ? count : 0 };

	run->windows_of = jit->number;
	if (ebpf_windows_guess(run, jit->window_rights, jit->window_count, jit->spans, &before))
		ebpf_window_settle();
}

static void enter(const struct ebpf_jit *jit, struct ebpf_run *run, uint32_t at)
{
	size_t depth = (size_t)(run->frame - run->frames);
	void (*code)(struct ebpf_run *);

	for (struct ebpf_frame *f = run->frames; f < run->frame; f++)
		f->native = (uintptr_t)jit->code + jit->landing[f->back - 1];
	run->host_frame = run->stack + (depth + 1) * EBPF_FRAME_SIZE;
	run->target = (uintptr_t)jit->code + at;
	memcpy(&code, &jit->code, sizeof(code));
	code(run);
	depth = (size_t)(run->frame - run->frames);
	run->reg[EBPF_FP] = EBPF_STACK_ADDR + (depth + 1) * EBPF_FRAME_SIZE;
}

/* Whether the code can be tried again where it stopped, with another window */
static bool site_again(const struct ebpf_jit *jit, struct ebpf_run *run, const struct jit_site *s)
{
	if (!s->rights ||
	    !ebpf_window_fill(run, &run->window[s->window], run->reg[s->base] + (uint64_t)s->lo,
			      s->len, s->rights, jit->spans))
		return false;
	run->window_region[s->window] = run->region_last;
	return true;
}

static enum ebpf_status ended(struct ebpf_run *run)
{
	if (run->site == JIT_OVER)
		return run->result.status;
	run->over = true;
	run->result.value = run->reg[0];
	return EBPF_DONE;
}

enum ebpf_status ebpf_jit_run(const struct ebpf_jit *jit, struct ebpf_run *run)
{
	uint32_t at = jit->entry[run->pc];
	const struct jit_site *site;
	int ret;

	for (;;) {
		if (!at) {
			ret = ebpf_interpret(run, jit->entry);
			if (ret != EBPF_STOPPED)
				return (enum ebpf_status)ret;
			at = jit->entry[run->pc];
		}
		enter(jit, run, at);
		if (run->site >= JIT_OVER)
			return ended(run);
		site = &jit->sites[run->site];
		at = site->resume;
		if (site_again(jit, run, site))
			continue;
		run->pc = site->pc;
		run->fuel += site->refund;
		at = 0;
	}
}
