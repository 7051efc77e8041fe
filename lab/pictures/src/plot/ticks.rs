//! Round numbers along an axis, and their short labels (`200k`, `1.5M`, `0.02`).

use super::extent::Extent;
use super::layout::width_of;

/// A labelled position on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Its value.
    pub(super) value: f64,
    /// Its label.
    pub(super) label: String,
}

/// The most measured values that have ticks of their own.
const MEASURED_MAX: usize = 8;

/// The least space between two labels side by side.
const APART: f64 = 8.0;

/// Returns the ticks of a horizontal axis of width `room`. A few measured values, such as 8, 16 and
/// 32 CPUs, have ticks of their own, as far as their labels fit; for many values, and for fractions
/// on a linear axis, the ticks are round numbers.
pub(super) fn ticks_across(extent: Extent, values: &[f64], room: f64) -> Vec<Tick> {
    let mut places: Vec<f64> = values
        .iter()
        .copied()
        .filter(|&value| !extent.is_below(value))
        .collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let fit = match extent {
        Extent::Names(_) => false,
        Extent::Linear(..) => places.iter().all(|value| value.fract() == 0.0),
        Extent::Log(..) => true,
    };
    if !fit || places.is_empty() || places.len() > MEASURED_MAX {
        return ticks(extent, values, MEASURED_MAX);
    }
    let mut shown: Vec<Tick> = Vec::new();
    let mut free = f64::NEG_INFINITY;
    for tick in places.into_iter().map(Tick::alone) {
        let (middle, half) = (extent.part(tick.value) * room, width_of(&tick.label) / 2.0);
        if middle - half >= free {
            free = middle + half + APART;
            shown.push(tick);
        }
    }
    shown
}

/// Returns the ticks of an axis, at most about `most`. `values` are the values on the axis: if all
/// are powers of two, so are the ticks of a logarithmic axis.
pub(super) fn ticks(extent: Extent, values: &[f64], most: usize) -> Vec<Tick> {
    match extent {
        Extent::Names(_) => Vec::new(),
        Extent::Linear(low, high) => linear(low, high, most),
        Extent::Log(low, high) if are_powers_of_two(values) => powers_of_two(low, high, most),
        Extent::Log(low, high) => powers(low, high, most),
    }
}

fn linear(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let step = round_up((high - low) / most.max(1) as f64);
    // The ends of an extent differ by more than 1e-11 of their size, so these are exact.
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    let last = last.min(first.saturating_add(2 * most as i64));
    let values: Vec<f64> = (first..=last).map(|i| i as f64 * step).collect();
    let size = values.iter().fold(0.0_f64, |size, v| size.max(v.abs()));
    let tick = |value: f64| Tick {
        value,
        label: label(value, size, step),
    };
    values.into_iter().map(tick).collect()
}

/// Returns the least 1, 2 or 5 times a power of ten that is at least `step`.
fn round_up(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|times| times * power)
        .find(|&round| round >= step * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

fn are_powers_of_two(values: &[f64]) -> bool {
    let is_power = |&value: &f64| value > 0.0 && value.log2().fract() == 0.0;
    values.len() > 2 && values.iter().all(is_power)
}

fn powers_of_two(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let per_ten = core::f64::consts::LOG2_10;
    let (first, last) = (
        (low * per_ten - 1e-6).ceil() as i32,
        (high * per_ten + 1e-6).floor() as i32,
    );
    let stride = ((last - first).max(0) as usize / most.max(1) + 1).min(64);
    let values = (first..=last).step_by(stride).map(|i| 2_f64.powi(i));
    values.map(Tick::alone).collect()
}

fn powers(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let decades = high - low;
    let times: &[f64] = if decades < 1.3 {
        &[1.0, 2.0, 3.0, 5.0, 7.0]
    } else if decades < 3.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let stride = (decades / most.max(1) as f64).ceil().max(1.0) as usize;
    let inside = |&value: &f64| {
        let log = value.log10();
        log >= low - 1e-9 && log <= high + 1e-9
    };
    let all = (first..=last).step_by(stride).flat_map(|power| {
        let power = 10_f64.powi(power);
        times.iter().map(move |times| times * power)
    });
    let found: Vec<Tick> = all.filter(inside).map(Tick::alone).collect();
    if found.len() >= 2 {
        return found;
    }
    // The range is so short that it is almost linear.
    let near = linear(10_f64.powf(low), 10_f64.powf(high), most.min(4));
    let above = near.into_iter().filter(|tick| tick.value > 0.0);
    above.collect()
}

impl Tick {
    /// Makes a tick whose label does not depend on the other ticks.
    fn alone(value: f64) -> Self {
        let mut label = label(value, value, value);
        // Values that are not whole thousands are written in full.
        if (1e4..1e5).contains(&value) && value % 1e3 != 0.0 {
            label = format!("{value:.0}");
        }
        if label.len() > 6 {
            label = short(value);
        }
        Self { value, label }
    }
}

/// Formats `value` to the digits of `step`, in the unit that fits `size`.
pub(super) fn label(value: f64, size: f64, step: f64) -> String {
    let (unit, letter) = match size.abs() {
        s if s >= 1e15 || (s > 0.0 && s < 1e-4) => return exponent(value, step),
        s if s >= 1e12 => (1e12, "T"),
        s if s >= 1e9 => (1e9, "G"),
        s if s >= 1e6 => (1e6, "M"),
        s if s >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = digits_behind(step / unit);
    format!("{:.*}{letter}", digits, value / unit)
}

fn exponent(value: f64, step: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let orders = value.abs().log10().floor() - step.log10().floor();
    format!("{:.*e}", orders.clamp(0.0, 15.0) as usize, value)
}

/// Returns the number of digits behind the point that a step needs.
fn digits_behind(step: f64) -> usize {
    (0..=14)
        .find(|&digits| {
            let scaled = step * 10_f64.powi(digits);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-3) && scaled.round() >= 1.0
        })
        .map_or(14, |digits| digits as usize)
}

/// Formats a value by itself, to at most four digits.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let step = 10_f64.powf(value.abs().log10().floor() - 3.0);
    let step = if step.is_normal() { step } else { value.abs() };
    let rounded = (value / step).round() * step;
    let text = label(
        if rounded.is_finite() { rounded } else { value },
        value,
        step,
    );
    let (digits, letter) = text.split_at(
        text.find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len()),
    );
    if digits.contains('.') {
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}{letter}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn labels_are_round_and_short() {
        assert_eq!(labels(&linear(0.0, 1.05, 5)), ["0", "0.5", "1.0"]);
        assert_eq!(labels(&linear(0.0, 8.4, 5)), ["0", "2", "4", "6", "8"]);
        assert_eq!(
            labels(&linear(0.0, 1.9e6, 5)),
            ["0", "0.5M", "1.0M", "1.5M"]
        );
        assert_eq!(
            labels(&linear(0.0, 90e3, 5)),
            ["0", "20k", "40k", "60k", "80k"]
        );
        assert_eq!(labels(&linear(-2.0, 2.0, 4)), ["-2", "-1", "0", "1", "2"]);
        assert_eq!(
            labels(&powers(0.0, 4.0, 6)),
            ["1", "10", "100", "1000", "10k"]
        );
        assert_eq!(
            labels(&powers(-2.0, 0.0, 9)),
            ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
        );
        let batches: Vec<f64> = (0..15).map(|i| f64::from(1 << i)).collect();
        let found = ticks(Extent::Log(0.0, 16384_f64.log10()), &batches, 8);
        assert_eq!(
            labels(&found),
            ["1", "4", "16", "64", "256", "1024", "4096", "16384"]
        );
    }

    #[test]
    fn a_few_values_have_ticks_of_their_own() {
        let of = |extent, values: &[f64]| -> Vec<String> {
            let found = ticks_across(extent, values, 400.0);
            found.into_iter().map(|tick| tick.label).collect()
        };
        let log = |low: f64, high: f64| Extent::Log(low.log10(), high.log10());
        let cpus = [32.0, 8.0, 16.0, 8.0];
        assert_eq!(of(log(8.0, 32.0), &cpus), ["8", "16", "32"]);
        assert_eq!(of(Extent::Linear(8.0, 32.0), &cpus), ["8", "16", "32"]);
        assert_eq!(of(log(4.0, 16.0), &[8.0]), ["8"]);
        assert_eq!(of(log(6.0, 18.0), &[6.0, 18.0]), ["6", "18"]);
        // Labels that do not fit are left out; fractions get round numbers.
        assert_eq!(
            of(Extent::Linear(1.0, 1000.0), &[1.0, 2.0, 3.0, 1000.0]),
            ["1", "1000"]
        );
        let seconds = [0.37, 2.5, 6.1];
        assert_eq!(
            of(Extent::Linear(0.37, 6.1), &seconds),
            ["1", "2", "3", "4", "5", "6"]
        );
        assert!(of(Extent::Names(3), &cpus).is_empty());
    }

    #[test]
    fn values_by_themselves() {
        for (value, text) in [
            (0.0, "0"),
            (1234.5, "1235"),
            (0.05, "0.05"),
            (1_234_567.0, "1.235M"),
            (-3.0, "-3"),
            (2e-7, "2e-7"),
            (100.0, "100"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
