//! Giving up root, once what only root may open is open.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, User, geteuid, setgroups, setresgid, setresuid};
use rustix::fs::OFlags;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_no_new_privs,
};

use crate::error::ServeError;

/// A user to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Become {
    uid: Uid,
    gid: Gid,
}

/// Returns true if this process is root's.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Gives up every capability of the calling thread and of those that it starts, for good, if it is
/// not root's: a service manager may have given some to an ordinary user, to open what it needs.
///
/// # Errors
/// If there are some, and they stay.
pub(crate) fn give_up_capabilities() -> Result<(), ServeError> {
    if is_root() {
        return Ok(());
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    let given_up = set_no_new_privs(true)
        .and_then(|()| clear_ambient_capability_set())
        .and_then(|()| set_capabilities(None, none));
    match given_up {
        Ok(()) => Ok(()),
        // Where the calls are filtered there may have been none.
        Err(_) if capabilities(None).is_ok_and(|has| has.permitted.is_empty()) => Ok(()),
        Err(why) => Err(ServeError::Privileges(why.into())),
    }
}

impl Become {
    /// Looks up a user by name or number.
    ///
    /// # Errors
    /// If there is none.
    pub fn user(name: &str) -> Result<Self, ServeError> {
        let number = name.parse().ok().map(Uid::from_raw);
        let found = match number {
            Some(uid) => User::from_uid(uid),
            None => User::from_name(name),
        };
        match (found, number) {
            (Ok(Some(user)), _) => Ok(Self {
                uid: user.uid,
                gid: user.gid,
            }),
            // A number needs no entry: containers have none.
            (Ok(None), Some(uid)) => Ok(Self {
                uid,
                gid: Gid::from_raw(uid.as_raw()),
            }),
            (Ok(None), None) => Err(ServeError::NoUser {
                name: name.to_owned(),
            }),
            (Err(why), _) => Err(ServeError::Privileges(why.into())),
        }
    }

    /// Returns true if this is root, under whatever name.
    #[must_use]
    pub fn is_root(self) -> bool {
        self.uid.is_root()
    }

    /// Makes a folder of this user's. One that exists already stays whose it is: root must not give
    /// away what a link or an earlier owner may have put there.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn make_folder(self, folder: &Path) -> io::Result<()> {
        // Without a slash at the end, which would follow a link.
        let folder: PathBuf = folder.components().collect();
        let folder = folder.as_path();
        match fs::create_dir(folder) {
            Ok(()) => {}
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(why) => return Err(why),
        }
        // By its descriptor, and not through a link, should somebody have replaced it meanwhile.
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let made = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(folder)?;
        fchown(&made, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
    }

    /// Becomes this user, with its group and no other, for good. All threads of the process do.
    ///
    /// # Errors
    /// If the process is not root's, or it could get root back.
    pub(crate) fn give_up_root(self) -> Result<(), ServeError> {
        let given_up = setgroups(&[self.gid])
            .and_then(|()| setresgid(self.gid, self.gid, self.gid))
            .and_then(|()| setresuid(self.uid, self.uid, self.uid));
        given_up.map_err(|why| ServeError::Privileges(why.into()))?;
        if !self.uid.is_root()
            && setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok()
        {
            return Err(ServeError::Privileges(io::Error::other(
                "root could be had back",
            )));
        }
        Ok(())
    }
}
