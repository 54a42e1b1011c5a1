/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_RUN_H
#define BPF_RUN_H

/*
 * A run: one execution of an object. It owns the program's registers, stack and data. A run belongs
 * to one thread at a time and can be started again and again, with the same object or another.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/object.h"

enum ebpf_right {
	EBPF_MAY_READ = 1,
	EBPF_MAY_WRITE = 2,
	EBPF_MAY_ATOMIC = 4, /* atomics need only this right */
};

enum { EBPF_REGIONS_MAX = 64, EBPF_RUN_ROOM = 512 };

/*
 * Memory that a program may use. The program sees it at @addr, which need not be its host address.
 * @host and @addr must leave the same remainder by 8, so that what is aligned is so in both.
 *
 * @room: bytes behind @host that hold nothing secret, at least @size, or 0 for @size. A processor
 * that guesses wrong may touch them, and nothing that is more than 63 bytes behind them
 * (SECURITY.md). A region whose room or size is a power of two is the quickest.
 */
struct ebpf_region {
	void *host;
	uint64_t addr, size, room;
	unsigned int rights;
};

struct ebpf_params {
	uint32_t entry;	 /* from ebpf_object_entry() */
	uint64_t arg[5]; /* r1 to r5 */
	const struct ebpf_region *regions;
	size_t count;
	void *output; /* what ebpf_helper_output() fills, or NULL */
	size_t output_room;
	void *cookie; /* for helpers */
};

enum ebpf_status {
	EBPF_DONE,    /* the program has ended; value is its result */
	EBPF_FUEL,    /* the fuel is used up: the program can be continued */
	EBPF_ADDRESS, /* address and length lie in no region */
	EBPF_RIGHTS,  /* they lie in one that does not allow it */
	EBPF_ALIGN,   /* an atomic's address is not a multiple of its size */
	EBPF_DEPTH,   /* more than EBPF_DEPTH_MAX functions deep */
	EBPF_HELPER,  /* a helper refused; error says why */
};

struct ebpf_result {
	enum ebpf_status status;
	uint32_t pc; /* where it stopped */
	uint64_t value;
	uint64_t addr, len;  /* of EBPF_ADDRESS, EBPF_RIGHTS, EBPF_ALIGN */
	unsigned int rights; /* what was wanted there */
	int error;	     /* of EBPF_HELPER: a negative errno */
	uint64_t fuel;	     /* what is left */
	size_t output;	     /* bytes of output */
};

int ebpf_run_create(struct ebpf_run **out);
void ebpf_run_destroy(struct ebpf_run *run);

/*
 * EBPF_RUN_ROOM bytes for the caller, aligned, which stay as long as the run. A run begins quicker
 * where the last one had the same code and the same regions.
 */
void *ebpf_run_room(struct ebpf_run *run);

/*
 * Makes ready; nothing is executed yet. Object, regions' memory and output must stay until the
 * run is over or started again. -EINVAL: regions overlap, wrap, are empty, lie at EBPF_OWN_ADDR
 * or above, or are not aligned as they must be; an entry that is none. -E2BIG: more than
 * EBPF_REGIONS_MAX.
 */
int ebpf_run_start(struct ebpf_run *run, const struct ebpf_object *obj,
		   const struct ebpf_params *params);
/*
 * Executes at most @fuel instructions. After EBPF_FUEL it may be called again and goes on where it
 * stopped; after another status it gives the same result again.
 */
enum ebpf_status ebpf_run_continue(struct ebpf_run *run, uint64_t fuel, struct ebpf_result *result);

/* For those who follow a run: r0 to r10, as they are behind the last instruction */
const uint64_t *ebpf_run_registers(const struct ebpf_run *run);
/* Fuel for helpers that the next turn pays before it executes anything */
uint64_t ebpf_run_owed(const struct ebpf_run *run);

/* --- for helpers -------------------------------------------------------------------------- */

void *ebpf_run_cookie(const struct ebpf_run *run);
/*
 * The host's address of what the program means by @addr, if all @len bytes allow all of @rights;
 * else the run's result says what is wrong and the helper returns the error: -EFAULT
 */
int ebpf_run_memory(struct ebpf_run *run, uint64_t addr, uint64_t len, unsigned int rights,
		    void **out);
/*
 * Takes fuel for work that the helper does. What is more than there is left is owed: the run
 * stops behind the call, and pays when it is continued.
 */
void ebpf_run_charge(struct ebpf_run *run, uint64_t fuel);
/* A helper for tables: appends r2 bytes at r1 to the output; r0 is its length, or -E2BIG */
int ebpf_helper_output(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result);

const char *ebpf_status_text(enum ebpf_status status);
/*
 * The result in one line: what happened, address, instruction, source line. Returns @text. A result
 * from elsewhere may name an instruction that is not there.
 */
const char *ebpf_result_text(const struct ebpf_result *result, const struct ebpf_object *obj,
			     char *text, size_t room);

#endif
