/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs from anybody: through loader and verifier, and run by both engines if they are taken.
 * Both must do the same, and touch nothing but their regions, which end where a page ends that
 * nobody may touch.
 *
 * The first byte says what the rest is: instructions; changes to a generated program; changes to an
 * object of clang's; or a file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "tests/bpf/engines.h"
#include "tests/bpf/generate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUEL = 3000, OBJECT_MAX = 1 << 16 };

__asm__(".section .rodata\n"
	"object_begin: .incbin \"" BPF_PROGRAMS "/all.object\"\n"
	"object_end: .byte 0\n"
	".previous\n");
extern const uint8_t object_begin[], object_end[];

static void demand(bool good)
{
	if (!good)
		abort();
}

static void run_both(const struct ebpf_insn *insns, size_t count)
{
	static struct engines_end by[2];

	if (!by[0].memory[0])
		demand(!engines_open(&by[0]) && !engines_open(&by[1]));
	engines_run(&by[0], insns, count, EBPF_LOAD_NO_JIT, count, FUEL, 700);
	engines_run(&by[1], insns, count, 0, count, FUEL, 700);
	demand(!engines_differ(&by[0], &by[1]));
	demand(!by[0].refused || by[0].err.text[0]);
}

static struct ebpf_result run_entry(const struct ebpf_object *obj, size_t i)
{
	static uint64_t memory[16];
	const struct ebpf_region region = { memory, 0x1000, sizeof(memory), 0, EBPF_MAY_READ };
	struct ebpf_params params = { .arg = { 0x1000, 1 }, .regions = &region, .count = 1 };
	struct ebpf_result result = { 0 };
	struct ebpf_run *run;

	demand(!ebpf_run_create(&run));
	ebpf_object_entry(obj, ebpf_object_entry_name(obj, i), &params.entry);
	demand(!ebpf_run_start(run, obj, &params));
	ebpf_run_continue(run, FUEL, &result);
	ebpf_run_destroy(run);
	return result;
}

static void load_both(const uint8_t *elf, size_t len)
{
	struct ebpf_object *obj[2] = { NULL };
	struct ebpf_error err;
	char text[300];

	for (unsigned int flags = 0; flags < 2; flags++)
		if (ebpf_object_load(elf, len, &engines_helpers, flags, &obj[flags], &err)) {
			demand(!obj[flags] && err.text[0]);
			for (const char *p = err.text; *p; p++)
				demand(*p >= 0x20 && *p < 0x7f);
		}
	demand(!obj[0] == !obj[1]);
	for (size_t i = 0; obj[0] && ebpf_object_entry_name(obj[0], i); i++) {
		struct ebpf_result a = run_entry(obj[0], i), b = run_entry(obj[1], i);

		demand(!memcmp(&a, &b, sizeof(a)));
		ebpf_result_text(&a, obj[0], text, sizeof(text));
	}
	ebpf_object_destroy(obj[0]);
	ebpf_object_destroy(obj[1]);
}

/* Each three bytes of @data: where (scaled to @len), and what is put there */
static void change(uint8_t *bytes, size_t len, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3)
		bytes[((size_t)data[0] << 8 | data[1]) * len >> 16] = data[2];
}

static void changed_program(const uint8_t *data, size_t size)
{
	static struct ebpf_insn insns[GENERATED_MAX];
	uint64_t seed = 0;
	size_t count;

	memcpy(&seed, data, base_min(size, (size_t)2));
	count = generate(seed, GENERATE_FOR_ENGINES, insns);
	if (size > 2)
		change((uint8_t *)insns, count * sizeof(*insns), data + 2, size - 2);
	run_both(insns, count);
}

static void changed_object(const uint8_t *data, size_t size)
{
	size_t len = (size_t)(object_end - object_begin);
	uint8_t *copy = malloc(len);

	demand(copy && len < OBJECT_MAX);
	memcpy(copy, object_begin, len);
	change(copy, len, data, size);
	load_both(copy, len);
	free(copy);
}

static void instructions(const uint8_t *data, size_t size)
{
	static struct ebpf_insn insns[GENERATED_MAX];
	size_t count = base_min(size / sizeof(*insns), (size_t)GENERATED_MAX);

	memcpy(insns, data, count * sizeof(*insns));
	run_both(insns, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] & 3) {
	case 0:
		instructions(data + 1, size - 1);
		break;
	case 1:
		changed_program(data + 1, size - 1);
		break;
	case 2:
		changed_object(data + 1, size - 1);
		break;
	default:
		load_both(data + 1, size - 1);
	}
	return 0;
}
