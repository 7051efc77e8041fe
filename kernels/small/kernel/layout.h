/* Numbers that C and assembly share. */
#ifndef LAYOUT_H
#define LAYOUT_H

#define DIRECT 0xffffffc000000000 /* where physical address 0 is mapped */
#define MEMORY 0x80000000 /* where it begins, physical */
#define SATP_SV39 0x8000000000000000
#define BOOT_STACK_BYTES 4096
#define BOOT_GUARD_BYTES 16384 /* below it */

#endif
