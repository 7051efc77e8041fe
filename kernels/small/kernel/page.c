/* The page allocator: Brickyard, and what it must know of this kernel. This is the file to copy.
 *
 * All memory is one zone. Its metadata come first, in the memory itself; the rest is handed out.
 * A page is a frame number to Brickyard and an address in the direct map to the kernel.
 *
 * The platform functions are few words each because of the big lock: nobody else is in the
 * kernel, interrupts are masked there, and a hart that needs something done as another hart,
 * which is outside, can do it itself in the other's name.
 *
 * Compiled with -DBY_LINKED -DBY_FREESTANDING, for a library that was built with --features
 * linked; or without -DBY_LINKED, and then the platform is a table. */
#include "brickyard.h"

#include "kernel.h"

const by_machine *machine;
static const by_platform platform;

/* Ends the kernel if a code is an error. */
ptrdiff_t must(ptrdiff_t code)
{
	if (code < 0)
		panic("%s", by_error_text(code));
	return code;
}

/* Takes the memory between two physical addresses. */
void page_init(size_t from, size_t end)
{
	/* The zone begins where the memory does, which is aligned to the largest block. */
	const by_zone_plan zone = { .start = MEMORY / PAGE, .end = end / PAGE, .kind = BY_NORMAL };
	const by_plan plan = { .zones = &zone, .zone_count = 1, .cpus = hart_count,
			       .platform = platform };
	size_t bytes = (size_t)must(by_machine_bytes(&plan));

	must(by_machine_init(&plan, direct(from), bytes, &machine));
	must(by_add(machine, 0, (from + bytes + PAGE - 1) / PAGE, end / PAGE));
}

/* Returns 2^order pages with any content, or null. */
void *page_alloc(unsigned order, enum page_use use)
{
	ptrdiff_t frame = by_alloc(machine, order, use == FOR_KERNEL ? BY_UNMOVABLE : BY_MOVABLE);

	return frame < 0 ? NULL : direct((size_t)frame * PAGE);
}

/* Takes back what page_alloc returned. What it did not return is noticed, and ends the kernel. */
void page_free(void *page, unsigned order)
{
	must(by_free(machine, physical(page) / PAGE, order));
}

/* Returns how many pages are free, after every hart's stash was emptied. */
size_t page_count(void)
{
	by_counts counts;

	must(by_drain(machine));
	must(by_zone_counts(machine, 0, &counts));
	return counts.free + counts.cached;
}

/* Tests every invariant of the allocator. Returns how many pages are in use. */
size_t page_check(void)
{
	by_census census;

	if (by_check(machine, &census) < 0)
		panic("by_check: frame %lx: %s", (long)census.frame, census.broken);
	return census.allocated;
}

/* ---- the platform ---- */

static bool run_as(size_t cpu, by_work work, void *argument)
{
	size_t self = kernel_hart;

	kernel_hart = cpu;
	work(argument);
	kernel_hart = self;
	return true;
}

#ifdef BY_LINKED
static const by_platform platform = { 0 };

size_t by_cpu(void) { return kernel_hart; }
size_t by_pin(void) { return kernel_hart; }
void by_unpin(void) {}
bool by_in_interrupt(void) { return false; }
size_t by_mask_interrupts(void) { return 0; }
void by_restore_interrupts(size_t found) { (void)found; }
void by_relax(void) {}
void *by_address(size_t frame) { return direct(frame * PAGE); }

bool by_run_on(size_t cpu, by_work work, void *argument) { return run_as(cpu, work, argument); }
#else
static size_t cpu(void *context) { return (void)context, kernel_hart; }

static void *address(void *context, size_t frame) { return (void)context, direct(frame * PAGE); }

static bool run_on(void *context, size_t cpu, by_work work, void *argument)
{
	return (void)context, run_as(cpu, work, argument);
}

static const by_platform platform = { .cpu = cpu, .run_on = run_on, .address = address };
#endif

void by_panic(const char *file, size_t length, uint32_t line)
{
	print("kernel: a bug in the allocator, in ");
	console_write(file, length);
	print("\n");
	panic("line %ld of it", (long)line);
}
