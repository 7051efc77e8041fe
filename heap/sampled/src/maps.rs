//! `/proc/self/maps`: what is mapped where, read without memory of the heap.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use brickyard_arena::messages::write_all;

fn open_maps() -> Result<OwnedFd, Errno> {
    open(
        c"/proc/self/maps",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Writes all of it to a descriptor; without `/proc` nothing, since there are addresses all the
/// same. `piece` is used for that.
pub(crate) fn copy_to(descriptor: i32, piece: &mut [u8]) -> Result<(), i32> {
    let Ok(maps) = open_maps() else {
        return Ok(());
    };
    loop {
        match read(&maps, &mut *piece) {
            Ok(0) => return Ok(()),
            Ok(length) => write_all(descriptor, &piece[..length])?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.raw_os_error()),
        }
    }
}

/// A line of it: from where to where, and the file's name, if there is one.
#[derive(Debug, PartialEq, Eq)]
struct MapsLine<'t> {
    start: usize,
    end: usize,
    file: &'t [u8],
}

impl<'t> MapsLine<'t> {
    fn parse(line: &'t [u8]) -> Option<Self> {
        let dash = line.iter().position(|&byte| byte == b'-')?;
        let space = line.iter().position(|&byte| byte == b' ')?;
        let hex = |digits: &[u8]| usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
        // The file is the sixth field, and the only one that may begin with a slash.
        let slash = line.iter().position(|&byte| byte == b'/');
        Some(Self {
            start: hex(line.get(..dash)?)?,
            end: hex(line.get(dash + 1..space)?)?,
            file: slash.map_or(&[], |slash| &line[slash..]),
        })
    }
}

/// The file in which an address lies, as far as there is room for its name, and where its first
/// mapping begins.
pub(crate) struct Module {
    name: [u8; 256],
    length: usize,
    pub(crate) start: usize,
    piece: [u8; 1024],
}

impl Module {
    pub(crate) const fn new() -> Self {
        Self {
            name: [0; 256],
            length: 0,
            start: 0,
            piece: [0; 1024],
        }
    }

    /// Finds that of an address. False if it lies in no file.
    pub(crate) fn find(&mut self, address: usize) -> bool {
        let Ok(maps) = open_maps() else {
            return false;
        };
        (self.length, self.start) = (0, 0);
        let mut length = 0;
        loop {
            match read(&maps, &mut self.piece[length..]) {
                Ok(0) => return false,
                Ok(more) => length += more,
                Err(Errno::INTR) => continue,
                Err(_) => return false,
            }
            let mut begin = 0;
            let end_of_line = |piece: &[u8]| piece.iter().position(|&byte| byte == b'\n');
            while let Some(end) = end_of_line(&self.piece[begin..length]) {
                let Some(line) = MapsLine::parse(&self.piece[begin..begin + end]) else {
                    return false;
                };
                begin += end + 1;
                let known = &line.file[..line.file.len().min(self.name.len())];
                if &self.name[..self.length] != known {
                    self.name[..known.len()].copy_from_slice(known);
                    self.length = known.len();
                    self.start = line.start;
                }
                if (line.start..line.end).contains(&address) {
                    return self.length > 0;
                }
            }
            if begin == 0 && length == self.piece.len() {
                // No line is as long as that.
                return false;
            }
            self.piece.copy_within(begin..length, 0);
            length -= begin;
        }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = b"7f00-7fff r-xp 00001000 fd:01 123      /lib/x y.so (deleted)";
        let read = MapsLine {
            start: 0x7f00,
            end: 0x7fff,
            file: b"/lib/x y.so (deleted)",
        };
        assert_eq!(MapsLine::parse(line), Some(read));
        assert_eq!(
            MapsLine::parse(b"10-20 rw-p 0 0 0 [heap]").unwrap().file,
            b""
        );
        assert_eq!(MapsLine::parse(b""), None);
        assert_eq!(MapsLine::parse(b"zz-10 r 0"), None);
    }

    #[test]
    fn this_function_lies_in_this_program() {
        let here = this_function_lies_in_this_program as fn() as usize;
        let mut module = Module::new();
        assert!(module.find(here));
        let program = std::env::current_exe().unwrap();
        let program = program.as_os_str().as_encoded_bytes();
        assert_eq!(module.name(), &program[..program.len().min(256)]);
        assert!(module.start <= here && !module.find(1));
    }
}
