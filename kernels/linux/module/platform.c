// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What Brickyard wants to know of Linux: CPUs, interrupts, addresses. Functions of a few instructions,
 * called by every request and free, so without a tracer's hook.
 */
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include "brickyard_module.h"

notrace size_t by_cpu(void)
{
	return raw_smp_processor_id();
}

notrace size_t by_pin(void)
{
	preempt_disable_notrace();
	return raw_smp_processor_id();
}

notrace void by_unpin(void)
{
	preempt_enable_notrace();
}

/* A task that masks interrupts or soft interrupts has interrupted nothing. */
notrace bool by_in_interrupt(void)
{
	return !in_task();
}

notrace size_t by_mask_interrupts(void)
{
	unsigned long found;

	raw_local_irq_save(found);
	return found;
}

notrace void by_restore_interrupts(size_t found)
{
	raw_local_irq_restore(found);
}

notrace void by_relax(void)
{
	cpu_relax();
}

notrace void *by_address(size_t frame)
{
	return __va(PFN_PHYS(frame));
}

struct call {
	by_work work;
	void *argument;
};

static int make_call(void *argument)
{
	struct call *call = argument;

	call->work(call->argument);
	return 0;
}

bool by_run_on(size_t cpu, by_work work, void *argument)
{
	struct call call = { work, argument };

	if (!preemptible())
		return false;
	return smp_call_on_cpu(cpu, make_call, &call, false) == 0;
}

void by_panic(const char *file, size_t length, uint32_t line)
{
	panic("brickyard: a bug: %.*s:%u", (int)length, file, line);
}
