// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One measurement: so many blocks are allocated, then freed in the same order, by one loop for both
 * sides (rows.c). A tick of the time stamp counter is an instruction under QEMU's `-icount shift=0`,
 * on whichever CPU. What the same loop takes with nothing in it is subtracted. The middle of some
 * rounds counts, which holds a timer interrupt at a fair share, but no task that happened to run.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include "brickyard_module.h"

#define MAX_ROUNDS 15
#define MAX_CPUS 8

static unsigned int rounds;

/* xorshift64*, by Vigna: good enough for dice. */
u32 next_random(u64 *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dULL) >> 32;
}

/* A loop of known length says what the counter counts. */
static void calibrate(void)
{
	long turns = 100000;
	u64 begun, ended;

	preempt_disable();
	begun = rdtsc_ordered();
	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(turns));
	ended = rdtsc_ordered();
	preempt_enable();
	row("clock,200000 instructions,1,,,%llu,", ended - begun);
}

int prepare_bench(unsigned int wanted)
{
	rounds = clamp_t(unsigned int, wanted | 1, 1, MAX_ROUNDS);
	calibrate();
	return set_cpus_allowed_ptr(current, cpumask_of(0));
}

void finish_bench(void)
{
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* ---- a phase, here or on another CPU ---- */

struct turn {
	phase *phase;
	struct batch *batch;
	u64 ticks;
};

static int make_turn(void *argument)
{
	struct turn *turn = argument;

	turn->ticks = turn->phase(turn->batch);
	return 0;
}

static u64 run_phase(int cpu, phase *phase, struct batch *batch)
{
	struct turn turn = { phase, batch, FAILED };

	if (cpu == 0) /* where this task runs */
		return phase(batch);
	smp_call_on_cpu(cpu, make_turn, &turn, false);
	return turn.ticks; /* FAILED if there is no such CPU, see measure() */
}

static int by_size(const void *left, const void *right)
{
	u64 a = *(const u64 *)left, b = *(const u64 *)right;

	return a < b ? -1 : a > b;
}

static u64 middle(u64 *values, unsigned int count)
{
	sort(values, count, sizeof(*values), by_size, NULL);
	return values[count / 2];
}

/* Hundredths of an instruction per block, less those of the empty loop. */
static u64 per_block(u64 ticks, u64 empty, u64 blocks)
{
	return div64_u64(100 * (ticks - min(ticks, empty)), blocks);
}

#define HUNDREDTHS "%llu.%02llu"
#define SPLIT(value) (value) / 100, (value) % 100

/* Prints a row with four figures; `-` where memory did not suffice. */
static void print_row(const char *kind, const char *what, unsigned int count,
		      u64 taken[SIDES], u64 given[SIDES], bool failed[SIDES], u64 blocks)
{
	char text[2][64];
	int side;

	for (side = LINUX; side <= BRICKYARD; side++) {
		u64 take = per_block(taken[side], taken[NOTHING], blocks);
		u64 give = per_block(given[side], given[NOTHING], blocks);

		if (failed[side])
			strscpy(text[side - LINUX], "-,-", 64);
		else
			snprintf(text[side - LINUX], 64, HUNDREDTHS "," HUNDREDTHS, SPLIT(take), SPLIT(give));
	}
	row("%s,%s,%u,%s,%s", kind, what, count, text[0], text[1]);
}

void measure(const char *kind, const char *what, const struct way *way, struct batch *batch,
	     unsigned int total, struct place place)
{
	static u64 take[SIDES][MAX_ROUNDS], give[SIDES][MAX_ROUNDS];
	unsigned int turns = max(1U, total / batch->count), round, side, i;
	u64 taken[SIDES], given[SIDES];
	bool failed[SIDES] = {};

	if (!cpu_online(place.take_cpu) || !cpu_online(place.give_cpu))
		return;
	for (round = 0; round < rounds; round++)
		for (side = 0; side < SIDES; side++) {
			take[side][round] = give[side][round] = 0;
			for (i = 0; i < turns && !failed[side]; i++) {
				u64 ticks = run_phase(place.take_cpu, way->take[side], batch);

				if (ticks == FAILED) {
					failed[side] = true;
					break;
				}
				take[side][round] += ticks;
				give[side][round] += run_phase(place.give_cpu, way->give[side], batch);
			}
			cond_resched();
		}
	for (side = 0; side < SIDES; side++) {
		taken[side] = middle(take[side], rounds);
		given[side] = middle(give[side], rounds);
	}
	print_row(kind, what, batch->count, taken, given, failed, (u64)turns * batch->count);
}

/* ---- threads on several CPUs ---- */

struct crew {
	phase *take, *give;
	unsigned int turns;
	atomic_t waiting, failed;
	struct completion done;
	atomic_t running;
};

struct member {
	struct crew *crew;
	struct batch batch;
	u64 begun, ended;
};

static int work(void *argument)
{
	struct member *member = argument;
	struct crew *crew = member->crew;
	unsigned int i;

	atomic_dec(&crew->waiting);
	while (atomic_read(&crew->waiting))
		cpu_relax();
	member->begun = rdtsc_ordered();
	for (i = 0; i < crew->turns; i++) {
		if (crew->take(&member->batch) == FAILED) {
			atomic_inc(&crew->failed);
			break;
		}
		cpu_relax(); /* where QEMU goes on with the next CPU */
		crew->give(&member->batch);
		cpu_relax();
	}
	member->ended = rdtsc_ordered();
	if (atomic_dec_and_test(&crew->running))
		complete(&crew->done);
	return 0;
}

/* Returns the instructions of all CPUs from the first thread's begin to the last one's end. */
static u64 one_crew(struct crew *crew, struct member *members, unsigned int cpus)
{
	struct task_struct *threads[MAX_CPUS];
	u64 begun = ~0ULL, ended = 0;
	unsigned int i;

	atomic_set(&crew->waiting, cpus);
	atomic_set(&crew->running, cpus);
	init_completion(&crew->done);
	for (i = 0; i < cpus; i++) {
		members[i].crew = crew;
		threads[i] = kthread_create_on_cpu(work, &members[i], i, "brickyard/%u");
		if (IS_ERR(threads[i])) {
			while (i--)
				kthread_stop(threads[i]);
			return FAILED;
		}
	}
	while (i--) /* this CPU's last, since a thread that waits for the others lets nobody else run */
		wake_up_process(threads[i]);
	wait_for_completion(&crew->done);
	for (i = 0; i < cpus; i++) {
		begun = min(begun, members[i].begun);
		ended = max(ended, members[i].ended);
	}
	return atomic_read(&crew->failed) ? FAILED : ended - begun;
}

void measure_threads(const char *kind, const char *what, const struct way *way,
		     const struct batch *batch, unsigned int total, unsigned int cpus)
{
	static u64 ticks[SIDES][MAX_ROUNDS];
	struct crew crew = { .turns = max(1U, total / batch->count) };
	struct member *members = vzalloc(MAX_CPUS * sizeof(*members));
	u64 blocks = (u64)crew.turns * batch->count * cpus, value[SIDES];
	unsigned int round, side, i;
	char text[2][32];

	if (!members || cpus > MAX_CPUS || cpus > num_online_cpus())
		goto out;
	for (i = 0; i < cpus; i++) {
		members[i].batch = *batch;
		members[i].batch.handles = vzalloc(batch->count * sizeof(*batch->handles));
		if (!members[i].batch.handles)
			goto out;
	}
	for (round = 0; round < rounds; round++)
		for (side = 0; side < SIDES; side++) {
			crew.take = way->take[side];
			crew.give = way->give[side];
			ticks[side][round] = one_crew(&crew, members, cpus);
		}
	for (side = 0; side < SIDES; side++)
		value[side] = middle(ticks[side], rounds);
	for (side = LINUX; side <= BRICKYARD; side++) {
		u64 pair = per_block(value[side], value[NOTHING], blocks);

		if (value[side] == FAILED)
			strscpy(text[side - LINUX], "-", 32);
		else
			snprintf(text[side - LINUX], 32, HUNDREDTHS, SPLIT(pair));
	}
	row("%s,%s,%u,%s,,%s,", kind, what, batch->count, text[0], text[1]);
out:
	for (i = 0; members && i < MAX_CPUS; i++)
		vfree(members[i].batch.handles);
	vfree(members);
}
