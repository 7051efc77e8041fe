#include "libc.h"
int main(const char *argument);
int main(const char *argument) { (void)argument; print("suite %ld\n", getpid()); return 0; }
