/* Harts, and the one lock of the kernel. Whoever is in the kernel holds it: from a trap to the
 * return from it, and across a switch from one process to another. Interrupts are masked
 * meanwhile. */
#include "kernel.h"

size_t hart_count, kernel_hart, most_at_once;

static struct hart harts[HARTS];
static struct process idlers[HARTS];
static size_t in_programs; /* harts; the lock protects it, and what is above */
static char stacks[HARTS][STACK] __attribute__((aligned(PAGE)));

static uint32_t locked;

void kernel_lock(void)
{
	/* Pairs with the release in kernel_unlock. Waiting only reads. */
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&locked, __ATOMIC_RELAXED))
			;
	kernel_hart = hart->number;
}

void kernel_unlock(void)
{
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

/* From a program into the kernel. */
void kernel_enter(void)
{
	kernel_lock();
	in_programs--;
}

/* From the kernel into the current process's program. */
void kernel_leave(void)
{
	stack_check(hart->current->stack);
	if (++in_programs > most_at_once)
		most_at_once = in_programs;
	kernel_unlock();
}

/* Makes the caller a hart. It idles on the stack that it is on. */
void hart_init(size_t number)
{
	hart = &harts[number];
	hart->number = number;
	hart->idle = hart->current = &idlers[number];
	hart->idle->root = kernel_root;
	timer_arm();
}

/* Starts the other harts; each waits for the lock. */
void harts_start(void)
{
	extern char start_other[];
	size_t number;

	for (number = 0; number < hart_count; number++) {
		stack_paint(stacks[number], STACK);
		if (number == hart->number)
			continue;
		if (!sbi_hart_start(number, physical(start_other),
				    physical(stacks[number] + STACK)))
			panic("hart %ld does not start", (long)number);
	}
}

/* Returns how much of any hart's own stack was used, after boot. */
size_t idle_stack_used(void)
{
	size_t most = 0, number;

	for (number = 0; number < hart_count; number++) {
		size_t used = stack_used(stacks[number], STACK);

		stack_check(stacks[number]);
		if (used > most)
			most = used;
	}
	return most;
}
