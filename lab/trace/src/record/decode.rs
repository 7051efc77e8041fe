//! From the bytes of an event to a record, by the kernel's own formats.
//!
//! Invariant `bytes-untrusted`: whatever is inconsistent in a sub-buffer, event or format is an
//! error or is counted, never a panic.

use brickyard::{MigrateType, Order};

use super::error::RecordError;
use super::format::{Field, Format};
use super::optional::Fields;
use super::row::{Body, Comm, Record};
use crate::What;

/// The events of the page allocator that are recorded, as `system/name`.
pub(super) const PAGE_EVENTS: [&str; 3] = [
    "kmem/mm_page_alloc",
    "kmem/mm_page_free",
    "kmem/mm_page_alloc_extfrag",
];

/// The events that carry the names of tasks. A kernel may lack them.
pub(super) const TASK_EVENTS: [&str; 2] = ["task/task_newtask", "task/task_rename"];

/// Returns the type with this name in the kernel's `/proc/pagetypeinfo`, of whatever version.
#[must_use]
pub fn type_named(name: &str) -> MigrateType {
    match name {
        "Unmovable" => MigrateType::Unmovable,
        "Reclaimable" => MigrateType::Reclaimable,
        // CMA's memory holds movable pages until CMA needs it.
        "Movable" | "CMA" => MigrateType::Movable,
        "HighAtomic" | "Reserve" => MigrateType::HighAtomic,
        _ => MigrateType::Isolate,
    }
}

/// The migrate types by the kernel's numbers, which changed in 4.4 and depend on the kernel's
/// configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeNumbers(Vec<MigrateType>);

impl TypeNumbers {
    /// Reads them from `/proc/pagetypeinfo`, which lists them in order of their numbers. Without
    /// it, the numbers are those of kernels since 4.4 without CMA.
    #[must_use]
    pub fn parse(pagetypeinfo: &str) -> Self {
        let mut types = Vec::new();
        let mut first_zone = None;
        for line in pagetypeinfo.lines() {
            let Some((zone, rest)) = line.split_once(", type") else {
                continue;
            };
            if *first_zone.get_or_insert(zone) != zone {
                break;
            }
            let Some(name) = rest.split_whitespace().next() else {
                continue;
            };
            types.push(type_named(name));
        }
        if types.is_empty() {
            types.extend(MigrateType::ALL);
        }
        Self(types)
    }

    pub(super) fn get(&self, number: i64) -> Option<MigrateType> {
        let index = usize::try_from(number).ok()?;
        self.0.get(index).copied()
    }
}

/// The fields of `mm_page_alloc`.
#[derive(Debug)]
struct Alloc {
    id: u16,
    frame: Field,
    order: Field,
    flags: Field,
    mobility: Field,
}

/// The fields of `mm_page_free`.
#[derive(Debug)]
struct Free {
    id: u16,
    frame: Field,
    order: Field,
}

/// The fields of `mm_page_alloc_extfrag`.
#[derive(Debug)]
struct Fallback {
    id: u16,
    frame: Field,
    order: Field,
    from_order: Field,
    mobility: Field,
    from: Field,
    claimed: Field,
}

/// The fields of `task_newtask` or `task_rename`.
#[derive(Debug)]
struct Named {
    id: u16,
    /// `None` if the name is that of the running task.
    pid: Option<Field>,
    comm: Field,
}

/// Decodes events of the kernel whose formats it was made from.
#[derive(Debug)]
pub struct Decoder {
    kind: Field,
    pid: Field,
    alloc: Alloc,
    free: Free,
    fallback: Fallback,
    more: Vec<Fields>,
    named: Vec<Named>,
    types: TypeNumbers,
    began: u64,
}

impl Decoder {
    /// Creates a decoder from the formats of [`mm_page_alloc`, `mm_page_free`,
    /// `mm_page_alloc_extfrag`], and of `task_newtask` and `task_rename` where the kernel has them.
    /// `began` is the start of the trace, by the clock of the ring buffer.
    ///
    /// # Errors
    ///
    /// If a format lacks a needed field: the kernel is too old.
    pub fn new(
        page: &[Format; 3],
        tasks: &[Format],
        types: TypeNumbers,
        began: u64,
    ) -> Result<Self, RecordError> {
        let [alloc, free, fallback] = page;
        Ok(Self {
            kind: need(alloc, "common_type")?,
            pid: need(alloc, "common_pid")?,
            alloc: Alloc {
                id: alloc.id,
                frame: need(alloc, "pfn")?,
                order: need(alloc, "order")?,
                flags: need(alloc, "gfp_flags")?,
                mobility: need(alloc, "migratetype")?,
            },
            free: Free {
                id: free.id,
                frame: need(free, "pfn")?,
                order: need(free, "order")?,
            },
            fallback: Fallback {
                id: fallback.id,
                frame: need(fallback, "pfn")?,
                order: need(fallback, "alloc_order")?,
                from_order: need(fallback, "fallback_order")?,
                mobility: need(fallback, "alloc_migratetype")?,
                from: need(fallback, "fallback_migratetype")?,
                claimed: need(fallback, "change_ownership")?,
            },
            more: Vec::new(),
            named: tasks.iter().filter_map(Named::of).collect(),
            types,
            began,
        })
    }

    /// Decodes the events of these formats too, of those that [`Group`](super::Group) names.
    #[must_use]
    pub fn with_optional(mut self, formats: &[Format]) -> Self {
        self.more = formats.iter().filter_map(Fields::of).collect();
        self
    }

    /// Decodes one event. Returns `None` if it is of another kind, or is inconsistent.
    #[must_use]
    pub fn decode(&self, time: u64, data: &[u8]) -> Option<Record> {
        let kind = self.kind.unsigned(data)?;
        let pid = i32::try_from(self.pid.signed(data)?).ok()?;
        let body = if kind == u64::from(self.alloc.id) {
            self.alloc(data)?
        } else if kind == u64::from(self.free.id) {
            Body::Page {
                frame: self.free.frame.unsigned(data)?,
                order: order(&self.free.order, data)?,
                what: What::Free,
            }
        } else if kind == u64::from(self.fallback.id) {
            self.fallback(data)?
        } else if let Some(more) = self.more.iter().find(|more| kind == u64::from(more.id)) {
            more.body(&self.types, data)?
        } else {
            let named = self.named.iter().find(|named| kind == u64::from(named.id));
            named?.body(pid, data)?
        };
        Some(Record {
            time: time.saturating_sub(self.began),
            pid,
            body,
        })
    }

    fn alloc(&self, data: &[u8]) -> Option<Body> {
        let fields = &self.alloc;
        let frame = fields.frame.unsigned(data)?;
        let mobility = self.types.get(fields.mobility.signed(data)?)?;
        let flags = fields.flags.unsigned(data)?;
        let failed = frame == fields.frame.all_ones();
        Some(Body::Page {
            frame: if failed { 0 } else { frame },
            order: order(&fields.order, data)?,
            what: if failed {
                What::Failure { mobility, flags }
            } else {
                What::Alloc { mobility, flags }
            },
        })
    }

    fn fallback(&self, data: &[u8]) -> Option<Body> {
        let fields = &self.fallback;
        Some(Body::Page {
            frame: fields.frame.unsigned(data)?,
            order: order(&fields.order, data)?,
            what: What::Fallback {
                mobility: self.types.get(fields.mobility.signed(data)?)?,
                from_order: order(&fields.from_order, data)?,
                from: self.types.get(fields.from.signed(data)?)?,
                claimed: fields.claimed.unsigned(data)? != 0,
            },
        })
    }
}

impl Named {
    fn of(format: &Format) -> Option<Self> {
        let comm = format.field("newcomm").or_else(|| format.field("comm"))?;
        Some(Self {
            id: format.id,
            pid: format.field("pid").cloned(),
            comm: comm.clone(),
        })
    }

    fn body(&self, running: i32, data: &[u8]) -> Option<Body> {
        let pid = match &self.pid {
            Some(pid) => i32::try_from(pid.signed(data)?).ok()?,
            None => running,
        };
        Some(Body::Named {
            pid,
            comm: comm(self.comm.text(data)?),
        })
    }
}

/// Converts a task's name to 16 bytes; a longer one is truncated.
pub(super) fn comm(name: &[u8]) -> Comm {
    let mut comm = Comm::default();
    let length = name.len().min(comm.len());
    comm[..length].copy_from_slice(&name[..length]);
    comm
}

fn need(format: &Format, field: &'static str) -> Result<Field, RecordError> {
    let found = format.field(field).cloned();
    found.ok_or_else(|| RecordError::TooOld {
        event: format!("kmem:{}", format.name),
        field,
    })
}

pub(super) fn order(field: &Field, data: &[u8]) -> Option<Order> {
    let order = u8::try_from(field.signed(data)?).ok()?;
    Order::try_new(order)
}
