//! What `bench pagealloc` measures: which orders, batches and numbers of threads.

use core::str::FromStr;

use anyhow::{Context, bail};
use brickyard::Order;

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    pub(crate) order: Order,
    pub(crate) batch: usize,
    pub(crate) threads: usize,
}

/// Batches of mmtests: they stay below 128 MiB of 4 KiB pages.
const MMTESTS_PAGES: usize = (128 << 20) / 4096;

/// Every batch 1, 2, 4 … for each order and number of threads, threads outermost.
pub(crate) fn workloads(orders: &[Order], threads: &[usize], max_batch: usize) -> Vec<Workload> {
    let mut workloads = Vec::new();
    for &threads in threads {
        for &order in orders {
            let mut batch = 1;
            while batch < MMTESTS_PAGES >> order.get() && batch <= max_batch {
                workloads.push(Workload {
                    order,
                    batch,
                    threads,
                });
                batch *= 2;
            }
        }
    }
    workloads
}

/// Orders as a user writes them: `0-4,9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orders(pub(crate) Vec<Order>);

impl FromStr for Orders {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut orders = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (order(first)?, order(last)?);
            if first > last {
                bail!("{part:?} runs backwards; write {}-{}", last, first);
            }
            orders.extend(first.up_to(last));
        }
        orders.sort_unstable();
        orders.dedup();
        Ok(Self(orders))
    }
}

fn order(text: &str) -> anyhow::Result<Order> {
    let number: u8 = text
        .trim()
        .parse()
        .with_context(|| format!("{text:?} is no order; write numbers such as 0-4,9"))?;
    match Order::try_new(number) {
        Some(order) if order <= Order::DEFAULT_MAX => Ok(order),
        _ => bail!(
            "order {number} is above the highest order {}",
            Order::DEFAULT_MAX
        ),
    }
}

/// An amount of memory as a user writes it: `512M`, `2G`.
pub(crate) fn bytes(text: &str) -> anyhow::Result<usize> {
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: usize = number.parse().with_context(|| {
        format!("{text:?} is no amount of memory; write one such as 512M or 2G")
    })?;
    number
        .checked_mul(1 << shift)
        .with_context(|| format!("{text} is more than this machine can count"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_ranges_and_numbers() {
        let numbers = |text: &str| -> Vec<u8> {
            let orders: Orders = text.parse().unwrap();
            orders.0.iter().map(|order| order.get()).collect()
        };
        assert_eq!(numbers("0-4,9"), [0, 1, 2, 3, 4, 9]);
        assert_eq!(numbers("3,1-3"), [1, 2, 3]);
        for wrong in ["", "x", "4-1", "11", "1-"] {
            assert!(wrong.parse::<Orders>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_read_with_their_unit() {
        assert_eq!(bytes("4096").unwrap(), 4096);
        assert_eq!(bytes("64k").unwrap(), 65536);
        assert_eq!(bytes("2G").unwrap(), 2 << 30);
        assert!(bytes("G").is_err());
        assert!(bytes("99999999999G").is_err());
    }

    #[test]
    fn batches_are_those_of_mmtests() {
        let of = |order| {
            let workloads = workloads(&[Order::new(order)], &[1], usize::MAX);
            workloads.last().map(|last| (workloads.len(), last.batch))
        };
        assert_eq!(of(0), Some((15, 16384)));
        assert_eq!(of(4), Some((11, 1024)));
        assert_eq!(of(9), Some((6, 32)));
    }
}
