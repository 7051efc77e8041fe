//! Numbers formatted for display: scaled, rounded, with commas. Pages, files and the terminal all
//! use these functions, so that they agree.

use crate::document::Figure;
use crate::judge::Judgement;

/// Returns the number of a figure: scaled, with the figure's decimals, with commas from five digits
/// on, without a percent sign.
pub(crate) fn shown(figure: &Figure, judgement: &Judgement) -> String {
    // Adding 0 avoids "-0.00" if a negative scale meets a zero.
    let scaled = judgement.value * figure.scale + 0.0;
    with_commas(&format!("{scaled:.*}", figure.decimals))
}

/// Returns the same as shown in a cell of a table: with a percent sign if the statistic is in
/// percent.
pub(crate) fn in_cell(figure: &Figure, judgement: &Judgement) -> String {
    let sign = if figure.statistic.is_percent() {
        "%"
    } else {
        ""
    };
    shown(figure, judgement) + sign
}

/// Returns a number to four digits.
pub(crate) fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{}", value + 0.0);
    }
    let size = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = (3.0 - size).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return with_commas(text);
    }
    with_commas(&text)
}

/// Returns `1234567.8` as `1,234,567.8`; numbers of four digits get no comma.
fn with_commas(text: &str) -> String {
    let digits = text.trim_start_matches('-');
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    if whole.len() < 5 || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    let mut out = text[..text.len() - digits.len()].to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_four_digits() {
        for (text, shown) in [
            ("1234.50", "1234.50"),
            ("12345.50", "12,345.50"),
            ("-1234567", "-1,234,567"),
            ("inf", "inf"),
        ] {
            assert_eq!(with_commas(text), shown);
        }
        for (value, shown) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1234.56, "1235"),
            (0.012345, "0.01235"),
            (-7.5, "-7.5"),
            (98765.4, "98,765"),
            (1e-9, "1.000e-9"),
        ] {
            assert_eq!(four_digits(value), shown);
        }
    }
}
