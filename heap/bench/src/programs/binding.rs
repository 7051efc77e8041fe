//! Whether a real program's malloc is the library's, by the dynamic loader's own log.
//!
//! A program may be static, or have a malloc of its own; a preloaded library then changes nothing,
//! or only half of the family. So the program is started with `--version` and `LD_DEBUG=bindings`.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The functions that must be the library's.
const FAMILY: [&str; 4] = ["malloc", "calloc", "realloc", "free"];

/// The prefix of the files of the log.
const LOG: &str = "bindings";

/// Fails unless the malloc of an executable is the library's.
pub(crate) fn check(executable: &Path, library: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(executable);
    command.arg("--version").current_dir(folder);
    command.env("LD_PRELOAD", library);
    command.env("LD_BIND_NOW", "1").env("LD_DEBUG", LOG);
    command.env("LD_DEBUG_OUTPUT", folder.join(LOG));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let name = executable.display();
    let status = command.stderr(Stdio::null()).status();
    status.with_context(|| format!("cannot start {name}"))?;
    let mut log = String::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_log = path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with(LOG)
        });
        if is_log {
            log += &String::from_utf8_lossy(&fs::read(&path)?);
            fs::remove_file(&path)?;
        }
    }
    if let Some(why) = astray(
        &log,
        &executable.to_string_lossy(),
        &library.to_string_lossy(),
    ) {
        bail!("{name}: its malloc is not the library's: {why}");
    }
    Ok(())
}

/// Returns what of the family is not bound to the library, by the lines of a log.
///
/// The address of a function may be that of an entry in an executable's own table (of one that is
/// not position independent), if that entry is bound to the library.
fn astray(log: &str, executable: &str, library: &str) -> Option<String> {
    let bindings: Vec<Binding<'_>> = log.lines().filter_map(Binding::read).collect();
    let bindings = bindings.iter().filter(|one| one.from != library);
    let own: HashSet<&str> = bindings
        .clone()
        .filter(|one| one.from == executable && one.to == library)
        .map(|one| one.function)
        .collect();
    if !bindings.clone().any(|one| one.to == library) {
        return Some("nothing is bound to it; the program is static, or never allocates".into());
    }
    let mut wrong = bindings.filter(|one| {
        let by_entry = one.to == executable && own.contains(one.function);
        one.to != library && !by_entry
    });
    wrong.next().map(|one| {
        let Binding { from, to, function } = one;
        format!("{function} of {from} is that of {to}")
    })
}

/// One line of the loader's log.
#[derive(Debug)]
struct Binding<'l> {
    from: &'l str,
    to: &'l str,
    function: &'l str,
}

impl<'l> Binding<'l> {
    /// Reads a line about a function of the family.
    fn read(line: &'l str) -> Option<Self> {
        let (_, line) = line.split_once("binding file ")?;
        let (from, line) = line.split_once(" [")?;
        let (_, line) = line.split_once("] to ")?;
        let (to, line) = line.split_once(" [")?;
        let (_, function) = line.split_once("symbol `")?;
        let (function, _) = function.split_once('\'')?;
        FAMILY
            .contains(&function)
            .then_some(Self { from, to, function })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: &str, to: &str, function: &str) -> String {
        format!(
            "     7:\tbinding file {from} [0] to {to} [0]: normal symbol `{function}' [GLIBC_2.2.5]\n"
        )
    }

    fn why(lines: &[(&str, &str, &str)]) -> String {
        let log: String = lines
            .iter()
            .map(|&(from, to, of)| line(from, to, of))
            .collect();
        astray(&log, "/bin/p", "/lib/m.so").unwrap_or_default()
    }

    #[test]
    fn a_program_whose_whole_family_is_the_librarys_is_right() {
        let lines = [
            ("/bin/p", "/lib/m.so", "malloc"),
            ("/lib/c.so", "/lib/m.so", "free"),
            ("/lib/m.so", "/lib/c.so", "calloc"),
            ("/bin/p", "/lib/c.so", "printf"),
        ];
        assert_eq!(why(&lines), "");
    }

    #[test]
    fn a_program_with_a_malloc_of_its_own_is_found() {
        let of_its_own = [
            ("/bin/p", "/lib/m.so", "calloc"),
            ("/lib/c.so", "/bin/p", "malloc"),
        ];
        assert_eq!(why(&of_its_own), "malloc of /lib/c.so is that of /bin/p");
        let entry = [
            ("/bin/p", "/lib/m.so", "malloc"),
            ("/lib/c.so", "/bin/p", "malloc"),
        ];
        assert_eq!(why(&entry), "");
    }

    #[test]
    fn a_static_program_is_found() {
        assert!(why(&[]).contains("static"));
        let elsewhere = [("/bin/p", "/lib/c.so", "malloc")];
        assert!(why(&elsewhere).contains("nothing is bound to it"));
    }
}
