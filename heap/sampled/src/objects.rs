//! Loaded objects, the program and its libraries: which of them an address is in, and where its
//! tables of call frames are (`.eh_frame`, which programs have even without symbols).
//!
//! The C library finds them without a lock (`_dl_find_object`, glibc 2.35). What others have for it
//! takes a lock that a thread may hold while it waits for one of the program's. So without that
//! function only the object that holds the heap is known: as in a static program, where the
//! function asks for memory before it can be called.

use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ops::Range;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use core::slice;

use brickyard_arena::weak_address;
use gimli::UnwindSection;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, NativeEndian};

type Section = EndianSlice<'static, NativeEndian>;

/// An object's table of frames, and an entry of it.
pub(crate) type Frames = (EhFrame<Section>, BaseAddresses);
pub(crate) type Entry = FrameDescriptionEntry<Section>;

/// See the [module](self).
#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    addresses: Range<usize>,
    /// Where its `.eh_frame_hdr` begins; 0 if it has none.
    tables: usize,
}

// Weak: null where there is none.
global_asm!(".weak _dl_find_object", ".weak __ehdr_start");

/// What `_dl_find_object` fills, as far as it is used.
#[repr(C)]
struct Found {
    flags: u64,
    start: *const c_void,
    end: *const c_void,
    link_map: *const c_void,
    tables: *const c_void,
    rest: [u64; 9],
}

impl Object {
    /// Returns that of an address, if the C library knows it.
    pub(crate) fn of(address: usize) -> Option<Self> {
        type Find = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;
        // SAFETY: null, or the C library's function, which has this type.
        let find =
            unsafe { transmute::<*const u8, Option<Find>>(weak_address!("_dl_find_object")) };
        let mut found = MaybeUninit::uninit();
        // SAFETY: any address will do; if it returns 0, it has filled what is passed.
        let found = unsafe {
            let failed = find?(with_exposed_provenance_mut(address), found.as_mut_ptr());
            (failed == 0).then(|| found.assume_init())?
        };
        Some(Self {
            addresses: found.start.addr()..found.end.addr(),
            tables: found.tables.addr(),
        })
    }

    /// Returns the one that holds this code, by the linker's name for the header in front of it.
    pub(crate) fn own() -> Option<Self> {
        let header = weak_address!("__ehdr_start").cast::<libc::Elf64_Ehdr>();
        // SAFETY: where it is, it is loaded, and so are the headers of the object's parts.
        let parts: &[libc::Elf64_Phdr] = unsafe {
            let (first, count) = (header.as_ref()?.e_phoff, (*header).e_phnum);
            slice::from_raw_parts(header.byte_add(first as usize).cast(), usize::from(count))
        };
        let of = |kind| parts.iter().filter(move |part| part.p_type == kind);
        let base = header.addr() - of(libc::PT_LOAD).next()?.p_vaddr as usize;
        let end = of(libc::PT_LOAD).map(|part| base + (part.p_vaddr + part.p_memsz) as usize);
        let mut tables = of(libc::PT_GNU_EH_FRAME).map(|part| base + part.p_vaddr as usize);
        Some(Self {
            addresses: header.addr()..end.max()?,
            tables: tables.next().unwrap_or(0),
        })
    }

    pub(crate) fn contains(&self, address: usize) -> bool {
        self.addresses.contains(&address)
    }

    /// Returns the table of frames, and its entry for an address.
    pub(crate) fn entry(&self, address: usize) -> Option<(Frames, Entry)> {
        let from = |start: usize| {
            let bytes = self.contains(start).then(|| self.addresses.end - start)?;
            // SAFETY: the object is loaded as long as a stack has an address of it. Its tables lie
            // in it, and they say where they end: behind that nothing is read.
            let section = unsafe { slice::from_raw_parts(with_exposed_provenance(start), bytes) };
            Some(Section::new(section, NativeEndian))
        };
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.tables as u64);
        let header = EhFrameHdr::from(from(self.tables)?).parse(&bases, 8).ok()?;
        let start = header.eh_frame_ptr().direct().ok()?;
        let (frames, bases) = (
            EhFrame::from(from(start as usize)?),
            bases.set_eh_frame(start),
        );
        let cie = EhFrame::cie_from_offset;
        let entry = header
            .table()?
            .fde_for_address(&frames, &bases, address as u64, cie);
        Some(((frames, bases), entry.ok()?))
    }
}
