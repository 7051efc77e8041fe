/* Who runs: one queue for all harts, first come, first served, with time slices. A hart without
 * work sleeps until its next timer interrupt and then looks again, so nobody need be woken. */
#include "kernel.h"

struct process *finished;

static struct process *queue, **queue_end = &queue;

/* Puts a process at the end of the queue. */
void can_run(struct process *process)
{
	process->state = RUNNABLE;
	process->next = NULL;
	*queue_end = process;
	queue_end = &process->next;
}

/* Gives this hart to the next process, or to the idle one. Returns when it is the caller's turn
 * again, perhaps on another hart; if the caller is neither in the queue nor to be put there,
 * never. */
void schedule(void)
{
	struct process *from = hart->current, *to = queue;

	if (!to || finished) {
		to = hart->idle;
	} else {
		queue = to->next;
		if (!queue)
			queue_end = &queue;
	}
	if (to == from)
		return;
	hart->current = to;
	space_use(to->root);
	context_switch(&from->context, &to->context);
}

void process_yield(void)
{
	if (queue) {
		can_run(hart->current);
		schedule();
	}
}

/* The time slice of the current process is over. */
void process_tick(void)
{
	timer_arm();
	hart->current->ticks++;
	if (queue) {
		hart->current->preempted++;
		process_yield();
	}
}

/* Returns true if a process waits for a hart, or all is over. A hint: without the lock. */
bool may_have_work(void)
{
	return __atomic_load_n(&queue, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&finished, __ATOMIC_RELAXED);
}
