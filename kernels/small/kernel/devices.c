/* What OpenSBI and the board `virt` of QEMU do for the kernel: harts, the timer, the console, an
 * end with an exit code; and from the device tree the size of memory. */
#include "kernel.h"

/* ---- OpenSBI ---- */

enum { TIMER = 0x54494d45, HARTS_STATE = 0x48534d };
enum { SLICE = 20000 /* ticks of 100 ns */ };

static long sbi(size_t extension, size_t function, size_t x, size_t y, size_t z)
{
	register size_t a0 __asm__("a0") = x, a1 __asm__("a1") = y, a2 __asm__("a2") = z;
	register size_t a6 __asm__("a6") = function, a7 __asm__("a7") = extension;

	__asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
	return (long)a0;
}

bool sbi_hart_exists(size_t number) { return sbi(HARTS_STATE, 2, number, 0, 0) == 0; }

/* Starts a hart at a physical address. */
bool sbi_hart_start(size_t number, size_t address, size_t argument)
{
	return sbi(HARTS_STATE, 0, number, address, argument) == 0;
}

/* Lets the timer interrupt this hart after a time slice. */
void timer_arm(void)
{
	size_t now;

	__asm__ volatile("rdtime %0" : "=r"(now));
	sbi(TIMER, 0, now + SLICE, 0, 0);
}

/* ---- the board ---- */

void console_write(const char *text, size_t bytes)
{
	volatile uint8_t *port = direct(0x10000000);

	for (; bytes > 0; bytes--, text++) {
		while (!(port[5] & 0x20)) /* it can take a byte */
			;
		port[0] = (uint8_t)*text;
	}
}

void power_off(int code)
{
	volatile uint32_t *test = direct(0x100000);

	*test = code == 0 ? 0x5555 : (uint32_t)code << 16 | 0x3333;
	for (;;)
		__asm__ volatile("wfi");
}

/* ---- the device tree ---- */

static size_t big_endian(const uint8_t *bytes, size_t count)
{
	size_t value = 0;

	while (count-- > 0)
		value = value << 8 | *bytes++;
	return value;
}

/* Returns the physical address after the first range of memory: the property `reg` of the node
 * `memory@...`, two cells of address and two of size; 0 if there is no tree or no such node. */
size_t memory_end(const void *device_tree)
{
	enum { BEGIN = 1, END = 2, PROPERTY = 3, NOTHING = 4 };
	const uint8_t *tree = device_tree;
	const char *names = (const char *)tree + big_endian(tree + 12, 4);
	const uint8_t *at = tree + big_endian(tree + 8, 4);
	bool in_memory = false;

	if (big_endian(tree, 4) != 0xd00dfeed)
		return 0;
	for (;;) {
		size_t token = big_endian(at, 4), length;

		at += 4;
		if (token == BEGIN) {
			for (length = 0; at[length]; length++)
				;
			in_memory = length > 7 && memcmp(at, "memory@", 7) == 0;
			at += (length + 4) / 4 * 4;
		} else if (token == PROPERTY) {
			const char *name = names + big_endian(at + 4, 4);

			length = big_endian(at, 4);
			at += 8;
			if (in_memory && length >= 16 && memcmp(name, "reg", 4) == 0)
				return big_endian(at, 8) + big_endian(at + 8, 8);
			at += (length + 3) / 4 * 4;
		} else if (token != END && token != NOTHING) {
			return 0;
		}
	}
}
