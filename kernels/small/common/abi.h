/* What the kernel and its programs agree on: the system calls, and what they return. */
#ifndef ABI_H
#define ABI_H

/* The number of a system call is in a7, its arguments are in a0 to a2, its result is in a0. */
enum {
	SYS_FORK,  /* the new process, 0 in it; or -1 if memory is short */
	SYS_EXEC,  /* name, argument: does not return; or -1, and then nothing has changed */
	SYS_EXIT,  /* code: does not return */
	SYS_WAIT,  /* &code or 0: the child that ended, after its end; or -1 if there is no child */
	SYS_SBRK,  /* bytes: the former end of the heap; or -1, and then nothing has changed */
	SYS_GETPID,
	SYS_YIELD,
	SYS_WRITE, /* text, bytes: to the console */
	SYS_COUNT, /* which of those below */
	SYS_LEAVE, /* pages: for tests, hides pages until so many are free, or shows some again */
};

enum {
	COUNT_FREE_PAGES, /* after all that lies in stashes and queues was given back */
	COUNT_HARTS,
	COUNT_TICKS,	  /* how often the timer interrupted the caller's program */
	COUNT_PREEMPTED,  /* and how often another got its hart then */
	COUNT_AT_ONCE,    /* the most harts that ever were in programs at once */
};

enum {
	NAME_BYTES = 16,     /* of a program, with the zero behind */
	ARGUMENT_BYTES = 64, /* of its argument, likewise */
	FAULTED = -100,      /* a process that a trap ended has this code, less scause */
};

/* The stack of a program grows on demand, from here down to here. */
#define STACK_TOP 0x40000000ul
#define STACK_BYTES (64 * 1024ul)

#endif
