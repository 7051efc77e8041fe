/* Programs: ELF files in the kernel's image, and how a process becomes one. */
#include "kernel.h"

/* What is needed of ELF. */
struct elf {
	uint8_t magic[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, segments, sections;
	uint32_t flags;
	uint16_t bytes, segment_bytes, segment_count;
};

struct segment {
	uint32_t type, flags;
	uint64_t offset, address, physical, file_bytes, bytes, align;
};

enum { LOADED = 1 };

extern const struct program { /* programs.S */
	char name[NAME_BYTES];
	const char *image;
} programs[], programs_end[];

static const char *find(const char *name)
{
	const struct program *program;
	size_t i;

	for (program = programs; program < programs_end; program++) {
		for (i = 0; name[i] && name[i] == program->name[i]; i++)
			;
		if (name[i] == program->name[i])
			return program->image;
	}
	return NULL;
}

/* Maps a segment, which begins a page. Returns false if memory is short. */
static bool load(entry *root, const struct segment *segment, const char *image)
{
	unsigned rights = (segment->flags & 4 ? READ : 0) | (segment->flags & 2 ? WRITE : 0) |
			  (segment->flags & 1 ? EXECUTE : 0);
	size_t done;

	for (done = 0; done < segment->bytes; done += PAGE) {
		size_t left = done < segment->file_bytes ? segment->file_bytes - done : 0;

		if (!space_map(root, segment->address + done, rights))
			return false;
		memcpy(page_of(*space_find(root, segment->address + done, false)),
		       image + segment->offset + done, left < PAGE ? left : PAGE);
	}
	return true;
}

/* Makes a process run a program. Returns the address of the argument, which the program gets; or
 * -1 if there is no such program or memory is short, and then nothing has changed. */
long exec(struct process *process, const char *name, const char *argument)
{
	const char *image = find(name);
	const struct elf *elf = (const struct elf *)image;
	size_t stack = STACK_TOP - ARGUMENT_BYTES, heap = 0, i;
	struct frame *frame = frame_of(process);
	entry *root = image ? space_new() : NULL, *former = process->root;

	if (!root)
		return -1;
	for (i = 0; i < elf->segment_count; i++) {
		const struct segment *segment = (const struct segment *)(image + elf->segments) + i;

		if (segment->type != LOADED || segment->bytes == 0)
			continue;
		if (!load(root, segment, image)) {
			space_free(root);
			return -1;
		}
		heap = (segment->address + segment->bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	}
	if (!space_map(root, STACK_TOP - PAGE, READ | WRITE)) {
		space_free(root);
		return -1;
	}
	for (i = 0; argument[i] && i < ARGUMENT_BYTES - 1; i++)
		;
	memcpy((char *)page_of(*space_find(root, stack, false)) + stack % PAGE, argument, i);

	process->root = root;
	process->heap = process->heap_end = heap;
	if (process == hart->current)
		space_use(root);
	space_free(former);
	memset(frame->x, 0, sizeof frame->x);
	frame->x[0] = elf->entry;
	frame->x[2] = stack;
	return (long)stack;
}
