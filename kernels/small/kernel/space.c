/* Address spaces: page tables of Sv39. The lower half is a program's, the upper half the kernel's,
 * which is the same in all. A process has one thread, so a space is used by one hart at a time, and
 * no other hart need ever be told that it changed. */
#include "kernel.h"

enum {
	TOP = 2,      /* the level of a root: an entry of level n spans 4096 << 9n bytes */
	ENTRIES = 512,
	PROGRAM = 256, /* entries of a root that are the program's */
	RIGHTS = 1023,
};

#define PROGRAM_END (1ul << 38)

static entry entry_of(const void *page, unsigned rights)
{
	return physical(page) >> 12 << 10 | VALID | rights;
}

static entry *table_new(void)
{
	entry *table = page_alloc(0, FOR_KERNEL);

	return table ? memset(table, 0, PAGE) : NULL;
}

/* Returns an address space without a program, or null. */
entry *space_new(void)
{
	entry *root = table_new();

	if (root)
		memcpy(root + PROGRAM, kernel_root + PROGRAM, (ENTRIES - PROGRAM) * sizeof(entry));
	return root;
}

/* Makes this hart use a space. */
void space_use(const entry *root)
{
	__asm__ volatile("sfence.vma\n csrw satp, %0\n sfence.vma" ::"r"(
				 SATP_SV39 | physical(root) >> 12)
			 : "memory");
}

/* Returns the entry of a page; or null if its table is not there, and is not to be or cannot be
 * made. */
entry *space_find(entry *root, size_t address, bool make)
{
	entry *table = root;
	int level;

	if (address >= PROGRAM_END)
		return NULL;
	for (level = TOP; level > 0; level--) {
		entry *entry = &table[address >> (12 + 9 * level) & (ENTRIES - 1)];

		if (!*entry) {
			void *below = make ? table_new() : NULL;

			if (!below)
				return NULL;
			*entry = entry_of(below, 0);
		}
		table = page_of(*entry);
	}
	return &table[address >> 12 & (ENTRIES - 1)];
}

/* Maps a page of zeros where none is. Returns false if memory is short; space_unmap then frees the
 * tables that are left. */
bool space_map(entry *root, size_t address, unsigned rights)
{
	entry *entry = space_find(root, address, true);
	void *page = entry ? page_alloc(0, FOR_PROGRAMS) : NULL;

	if (!page)
		return false;
	*entry = entry_of(memset(page, 0, PAGE), rights | USER | USED);
	return true;
}

/* Frees the pages from `from` to `to` under a table that begins at `base`, and the tables under
 * it that are then empty. Returns true if the table itself is. */
static bool clear(entry *table, int level, size_t base, size_t from, size_t to)
{
	size_t span = (size_t)PAGE << 9 * level;
	bool empty = true;
	int i;

	for (i = 0; i < (level == TOP ? PROGRAM : ENTRIES); i++, base += span) {
		if (table[i] && base < to && base + span > from &&
		    (level == 0 || clear(page_of(table[i]), level - 1, base, from, to))) {
			page_free(page_of(table[i]), 0);
			table[i] = 0;
		}
		if (table[i])
			empty = false;
	}
	return empty;
}

/* Frees the pages from `from` to `to`, both multiples of a page, and the tables that are then
 * empty. */
void space_unmap(entry *root, size_t from, size_t to)
{
	clear(root, TOP, 0, from, to);
	__asm__ volatile("sfence.vma" ::: "memory");
}

/* Frees a space that no hart uses, with all that it has. */
void space_free(entry *root)
{
	clear(root, TOP, 0, 0, PROGRAM_END);
	page_free(root, 0);
}

static bool copy(entry *to, const entry *from, int level)
{
	int i;

	for (i = 0; i < (level == TOP ? PROGRAM : ENTRIES); i++) {
		void *page;

		if (!from[i])
			continue;
		page = level > 0 ? table_new() : page_alloc(0, FOR_PROGRAMS);
		if (!page)
			return false;
		to[i] = entry_of(page, from[i] & RIGHTS);
		if (level == 0) {
			memcpy(page, page_of(from[i]), PAGE);
		} else if (!copy(page, page_of(from[i]), level - 1)) {
#ifdef PLANTED_LEAK /* ./run --leak: the table that was being filled is forgotten */
			if (level == 1 && clear(page, 0, 0, 0, PROGRAM_END))
				to[i] = 0;
#endif
			return false;
		}
	}
	return true;
}

/* Copies a program's pages to an empty space. Returns false if memory is short; what was copied
 * so far is freed with the space. */
bool space_copy(entry *to, const entry *from)
{
	return copy(to, from, TOP);
}
