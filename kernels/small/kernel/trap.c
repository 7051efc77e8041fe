/* Traps: system calls, the timer, and faults, which end the process unless its stack can grow. */
#include "kernel.h"

enum {
	ENVIRONMENT_CALL = 8,
	READ_FAULT = 13,
	WRITE_FAULT = 15,
};

#define TIMER_INTERRUPT (1ul << 63 | 5)

static long sys_exec(size_t name, size_t argument)
{
	char names[NAME_BYTES], arguments[ARGUMENT_BYTES];

	if (!copy_text_in(names, name, sizeof names) ||
	    !copy_text_in(arguments, argument, sizeof arguments))
		return -1;
	return exec(hart->current, names, arguments);
}

static long sys_write(size_t text, size_t bytes)
{
	char part[128];
	size_t left, count;

	for (left = bytes; left > 0; left -= count, text += count) {
		count = left < sizeof part ? left : sizeof part;
		if (!copy_in(part, text, count))
			return -1;
		console_write(part, count);
	}
	return (long)bytes;
}

static long sys_count(size_t which)
{
	switch (which) {
	case COUNT_FREE_PAGES:
		objects_give_back();
		return (long)page_count();
	case COUNT_HARTS:
		return (long)hart_count;
	case COUNT_TICKS:
		return (long)hart->current->ticks;
	case COUNT_PREEMPTED:
		return (long)hart->current->preempted;
	case COUNT_AT_ONCE:
		return (long)most_at_once;
	}
	return -1;
}

/* Makes memory short for a test: takes pages until so many are free, or frees what it took. */
static long sys_leave(size_t pages)
{
	static void **taken;
	size_t free = (size_t)sys_count(COUNT_FREE_PAGES);
	void **page;

	for (; free > pages && (page = page_alloc(0, FOR_KERNEL)); free--) {
		*page = taken;
		taken = page;
	}
	for (; free < pages && (page = taken); free++) {
		taken = *page;
		page_free(page, 0);
	}
	return (long)free;
}

static long system_call(const struct frame *frame)
{
	size_t a0 = frame->x[10], a1 = frame->x[11];

	switch (frame->x[17]) {
	case SYS_FORK:
		return process_fork();
	case SYS_EXEC:
		return sys_exec(a0, a1);
	case SYS_EXIT:
		process_exit((long)a0); /* does not return */
		break;
	case SYS_WAIT:
		return process_wait(a0);
	case SYS_SBRK:
		return process_sbrk((ptrdiff_t)a0);
	case SYS_GETPID:
		return hart->current->pid;
	case SYS_YIELD:
		process_yield();
		return 0;
	case SYS_WRITE:
		return sys_write(a0, a1);
	case SYS_COUNT:
		return sys_count(a0);
	case SYS_LEAVE:
		return sys_leave(a0);
	}
	return -1;
}

/* From a program, by trap_entry.S. The way back begins at trap_return. */
void trap(struct frame *frame)
{
	size_t cause, address;

	__asm__ volatile("csrr %0, scause\n csrr %1, stval" : "=r"(cause), "=r"(address));
	kernel_enter();
	if (cause == TIMER_INTERRUPT) {
		process_tick();
	} else if (cause == ENVIRONMENT_CALL) {
		frame->x[0] += 4;
		frame->x[10] = (uint64_t)system_call(frame);
	} else if ((cause != READ_FAULT && cause != WRITE_FAULT) ||
		   !stack_grow(hart->current, address)) {
		process_exit(FAULTED - (long)cause);
	}
}

/* The kernel masks interrupts and never touches an address that may not be there. */
void trap_in_kernel(size_t cause, size_t counter, size_t address)
{
	panic("trap %lx in the kernel at %lx, address %lx", (long)cause, (long)counter,
	      (long)address);
}
