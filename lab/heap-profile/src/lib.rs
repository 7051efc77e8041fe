//! Sampled heap profiles, as `libbrickyard_malloc.so`, gperftools and others write them: what is
//! allocated, by the call stacks that allocated it.
//!
//! | file | what it holds |
//! |---|---|
//! | `text.rs` | [`Profile`]: the file, read |
//! | `amount.rs` | [`Amount`]: objects and bytes, and their scaling from samples to estimates |
//! | `mapping.rs` | [`Mapping`]: which file was mapped where, from the text of `/proc/PID/maps` |
//! | `binary.rs` | [`Binary`]: the loaded parts of an ELF file, its symbols and lines |
//! | `named.rs` | [`Named`]: a profile whose addresses have names |
//! | `allocators.rs` | which functions at a stack's leaf belong to an allocator and are left out |
//! | `sites.rs` | [`sites()`]: who allocated most |
//! | `tree.rs` | [`Tree`]: all stacks as one tree |
//! | `folded.rs` | [`folded()`]: a line per stack, for other flame graph programs |
//! | `flame.rs` | [`flame()`]: a flame graph as a page of its own |
//! | `pprof.rs`, `message.rs` | [`pprof()`]: pprof's protobuf, compressed |
//!
//! The way is [`Profile::read`], then [`Named::of`], then any of the views:
//!
//! ```
//! use brickyard_heap_profile::{Named, Profile, Space, sites, Order};
//!
//! let text = b"heap profile: 2: 8192 [2: 8192] @ heap_v2/524288\n\
//!              2: 8192 [2: 8192] @ 0x1235 0x2001\n";
//! let profile = Profile::read(text)?;
//! let named = Named::of(&profile);
//! let sites = sites(&named, Space::Live, Order::Own);
//! // Two samples of 4 KiB, each of which stands for 128.5 objects.
//! assert_eq!(sites[0].own.objects, 257);
//! assert_eq!(sites[0].function, "0x1234");
//! # Ok::<(), brickyard_heap_profile::ReadError>(())
//! ```

#![forbid(unsafe_code)]

mod allocators;
mod amount;
mod binary;
mod flame;
mod folded;
mod mapping;
mod message;
mod named;
mod pprof;
mod sites;
mod text;
mod tree;

pub use amount::Amount;
pub use binary::{Binary, Line};
pub use flame::flame;
pub use folded::folded;
pub use mapping::Mapping;
pub use named::{Frame, Named, Stack};
pub use pprof::pprof;
pub use sites::{Order, Site, sites};
pub use text::{Profile, ReadError, STACK_MOST, Sample, Space};
pub use tree::{Node, Tree};
