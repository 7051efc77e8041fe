/* The first process: a test suite of the kernel. A test is a function that runs in a process of
 * its own and returns a figure for its line, or a negative number if something is not so. Before
 * it and after it, the suite counts the free pages: a test that loses one has failed. So a test
 * may leave its memory and its orphans to the kernel; that they come back is a part of it. */
#include "libc.h"

enum { PAGE = 4096 };

#define EVERYTHING ((size_t)-1) /* pages that `leave` is to leave */

/* Says what is not so, and ends the process. */
#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			print("suite.c:%ld: not so: %s\n", (long)__LINE__, #condition);\
			exit(-1);                                                     \
		}                                                                     \
	} while (0)

/* Makes a child that runs `body` and ends with its result. */
static long spawn(long (*body)(long), long argument)
{
	long pid = fork();

	if (pid == 0)
		exit(body(argument));
	return pid;
}

/* Waits for a child, and returns its code. */
static long wait_code(void)
{
	long code = -1;

	CHECK(wait(&code) > 0);
	return code;
}

/* Takes all memory, page by page, for the heap. Returns how many pages. */
static long take_all(void)
{
	long taken = 0;

	while (sbrk(PAGE) != NO_MEMORY)
		taken++;
	return taken;
}

/* ---- fork, wait, exec ---- */

static long fork_and_wait(long rounds)
{
	long round, own = getpid();

	for (round = 0; round < rounds; round++) {
		long pid = fork(), code, child;

		CHECK(pid >= 0);
		if (pid == 0)
			exit(getpid() != own ? round : -1);
		child = wait(&code);
		CHECK(child == pid && code == round);
	}
	CHECK(wait(NULL) == -1);
	return rounds;
}

static long exec_programs(long rounds)
{
	long round;

	for (round = 0; round < rounds; round++) {
		CHECK(fork() > 0 || exec(round % 2 ? "large" : "answer", "42") == 0);
		CHECK(wait_code() == 42);
	}
	CHECK(exec("nothing", "") == -1);
	CHECK(exec("a name that is too long for any program", "") == -1);
	return rounds;
}

static long orphan(long argument) { return argument; }

static long orphans(long count)
{
	long i;

	for (i = 0; i < count; i++)
		CHECK(spawn(orphan, i) > 0);
	return count; /* without waiting: the first process must */
}

static char filled[10 * PAGE];

static long fill_is(char byte)
{
	size_t i;

	for (i = 0; i < sizeof filled; i++)
		if (filled[i] != byte)
			return 0;
	return 1;
}

/* Fills its pages, and so does its child with others, and a child of that. */
static long own_copy(long depth)
{
	char *heap = sbrk(100 * PAGE);
	long i;

	CHECK(heap != NO_MEMORY);
	memset(filled, (int)depth, sizeof filled);
	for (i = 0; i < 100; i++)
		heap[i * PAGE] = (char)(depth + i);
	if (depth > 0) {
		if (fork() == 0) {
			CHECK(fill_is((char)depth) && heap[99 * PAGE] == (char)(depth + 99));
			exit(own_copy(depth - 1));
		}
		CHECK(wait_code() > 0);
	}
	CHECK(fill_is((char)depth)); /* whatever the child wrote */
	for (i = 0; i < 100; i++)
		CHECK(heap[i * PAGE] == (char)(depth + i));
	return (long)(sizeof filled / PAGE) + 100;
}

/* ---- all memory ---- */

/* Each process makes one more, until there is no memory for it. Returns how many there were. */
static long chain(long made)
{
	for (;; made++) {
		long pid = fork();

		if (pid < 0)
			return made;
		if (pid > 0)
			return wait_code();
	}
}

/* Each of some rounds doubles the processes, as long as memory lasts. Returns how many there
 * were. */
static long bomb(long rounds)
{
	long made = 1, code;

	while (rounds-- > 0) {
		long pid = fork();

		if (pid == 0)
			made = 1;
	}
	while (wait(&code) >= 0) {
		CHECK(code > 0);
		made += code;
	}
	return made;
}

static long whole_heap(long rounds)
{
	long round, first = 0, pages_taken;

	for (round = 0; round < rounds; round++) {
		long before = pages();
		char *begin = sbrk(0);

		pages_taken = take_all();
		CHECK(pages_taken > 0 && pages() <= 1);
		CHECK(sbrk(PAGE) == NO_MEMORY && sbrk(64 * PAGE) == NO_MEMORY);
		begin[0] = begin[(pages_taken - 1) * PAGE] = 1;
		CHECK(sbrk(-pages_taken * PAGE) == begin + pages_taken * PAGE);
		CHECK(pages() == before && sbrk(0) == begin);
		CHECK(round == 0 || pages_taken == first);
		first = pages_taken;
	}
	CHECK(sbrk(-PAGE) == NO_MEMORY && sbrk(1L << 40) == NO_MEMORY);
	/* One request for more than there is takes nothing. */
	pages_taken = pages();
	CHECK(sbrk((first + 100) * PAGE) == NO_MEMORY && pages() == pages_taken);
	return first;
}

/* With 0, 1, 2... pages free, fork fails at another step each time, and loses nothing. */
static long fork_at_the_end(long none)
{
	long failures = 0, pid;

	for (; leave(failures) >= 0; failures++) {
		pid = spawn(orphan, none);
		CHECK(pid < 0 || wait_code() == none);
		CHECK(pages() == failures);
		if (pid > 0)
			break;
	}
	leave(EVERYTHING);
	CHECK(failures > 10);
	return failures;
}

/* So does exec. */
static long exec_at_the_end(long none)
{
	long failures = none, free, pid = fork();
	char text[8];

	for (; pid == 0; failures++) {
		text[0] = (char)('0' + failures / 100);
		text[1] = (char)('0' + failures / 10 % 10);
		text[2] = (char)('0' + failures % 10);
		text[3] = 0;
		free = leave(failures);
		CHECK(exec("large", text) == -1);
		CHECK(pages() == free);
	}
	failures = wait_code(); /* the argument is the program's code */
	leave(EVERYTHING);
	CHECK(failures > 90);
	return failures;
}

/* ---- faults and stacks ---- */

enum { ILLEGAL = 2, FETCH = 12, LOAD = 13, STORE = 15 };

static long load(long address) { return *(volatile char *)address; }
static long store(long address) { return *(volatile char *)address = 1, 0; }
static long jump(long address) { return ((long (*)(void))address)(); }
static long illegal(long none)
{
	__asm__ volatile("unimp");
	return none;
}

static long faults(long none)
{
	static const struct fault {
		long (*body)(long);
		long address, cause;
	} all[] = {
		{ load, 0, LOAD },
		{ load, 0x3000000000, LOAD },
		{ load, (long)0xffffffc080200000, LOAD }, /* the kernel */
		{ load, (long)0x8000000000000000, LOAD }, /* no address of Sv39 */
		{ store, (long)0xffffffc080200000, STORE },
		{ store, 0x10000, STORE }, /* code */
		{ load, STACK_TOP, LOAD },
		{ load, STACK_TOP - STACK_BYTES - 1, LOAD },
		{ jump, 0x50000000, FETCH },
		{ jump, (long)filled, FETCH }, /* data */
		{ illegal, 0, ILLEGAL },
	};
	size_t i;

	for (i = 0; i < sizeof all / sizeof *all; i++) {
		CHECK(spawn(all[i].body, all[i].address) > 0);
		CHECK(wait_code() == FAULTED - all[i].cause);
	}
	/* To the kernel, bad addresses are bad arguments. */
	CHECK(write((char *)0xffffffc080200000, 1) == -1 && write((char *)STACK_TOP - 1, 2) == -1);
	CHECK(exec((char *)8, "") == -1 && exec("answer", (char *)8) == -1);
	CHECK(spawn(orphan, none) > 0 && wait((long *)0x10000) == -1 && wait_code() == none);
	return (long)i;
}

__attribute__((noinline)) static long deeper(long bytes)
{
	volatile char room[1000];

	room[0] = room[999] = 1;
	return bytes < 1000 ? room[0] : deeper(bytes - 1000) + room[999];
}

static long stack(long most)
{
	long before = pages(), used;

	CHECK(spawn(deeper, most - 20 * 1024) > 0 && wait_code() > 0);
	CHECK(spawn(deeper, most + 4 * 1024) > 0 && wait_code() == FAULTED - STORE);
	CHECK(pages() == before);
	deeper(most - 20 * 1024);
	used = before - pages();
	CHECK(used > 8 && used <= most / PAGE);
	return used;
}

/* When no memory is left, a stack that must grow ends its process. */
static long stack_at_the_end(long most)
{
	long pid = fork();

	if (pid == 0) {
		take_all();
		exit(deeper(most));
	}
	return wait_code() == FAULTED - STORE ? most : -1;
}

/* ---- several harts ---- */

static long for_ticks(long ticks)
{
	volatile long sum = 0;
	long i;

	while (count(COUNT_TICKS) < ticks)
		for (i = 0; i < 10000; i++)
			sum += i;
	return count(COUNT_PREEMPTED);
}

/* Programs that never yield share the harts, and are on all of them at once. */
static long harts(long rounds)
{
	long all = count(COUNT_HARTS), preempted = 0, i, code;

	do {
		for (i = 0; i < 2 * all; i++)
			CHECK(spawn(for_ticks, 5) > 0);
		for (i = 0; i < 2 * all; i++) {
			code = wait_code();
			CHECK(code >= 0);
			preempted += code;
		}
	} while ((count(COUNT_AT_ONCE) < all || preempted < 2 * all) && --rounds > 0);
	CHECK(count(COUNT_AT_ONCE) == all && preempted >= 2 * all);
	return all;
}

/* On all harts at once, processes fork, grow, shrink, fault and end. */
static long mixed(long rounds)
{
	while (rounds-- > 0) {
		char *heap = sbrk(20 * PAGE);

		CHECK(heap != NO_MEMORY);
		heap[19 * PAGE] = 1;
		CHECK(spawn(rounds % 3 ? orphan : store, 0) > 0);
		yield();
		CHECK(sbrk(-20 * PAGE) == heap + 20 * PAGE);
		CHECK(wait_code() == (rounds % 3 ? 0 : FAULTED - STORE));
	}
	return 0;
}

static long storm(long processes)
{
	long i;

	for (i = 0; i < processes; i++)
		CHECK(spawn(mixed, 100) > 0);
	for (i = 0; i < processes; i++)
		CHECK(wait_code() == 0);
	return processes;
}

/* ---- the suite ---- */

static const struct test {
	const char *name;
	long (*body)(long);
	long argument;
	const char *unit; /* of the figure */
} tests[] = {
	{ "fork and wait", fork_and_wait, 1000, "children" },
	{ "exec", exec_programs, 100, "programs" },
	{ "orphans", orphans, 50, "children" },
	{ "a copy of its own", own_copy, 5, "pages, 6 generations" },
	{ "fork until memory is full", chain, 1, "processes at once" },
	{ "fork bomb", bomb, 12, "processes" },
	{ "the heap takes all", whole_heap, 3, "pages, thrice" },
	{ "fork when memory is short", fork_at_the_end, 0, "failures" },
	{ "exec when memory is short", exec_at_the_end, 0, "failures" },
	{ "faults", faults, 7, "kinds" },
	{ "a stack grows to its limit", stack, STACK_BYTES, "pages" },
	{ "a stack cannot grow", stack_at_the_end, STACK_BYTES / 2, "bytes wanted" },
	{ "all harts, by time slices", harts, 100, "harts" },
	{ "all at once", storm, 12, "processes" },
};

/* Returns true if the test is passed and no page is lost. */
static bool run(const struct test *test)
{
	long before = pages(), after, result = -1;
	long pid = spawn(test->body, test->argument);

	while (pid > 0 && wait(&result) != pid) /* orphans */
		;
	while (wait(NULL) >= 0)
		;
	leave(EVERYTHING);
	after = pages();
	if (result >= 0 && after == before) {
		print("%-28s ok   %6ld %s\n", test->name, result, test->unit);
		return true;
	}
	print("%-28s FAIL %6ld, pages lost: %ld\n", test->name, result, before - after);
	return false;
}

int main(const char *argument);

int main(const char *argument)
{
	volatile char stack[2 * PAGE]; /* the suite's own is as large as it ever will be */
	long failures = 0;
	size_t i;

	(void)argument;
	for (i = 0; i < sizeof stack; i++)
		stack[i] = 0;
	for (i = 0; i < sizeof tests / sizeof *tests; i++)
		failures += !run(&tests[i]);
	return failures > 0;
}
