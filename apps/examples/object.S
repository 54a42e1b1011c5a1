/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The object that the build made of an example's programs, inside of the example */
	.section .rodata
	.globl active_object, active_object_end
active_object:
	.incbin OBJECT
active_object_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
