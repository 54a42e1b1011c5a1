/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ACTIVECC_DWARF_H
#define APPS_ACTIVECC_DWARF_H

/* Which source line an assembled instruction comes from. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From address @addr of a section on; line 0 is none of the file that was assembled */
struct dwarf_row {
	uint32_t section, addr, line;
};

struct dwarf_lines {
	struct dwarf_row *rows;
	size_t count;
};

/* False: the object has none that can be read */
bool dwarf_lines_read(struct dwarf_lines *lines, const void *elf, size_t len);
void dwarf_lines_free(struct dwarf_lines *lines);
bool dwarf_section_name(const void *elf, size_t len, uint32_t section, char *name, size_t room);

#endif
