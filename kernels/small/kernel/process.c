/* Processes: fork, exit, wait, the heap. All is under the big lock. What a process has is its
 * object, its kernel stack and its address space; each is freed by the same functions, whether it
 * ended or never began because memory was short. */
#include "kernel.h"

size_t most_stack_used, processes_made;

static long last_pid;
static struct process *first;

/* Frees all that a process has, which no hart uses. */
void process_free(struct process *process)
{
	if (process->stack) {
		size_t used = stack_used(process->stack, STACK);

		stack_check(process->stack);
		if (used > most_stack_used)
			most_stack_used = used;
		page_free(process->stack, STACK_ORDER);
	}
	if (process->root)
		space_free(process->root);
	process_object_free(process);
}

/* Returns a process without a program that would begin at trap_return, or null if memory is
 * short. */
static struct process *process_new(void)
{
	struct process *process = process_object();

	if (!process)
		return NULL;
	process->stack = page_alloc(STACK_ORDER, FOR_KERNEL);
	process->root = space_new();
	if (process->stack)
		stack_paint(process->stack, STACK);
	if (!process->stack || !process->root) {
		process_free(process);
		return NULL;
	}
	process->context.ra = trap_return;
	process->context.sp = frame_of(process);
	return process;
}

/* Makes a process known. */
static void process_begin(struct process *process, struct process *parent)
{
	process->pid = ++last_pid;
	process->parent = parent;
	if (parent) {
		process->sibling = parent->children;
		parent->children = process;
	}
	processes_made++;
	can_run(process);
}

/* Makes the first process, which runs the program `suite` and inherits orphans. */
void process_first(void)
{
	long argument;

	first = process_new();
	if (!first)
		panic("no memory for the first process");
	memset(frame_of(first), 0, sizeof(struct frame));
	argument = exec(first, "suite", "");
	if (argument < 0)
		panic("the program suite does not start");
	frame_of(first)->x[10] = (uint64_t)argument;
	process_begin(first, NULL);
}

/* Copies the current process. Returns the new one's number, and 0 in it; or -1. */
long process_fork(void)
{
	struct process *parent = hart->current, *child = process_new();

	if (!child)
		return -1;
	if (!space_copy(child->root, parent->root)) {
		process_free(child);
		return -1;
	}
	*frame_of(child) = *frame_of(parent);
	frame_of(child)->x[10] = 0;
	child->heap = parent->heap;
	child->heap_end = parent->heap_end;
	process_begin(child, parent);
	return child->pid;
}

/* Ends the current process. Its memory is free at once, but for the object and the stack that it is
 * on: the parent frees those. */
void process_exit(long code)
{
	struct process *process = hart->current, *child;
	entry *root = process->root;
	bool for_first = false;

	while (process != first && (child = process->children)) {
		for_first |= child->state == ENDED;
		process->children = child->sibling;
		child->parent = first;
		child->sibling = first->children;
		first->children = child;
	}
	space_use(kernel_root);
	process->root = NULL;
	space_free(root);
	process->code = code;
	process->state = ENDED;
	if (process == first)
		finished = process;
	else if (process->parent->state == WAITING)
		can_run(process->parent);
	if (for_first && first->state == WAITING)
		can_run(first);
	schedule();
}

/* Waits for the end of a child, frees it and writes its code. Returns its number, or -1. */
long process_wait(size_t code)
{
	struct process *process = hart->current, **link, *child;
	long pid;

	while (process->children) {
		for (link = &process->children; (child = *link); link = &child->sibling) {
			if (child->state != ENDED)
				continue;
			if (code && !copy_out(code, &child->code, sizeof child->code))
				return -1;
			*link = child->sibling;
			pid = child->pid;
			process_free(child);
			return pid;
		}
		process->state = WAITING;
		schedule();
	}
	return -1;
}

/* Moves the end of the heap. Returns where it was, or -1, and then nothing has changed. */
long process_sbrk(ptrdiff_t bytes)
{
	struct process *process = hart->current;
	size_t former = process->heap_end, end = former + (size_t)bytes;
	size_t from = (former + PAGE - 1) & ~(size_t)(PAGE - 1);
	size_t to = (end + PAGE - 1) & ~(size_t)(PAGE - 1), at;

	if (bytes < 0 ? end < process->heap || end > former
		      : end < former || end > STACK_TOP - STACK_BYTES - PAGE)
		return -1;
	for (at = from; at < to; at += PAGE) {
		if (!space_map(process->root, at, READ | WRITE)) {
			space_unmap(process->root, from, at + PAGE);
			return -1;
		}
	}
	if (to < from)
		space_unmap(process->root, to, from);
	process->heap_end = end;
	return (long)former;
}
