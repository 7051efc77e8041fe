//! Checks on request, per cache.
//!
//! Which caches are checked, and for what, is decided when they are made: by
//! [`CacheSpec::checks`](crate::CacheSpec::checks), and by rules on their names
//! ([`SlabPlan`](crate::SlabPlan)). Rules are a list in the program ([`DebugRule`]) or a text from
//! outside ([`RuleText`], for example `FZPU,general-*;U,dentry`). What is found goes to the plan's
//! `report` as a [`Finding`], which names the object, the cache, and who allocated and freed it. A
//! bad free is refused, and nothing has changed. A damaged object is left out: it is never handed
//! out again, and its slab is never given back.
//!
//! | level | finds | bytes per object | extra work of an allocation | extra work of a free |
//! |---|---|---|---|---|
//! | none | a double free of the last object freed on this CPU; on the slow path (once in a sheaf) what is no object of the cache; a double free of any other object when it reaches its slab: refused there, counted, and reported | 0 | nothing | reads the last entry, one comparison: 0.2 ns |
//! | `F` [`FREES`](Checks::FREES) | every double free, foreign object, address where no object begins | 0 | the slow path: a lock | the slow path: finds the slab, a lock twice |
//! | `Z` [`RED_ZONES`](Checks::RED_ZONES) | what `F` does; bytes written just before or behind an object: at its free, its next allocation, the end of its slab | before it its alignment, at least 8; behind it 8 to 23, up to the alignment | reads and writes the zones | the same |
//! | `P` [`POISON`](Checks::POISON) | what `F` does; writes to a free object: at its next allocation, the end of its slab. A reader of a free object sees 6b | 0 | reads the object | writes the object |
//! | `U` [`TRACK`](Checks::TRACK) | what `F` does; every finding, and each object in use, tells who allocated and who freed: caller, CPU, task, time | 64 | asks for CPU, task and time, writes 32 bytes | the same |
//!
//! An allocation and its free together, one thread, objects of 64 / 1216 bytes, on a core as in the
//! goals of this project (2.6 GHz): none 2.2 / 2.2 ns, `F` 37 / 84, `Z` 48 / 103, `P` 41 / 193, `U`
//! 37 / 109 (with a clock that costs nothing), all 73 / 232. On several CPUs each cache's lock is
//! shared by all of them.
//!
//! A checked cache keeps no queues of free objects. So its free objects are in their slabs, and
//! which ones are free is exact. The fast path of other caches pays nothing for it. Objects with a
//! constructor are not poisoned, so that the constructor's state lasts. Their red zones and users
//! are still checked.
//!
//! What is **not** found: a write that jumps over the red zone into another object; a read of any
//! kind; a write to a free object that puts there what was there, or that comes after its slab has
//! gone; an overflow inside the bytes that a general size has beyond the request. If two CPUs free
//! one object at the same moment, one of them is refused when it reaches the slab. But if a third
//! has the object by then, its bytes may have been painted over.
//!
//! ```
//! use brickyard_slab::{CacheSpec, FreeFault, RuleText, Sheafed, SlabPlan, Slabs, TaskOnly};
//! # use brickyard_slab::Pinned;
//! # use brickyard::OneCpu;
//! # mod support { include!("../../tests/support/pages.rs"); }
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let source = support::TestPages::new(64, 1);
//! let rules = RuleText::parse("ZU,inode*")?;
//! let plan = SlabPlan::new(8, 1).pages(64).debug_text(rules, |finding| println!("{finding}"));
//! # let mut memory = vec![core::mem::MaybeUninit::uninit(); Slabs::<Sheafed<&support::TestPages, Pinned<OneCpu>>>::bytes(&plan)];
//! # let cpus = unsafe { Pinned::new(OneCpu) };
//! # let slabs = Slabs::<Sheafed<_, _>>::new(plan, &source, cpus, &mut memory)?;
//! let inodes = slabs.cache::<TaskOnly>(CacheSpec::new("inode", 600))?;
//! let object = inodes.alloc()?;
//! // SAFETY: a byte too many, but it is the slab's.
//! unsafe { object.add(600).write(0x41) };
//! // Printed: "slab: written behind an object's end: cache `inode`, object 0x... of 600 bytes", and so on.
//! // SAFETY: the object is not used any more.
//! assert_eq!(unsafe { inodes.free(object) }, Err(FreeFault::Damaged));
//! # Ok(()) }
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `checks.rs`, `rules.rs` | what can be checked; in which caches |
//! | `track.rs` | who allocated and who freed |
//! | `finding.rs` | what is reported |

mod checks;
mod finding;
mod rules;
mod track;

pub use checks::Checks;
pub use finding::{Damage, Fault, Finding, Moment, SHOWN};
pub use rules::{DebugRule, RuleError, RuleText, Rules};
pub(crate) use track::{Stored, TRACK_BYTES};
pub use track::{Track, User};
