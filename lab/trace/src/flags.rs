//! What the bits of request flags (`gfp_flags`) mean.
//!
//! The numbers differ from one kernel version to the next, so a recorded trace carries the kernel's
//! own format text, and [`Flags::from_format`] reads the names and numbers from it. There they are
//! C expressions, in the form that the preprocessor left them:
//!
//! ```text
//! __print_flags(REC->gfp_flags, "|", {( unsigned long)(( gfp_t)((((1UL))) << (0))), "GFP_DMA"}, {(unsigned long)((( gfp_t)0x10u) | (( gfp_t)0x40u)), "GFP_NOIO"})
//! ```
//!
//! Imported text has only names: [`Flags::canonical`] assigns numbers to them.

use crate::{Flag, Flags};

impl Flags {
    /// Reads the flags from `text`, the format text of `mm_page_alloc`, in its order: combinations
    /// such as `GFP_KERNEL` before single bits. A flag without a number (a name that the kernel
    /// has not resolved) is left out.
    ///
    /// ```
    /// use brickyard_trace::Flags;
    ///
    /// let flags = Flags::from_format(r#"__print_flags(f, "|", {(unsigned long)((( gfp_t)0x10u) | (( gfp_t)0x40u)), "GFP_NOIO"})"#);
    /// assert_eq!(flags.mask("GFP_NOIO"), 0x50);
    /// ```
    #[must_use]
    pub fn from_format(text: &str) -> Self {
        let list = text
            .split_once("__print_flags(")
            .map_or("", |(_, list)| list);
        let items = list.split('{').skip(1).filter_map(|item| {
            let (item, _) = item.split_once('}')?;
            let (mask, name) = item.rsplit_once(',')?;
            let name = name.trim().strip_prefix('"')?.strip_suffix('"')?;
            let mask = evaluate(mask)?;
            Some(Flag {
                name: name.to_owned(),
                mask,
            })
        });
        Self(items.collect())
    }

    /// Returns names with fixed numbers, for text from which the kernel's numbers cannot be
    /// determined: those of Linux 6.12, and bits from 32 up for flags that other kernels had.
    #[must_use]
    pub fn canonical() -> Self {
        let combined = COMBINED.iter().filter_map(|names| {
            let (name, of) = names.split_once(' ')?;
            Some(Flag {
                name: name.to_owned(),
                mask: of.split(' ').fold(0, |mask, name| mask | single(name)),
            })
        });
        let singles = singles().map(|(name, mask)| Flag {
            name: format!("__GFP_{name}"),
            mask,
        });
        Self(combined.chain(singles).collect())
    }

    /// Returns the bits of `text`, in the form that the kernel prints: `GFP_KERNEL|__GFP_ZERO`,
    /// `none`, or with bits that have no name, `GFP_KERNEL|0x80000000`.
    ///
    /// Kernels before 4.5 printed `GFP_ZERO` for `__GFP_ZERO`; both are accepted. Returns `None`
    /// if a name is unknown; [`parse_names`](Self::parse_names) skips it.
    #[must_use]
    pub fn try_parse_names(&self, text: &str) -> Option<u64> {
        text.split('|')
            .try_fold(0, |mask, name| Some(mask | self.bits(name.trim())?))
    }

    /// Returns the bits of `text`, to which unknown names contribute none.
    #[must_use]
    pub fn parse_names(&self, text: &str) -> u64 {
        let names = text.split('|');
        names.fold(0, |mask, name| mask | self.bits(name.trim()).unwrap_or(0))
    }

    /// Returns the names of these bits as the kernel prints them: each flag of the list, in order,
    /// whose bits are all among those not yet named; then the bits without a name as a number.
    #[must_use]
    pub fn names(&self, mut mask: u64) -> String {
        if mask == 0 {
            return "none".to_owned();
        }
        let mut names = Vec::new();
        for flag in &self.0 {
            if flag.mask != 0 && mask & flag.mask == flag.mask {
                mask &= !flag.mask;
                names.push(flag.name.clone());
            }
        }
        if mask != 0 {
            names.push(format!("{mask:#x}"));
        }
        names.join("|")
    }

    fn bits(&self, name: &str) -> Option<u64> {
        let find = |name: &str| {
            self.0
                .iter()
                .find(|flag| flag.name == name)
                .map(|flag| flag.mask)
        };
        if let Some(number) = name.strip_prefix("0x") {
            return u64::from_str_radix(number, 16).ok();
        }
        if name == "none" || name.is_empty() {
            return Some(0);
        }
        find(name).or_else(|| find(&format!("__{name}")))
    }
}

fn single(name: &str) -> u64 {
    singles()
        .find(|&(single, _)| single == name)
        .map_or(0, |(_, mask)| mask)
}

/// Single flags without their `__GFP_`, by bit; `-` has none. Those from 32 up are of other kernel
/// versions.
const SINGLE: &str = "\
    DMA HIGHMEM DMA32 MOVABLE RECLAIMABLE HIGH IO FS ZERO - DIRECT_RECLAIM KSWAPD_RECLAIM \
    WRITE NOWARN RETRY_MAYFAIL NOFAIL NORETRY MEMALLOC COMP NOMEMALLOC HARDWALL THISNODE \
    ACCOUNT ZEROTAGS SKIP_ZERO SKIP_KASAN NOLOCKDEP NO_OBJ_EXT - - - - \
    COLD REPEAT NOTRACK OTHER_NODE ATOMIC NOACCOUNT NO_KSWAPD SKIP_KASAN_POISON \
    SKIP_KASAN_UNPOISON CMA";

/// Returns the single flags and their masks.
fn singles() -> impl Iterator<Item = (&'static str, u64)> {
    let names = SINGLE.split_ascii_whitespace().zip(0..);
    names
        .filter(|&(name, _)| name != "-")
        .map(|(name, bit)| (name, 1 << bit))
}

/// Names of combinations: each followed by the single flags that it stands for, without their
/// `__GFP_`.
const COMBINED: [&str; 15] = [
    "GFP_TRANSHUGE DIRECT_RECLAIM IO FS HARDWALL HIGHMEM MOVABLE COMP NOMEMALLOC NOWARN",
    "GFP_TRANSHUGE_LIGHT IO FS HARDWALL HIGHMEM MOVABLE COMP NOMEMALLOC NOWARN",
    "GFP_HIGHUSER_MOVABLE DIRECT_RECLAIM KSWAPD_RECLAIM IO FS HARDWALL HIGHMEM MOVABLE",
    "GFP_HIGHUSER DIRECT_RECLAIM KSWAPD_RECLAIM IO FS HARDWALL HIGHMEM",
    "GFP_USER DIRECT_RECLAIM KSWAPD_RECLAIM IO FS HARDWALL",
    "GFP_KERNEL_ACCOUNT DIRECT_RECLAIM KSWAPD_RECLAIM IO FS ACCOUNT",
    "GFP_TEMPORARY DIRECT_RECLAIM KSWAPD_RECLAIM IO FS RECLAIMABLE",
    "GFP_KERNEL DIRECT_RECLAIM KSWAPD_RECLAIM IO FS",
    "GFP_NOFS DIRECT_RECLAIM KSWAPD_RECLAIM IO",
    "GFP_ATOMIC HIGH KSWAPD_RECLAIM",
    "GFP_NOIO DIRECT_RECLAIM KSWAPD_RECLAIM",
    "GFP_NOWAIT KSWAPD_RECLAIM",
    "GFP_DMA DMA",
    "GFP_DMA32 DMA32",
    "__GFP_RECLAIM DIRECT_RECLAIM KSWAPD_RECLAIM",
];

/// A number, and whether it is 64 bits wide: `~` of a `gfp_t` has 32 bits.
#[derive(Clone, Copy)]
struct Number {
    bits: u64,
    wide: bool,
}

impl Number {
    fn with(self, other: Self, bits: u64) -> Self {
        Self {
            bits,
            wide: self.wide || other.wide,
        }
    }

    /// Converts the number to the C type of this name; `None` for a pointer.
    fn cast(self, to: &str) -> Option<Self> {
        if to.contains('*') {
            return None;
        }
        let wide = to.contains("long") || to.contains("64") || to == "size_t";
        let bits = if wide {
            self.bits
        } else {
            self.bits & u64::from(u32::MAX)
        };
        Some(Self { bits, wide })
    }
}

/// Evaluates the C expression `text`: numbers, casts, `~ << >> & ^ | + -` and parentheses. Returns
/// `None` for anything else.
fn evaluate(text: &str) -> Option<u64> {
    let mut expression = Expression {
        rest: text,
        depth: 0,
    };
    let value = expression.binary(0)?;
    expression.skip_space();
    expression.rest.is_empty().then_some(value.bits)
}

struct Expression<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> Expression<'a> {
    /// Operators by precedence, the loosest first.
    const LEVELS: [&'static [&'static str]; 5] =
        [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"]];

    /// The deepest nesting that is evaluated: kernels have about fifteen levels.
    const DEPTH: u32 = 100;

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn binary(&mut self, level: usize) -> Option<Number> {
        let Some(operators) = Self::LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.eat(operator)) {
            let right = self.binary(level + 1)?;
            let shift = u32::try_from(right.bits).ok();
            let bits = match *operator {
                "|" => left.bits | right.bits,
                "^" => left.bits ^ right.bits,
                "&" => left.bits & right.bits,
                "<<" => left.bits.checked_shl(shift?)?,
                ">>" => left.bits.checked_shr(shift?)?,
                "+" => left.bits.wrapping_add(right.bits),
                _ => left.bits.wrapping_sub(right.bits),
            };
            left = left.with(right, bits);
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Number> {
        self.depth += 1;
        if self.depth > Self::DEPTH {
            return None;
        }
        let value = if self.eat("~") {
            let value = self.unary()?;
            let bits = if value.wide {
                !value.bits
            } else {
                !value.bits & u64::from(u32::MAX)
            };
            Some(Number { bits, ..value })
        } else if self.eat("(") {
            self.parenthesis()
        } else {
            self.number()
        };
        self.depth -= 1;
        value
    }

    /// Parses what follows an opening parenthesis: a type and the operand cast to it, or an
    /// expression.
    fn parenthesis(&mut self) -> Option<Number> {
        self.skip_space();
        if self
            .rest
            .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        {
            let (to, rest) = self.rest.split_once(')')?;
            self.rest = rest;
            return self.unary()?.cast(to.trim());
        }
        let value = self.binary(0)?;
        self.eat(")").then_some(value)
    }

    fn number(&mut self) -> Option<Number> {
        self.skip_space();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let (token, rest): (&'a str, &'a str) = self.rest.split_at(end);
        self.rest = rest;
        let digits = token.trim_end_matches(['u', 'U', 'l', 'L']);
        let suffix = &token[digits.len()..];
        let bits = match digits
            .strip_prefix("0x")
            .or_else(|| digits.strip_prefix("0X"))
        {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => digits.parse().ok()?,
        };
        let wide = suffix.contains(['l', 'L']) || bits > u64::from(u32::MAX);
        Some(Number { bits, wide })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_c() {
        assert_eq!(evaluate("( gfp_t)((((1UL))) << (10))"), Some(1 << 10));
        assert_eq!(evaluate("(unsigned long)((gfp_t)0x01u)"), Some(1));
        assert_eq!(evaluate("0x400000u"), Some(0x40_0000));
        assert_eq!(evaluate("1 | 2 & ~2 | 4 << 1 + 1"), Some(1 | 16));
        assert_eq!(evaluate("(unsigned long)~(gfp_t)1"), Some(0xffff_fffe));
        assert_eq!(evaluate("~0UL"), Some(u64::MAX));
        assert_eq!(evaluate(" 0"), Some(0));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "(1",
            "1)",
            "((void *)0)",
            "1 << 64",
            "___GFP_DMA",
            "BIT(3)",
            "1 |",
            "0x",
            "0xfffffffffffffffff",
        ] {
            assert_eq!(evaluate(text), None, "{text}");
        }
        assert_eq!(evaluate(&"(".repeat(100_000)), None);
        assert_eq!(evaluate(&"~".repeat(100_000)), None);
    }

    #[test]
    fn old_and_new_format_texts_are_read() {
        let old = r#"print fmt: "x %s", (REC->gfp_flags) ? __print_flags(REC->gfp_flags, "|", {(unsigned long)((( gfp_t)0x10u) | (( gfp_t)0x40u) | (( gfp_t)0x80u)), "GFP_KERNEL"}, {(unsigned long)((gfp_t)0x01u), "GFP_DMA"}, {(unsigned long)(( gfp_t)0x8000u), "GFP_ZERO"} ) : "GFP_NOWAIT""#;
        let flags = Flags::from_format(old);
        assert_eq!(flags.mask("GFP_KERNEL"), 0xd0);
        assert_eq!(flags.mask("GFP_DMA"), 1);
        assert_eq!(flags.try_parse_names("GFP_KERNEL|GFP_ZERO"), Some(0x80d0));

        let new = r#"__print_flags(REC->gfp_flags, "|", {( unsigned long)((((( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11)))) | (( gfp_t)((((1UL))) << (6)))) & ~(( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11))))) | (( gfp_t)((((1UL))) << (10)))), "GFP_X"}, {( unsigned long)(( gfp_t)((((1UL))) << (8))), "__GFP_ZERO"}, { 0, ((void *)0) } )"#;
        let flags = Flags::from_format(new);
        assert_eq!(flags.mask("GFP_X"), 1 << 10 | 1 << 6);
        assert_eq!(flags.mask("__GFP_ZERO"), 1 << 8);
        assert_eq!(flags.0.len(), 2);
        assert_eq!(Flags::from_format("nothing"), Flags::default());
    }

    #[test]
    fn names_go_to_bits_and_back() {
        let flags = Flags::canonical();
        let bits = flags.parse_names("GFP_KERNEL|__GFP_ZERO|__GFP_COMP");
        assert_eq!(bits, 1 << 10 | 1 << 11 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 18);
        assert_eq!(flags.names(bits), "GFP_KERNEL|__GFP_ZERO|__GFP_COMP");
        assert_eq!(flags.names(0), "none");
        assert_eq!(
            flags.names(1 << 60 | 1 << 8),
            "__GFP_ZERO|0x1000000000000000"
        );
        assert_eq!(flags.parse_names("none"), 0);
        assert_eq!(
            flags.try_parse_names("GFP_ZERO|0x8000000000000000"),
            Some(1 << 63 | 1 << 8)
        );
        assert_eq!(flags.try_parse_names("GFP_KERNEL|GFP_NEW"), None);
        assert_eq!(flags.parse_names("GFP_ZERO|GFP_NEW"), 1 << 8);
        for flag in &flags.0 {
            assert_eq!(flags.try_parse_names(&flag.name), Some(flag.mask));
            assert_ne!(flag.mask, 0, "{}", flag.name);
        }
    }

    #[test]
    fn this_kernel_can_be_read() {
        let path = "/sys/kernel/tracing/events/kmem/mm_page_alloc/format";
        let Ok(text) = std::fs::read_to_string(path) else {
            println!("skipped: {path} cannot be read (it needs root and tracefs)");
            return;
        };
        let flags = Flags::from_format(&text);
        assert_ne!(flags.mask("__GFP_ZERO"), 0);
        let kernel = flags.mask("__GFP_RECLAIM") | flags.mask("__GFP_IO") | flags.mask("__GFP_FS");
        assert_eq!(flags.mask("GFP_KERNEL"), kernel);
        assert_eq!(
            flags.parse_names("GFP_KERNEL|__GFP_ZERO"),
            kernel | flags.mask("__GFP_ZERO")
        );
    }
}
