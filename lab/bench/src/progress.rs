//! How far a measurement is: told to whoever has asked for it.

/// Who is told.
pub trait Progress {
    /// So many steps are to come.
    fn begin(&self, steps: usize);

    /// It is this one's turn.
    fn at(&self, name: &str);

    /// A step is done.
    fn step(&self);

    /// No more steps will come.
    fn end(&self);

    /// So many rounds are complete of those asked for: an end was asked for.
    fn interrupted(&self, complete: usize, asked: usize);

    /// What whoever reads the results should know besides.
    fn note(&self, text: &str);
}
