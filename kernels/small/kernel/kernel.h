/* What the files of the kernel tell each other: a part for each. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "layout.h"

enum {
	PAGE = 4096,
	HARTS = 8, /* at most */
	STACK_ORDER = 0, /* of a kernel stack */
	STACK = PAGE << STACK_ORDER,
};

struct process;

/* Of the library of builtins that comes with Brickyard's. */
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

/* ---- hart.c: harts, and the one big lock ---- */

struct hart {
	size_t number;
	struct process *current; /* who runs here; the hart's idle process if nobody does */
	struct process *idle;
};

register struct hart *hart __asm__("tp"); /* the one that runs this */
extern size_t hart_count;
extern size_t kernel_hart;  /* the number of the hart that holds the lock */
extern size_t most_at_once; /* harts in programs */

void hart_init(size_t number);
void harts_start(void);
void kernel_lock(void);
void kernel_unlock(void);
void kernel_enter(void);
void kernel_leave(void);
size_t idle_stack_used(void);

/* ---- devices.c: what OpenSBI and QEMU's board do for the kernel ---- */

bool sbi_hart_exists(size_t number);
bool sbi_hart_start(size_t number, size_t address, size_t argument);
void timer_arm(void);
void console_write(const char *text, size_t bytes);
__attribute__((noreturn)) void power_off(int code);
size_t memory_end(const void *device_tree);

/* ---- report.c: texts, a panic, the use of stacks ---- */

__attribute__((format(printf, 1, 2))) void print(const char *text, ...);
__attribute__((noreturn, format(printf, 1, 2))) void panic(const char *text, ...);
void stack_paint(void *stack, size_t bytes);
size_t stack_used(const void *stack, size_t bytes);
void stack_check(const void *stack);

/* ---- page.c: pages, from Brickyard ---- */

struct by_machine;
extern const struct by_machine *machine;

enum page_use { FOR_KERNEL, FOR_PROGRAMS };

void page_init(size_t from, size_t end);
void *page_alloc(unsigned order, enum page_use use);
void page_free(void *page, unsigned order);
size_t page_count(void);
size_t page_check(void);
ptrdiff_t must(ptrdiff_t code);

static inline void *direct(size_t physical) { return (void *)(DIRECT + physical); }
static inline size_t physical(const void *address) { return (size_t)address - DIRECT; }

/* ---- object.c: processes, from Brickyard's slabs ---- */

void object_init(void);
struct process *process_object(void);
void process_object_free(struct process *process);
void objects_give_back(void);

/* ---- space.c: address spaces ---- */

typedef uint64_t entry; /* of a page table of Sv39 */
enum { VALID = 1, READ = 2, WRITE = 4, EXECUTE = 8, USER = 16, USED = 64 + 128 };

extern entry kernel_root[512];

entry *space_new(void);
void space_free(entry *root);
void space_use(const entry *root);
bool space_map(entry *root, size_t address, unsigned rights);
void space_unmap(entry *root, size_t from, size_t to);
bool space_copy(entry *to, const entry *from);
entry *space_find(entry *root, size_t address, bool make);
static inline void *page_of(entry entry) { return direct(entry >> 10 << 12); }

/* ---- user.c: the memory of a program, as the kernel accesses it ---- */

bool stack_grow(struct process *process, size_t address);
bool copy_in(void *to, size_t from, size_t bytes);
bool copy_text_in(char *to, size_t from, size_t room);
bool copy_out(size_t to, const void *from, size_t bytes);

/* ---- process.c: from fork to wait ---- */

struct frame { /* what a trap saves, at the top of the kernel stack: see trap_entry.S */
	uint64_t x[32]; /* x[0]: the program counter */
	struct hart *hart;
	uint64_t unused; /* a stack is aligned to 16 bytes */
};

struct context {
	void *ra, *sp;
	size_t s[12];
};

enum state { RUNNABLE, WAITING, ENDED };

struct process {
	long pid;
	enum state state;
	long code; /* of one that ended */
	char *stack; /* the kernel's, STACK bytes */
	entry *root;
	size_t heap, heap_end;
	size_t ticks, preempted; /* see abi.h */
	struct context context;
	struct process *parent, *children, *sibling;
	struct process *next; /* in the queue of those that can run */
};

static inline struct frame *frame_of(const struct process *process)
{
	return (struct frame *)(process->stack + STACK) - 1;
}

extern size_t most_stack_used, processes_made;

void process_first(void);
long process_fork(void);
long process_wait(size_t code);
long process_sbrk(ptrdiff_t bytes);
void process_exit(long code);
void process_free(struct process *process);

/* ---- schedule.c: who runs ---- */

void can_run(struct process *process);
void schedule(void);
void process_yield(void);
void process_tick(void);
bool may_have_work(void);

extern struct process *finished; /* the first process, after its end */

/* ---- exec.c: programs ---- */

long exec(struct process *process, const char *name, const char *argument);

/* ---- trap.c, trap_entry.S: from a program into the kernel, and back ---- */

void trap(struct frame *frame);
__attribute__((noreturn)) void trap_in_kernel(size_t cause, size_t counter, size_t address);

void trap_return(void);
void context_switch(struct context *from, struct context *to);

#endif
