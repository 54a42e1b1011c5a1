/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs: what one execution of an object needs, and what it came to.
 *
 * Everything that a program can see is set when a run starts: stack and data hold nothing of an
 * earlier run, so that one caller's program finds nothing of another's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bpf/program.h"
#include "bpf/state.h"

int ebpf_run_create(struct ebpf_run **out)
{
	struct ebpf_run *run = NULL;

	if (posix_memalign((void **)&run, 64, sizeof(*run)))
		return -ENOMEM;
	memset(run, 0, sizeof(*run));
	run->over = true;
	*out = run;
	return 0;
}

void ebpf_run_destroy(struct ebpf_run *run)
{
	if (run)
		free(run->data);
	free(run);
}

static bool region_good(const struct ebpf_region *r)
{
	return r->host && r->size && r->addr < EBPF_OWN_ADDR &&
	       r->size <= EBPF_OWN_ADDR - r->addr && r->size <= UINTPTR_MAX - (uintptr_t)r->host &&
	       !(((uintptr_t)r->host ^ r->addr) & 7) && (!r->room || r->room >= r->size);
}

/* Keeps the order; -EINVAL if it overlaps a neighbour */
static int region_add(struct ebpf_run *run, const struct ebpf_region *given)
{
	struct ebpf_region *r = run->region + run->region_count;

	while (r > run->region && r[-1].addr > given->addr) {
		*r = r[-1];
		r--;
	}
	*r = *given;
	if (!r->room)
		r->room = r->size;
	run->region_count++;
	if ((r > run->region && r[-1].addr + r[-1].size > r->addr) ||
	    (r + 1 < run->region + run->region_count && r->addr + r->size > r[1].addr))
		return -EINVAL;
	return 0;
}

/* Its own memory; constants and data may be empty, and are no regions then */
static void own_regions_add(struct ebpf_run *run, const struct ebpf_object *obj)
{
	const unsigned int all = EBPF_MAY_READ | EBPF_MAY_WRITE | EBPF_MAY_ATOMIC;
	const struct ebpf_region own[] = {
		{ run->stack, EBPF_STACK_ADDR, obj->frames * EBPF_FRAME_SIZE, 0, all },
		{ obj->constants, EBPF_CONSTANTS_ADDR, obj->constants_size, 0, EBPF_MAY_READ },
		{ run->data, EBPF_DATA_ADDR, obj->data_size, 0, all },
	};

	for (size_t i = 0; i < base_array_size(own); i++)
		if (own[i].size)
			region_add(run, &own[i]);
}

static int data_reset(struct ebpf_run *run, const struct ebpf_object *obj)
{
	if (obj->data_size > run->data_room) {
		uint8_t *more = realloc(run->data, obj->data_size);

		if (!more)
			return -ENOMEM;
		run->data = more;
		run->data_room = obj->data_size;
	}
	if (obj->data_size)
		memcpy(run->data, obj->data, obj->data_size);
	return 0;
}

static int regions_set(struct ebpf_run *run, const struct ebpf_object *obj,
		       const struct ebpf_params *params)
{
	int ret = 0;

	run->region_count = run->region_last = 0;
	if (params->count > EBPF_REGIONS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < params->count && !ret; i++)
		ret = region_good(&params->regions[i]) ? region_add(run, &params->regions[i])
						       : -EINVAL;
	if (!ret)
		own_regions_add(run, obj);
	return ret;
}

static bool entry_good(const struct ebpf_object *obj, uint32_t pc)
{
	for (size_t i = 0; i < obj->entry_count; i++)
		if (obj->entries[i].pc == pc)
			return true;
	return false;
}

void *ebpf_run_room(struct ebpf_run *run)
{
	return run->room;
}

int ebpf_run_start(struct ebpf_run *run, const struct ebpf_object *obj,
		   const struct ebpf_params *params)
{
	struct ebpf_region before[EBPF_OWN_REGIONS + EBPF_REGIONS_MAX];
	size_t before_count = run->region_count;
	int ret;

	run->over = true;
	if (!entry_good(obj, params->entry))
		return -EINVAL;
	memcpy(before, run->region, before_count * sizeof(before[0]));
	ret = data_reset(run, obj);
	if (!ret)
		ret = regions_set(run, obj, params);
	if (ret) {
		run->windows_of = 0;
		return ret;
	}
	memset(run->stack, 0, obj->frames * EBPF_FRAME_SIZE);
	memset(run->reg, 0, sizeof(run->reg));
	memcpy(&run->reg[1], params->arg, sizeof(params->arg));
	run->reg[EBPF_FP] = EBPF_STACK_ADDR + EBPF_FRAME_SIZE;
	run->frame = run->frames;
	run->frame_end = run->frames + EBPF_DEPTH_MAX - 1;
	run->frame_shift = EBPF_STACK_ADDR - (uintptr_t)run->stack;
	run->pc = params->entry;
	run->obj = obj;
	run->cookie = params->cookie;
	run->output = params->output;
	run->output_room = params->output_room;
	run->output_used = 0;
	run->owed = 0;
	run->result = (struct ebpf_result){ 0 };
	run->over = false;
	if (obj->jit)
		ebpf_jit_reset(obj->jit, run, before, before_count);
	else
		run->windows_of = 0;
	return 0;
}

/* Pays what is owed; then what is left is for instructions */
static void fuel_set(struct ebpf_run *run, uint64_t fuel)
{
	uint64_t paid = base_min(fuel, run->owed);

	run->owed -= paid;
	run->fuel = fuel - paid;
}

static enum ebpf_status execute(struct ebpf_run *run)
{
	if (!run->fuel)
		return EBPF_FUEL;
	return run->obj->jit ? ebpf_jit_run(run->obj->jit, run)
			     : (enum ebpf_status)ebpf_interpret(run, NULL);
}

enum ebpf_status ebpf_run_continue(struct ebpf_run *run, uint64_t fuel, struct ebpf_result *result)
{
	if (!run->over) {
		fuel_set(run, fuel);
		run->result.status = execute(run);
		run->result.pc = run->pc;
		run->result.fuel = run->fuel;
		run->result.output = run->output_used;
	}
	if (result)
		*result = run->result;
	return run->result.status;
}

const uint64_t *ebpf_run_registers(const struct ebpf_run *run)
{
	return run->reg;
}

uint64_t ebpf_run_owed(const struct ebpf_run *run)
{
	return run->owed;
}

void *ebpf_run_cookie(const struct ebpf_run *run)
{
	return run->cookie;
}

int ebpf_run_memory(struct ebpf_run *run, uint64_t addr, uint64_t len, unsigned int rights,
		    void **out)
{
	if (ebpf_memory_find(run, addr, len, rights, out) == EBPF_DONE)
		return 0;
	run->result.addr = addr;
	run->result.len = len;
	run->result.rights = rights;
	return -EFAULT;
}

void ebpf_run_charge(struct ebpf_run *run, uint64_t fuel)
{
	uint64_t paid = base_min(fuel, run->fuel);

	run->fuel -= paid;
	run->owed += fuel - paid;
}

/* Copying costs fuel, a unit for each 64 bytes. */
int ebpf_helper_output(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	uint64_t len = arg[1];
	void *from = NULL;
	int ret;

	*result = (uint64_t)-E2BIG;
	if (len > run->output_room - run->output_used)
		return 0;
	ret = len ? ebpf_run_memory(run, arg[0], len, EBPF_MAY_READ, &from) : 0;
	if (ret)
		return ret;
	ebpf_run_charge(run, len / 64);
	if (len)
		memcpy(run->output + run->output_used, from, len);
	run->output_used += len;
	*result = run->output_used;
	return 0;
}

const char *ebpf_status_text(enum ebpf_status status)
{
	static const char *const text[] = {
		[EBPF_DONE] = "done",
		[EBPF_FUEL] = "the fuel is used up",
		[EBPF_ADDRESS] = "an access outside of all regions",
		[EBPF_RIGHTS] = "an access that the region does not allow",
		[EBPF_ALIGN] = "a misaligned atomic",
		[EBPF_DEPTH] = "too many functions deep",
		[EBPF_HELPER] = "a helper refused",
	};

	return (size_t)status < base_array_size(text) ? text[status] : "unknown status";
}

static int detail_text(const struct ebpf_result *r, char *text, size_t room)
{
	static const char *const verbs[] = { "", "read", "write", "read and write", "atomic" };

	switch (r->status) {
	case EBPF_DONE:
		return snprintf(text, room, ": 0x%llx", (unsigned long long)r->value);
	case EBPF_ADDRESS:
	case EBPF_RIGHTS:
	case EBPF_ALIGN:
		return snprintf(text, room, ": %s of %llu bytes at 0x%llx",
				r->rights < base_array_size(verbs) ? verbs[r->rights] : "access",
				(unsigned long long)r->len, (unsigned long long)r->addr);
	case EBPF_HELPER:
		return snprintf(text, room, ": %s", strerror(-r->error));
	default:
		text[0] = 0;
		return 0;
	}
}

const char *ebpf_result_text(const struct ebpf_result *result, const struct ebpf_object *obj,
			     char *text, size_t room)
{
	char detail[96], insn[64];
	struct ebpf_line line;
	int n;

	detail_text(result, detail, sizeof(detail));
	n = snprintf(text, room, "%s%s", ebpf_status_text(result->status), detail);
	if (result->status == EBPF_DONE || n < 0 || (size_t)n >= room || result->pc >= obj->count)
		return text;
	ebpf_object_line(obj, result->pc, &line);
	ebpf_insn_text(&obj->insns[result->pc],
		       &obj->insns[result->pc + 1 < obj->count ? result->pc + 1 : result->pc], insn,
		       sizeof(insn));
	snprintf(text + n, room - (size_t)n, *line.file ? "; %u: %s; %s:%u: %s" : "; %u: %s",
		 result->pc, insn, line.file, line.line, line.text + strspn(line.text, " \t"));
	return text;
}
