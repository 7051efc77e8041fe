//! The load of `bench pft`: threads that take single pages and clear each, as a page fault does,
//! until each has its share; then all give back all.
//!
//! Both halves are timed, each from the first thread's begin to the last one's end and by what all
//! of them spent on a CPU. Every thread does both several times.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::sync::{Barrier, Mutex, PoisonError};

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Order, Platform};
use brickyard_arena::Arena;
use brickyard_classics::Experiment;
use brickyard_classics::LabZone;

use super::clock::Span;
use super::design::ThroughNodes;
use super::subject::{Handle, Subject};
use super::together::together;

/// What the threads do.
#[derive(Debug, Clone, Copy)]
pub struct Faults<'a> {
    /// The memory.
    pub arena: &'a Arena,
    /// How many run at once.
    pub threads: usize,
    /// The pages that all threads have together when each has its share.
    pub pages: usize,
    /// How often they are taken and given back.
    pub passes: usize,
}

/// What one half of all passes took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Half {
    pub(crate) wall: Duration,
    /// On all CPUs together.
    pub(crate) cpu: Duration,
}

/// What all passes took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Pages taken, and given back.
    pub(crate) pages: u64,
    pub(crate) faults: Half,
    pub(crate) frees: Half,
}

impl Spent {
    /// Faults for each second of CPU time, of all threads together.
    pub fn faults_per_cpu_second(&self) -> f64 {
        self.per_second(self.faults.cpu)
    }

    /// Faults a second.
    pub fn faults_per_second(&self) -> f64 {
        self.per_second(self.faults.wall)
    }

    /// Pages given back for each second of CPU time, of all threads together.
    pub fn frees_per_cpu_second(&self) -> f64 {
        self.per_second(self.frees.cpu)
    }

    /// A rate; what is too short for the clock to see counts as a nanosecond.
    fn per_second(&self, time: Duration) -> f64 {
        self.pages as f64 / time.as_secs_f64().max(1e-9)
    }
}

/// There were fewer free pages than the threads' shares.
#[derive(Debug, Clone, Copy)]
pub struct TooFew;

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory has too few free pages")
    }
}

impl Error for TooFew {}

/// A pass of one thread: its two halves.
type Pass = [Span; 2];

impl<'a> Experiment<&'a Arena> for Faults<'a> {
    type Output = Result<Spent, TooFew>;

    fn run<Z: LabZone<Platform = &'a Arena>>(self, node: &Node<'_, Z>) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        self.on(&ThroughNodes {
            nodes: &nodes,
            mobility: Mobility::Movable,
        })
    }
}

impl Faults<'_> {
    /// The yardstick: each thread has its pages on a bare stack of its own, so what is left is the
    /// clearing.
    pub(crate) fn on_stacks(&self) -> Result<Spent, TooFew> {
        let all: Vec<Frame> = self.arena.frames().frames().collect();
        let stacks = all.chunks_exact(all.len() / self.threads);
        let stacks = stacks.map(|frames| Stack(frames.to_vec())).collect();
        self.on(&Stacks(Mutex::new(stacks)))
    }

    /// Runs the threads on an allocator of frames of the arena, each of which it gives to one
    /// holder at a time.
    fn on<S: Subject>(&self, subject: &S) -> Result<Spent, TooFew> {
        let barrier = Barrier::new(self.threads);
        // All are waited for, also where one has failed.
        let ends = together(self.threads, |number| {
            let pages = self.share(number);
            self.thread(subject.handle(Order::ZERO), pages, &barrier)
        });
        let passes = ends
            .into_iter()
            .collect::<Result<Vec<Vec<Pass>>, TooFew>>()?;
        let mut spent = Spent {
            pages: (self.pages * self.passes) as u64,
            ..Spent::default()
        };
        for pass in 0..self.passes {
            let of_half = |half: usize| passes.iter().map(move |of_thread| of_thread[pass][half]);
            spent.faults.add(of_half(0));
            spent.frees.add(of_half(1));
        }
        Ok(spent)
    }

    /// The share of a thread: all alike but for what is left over.
    fn share(&self, number: usize) -> usize {
        self.pages / self.threads + usize::from(number < self.pages % self.threads)
    }

    /// One thread's passes. It comes to every barrier also where it fails.
    fn thread(
        &self,
        mut handle: impl Handle,
        pages: usize,
        barrier: &Barrier,
    ) -> Result<Vec<Pass>, TooFew> {
        let mut held = Vec::with_capacity(pages);
        let mut passes = Vec::with_capacity(self.passes);
        let mut complete = Ok(());
        for _ in 0..self.passes {
            barrier.wait();
            let faults = Span::of(|| {
                for _ in 0..pages {
                    let Some(frame) = handle.alloc() else {
                        complete = Err(TooFew);
                        break;
                    };
                    self.clear(frame);
                    held.push(frame);
                }
            });
            barrier.wait();
            let frees = Span::of(|| {
                for frame in held.drain(..) {
                    handle.free(frame);
                }
            });
            passes.push([faults, frees]);
        }
        barrier.wait();
        // Nobody measures any more: a drain may reach into the caches of all.
        handle.settle();
        complete.map(|()| passes)
    }

    /// Clears a page that the caller has just been given, as the kernel does before a process sees
    /// it.
    #[inline]
    fn clear(&self, frame: Frame) {
        if let Some(page) = self.arena.address(frame) {
            // SAFETY: all of the arena is mapped, to be read and written, as long as it lives, and
            // nobody has a reference into it. The frame is the caller's alone: the allocators of
            // this file hand out a frame once until it comes back, and that the caller's thread has
            // only just got it.
            unsafe { page.write_bytes(0, self.arena.page_bytes()) };
        }
    }
}

impl Half {
    fn add(&mut self, spans: impl Iterator<Item = Span> + Clone) {
        self.wall += Span::wall(spans.clone());
        self.cpu += spans.map(|span| span.cpu).sum::<Duration>();
    }
}

/// See [`Faults::on_stacks`]: the stacks that no thread has yet.
struct Stacks(Mutex<Vec<Stack>>);

/// A thread's own frames.
struct Stack(Vec<Frame>);

impl Subject for Stacks {
    type Handle<'s> = Stack;

    /// A stack that no other thread has.
    fn handle(&self, _order: Order) -> Stack {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.pop().unwrap_or(Stack(Vec::new()))
    }
}

impl Handle for Stack {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        self.0.pop()
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        self.0.push(block);
    }
}

/// Touches every page of the arena, so that none is mapped by the system while something is timed.
pub(crate) fn touch_all(arena: &Arena) {
    let pages = arena.frames().len();
    let all = Faults {
        arena,
        threads: 1,
        pages,
        passes: 1,
    };
    // A stack has as many pages as are asked of it.
    let _touched = all.on_stacks();
}
