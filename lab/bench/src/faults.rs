//! The load of `pft` on this host: threads that allocate single pages and clear each, as a page fault
//! does, until each has its share; then each frees its pages.
//!
//! Both halves are timed, each from the first thread's start to the last one's end and by the CPU
//! time of all threads. Every thread does both several times.

use core::time::Duration;
use std::sync::{Barrier, Mutex, PoisonError};

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, Mobility, Order, Platform};
use brickyard_designs::classics::Experiment;
use brickyard_designs::classics::LabZone;
use brickyard_measure::memory::{FRAME_BYTES, FrameMemory};

use super::design::ThroughNodes;
use super::masking::MemoryPlatform;
use super::subject::{Handle, Subject};
use brickyard_measure::clock::Span;
use brickyard_run::together;

/// What the threads do.
#[derive(Debug, Clone, Copy)]
pub struct Faults<'a> {
    /// The memory.
    pub memory: &'a FrameMemory,
    /// How many run in parallel.
    pub threads: usize,
    /// The sum of the threads' shares, in pages.
    pub pages: usize,
    /// How often they are allocated and freed.
    pub passes: usize,
}

/// The time of one half of all passes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Half {
    pub(crate) wall: Duration,
    /// The CPU time of all threads.
    pub(crate) cpu: Duration,
}

/// The time of all passes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Pages allocated, and freed.
    pub(crate) pages: u64,
    pub(crate) faults: Half,
    pub(crate) frees: Half,
}

impl Spent {
    /// Returns the faults per second of CPU time, of all threads together.
    pub fn faults_per_cpu_second(&self) -> f64 {
        self.per_second(self.faults.cpu)
    }

    /// Returns the faults per second.
    pub fn faults_per_second(&self) -> f64 {
        self.per_second(self.faults.wall)
    }

    /// Returns the pages freed per second of CPU time, of all threads together.
    pub fn frees_per_cpu_second(&self) -> f64 {
        self.per_second(self.frees.cpu)
    }

    /// Returns a rate; a time too short for the clock counts as a nanosecond.
    fn per_second(&self, time: Duration) -> f64 {
        self.pages as f64 / time.as_secs_f64().max(1e-9)
    }
}

/// The error of fewer free pages than the threads' shares.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[non_exhaustive]
#[error("the memory has too few free pages")]
pub struct TooFew;

/// A pass of one thread: its two halves.
type Pass = [Span; 2];

impl<'a> Experiment<MemoryPlatform<'a>> for Faults<'a> {
    type Output = Result<Spent, TooFew>;

    fn run<Z: LabZone<Platform = MemoryPlatform<'a>>>(self, node: &Node<'_, Z>) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        self.on(&ThroughNodes {
            nodes: &nodes,
            mobility: Mobility::Movable,
        })
    }
}

impl Faults<'_> {
    /// Runs the yardstick: each thread has its pages on a bare stack of its own, so only the cost
    /// of clearing is left.
    pub(crate) fn on_stacks(&self) -> Result<Spent, TooFew> {
        let all: Vec<Frame> = self.memory.frames().frames().collect();
        let stacks = all.chunks_exact(all.len() / self.threads);
        let stacks = stacks.map(|frames| Stack(frames.to_vec())).collect();
        self.on(&Stacks(Mutex::new(stacks)))
    }

    /// Runs the threads on an allocator of frames of the memory. It must give each frame to one
    /// holder at a time.
    fn on<S: Subject>(&self, subject: &S) -> Result<Spent, TooFew> {
        let barrier = Barrier::new(self.threads);
        // Wait for all, also if one has failed.
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

    /// Returns the share of a thread in pages: all are equal up to the remainder.
    fn share(&self, number: usize) -> usize {
        self.pages / self.threads + usize::from(number < self.pages % self.threads)
    }

    /// Runs one thread's passes. It waits at every barrier also if it fails.
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
        // No thread is measuring any more: a drain may access the caches of all.
        handle.settle();
        complete.map(|()| passes)
    }

    /// Clears a page that the caller has just allocated, as the kernel does before a process can
    /// read it.
    #[inline]
    fn clear(&self, frame: Frame) {
        if let Some(page) = self.memory.address(frame) {
            // SAFETY: all of the memory is mapped for reading and writing as long as it lives, and
            // there is no reference into it. The frame is the caller's alone: the allocators of
            // this file give a frame to one holder until it is freed, and the caller's thread has
            // just allocated it.
            unsafe { page.write_bytes(0, FRAME_BYTES) };
        }
    }
}

impl Half {
    fn add(&mut self, spans: impl Iterator<Item = Span> + Clone) {
        self.wall += Span::wall(spans.clone());
        self.cpu += spans.map(|span| span.cpu).sum::<Duration>();
    }
}

/// The stacks of [`Faults::on_stacks`] that no thread has taken yet.
struct Stacks(Mutex<Vec<Stack>>);

/// A thread's own frames.
struct Stack(Vec<Frame>);

impl Subject for Stacks {
    type Handle<'s> = Stack;

    /// Returns a stack that no other thread has.
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
