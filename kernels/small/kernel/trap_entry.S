/* The way into the kernel and out of it, and from one kernel stack to another.
 *
 * While a program runs, sscratch is the trap frame at the top of its process's kernel stack. In the
 * kernel it is 0: interrupts are masked there, so a trap can only be a bug. */

	.text
	.balign 4
	.globl trap_entry
trap_entry:
	csrrw	sp, sscratch, sp
	beqz	sp, in_kernel
	sd	ra, 8(sp)
	/* x2, which is sp, comes last. */
	.irp	n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
	sd	x\n, 8*\n(sp)
	.endr
	.irp	n, 18,19,20,21,22,23,24,25,26,27,28,29,30,31
	sd	x\n, 8*\n(sp)
	.endr
	csrrw	t0, sscratch, zero
	sd	t0, 16(sp)
	csrr	t0, sepc
	sd	t0, 0(sp)
	ld	tp, 8*32(sp)
	mv	a0, sp
	call	trap

	.globl trap_return
trap_return: /* sp is the frame; a new process begins here */
	call	kernel_leave
	sd	tp, 8*32(sp)
	csrw	sscratch, sp
	ld	t0, 0(sp)
	csrw	sepc, t0
	.irp	n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
	ld	x\n, 8*\n(sp)
	.endr
	.irp	n, 18,19,20,21,22,23,24,25,26,27,28,29,30,31
	ld	x\n, 8*\n(sp)
	.endr
	ld	sp, 16(sp)
	sret

in_kernel:
	csrrw	sp, sscratch, sp
	csrr	a0, scause
	csrr	a1, sepc
	csrr	a2, stval
	j	trap_in_kernel

	.globl context_switch
context_switch: /* from a0 to a1: what a function must preserve, but tp is the hart's */
	sd	ra, 0(a0)
	sd	sp, 8(a0)
	.set	at, 16
	.irp	n, 8,9,18,19,20,21,22,23,24,25,26,27
	sd	x\n, at(a0)
	.set	at, at + 8
	.endr
	ld	ra, 0(a1)
	ld	sp, 8(a1)
	.set	at, 16
	.irp	n, 8,9,18,19,20,21,22,23,24,25,26,27
	ld	x\n, at(a1)
	.set	at, at + 8
	.endr
	ret
