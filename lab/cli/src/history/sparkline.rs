//! A figure over time as a line of characters.

/// From the least value to the most.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws values at their times between `from` and `to` in so many characters: in each the mean of
/// its values, a space where there are none. The least value is the lowest step.
pub(super) fn draw(
    values: impl Iterator<Item = (u64, f64)>,
    (from, to): (u64, u64),
    width: usize,
) -> String {
    let mut cells = vec![(0.0, 0_u32); width];
    let span = (to.saturating_sub(from)).max(1) as f64;
    for (time, value) in values {
        let part = time.saturating_sub(from) as f64 / span;
        let place = ((part * width as f64) as usize).min(width.saturating_sub(1));
        if let Some((sum, count)) = cells.get_mut(place) {
            *sum += value;
            *count += 1;
        }
    }
    let means: Vec<Option<f64>> = cells
        .into_iter()
        .map(|(sum, count)| (count > 0).then(|| sum / f64::from(count)))
        .collect();
    let known = means.iter().flatten();
    let least = known.clone().copied().fold(f64::INFINITY, f64::min);
    let most = known.copied().fold(f64::NEG_INFINITY, f64::max);
    let letter = |mean: &Option<f64>| match mean {
        None => ' ',
        Some(mean) if most > least => {
            let part = (mean - least) / (most - least);
            STEPS[((part * 7.0).round() as usize).min(7)]
        }
        Some(_) => STEPS[0],
    };
    means.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_lowest_and_gaps_are_empty() {
        let draw = |values: &[(u64, f64)], width| draw(values.iter().copied(), (0, 80), width);
        let rising: Vec<(u64, f64)> = (0..8).map(|at| (at * 10, at as f64)).collect();
        assert_eq!(draw(&rising, 8), "▁▂▃▄▅▆▇█");
        assert_eq!(draw(&rising, 4), "▁▃▆█");
        assert_eq!(draw(&[(0, 7.0), (79, 7.0)], 4), "▁  ▁");
        assert_eq!(draw(&[(500, 1.0)], 2), " ▁");
        assert_eq!(draw(&[], 3), "   ");
        assert_eq!(draw(&[(0, 1.0)], 0), "");
    }
}
