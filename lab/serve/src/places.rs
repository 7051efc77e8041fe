//! Places for connections. When all are taken and another client comes, the one gives way that has
//! been connected longest, but for those whose answers are being made. So neither clients that ask
//! nothing nor those that take no answer keep others out, whoever they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// All places.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// The number of the next client.
    next: u64,
    /// Those that give way, by number. The task is not known until [`Places::is_of`] tells.
    waiting: BTreeMap<u64, Option<AbortHandle>>,
    /// How many have answers that are being made.
    kept: usize,
}

/// A client's place, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    places: Arc<Places>,
}

impl Places {
    /// So many places, more than there are answers made at once.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// Takes a place. Returns true if another client has given way to this one.
    pub(crate) fn take(self: &Arc<Self>) -> (Place, bool) {
        let mut taken = self.taken();
        let gives_way = match taken.waiting.len() + taken.kept >= self.most {
            true => taken.waiting.pop_first(),
            false => None,
        };
        let number = taken.next;
        taken.next += 1;
        taken.waiting.insert(number, None);
        drop(taken);
        let is_given = gives_way.is_some();
        if let Some((_, Some(task))) = gives_way {
            task.abort();
        }
        let places = Arc::clone(self);
        (Place { number, places }, is_given)
    }

    /// Notes which task has the place of this number, and ends when it has to give way.
    pub(crate) fn is_of(&self, number: u64, task: AbortHandle) {
        if let Some(known) = self.taken().waiting.get_mut(&number) {
            *known = Some(task);
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Keeps the place while an answer is being made: until what is returned is dropped.
    pub(crate) fn keep(self: &Arc<Self>) -> Kept {
        let mut taken = self.places.taken();
        let task = taken.waiting.remove(&self.number);
        taken.kept += usize::from(task.is_some());
        Kept {
            place: Arc::clone(self),
            task,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().waiting.remove(&self.number);
    }
}

/// A place whose client does not give way.
#[derive(Debug)]
pub(crate) struct Kept {
    place: Arc<Place>,
    /// `None` if it had given way before.
    task: Option<Option<AbortHandle>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            let mut taken = self.place.places.taken();
            taken.kept -= 1;
            taken.waiting.insert(self.place.number, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(places: &Places) -> Vec<u64> {
        places.taken().waiting.keys().copied().collect()
    }

    #[test]
    fn the_longest_standing_gives_way_unless_its_answer_is_being_made() {
        let places = Places::new(3);
        let take = || {
            let (place, is_given) = places.take();
            (Arc::new(place), is_given)
        };
        let (first, second, third) = (take(), take(), take());
        assert!(![&first, &second, &third].iter().any(|one| one.1));
        let kept = first.0.keep();
        let fourth = take();
        assert!(fourth.1);
        assert_eq!(numbers(&places), [2, 3]);
        // Who has given way frees no place by going, and keeps none.
        drop(second.0.keep());
        drop(second);
        assert_eq!((numbers(&places), places.taken().kept), (vec![2, 3], 1));
        // Who is answered has the place for as long as it had it.
        drop(kept);
        let fifth = take();
        assert!(fifth.1);
        assert_eq!(numbers(&places), [2, 3, 4]);
        drop((first, third));
        assert!(!take().1);
        assert_eq!((numbers(&places), places.taken().kept), (vec![3, 4], 0));
    }
}
