/* The programs, as the linker made them, in the kernel's image. */
	.macro program name
	.section .rodata
	.balign	8
0:	.ascii	"\name"
	.skip	16 - (. - 0b) /* NAME_BYTES */
	.quad	1f
	.section .rodata.images, "a"
	.balign	8
1:	.incbin	"\name\().elf"
	.endm

	.section .rodata
	.balign	8
	.globl	programs
programs:
	program	suite
	program	answer
	program	large
	.section .rodata
	.globl	programs_end
programs_end:
