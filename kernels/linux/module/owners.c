// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Who owns what: threads on all CPUs, and a timer interrupt on each, allocate and free frames and
 * objects. Each frame has a word that says who owns it, changed by compare-and-swap; each frame and
 * object has the owner's stamp in its first and last word, which nobody else may overwrite. In the
 * end every single frame can be had, and every invariant holds.
 *
 * A planted fault must be found: a frame freed while it is in use, one written to after its free, one
 * that is never freed.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/vmalloc.h>
#include "brickyard_module.h"

#define MAX_THREADS 64
#define MAX_HELD 512
#define OBJECT_BYTES 192

static atomic_t *owners; /* of each frame of the span; 0: nobody */
static atomic_t stamps, faults;
static atomic64_t taken, taken_in_interrupts, refused;
static atomic64_t objects_taken;
static by_cache cache;
static bool stop;
static enum plant planted;
static atomic_t plants_left;

static void fault(const char *what, size_t where)
{
	if (atomic_inc_return(&faults) <= 5)
		say("FAIL: %s: %#zx", what, where);
}

static u32 new_stamp(void)
{
	return (u32)atomic_inc_return(&stamps) | 1; /* never 0 */
}

static void write_stamp(u64 *first, u64 *last, u64 where, u32 stamp)
{
	WRITE_ONCE(*first, where << 32 | stamp);
	WRITE_ONCE(*last, where << 32 | stamp);
}

static bool has_stamp(u64 *first, u64 *last, u64 where, u32 stamp)
{
	u64 expected = where << 32 | stamp;

	return READ_ONCE(*first) == expected && READ_ONCE(*last) == expected;
}

static void claim(size_t frame, unsigned int order)
{
	size_t i;

	for (i = frame; i < frame + (1UL << order); i++) {
		u32 stamp = new_stamp();
		u64 *page = by_address(i);

		if (i < first_frame || i >= last_frame) {
			fault("a frame outside the zone", i);
			return;
		}
		if (atomic_cmpxchg(&owners[i - first_frame], 0, stamp) != 0)
			fault("a frame with two owners", i);
		else
			write_stamp(page, page + 511, i, stamp);
	}
}

static void disclaim(size_t frame, unsigned int order)
{
	size_t i;

	for (i = frame; i < frame + (1UL << order); i++) {
		u64 *page = by_address(i);
		u32 stamp = atomic_read(&owners[i - first_frame]);

		if (!has_stamp(page, page + 511, i, stamp))
			fault("a frame that somebody else wrote to", i);
		atomic_set(&owners[i - first_frame], 0);
	}
}

static bool plant(enum plant which)
{
	return planted == which && atomic_dec_if_positive(&plants_left) >= 0;
}

static void give(size_t frame, unsigned int order)
{
	ptrdiff_t code;

	if (plant(PLANT_LOSS)) {
		disclaim(frame, order);
		return;
	}
	if (plant(PLANT_DOUBLE_FREE)) { /* the next owner finds our name */
		by_free(machine, frame, order);
		return;
	}
	disclaim(frame, order);
	code = by_free(machine, frame, order);
	if (code)
		fault(by_error_text(code), frame);
	if (plant(PLANT_USE_AFTER_FREE))
		while (!atomic_read(&faults) && !kthread_should_stop()) {
			if (atomic_read(&owners[frame - first_frame])) /* the next owner's */
				WRITE_ONCE(*(u64 *)by_address(frame), 0);
			cond_resched();
		}
}

static void try_object(void)
{
	u64 *object = by_cache_alloc(&cache), *last = object + OBJECT_BYTES / sizeof(u64) - 1;
	u64 where = (u64)object >> 6;
	u32 stamp = new_stamp();
	int i;

	if (!object) {
		atomic64_inc(&refused);
		return;
	}
	atomic64_inc(&objects_taken);
	write_stamp(object, last, where, stamp);
	for (i = stamp % 64; i; i--)
		cpu_relax();
	if (!has_stamp(object, last, where, stamp))
		fault("an object that somebody else wrote to", (size_t)object);
	if (by_cache_free(&cache, object))
		fault("an object that cannot be freed", (size_t)object);
}

/* ---- interrupts ---- */

static DEFINE_PER_CPU(struct hrtimer, timers);

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	static const unsigned int orders[] = { 0, 0, 1, 3 };
	ptrdiff_t frames[ARRAY_SIZE(orders)];
	int i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		frames[i] = by_alloc(machine, orders[i], BY_UNMOVABLE | BY_INTERRUPT);
		if (frames[i] < 0) {
			atomic64_inc(&refused);
			continue;
		}
		atomic64_inc(&taken_in_interrupts);
		claim(frames[i], orders[i]);
	}
	for (i = 0; i < ARRAY_SIZE(orders); i++)
		if (frames[i] >= 0) {
			disclaim(frames[i], orders[i]);
			if (by_free(machine, frames[i], orders[i]))
				fault("a free in an interrupt", frames[i]);
		}
	try_object();
	/* Uneven, so that interrupts fall on every place of what they interrupt. */
	hrtimer_forward_now(timer, ns_to_ktime(100 * 1000 + (u32)atomic_read(&stamps) % 65536));
	return READ_ONCE(stop) ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

static void start_timer(void *unused)
{
	hrtimer_start(this_cpu_ptr(&timers), ns_to_ktime(100 * 1000), HRTIMER_MODE_REL_PINNED_HARD);
}

/* ---- threads ---- */

struct held {
	size_t frame;
	unsigned int order;
};

static void take_one(struct held *held, unsigned int *count, u32 dice)
{
	unsigned int order = dice & 0xf0 ? 0 : (dice >> 8) % 11;
	ptrdiff_t frame = by_alloc(machine, order, (dice >> 16) % 3);

	if (frame < 0) {
		atomic64_inc(&refused);
		return;
	}
	claim(frame, order);
	held[(*count)++] = (struct held){ frame, order };
	atomic64_inc(&taken);
}

static void take_many(struct held *held, unsigned int *count, u32 dice)
{
	size_t frames[32];
	ptrdiff_t i, got = by_alloc_bulk(machine, 0, (dice >> 16) % 3, frames, ARRAY_SIZE(frames));

	for (i = 0; i < got; i++) {
		claim(frames[i], 0);
		held[(*count)++] = (struct held){ frames[i], 0 };
	}
	atomic64_add(max_t(ptrdiff_t, got, 0), &taken);
}

static int worker(void *argument)
{
	struct held *held = vmalloc(MAX_HELD * sizeof(*held));
	u64 random = (long)argument + 1;
	unsigned int count = 0;

	while (held && !kthread_should_stop()) {
		u32 dice = next_random(&random);

		if (dice % 2048 == 0) {
			by_drain(machine);
		} else if (dice % 64 == 0 && count + 32 <= MAX_HELD) {
			take_many(held, &count, next_random(&random));
		} else if (dice % 8 == 0) {
			try_object();
		} else if ((dice & 0x100) && count < MAX_HELD) {
			take_one(held, &count, next_random(&random));
		} else if (count) {
			unsigned int which = next_random(&random) % count;

			give(held[which].frame, held[which].order);
			held[which] = held[--count];
		}
		if (dice >> 22 == 0)
			cond_resched();
	}
	while (count) {
		count--;
		give(held[count].frame, held[count].order);
	}
	vfree(held);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* Every last frame can be had one by one, from other CPUs' stashes too. Returns how many. */
static size_t take_all(void)
{
	ptrdiff_t frame, chain = -1;
	size_t got = 0;

	while ((frame = by_alloc(machine, 0, BY_MOVABLE)) >= 0) {
		if (atomic_read(&owners[frame - first_frame]))
			fault("a free frame with an owner", frame);
		*(ptrdiff_t *)by_address(frame) = chain;
		chain = frame;
		got++;
		cond_resched();
	}
	while (chain >= 0) {
		frame = chain;
		chain = *(ptrdiff_t *)by_address(frame);
		if (by_free(machine, frame, 0))
			fault("the free of a frame that was had", frame);
		cond_resched();
	}
	return got;
}

static void run_threads(unsigned int seconds)
{
	struct task_struct *threads[MAX_THREADS];
	unsigned int count = 0, i;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hrtimer *timer = per_cpu_ptr(&timers, cpu);

		hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		timer->function = tick;
	}
	on_each_cpu(start_timer, NULL, 1);
	for (i = 0; i < 3 * num_online_cpus() && count < MAX_THREADS; i++) {
		struct task_struct *thread = kthread_run(worker, (void *)(long)i, "brickyard/%d", i);

		if (!IS_ERR(thread))
			threads[count++] = thread;
	}
	msleep(seconds * 1000);
	for (i = 0; i < count; i++)
		kthread_stop(threads[i]);
	WRITE_ONCE(stop, true);
	for_each_possible_cpu(cpu)
		hrtimer_cancel(per_cpu_ptr(&timers, cpu));
	say("%u threads on %u CPUs for %u s: %lld blocks taken, %lld in interrupts; %lld objects; %lld refused",
	    count, num_online_cpus(), seconds, atomic64_read(&taken), atomic64_read(&taken_in_interrupts),
	    atomic64_read(&objects_taken), atomic64_read(&refused));
	if (!atomic64_read(&taken) || !atomic64_read(&taken_in_interrupts) || !atomic64_read(&objects_taken))
		fault("nothing was taken", 0);
}

int test_owners(unsigned int seconds, enum plant plant)
{
	by_cache_spec spec = { .name = "owners", .size = OBJECT_BYTES, .flags = BY_CACHE_INTERRUPTS };
	size_t got;

	planted = plant;
	atomic_set(&plants_left, 1);
	owners = vzalloc((last_frame - first_frame) * sizeof(*owners));
	if (!owners)
		return -ENOMEM;
	if (by_cache_init(slabs, &spec, &cache)) {
		vfree(owners);
		return -ENOMEM;
	}
	run_threads(seconds);
	if (by_cache_destroy(&cache))
		fault("a cache with objects that nobody has", 0);
	by_slabs_drain(slabs);
	got = take_all();
	if (got != managed) {
		say("FAIL: %zu of %zu frames can be had one by one", got, managed);
		atomic_inc(&faults);
	} else {
		say("all %zu frames can be had one by one", got);
	}
	if (check_machine("after the threads", managed))
		atomic_inc(&faults);
	vfree(owners);
	return atomic_read(&faults) ? -EINVAL : 0;
}
