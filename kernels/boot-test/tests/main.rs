//! The boot test on the host: threads as CPUs, faults planted in platforms, and the readers that the
//! kernel `metal` boots with.
