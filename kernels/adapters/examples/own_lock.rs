//! A kernel brings its own lock: anything that implements `lock_api::RawMutex` is the lock of a
//! heap's slow paths. (Requests of the page allocator take no lock; its administration, `add` and
//! the like, has a ticket lock of its own.)
//!
//! Run it with `cargo run -p brickyard-adapters --features lock_api --example own_lock`.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brickyard::OneCpu;
use brickyard::sync::LockApi;
use brickyard_adapters::{HeapPlan, KernelHeap};

/// How often a lock was taken: what a kernel's own lock may want to know.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A kernel's spin lock. Interrupts need not concern it: slabs mask them before they lock.
struct KernelLock(AtomicBool);

// SAFETY: whoever turned the flag on holds the lock until it turns it off, by acquire and release.
unsafe impl lock_api::RawMutex for KernelLock {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the trait's pattern to make locks from"
    )]
    const INIT: Self = Self(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        while !self.try_lock() {
            core::hint::spin_loop();
        }
    }

    fn try_lock(&self) -> bool {
        let taken = !self.0.swap(true, Ordering::Acquire);
        TAKEN.fetch_add(taken.into(), Ordering::Relaxed);
        taken
    }

    unsafe fn unlock(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

// SAFETY: one thread uses it, and no interrupt.
static HEAP: KernelHeap<OneCpu, LockApi<KernelLock>> = unsafe { KernelHeap::new(OneCpu) };

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let memory = vec![MaybeUninit::uninit(); 4 << 20].leak();
    HEAP.init(&HeapPlan::new(1), memory)?;
    let built = TAKEN.load(Ordering::Relaxed);
    let layout = Layout::new::<[u64; 8]>();
    // SAFETY: the layout is not empty.
    let objects: Vec<*mut u8> = (0..10_000).map(|_| unsafe { HEAP.alloc(layout) }).collect();
    assert!(objects.iter().all(|object| !object.is_null()));
    for object in objects {
        // SAFETY: it came from there with this layout, and nobody uses it any more.
        unsafe { HEAP.dealloc(object, layout) };
    }
    let taken = TAKEN.load(Ordering::Relaxed) - built;
    println!("20000 calls took the kernel's lock {taken} times");
    assert!((1..2000).contains(&taken));
    Ok(())
}
