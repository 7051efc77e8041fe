//! A large C file, for the compiler.

use core::fmt::Write as _;

use brickyard_run::Dice;

/// Returns the text of a file of so many functions. Each has a table, loops, a switch, and calls of
/// functions before it; all is drawn, the same each time.
pub(crate) fn large(functions: u64) -> String {
    let mut dice = Dice::new(2013);
    let mut text = String::from(
        "struct brick { unsigned weight; const char *name; unsigned edge[3]; };\n\
         unsigned f0(struct brick *b, unsigned n) { return b->weight + n; }\n",
    );
    for number in 1..functions {
        function(&mut text, number, &mut dice);
    }
    text
}

fn function(text: &mut String, number: u64, dice: &mut Dice) {
    let mut constant = || dice.below(10_007);
    let mut lines = vec![format!("static const struct brick row{number}[] = {{")];
    for place in 0..20 {
        let (weight, edge) = (constant(), constant());
        lines.push(format!(
            "    {{ {weight}, \"brick {number} {place}\", {{ {edge}, {place}, {number} }} }},"
        ));
    }
    lines.push("};".into());
    lines.push(format!(
        "unsigned f{number}(struct brick *b, unsigned n) {{"
    ));
    lines.push(format!("    unsigned sum = row{number}[n % 20].weight;"));
    lines.push("    for (unsigned i = 0; i < 3; i++)".into());
    lines.push(format!(
        "        sum = (sum << 5 ^ sum >> 27) + b->edge[i] * {}u;",
        constant()
    ));
    lines.push("    switch (sum % 7) {".into());
    for case in 0..6 {
        let (called, added) = (constant() % number, constant());
        lines.push(format!(
            "    case {case}: sum += n ? f{called}(b, n - 1) : {added}u; break;"
        ));
    }
    lines.push(format!(
        "    default: b->weight ^= sum; b->name = row{number}[sum % 20].name;"
    ));
    lines.push("    }\n    return sum;\n}".into());
    for line in lines {
        // A `String` takes every line.
        let _ = writeln!(text, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_same_each_time() {
        let text = large(30);
        assert_eq!(text, large(30));
        assert!(text.contains("unsigned f29(") && !text.contains("unsigned f30("));
    }
}
