/* A program that ends with the number that is its argument. */
#include "libc.h"

int main(const char *argument);

int main(const char *argument) { return (int)number(argument); }
