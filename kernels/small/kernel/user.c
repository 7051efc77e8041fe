/* The memory of a program, as the kernel accesses it: page by page in the direct map, after a
 * look at the program's page table. A bad address is an error of the program's, never a trap in
 * the kernel. */
#include "kernel.h"

/* Gives a program's stack the page at `address`. Returns false if that is none of the stack's, is
 * there already, or if memory is short. */
bool stack_grow(struct process *process, size_t address)
{
	size_t page = address & ~(size_t)(PAGE - 1);
	entry *entry;

	if (address < STACK_TOP - STACK_BYTES || address >= STACK_TOP)
		return false;
	entry = space_find(process->root, page, false);
	if (entry && *entry)
		return false;
	if (space_map(process->root, page, READ | WRITE))
		return true;
	space_unmap(process->root, page, page + PAGE); /* tables */
	return false;
}

/* Returns where a byte of the current program is, or null if it has not these rights there. */
static char *user_byte(size_t address, unsigned rights)
{
	struct process *process = hart->current;
	entry *entry = space_find(process->root, address, false);

	if ((!entry || !*entry) && stack_grow(process, address))
		entry = space_find(process->root, address, false);
	if (!entry || (*entry & (rights | USER)) != (rights | USER))
		return NULL;
	return (char *)page_of(*entry) + address % PAGE;
}

/* Returns how many of the bytes at `address` lie in its page. */
static size_t in_page(size_t address, size_t bytes)
{
	size_t room = PAGE - address % PAGE;

	return bytes < room ? bytes : room;
}

bool copy_in(void *to, size_t from, size_t bytes)
{
	while (bytes > 0) {
		size_t part = in_page(from, bytes);
		const char *byte = user_byte(from, READ);

		if (!byte)
			return false;
		memcpy(to, byte, part);
		to = (char *)to + part, from += part, bytes -= part;
	}
	return true;
}

bool copy_out(size_t to, const void *from, size_t bytes)
{
	while (bytes > 0) {
		size_t part = in_page(to, bytes);
		char *byte = user_byte(to, WRITE);

		if (!byte)
			return false;
		memcpy(byte, from, part);
		from = (const char *)from + part, to += part, bytes -= part;
	}
	return true;
}

/* Copies a text and the zero behind it. Returns false if it does not fit. */
bool copy_text_in(char *to, size_t from, size_t room)
{
	for (; room > 0; room--, from++) {
		const char *byte = user_byte(from, READ);

		if (!byte)
			return false;
		if (!(*to++ = *byte))
			return true;
	}
	return false;
}
