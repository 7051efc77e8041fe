//! Any bytes as a file of the history: either they are refused, or every row can be read. The
//! corpus should contain real files, since random bytes do not pass the first check.

#![no_main]

use brickyard_serve::history::read::check_bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        // libfuzzer's own hook ends the process at any panic, contained or not.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        let _ = check_bytes(bytes.to_vec());
    }
);
