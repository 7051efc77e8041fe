/* The first instructions of every hart, in physical memory without paging: they switch paging on,
 * with all physical memory mapped at DIRECT, and call C on a stack. */
#include "layout.h"

	.section .boot, "ax"
	.globl _start
_start: /* the first hart: a0 is its number, a1 the device tree */
	la	sp, boot_stack + BOOT_STACK_BYTES
	la	t2, boot
	j	paging

	.globl start_other
start_other: /* any other: a0 is its number, a1 the top of its stack, physical */
	mv	sp, a1
	la	t2, boot_other

	/* The next instruction but one is not mapped where it lies, so fetching it is a trap, to
	 * the same instruction in the direct map. */
paging:
	li	t0, DIRECT
	add	sp, sp, t0
	add	t2, t2, t0
	la	t1, 1f
	add	t1, t1, t0
	csrw	stvec, t1
	la	t1, kernel_root
	srli	t1, t1, 12
	li	t0, SATP_SV39
	or	t1, t1, t0
	sfence.vma
	csrw	satp, t1
	.balign 4
1:	csrw	sscratch, zero
	la	t0, trap_entry
	csrw	stvec, t0
	li	t0, 0x6102 /* SPP, SIE, FS: traps return to programs, which have no floating point */
	csrc	sstatus, t0
	li	t0, 0x20 /* SPIE: with interrupts on; STIE: from the timer only */
	csrs	sstatus, t0
	csrw	sie, t0
	li	ra, 0
	jr	t2

	.data
	.balign 4096
	.globl kernel_root
	/* The upper half of every address space: all physical memory and the devices, gigabyte by
	 * gigabyte, for the kernel. It never changes, so no other hart need ever be told. */
kernel_root:
	.fill	256, 8, 0
	.set	gigabyte, 0
	.rept	256
	.quad	(gigabyte << 28) | 0xef /* readable, writable, executable, global, used */
	.set	gigabyte, gigabyte + 1
	.endr

	.bss
	.balign 4096
	.globl boot_guard, boot_stack
boot_guard: /* so that a stack that overflows is noticed, and by how much */
	.skip	BOOT_GUARD_BYTES
boot_stack:
	.skip	BOOT_STACK_BYTES
