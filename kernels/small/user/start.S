/* The start of a program, and the system calls. */
	.section .start, "ax"
	.globl	_start
_start: /* a0 is the argument */
	call	main
	call	exit

	.text
	/* The order is that of abi.h. */
	.set	number, 0
	.macro	system_call name
	.globl	\name
\name:	li	a7, number
	ecall
	ret
	.set	number, number + 1
	.endm

	system_call fork
	system_call exec
	system_call exit
	system_call wait
	system_call sbrk
	system_call getpid
	system_call yield
	system_call write
	system_call count
	system_call leave
