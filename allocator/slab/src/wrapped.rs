//! A platform in a wrapper is a platform: what all wrappers of this crate pass on.

/// Implements the platform for a wrapper: passes each call on to a field of the type.
macro_rules! pass_on_platform {
    ($of:ident . $field:tt: impl<$($life:lifetime,)? $inner:ident> for $wrapper:ty) => {
        impl<$($life,)? $inner: brickyard::Platform> brickyard::Platform for $wrapper {
            #[inline]
            fn cpu(&$of) -> usize {
                $of.$field.cpu()
            }

            #[inline]
            fn pin(&$of) -> usize {
                $of.$field.pin()
            }

            #[inline]
            fn unpin(&$of) {
                $of.$field.unpin();
            }

            #[inline]
            fn in_interrupt(&$of) -> bool {
                $of.$field.in_interrupt()
            }

            #[inline]
            fn mask_interrupts(&$of) -> brickyard::InterruptState {
                $of.$field.mask_interrupts()
            }

            #[inline]
            fn restore_interrupts(&$of, found: brickyard::InterruptState) {
                $of.$field.restore_interrupts(found);
            }

            #[inline]
            fn relax(&$of) {
                $of.$field.relax();
            }

            #[inline]
            fn run_on(&$of, cpu: usize, work: &mut dyn FnMut()) -> bool {
                $of.$field.run_on(cpu, work)
            }

            #[inline]
            fn ticks(&$of) -> u64 {
                $of.$field.ticks()
            }

            #[inline]
            fn task(&$of) -> u64 {
                $of.$field.task()
            }

            #[inline]
            fn address(&$of, frame: brickyard::Frame) -> Option<core::ptr::NonNull<u8>> {
                $of.$field.address(frame)
            }
        }
    };
}

pub(crate) use pass_on_platform;
