/* Every function of brickyard.h, with threads as CPUs, over ordinary memory. Ends with 0 if all is as
 * the header says; prints what is not. Built and run by `./test`, under sanitizers. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../brickyard.h"

enum {
	CPUS = 4,
	PAGE = 4096,
	/* Zones: DMA32 and Normal of node 0, Normal and Movable of node 1. */
	DMA32 = 0,
	NORMAL = 1,
	FAR = 2,
	MOVABLE = 3,
	FRAMES = 4 * 4096,
};

static int failures;

#define CHECK(condition)                                                                            \
	do {                                                                                        \
		if (!(condition)) {                                                                 \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);             \
			failures++;                                                                 \
		}                                                                                   \
	} while (0)

/* ---- the platform: a thread is a CPU ---- */

static __thread size_t this_cpu;
static char *memory; /* frame 0 is here */

#ifdef BY_LINKED
size_t by_cpu(void) { return this_cpu; }
size_t by_pin(void) { return this_cpu; }
void by_unpin(void) {}
bool by_in_interrupt(void) { return false; }
size_t by_mask_interrupts(void) { return 0; }
void by_restore_interrupts(size_t found) { (void)found; }
void by_relax(void) { sched_yield(); }
bool by_run_on(size_t cpu, by_work work, void *argument)
{
	(void)cpu, (void)work, (void)argument;
	return false;
}
void *by_address(size_t frame) { return frame < FRAMES ? memory + frame * PAGE : NULL; }
#define PLATFORM { 0 }
#else
static size_t cpu(void *context) { return (void)context, this_cpu; }
static void relax(void *context) { (void)context, sched_yield(); }
static void *address(void *context, size_t frame)
{
	return (void)context, frame < FRAMES ? memory + frame * PAGE : NULL;
}
#define PLATFORM { .cpu = cpu, .relax = relax, .address = address }
#endif

/* ---- the hooks: a page cache of single frames, and pages that move ---- */

static size_t cached[FRAMES], cached_count, woken, migrations;
static const by_machine *machine;

static size_t reclaim(void *context, const by_need *need)
{
	size_t freed = 0;
	(void)context;
	while (freed < need->frames + 31 && cached_count > 0)
		freed += by_free(machine, cached[--cached_count], 0) == 0;
	return freed;
}

static void wake(void *context, const by_need *need)
{
	(void)context, (void)need;
	__atomic_fetch_add(&woken, 1, __ATOMIC_RELAXED); /* on any CPU */
}

static uint32_t migrate(void *context, size_t from, uint32_t order, size_t to)
{
	size_t i;
	(void)context;
	for (i = 0; order == 0 && i < cached_count; i++) {
		if (cached[i] == from) {
			memcpy(memory + to * PAGE, memory + from * PAGE, PAGE);
			cached[i] = to;
			migrations++;
			return BY_MOVED;
		}
	}
	return BY_UNKNOWN;
}

/* ---- building ---- */

static const by_zone_plan zones[] = {
	{ .start = 0, .end = 4096, .node = 0, .kind = BY_DMA32 },
	{ .start = 4096, .end = 8192, .node = 0, .kind = BY_NORMAL },
	{ .start = 8192, .end = 12288, .node = 1, .kind = BY_NORMAL },
	{ .start = 12288, .end = 16384, .node = 1, .kind = BY_ZONE_MOVABLE },
};

static by_plan plan = {
	.zones = zones,
	.zone_count = sizeof(zones) / sizeof(*zones),
	.cpus = CPUS,
	.platform = PLATFORM,
	.hooks = { .reclaim = reclaim, .wake = wake, .migrate = migrate },
};

static void build(void)
{
	by_zone_plan odd[2];
	by_plan wrong = plan;
	by_counts counts;
	ptrdiff_t bytes = by_machine_bytes(&plan);
	void *metadata;

	CHECK(bytes > 0);
	CHECK(by_machine_bytes(NULL) == BY_INVALID);
	wrong.zone_count = 0;
	CHECK(by_machine_bytes(&wrong) == BY_INVALID);
	wrong.zone_count = 2;
	wrong.zones = odd;
	odd[0] = zones[1];
	odd[1] = zones[0];
	CHECK(by_machine_bytes(&wrong) == BY_UNSORTED);
	odd[0] = odd[1] = zones[0];
	CHECK(by_machine_bytes(&wrong) == BY_UNSORTED);
	odd[1].start = 100, odd[1].end = 200;
	CHECK(by_machine_bytes(&wrong) == BY_UNSORTED);
	odd[1] = zones[1], odd[1].node = 2;
	CHECK(by_machine_bytes(&wrong) == BY_UNSORTED);
	odd[1] = zones[1], odd[1].kind = 5;
	CHECK(by_machine_bytes(&wrong) == BY_UNSORTED || by_machine_bytes(&wrong) == BY_INVALID);
	odd[1] = zones[1], odd[1].max_order = 19;
	CHECK(by_machine_bytes(&wrong) == BY_INVALID);
	odd[1] = zones[1], odd[1].end = SIZE_MAX;
	CHECK(by_machine_bytes(&wrong) == BY_TOO_LARGE);

	metadata = malloc((size_t)bytes);
	CHECK(by_machine_init(&plan, metadata, (size_t)bytes - 1, &machine) == BY_TOO_LITTLE_MEMORY);
	CHECK(by_machine_init(&plan, NULL, (size_t)bytes, &machine) == BY_INVALID);
	CHECK(by_machine_init(&plan, metadata, (size_t)bytes, NULL) == BY_INVALID);
	CHECK(by_machine_init(&plan, metadata, (size_t)bytes, &machine) == 0);

	CHECK(by_alloc(machine, 0, BY_MOVABLE) == BY_EXHAUSTED);
	CHECK(by_add(machine, DMA32, 16, 4096) == 4080);
	CHECK(by_add(machine, NORMAL, 4096, 8192) == 4096);
	CHECK(by_add(machine, FAR, 8192, 12288) == 4096);
	CHECK(by_add(machine, MOVABLE, 12288, 16384) == 4096);
	CHECK(by_add(machine, NORMAL, 4096, 8192) == 0);
	CHECK(by_add(machine, NORMAL, 0, 4096) == BY_OUTSIDE);
	CHECK(by_add(machine, 4, 0, 4096) == BY_INVALID);
	CHECK(by_min_free_kbytes(machine, PAGE) > 0 && by_min_free_kbytes(machine, 0) > 0);
	by_set_min_free_kbytes(machine, SIZE_MAX, 0);
	CHECK(by_zone_counts(machine, NORMAL, &counts) == 0 && counts.min == 0);
	by_set_min_free_kbytes(machine, by_min_free_kbytes(machine, PAGE), PAGE);
}

/* ---- requests and frees ---- */

static void requests(void)
{
	size_t some[40], freed = 99, i;
	by_contiguous wanted = { .frames = 700, .align = 16, .start = 4096, .end = 8192 };
	ptrdiff_t frame, other;
	by_counts counts;

	frame = by_alloc(machine, 0, BY_UNMOVABLE);
	CHECK(frame >= 4096 && frame < 8192 && by_zone_of(machine, (size_t)frame) == NORMAL);
	CHECK(by_free(machine, (size_t)frame, 0) == 0);
	CHECK(by_free(machine, (size_t)frame, 0) == BY_DOUBLE_FREE);
	CHECK(by_free(machine, FRAMES, 0) == BY_NOT_OWNED && by_zone_of(machine, FRAMES) == BY_NOT_OWNED);

	frame = by_alloc(machine, 9, BY_MOVABLE);
	CHECK(frame >= 0 && frame % 512 == 0);
	CHECK(by_free(machine, (size_t)frame + 1, 3) == BY_WRONG_ORDER ||
	      by_free(machine, (size_t)frame + 1, 3) == BY_NOT_OWNED);
	CHECK(by_free(machine, (size_t)frame, 300) == BY_WRONG_ORDER);
	CHECK(by_free(machine, (size_t)frame + 256, 8) == 0); /* a part */
	CHECK(by_free(machine, (size_t)frame, 8) == 0);

	frame = by_alloc_from(machine, 1, 0, BY_MOVABLE, 0);
	CHECK(by_zone_of(machine, (size_t)frame) == MOVABLE);
	other = by_alloc_from(machine, 1, 0, BY_MOVABLE | BY_FROM_DMA32, 0);
	CHECK(by_zone_of(machine, (size_t)other) == DMA32);
	CHECK(by_free(machine, (size_t)frame, 0) == 0 && by_free(machine, (size_t)other, 0) == 0);
	frame = by_alloc_from(machine, 0, 2, BY_UNMOVABLE | BY_ATOMIC, 64);
	CHECK(frame >= 16 && frame + 4 <= 64);
	CHECK(by_free(machine, (size_t)frame, 2) == 0);
	CHECK(by_alloc_from(machine, 0, 0, BY_UNMOVABLE, 16) == BY_ABOVE_LIMIT);
	CHECK(by_alloc(machine, 11, BY_MOVABLE) == BY_ORDER_TOO_LARGE);
	CHECK(by_alloc(machine, 1000, BY_MOVABLE) == BY_ORDER_TOO_LARGE);
	CHECK(by_alloc(machine, 0, 3) == BY_INVALID && by_alloc(machine, 0, 1u << 30) == BY_INVALID);

	by_drain(machine);
	CHECK(by_alloc_at(machine, 5000, 0, BY_MOVABLE) == 0);
	CHECK(by_alloc_at(machine, 5000, 0, BY_MOVABLE) == BY_BUSY);
	CHECK(by_alloc_at(machine, 3, 0, BY_MOVABLE) == BY_ABSENT);
	CHECK(by_alloc_at(machine, FRAMES, 0, BY_MOVABLE) == BY_OUTSIDE);
	CHECK(by_free(machine, 5000, 0) == 0);

	CHECK(by_alloc_bulk(machine, 0, BY_MOVABLE, some, 40) == 40);
	for (i = 1; i < 40; i++)
		CHECK(some[i] != some[0]);
	i = some[39];
	some[39] = FRAMES; /* bad, behind 39 good ones */
	CHECK(by_free_bulk(machine, some, 40, &freed) == BY_NOT_OWNED && freed == 39);
	CHECK(by_free_bulk(machine, &i, 1, NULL) == 0);
	CHECK(by_alloc_bulk(machine, 0, BY_MOVABLE, NULL, 0) == 0);
	CHECK(by_alloc_bulk(machine, 0, BY_MOVABLE, NULL, 1) == BY_INVALID);
	CHECK(by_free_bulk(machine, NULL, 0, NULL) == 0);
	CHECK(by_free_bulk(machine, NULL, 1, NULL) == BY_INVALID);

	frame = by_alloc_contiguous(machine, 0, &wanted, BY_UNMOVABLE);
	CHECK(frame >= 4096 && frame + 700 <= 8192 && frame % 16 == 0);
	CHECK(by_free_range(machine, (size_t)frame, (size_t)frame + 701) != 0);
	CHECK(by_free_range(machine, (size_t)frame, (size_t)frame + 300) == 0);
	CHECK(by_free_range(machine, (size_t)frame + 300, (size_t)frame + 700) == 0);
	wanted.align = 3;
	CHECK(by_alloc_contiguous(machine, 0, &wanted, BY_UNMOVABLE) == BY_INVALID);
	CHECK(by_alloc_contiguous(machine, 0, NULL, BY_UNMOVABLE) == BY_INVALID);
	wanted.align = 0;
	CHECK(by_alloc_contiguous(machine, 0, &wanted, 1u << 30) == BY_INVALID);
	CHECK(by_alloc_contiguous(machine, 0, &wanted, BY_ATOMIC) == BY_INVALID);
	/* No zone of these kinds reaches as high as that, or there is none at all. */
	CHECK(by_alloc_contiguous(machine, 0, &wanted, BY_FROM_DMA32) == BY_OUTSIDE);
	CHECK(by_alloc_contiguous(machine, 0, &wanted, BY_FROM_DMA) == BY_OUTSIDE);
	wanted.start = wanted.end = 0;
	frame = by_alloc_contiguous(machine, 1, &wanted, BY_MOVABLE | BY_FROM_DMA32);
	CHECK(frame >= 16 && frame + 700 <= 4096);
	CHECK(by_free_range(machine, (size_t)frame, (size_t)frame + 700) == 0);
	CHECK(by_alloc_at(machine, 4096, 11, BY_MOVABLE) == BY_INVALID);
	CHECK(by_alloc_at(machine, 4096, 19, BY_MOVABLE) == BY_ORDER_TOO_LARGE);
	CHECK(by_alloc_at(machine, 4097, 1, BY_MOVABLE) == BY_INVALID);

	by_drain(machine);
	CHECK(by_reserve(machine, NORMAL, 6000, 6100) == 100);
	CHECK(by_alloc_at(machine, 6050, 0, BY_MOVABLE) == BY_BUSY);
	CHECK(by_unreserve(machine, NORMAL, 6000, 6100) == 100);
	CHECK(by_zone_counts(machine, NORMAL, &counts) == 0);
	CHECK(counts.managed == 4096 && counts.free + counts.cached == 4096);
	CHECK(counts.min > 0 && counts.min < counts.low && counts.low < counts.high);
	CHECK(by_zone_counts(machine, 4, &counts) == BY_INVALID);
}

/* ---- what no careful caller does ---- */

static const by_machine *machine_of(const by_plan *of)
{
	ptrdiff_t bytes = by_machine_bytes(of);
	const by_machine *built = NULL;

	CHECK(bytes > 0);
	/* At an odd address, with no byte to spare. */
	CHECK(by_machine_init(of, (char *)malloc((size_t)bytes + 1) + 1, (size_t)bytes, &built) == 0);
	return built;
}

static void ranges(void)
{
	/* Two nodes interleave, and a movable zone lies within both. */
	const by_zone_plan mixed[] = {
		{ .start = 0, .end = 3072, .node = 0 },
		{ .start = 1024, .end = 4096, .node = 1 },
		{ .start = 0, .end = 4096, .node = 1, .kind = BY_ZONE_MOVABLE },
	};
	const by_plan interleaved = { .zones = mixed, .zone_count = 3, .platform = PLATFORM };
	const by_machine *both = machine_of(&interleaved);
	size_t none[][2] = { { 2000, 2000 }, { 2000, 1999 }, { SIZE_MAX, 0 }, { SIZE_MAX, SIZE_MAX } }, i;
	ptrdiff_t frame;

	CHECK(by_add(both, 0, 0, 1024) == 1024 && by_add(both, 0, 2048, 3072) == 1024);
	/* A frame has one zone. */
	CHECK(by_add(both, 1, 1024, 2049) == BY_BUSY && by_add(both, 2, 1023, 1025) == BY_BUSY);
	CHECK(by_add(both, 1, 1024, 2048) == 1024 && by_add(both, 2, 3072, 4096) == 1024);
	CHECK(by_add(both, 1, 3072, 3073) == BY_BUSY && by_add(both, 0, 0, 1024) == 0);
	for (i = 0; i < 4096; i++) {
		frame = by_alloc(both, 0, BY_MOVABLE);
		CHECK(frame >= 0 && by_zone_of(both, (size_t)frame) == (frame < 1024 ? 0 : frame < 2048 ? 1 : frame < 3072 ? 0 : 2));
	}
	CHECK(by_alloc(both, 0, BY_MOVABLE) == BY_EXHAUSTED);
	for (i = 0; i < 4096; i++)
		CHECK(by_free(both, i, 0) == 0);
	by_drain(both);
	/* Reserved frames are a zone's, too. */
	CHECK(by_reserve(both, 0, 2048, 2050) == 2 && by_add(both, 1, 2048, 2050) == BY_BUSY);
	CHECK(by_remove(both, 0, 2048, 2050) == 2 && by_add(both, 1, 2048, 2050) == 2);
	/* What is no range is refused. */
	for (i = 0; i < sizeof(none) / sizeof(*none); i++) {
		size_t start = none[i][0], end = none[i][1];

		CHECK(by_add(both, 0, start, end) == BY_INVALID);
		CHECK(by_reserve(both, 0, start, end) == BY_INVALID);
		CHECK(by_unreserve(both, 0, start, end) == BY_INVALID);
		CHECK(by_remove(both, 0, start, end) == BY_INVALID);
		CHECK(by_offline(both, 0, start, end) == BY_INVALID);
		CHECK(by_free_range(both, start, end) == BY_INVALID);
	}
	CHECK(by_check(both, NULL) == 0);
}

/* ---- pressure ---- */

static void pressure(void)
{
	ptrdiff_t frame;
	size_t i, huge = 0;

	/* All memory is page cache. */
	while ((frame = by_alloc(machine, 0, BY_MOVABLE | BY_ATOMIC)) >= 0) {
		memset(memory + (size_t)frame * PAGE, (int)(frame % 251), PAGE);
		cached[cached_count++] = (size_t)frame;
	}
	CHECK(frame == BY_EXHAUSTED && cached_count > FRAMES / 2 && woken > 0);
	/* A request that may sleep reclaims. */
	i = cached_count;
	frame = by_alloc(machine, 0, BY_MOVABLE);
	CHECK(frame >= 0 && cached_count < i);
	CHECK(by_free(machine, (size_t)frame, 0) == 0);
	/* Every other page is freed: huge pages come by moving the rest. */
	for (i = 0; i < cached_count; i++)
		if (cached[i] % 2 == 0) {
			CHECK(by_free(machine, cached[i], 0) == 0);
			cached[i--] = cached[--cached_count];
		}
	i = cached_count;
	while (huge < 4 && (frame = by_alloc(machine, 9, BY_MOVABLE)) >= 0) {
		huge++;
		CHECK(frame % 512 == 0);
	}
	CHECK(huge == 4 && migrations > 0);
	CHECK(by_compact(machine, MOVABLE) >= 0 && by_compact(machine, 9) == BY_INVALID);
	/* Memory that goes away is emptied first. */
	by_drain(machine);
	CHECK(by_remove(machine, MOVABLE, 15872, 16384) == BY_BUSY);
	CHECK(by_offline(machine, MOVABLE, 15872, 16384) == 512);
	CHECK(by_add(machine, MOVABLE, 15872, 16384) == 512);
	CHECK(by_remove(machine, MOVABLE, 15872, 16384) == 512);
	CHECK(by_add(machine, MOVABLE, 15872, 16384) == 512);
	while (cached_count > 0)
		CHECK(by_free(machine, cached[--cached_count], 0) == 0);
}

/* Hooks that use the machine, and answer what is not so. */
static const by_machine *odd;
static size_t answers;

static size_t odd_reclaim(void *context, const by_need *need)
{
	ptrdiff_t frame = by_alloc(odd, 0, BY_MOVABLE | BY_ATOMIC);

	CHECK(need->frames > 0 && need->order <= 10);
	if (frame >= 0)
		CHECK(by_free(odd, (size_t)frame, 0) == 0);
	by_drain(odd);
	return (void)context, answers++, SIZE_MAX; /* frees nothing */
}

static uint32_t odd_migrate(void *context, size_t from, uint32_t order, size_t to)
{
	ptrdiff_t frame = by_alloc(odd, 0, BY_MOVABLE | BY_ATOMIC);

	CHECK(from < 4096 && to < 4096 && order <= 10);
	if (frame >= 0)
		CHECK(by_free(odd, (size_t)frame, 0) == 0);
	CHECK(by_write_text(odd, BY_BUDDYINFO, NULL, 0) > 0);
	return (void)context, (uint32_t)(answers++ % 3 ? BY_LATER : 0x80000000u);
}

static bool odd_oldest(void *context, size_t start, size_t end, size_t *frame, bool *active)
{
	const size_t places[] = { 0, end, start - 1, SIZE_MAX, SIZE_MAX / 2 };

	*frame = places[answers++ % 5];
	*active = answers % 2;
	return (void)context, true;
}

static uint32_t odd_evict(void *context, size_t frame, bool active)
{
	CHECK(frame < 4096); /* of the zone, whatever `oldest` said */
	return (void)context, (void)active, (uint32_t)(answers++ % 7); /* 5 and 6 mean nothing */
}

static void nonsense(void)
{
	static const by_zone_plan one = { .start = 0, .end = 4096 };
	static size_t held[4096];
	by_plan wild = {
		.zones = &one,
		.zone_count = 1,
		.platform = PLATFORM,
		.hooks = { .reclaim = odd_reclaim, .migrate = odd_migrate, .oldest = odd_oldest, .evict = odd_evict },
	};
	by_contiguous wanted = { .frames = 100 };
	size_t count, i;

	for (wild.slow_path = BY_COMPACT; wild.slow_path <= BY_PLAIN; wild.slow_path++) {
		odd = machine_of(&wild);
		CHECK(by_add(odd, 0, 0, 4096) == 4096);
		CHECK(by_alloc_bulk(odd, 0, BY_MOVABLE, held, 4096) == 4096);
		for (count = i = 0; i < 4096; i++)
			if (held[i] % 8 == 0)
				CHECK(by_free(odd, held[i], 0) == 0);
			else
				held[count++] = held[i];
		answers = 0;
		CHECK(by_alloc(odd, 4, BY_MOVABLE) < 0 && answers > 0);
		CHECK(by_alloc_contiguous(odd, 0, &wanted, BY_MOVABLE) == BY_BUSY);
		CHECK(by_compact(odd, 0) == 0 && by_offline(odd, 0, 0, 512) == BY_BUSY);
		while (count > 0)
			CHECK(by_free(odd, held[--count], 0) == 0);
		by_drain(odd);
		CHECK(by_check(odd, NULL) == 0 && by_alloc(odd, 10, BY_MOVABLE) >= 0);
	}
	wild.slow_path = BY_PLAIN + 1;
	CHECK(by_machine_bytes(&wild) == BY_INVALID);
}

/* ---- threads ---- */

static unsigned char owned[FRAMES];

static void *worker(void *argument)
{
	static const uint32_t kinds[] = { BY_UNMOVABLE, BY_MOVABLE, BY_RECLAIMABLE, BY_MOVABLE | BY_ATOMIC };
	size_t held[64], orders[64], count = 0, step, i;
	unsigned seed = (unsigned)(size_t)argument * 77u + 1u;
#ifndef __SANITIZE_THREAD__
	char text[256];
#endif

	this_cpu = (size_t)argument;
	for (step = 0; step < 200000; step++) {
#ifndef __SANITIZE_THREAD__ /* which sees the library's memcpy, but not its atomics */
		if (step % 5000 == 0) {
			/* One CPU at a time; meanwhile the others are told so. */
			ptrdiff_t length = by_write_text(machine, (uint32_t)(step / 5000) % 4, text, sizeof text);

			if (length != BY_BUSY && (length <= 0 || text[0] != (step / 5000 % 4 == 1 ? 'P' : 'N')))
				abort();
		}
#endif
		seed = seed * 1103515245u + 12345u;
		if (count < 64 && (seed >> 16) % 2 == 0) {
			size_t order = (seed >> 20) % 8 == 0 ? (seed >> 24) % 10 : 0;
			ptrdiff_t frame = by_alloc_from(machine, this_cpu % 2, (uint32_t)order, kinds[(seed >> 8) % 4], 0);
			if (frame < 0)
				continue;
			for (i = 0; i < (size_t)1 << order; i++)
				if (__atomic_exchange_n(&owned[(size_t)frame + i], 1, __ATOMIC_ACQ_REL)) {
					printf("frame %zd has two owners\n", frame);
					abort();
				}
			held[count] = (size_t)frame, orders[count++] = order;
		} else if (count > 0) {
			size_t at = (seed >> 18) % count;
			for (i = 0; i < (size_t)1 << orders[at]; i++)
				__atomic_store_n(&owned[held[at] + i], 0, __ATOMIC_RELEASE);
			if (by_free(machine, held[at], (uint32_t)orders[at]) != 0)
				abort();
			held[at] = held[--count], orders[at] = orders[count];
		}
	}
	while (count-- > 0) {
		for (i = 0; i < (size_t)1 << orders[count]; i++)
			__atomic_store_n(&owned[held[count] + i], 0, __ATOMIC_RELEASE);
		if (by_free(machine, held[count], (uint32_t)orders[count]) != 0)
			abort();
	}
	by_drain(machine); /* with `exclusive` and no run_on, no other CPU can */
	return NULL;
}

/* ---- slabs ---- */

static size_t constructed, reports;
static void construct(void *object) { *(unsigned *)object = 0xb41c, constructed++; }
static void report(const char *text, size_t length)
{
	reports++;
	CHECK(length > 0 && length < 512 && memchr(text, 0, length) == NULL);
	/* It does not end within one of the two-byte characters of `checks`. */
	CHECK((unsigned char)text[length - 1] != 0xc3);
}

static const by_slabs *slabs;

static void *slab_worker(void *argument)
{
	unsigned char *held[100];
	size_t round, i, size;

	this_cpu = (size_t)argument;
	for (round = 0; round < 300; round++) {
		for (i = 0; i < 100; i++) {
			size = 1 + (round * 131 + i * 977) % 5000;
			held[i] = by_malloc(slabs, size, 0);
			if (!held[i])
				abort();
			memset(held[i], (int)(this_cpu + 1), size);
		}
		for (i = 0; i < 100; i++)
			if (*held[i] != this_cpu + 1 || by_mfree(slabs, held[i]) != 0)
				abort();
	}
	return NULL;
}

static void run(void *(*work)(void *))
{
	pthread_t threads[CPUS];
	size_t i;

	for (i = 0; i < CPUS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
			abort();
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
}

/* Slabs number the pages from the first zone to the last. */
static void far(const by_slab_plan *slab_plan)
{
	const by_zone_plan ends[] = {
		{ .start = 0, .end = 1024 },
		{ .start = (size_t)1 << 40, .end = ((size_t)1 << 40) + 1024, .node = 1 },
	};
	const by_plan wide = { .zones = ends, .zone_count = 2, .platform = PLATFORM };
	by_slab_plan over = *slab_plan;

	by_zone_plan lone = { .start = 1024, .end = 2048, .kind = BY_HIGHMEM };
	const by_plan low = { .zones = &lone, .zone_count = 1, .platform = PLATFORM };

	/* There must be memory that is mapped, to the largest block. */
	over.machine = machine_of(&low);
	CHECK(by_slabs_bytes(&over) == BY_UNMAPPED);
	lone = (by_zone_plan){ .start = FRAMES + 1, .end = FRAMES + 1024 };
	over.machine = machine_of(&low);
	CHECK(by_slabs_bytes(&over) == BY_UNMAPPED);
	lone = (by_zone_plan){ .start = 1000, .end = 1010 }; /* rounded down to frame 0 */
	over.machine = machine_of(&low);
	CHECK(by_slabs_bytes(&over) > 1010 * 65);
	over.machine = machine_of(&wide);
	CHECK(by_slabs_bytes(&over) == BY_TOO_LARGE);
	CHECK(by_slabs_init(&over, memory, SIZE_MAX, &slabs) == BY_TOO_LARGE);
	over = *slab_plan;
	for (over.cpus = 1; over.cpus; over.cpus <<= 1) {
		ptrdiff_t bytes = by_slabs_bytes(&over);
		CHECK(bytes == BY_TOO_LARGE || (bytes > 0 && bytes < PTRDIFF_MAX));
		CHECK(over.cpus < (size_t)1 << 53 || bytes == BY_TOO_LARGE);
	}
	over.caches = 201;
	CHECK(by_slabs_bytes(&over) == BY_TOO_LARGE);
}

static const by_slabs *slabs_of(const char *checks)
{
	by_slab_plan checked = { .machine = machine, .cpus = CPUS, .checks = checks, .report = report };
	ptrdiff_t bytes = by_slabs_bytes(&checked);
	const by_slabs *built = NULL;

	CHECK(bytes > 0 && by_slabs_init(&checked, malloc((size_t)bytes), (size_t)bytes, &built) == 0);
	return built;
}

static void checks(void)
{
	static char name[2][600];
	by_slab_plan wrong = { .machine = machine, .checks = "FZPU;;" };
	by_cache_spec spec = { .size = 64 };
	const by_slabs *checked;
	by_cache cache;
	size_t i, before;
	void *object;

	CHECK(by_slabs_bytes(&wrong) == BY_INVALID);
	wrong.checks = "\xff,\xfe";
	CHECK(by_slabs_bytes(&wrong) == BY_INVALID);
	/* Without checks, a second free at once is still found, and told. */
	checked = slabs_of(NULL);
	object = by_malloc(checked, 64, 0);
	before = reports;
	CHECK(object && by_mfree(checked, object) == 0 && by_mfree(checked, object) == BY_DOUBLE_FREE);
	CHECK(reports == before + 1);
	/* What is returned is aligned as was asked for. */
	checked = slabs_of("FZPU");
	for (i = 1; i; i <<= 1) {
		object = by_malloc(checked, 8192, i);
		CHECK((object != NULL) == (i <= PAGE) && (size_t)object % i == 0);
		CHECK(by_mfree(checked, object) == 0);
	}
	/* A report is text, also if it is cut in the middle of a character. */
	for (i = 0; i < 2; i++) {
		memset(name[i], 'x', i);
		for (before = i; before < 590; before += 2)
			memcpy(name[i] + before, "\xc3\xa4", 2);
		spec.name = name[i];
		CHECK(by_cache_init(checked, &spec, &cache) == 0);
		object = by_cache_alloc(&cache);
		CHECK(object && by_cache_free(&cache, object) == 0);
		before = reports;
		CHECK(by_cache_free(&cache, object) < 0 && reports == before + 1);
		CHECK(by_cache_destroy(&cache) == 0);
	}
	spec.name = "\xc3";
	CHECK(by_cache_init(checked, &spec, &cache) == BY_INVALID);
}

static void objects(void)
{
	by_slab_plan slab_plan = { .machine = machine, .cpus = CPUS, .checks = "FZPU,watched", .report = report };
	by_cache_spec spec = { .name = "inode", .size = 200, .flags = BY_CACHE_RECLAIMABLE, .constructor = construct };
	ptrdiff_t bytes = by_slabs_bytes(&slab_plan);
	static by_cache nothing; /* zeros are no cache */
	by_cache inodes, watched;
	char text[8192];
	unsigned *object;
	char *other;

	CHECK(bytes > 0);
	CHECK(by_slabs_init(&slab_plan, malloc((size_t)bytes), (size_t)bytes - 1, &slabs) == BY_TOO_LITTLE_MEMORY);
	/* Only as much as is needed is used, whatever is told. */
	CHECK(by_slabs_init(&slab_plan, (char *)malloc((size_t)bytes + 1) + 1, SIZE_MAX, &slabs) == 0);
	far(&slab_plan);
	CHECK(by_cache_alloc(&nothing) == NULL && by_cache_alloc_zeroed(&nothing) == NULL);
	CHECK(by_cache_free(&nothing, &nothing) == BY_INVALID && by_cache_shrink(&nothing) == BY_INVALID);
	CHECK(by_cache_destroy(&nothing) == BY_INVALID);
	CHECK(by_cache_init(slabs, &spec, &inodes) == 0);
	object = by_cache_alloc(&inodes);
	CHECK(object && *object == 0xb41c && constructed > 0);
	CHECK(by_cache_alloc_zeroed(&inodes) == NULL); /* it would undo the constructor */
	CHECK(by_cache_destroy(&inodes) == BY_BUSY);
	CHECK(by_cache_free(&inodes, object) == 0);
	CHECK(by_cache_free(&inodes, object) == BY_DOUBLE_FREE);
	CHECK(by_cache_free(&inodes, NULL) == BY_NOT_AN_OBJECT);
	CHECK(by_cache_shrink(&inodes) == 0);
	CHECK(by_write_slabinfo(slabs, text, sizeof text) > 0 && strstr(text, "inode"));
	CHECK(by_cache_destroy(&inodes) == 0);
	CHECK(by_cache_alloc(&inodes) == NULL && by_cache_destroy(&inodes) == BY_INVALID);

	spec = (by_cache_spec){ .name = "watched", .size = 64, .flags = BY_CACHE_INTERRUPTS };
	CHECK(by_cache_init(slabs, &spec, &watched) == 0);
	other = by_cache_alloc_zeroed(&watched);
	CHECK(other && other[0] == 0 && other[63] == 0);
	other[64] = 1; /* one byte too far */
	CHECK(by_cache_free(&watched, other) == BY_DAMAGED);
	CHECK(reports == 2); /* this, and the second free above */
	spec.align = 48;
	CHECK(by_cache_init(slabs, &spec, &watched) == BY_INVALID);

	other = by_malloc(slabs, 100, 64);
	CHECK(other && (size_t)other % 64 == 0 && by_usable(slabs, other) >= 100);
	CHECK(by_mfree(slabs, other) == 0 && by_mfree(slabs, NULL) == 0);
	CHECK(by_mfree(slabs, &other) == BY_NOT_AN_OBJECT && by_usable(slabs, &other) == 0);
	CHECK(by_malloc(slabs, 1 << 20, 0) == NULL && by_malloc(slabs, 8, 3) == NULL);
	run(slab_worker);
	by_slabs_trim(slabs);
	by_slabs_drain(slabs);
}

int main(void)
{
	by_census census;
	char text[4096], shorter[20];
	ptrdiff_t length;

	/* Blocks are aligned by number, so memory is aligned to the largest. */
	memory = aligned_alloc((size_t)1024 * PAGE, (size_t)FRAMES * PAGE);
	if (!memory)
		return puts("no memory"), 1;
	build();
	requests();
	ranges();
	pressure();
	nonsense();
	run(worker);
	by_drain(machine);
	/* Four blocks of order 9 stay, from `pressure`. */
	CHECK(by_check(machine, &census) == 0);
	CHECK(census.allocated == 4 * 512 && census.free == FRAMES - 16 - 4 * 512);
	objects();
	checks();

	length = by_write_text(machine, BY_BUDDYINFO, text, sizeof text);
	CHECK(length == (ptrdiff_t)strlen(text) && strstr(text, "Node 1, zone  Movable"));
	CHECK(by_write_text(machine, BY_BUDDYINFO, shorter, sizeof shorter) == length);
	CHECK(strlen(shorter) == sizeof shorter - 1 && strncmp(shorter, text, sizeof shorter - 1) == 0);
	CHECK(by_write_text(machine, BY_PAGETYPEINFO, text, sizeof text) > 0 && strstr(text, "Reclaimable"));
	CHECK(by_write_text(machine, BY_UNUSABLE_INDEX, NULL, 0) > 0);
	CHECK(by_write_text(machine, BY_EXTFRAG_INDEX, NULL, 0) > 0);
	CHECK(by_write_text(machine, 4, NULL, 0) == BY_INVALID);
	CHECK(strcmp(by_error_text(BY_FRAGMENTED), by_error_text(BY_EXHAUSTED)) != 0);
	CHECK(by_check(machine, NULL) == 0);
	printf("%s\n", failures ? "FAIL" : "PASS");
	return failures != 0;
}
