/* The page allocator of a small kernel, in one file: what is needed of brickyard.h, and no more. It is
 * compiled with -ffreestanding and not run. */
#include "../brickyard.h"

extern char metadata[]; /* of the linker script: memory that is given to the allocator */
extern size_t metadata_bytes;

static const by_machine *machine;

/* Returns the number of frames that can be handed out, or a negative code. */
ptrdiff_t page_init(size_t first, size_t last)
{
	const by_zone_plan zone = { .start = first, .end = last, .kind = BY_NORMAL };
	const by_plan plan = { .zones = &zone, .zone_count = 1 };
	ptrdiff_t code = by_machine_init(&plan, metadata, metadata_bytes, &machine);

	return code < 0 ? code : by_add(machine, 0, first, last);
}

void *page_alloc(void)
{
	ptrdiff_t frame = by_alloc(machine, 0, BY_UNMOVABLE);

	return frame < 0 ? NULL : (void *)((size_t)frame << 12);
}

/* Returns 0, or a negative code whose text is by_error_text(code). */
ptrdiff_t page_free(void *page)
{
	return by_free(machine, (size_t)page >> 12, 0);
}
