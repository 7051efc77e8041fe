//! The columns of a cell's file, and of the file of all rows: flat, of types that every reader of
//! Parquet knows.

/// The version of the format of cells' files.
pub const VERSION: u32 = 1;

/// The columns in their order. The experiment is not among them: it is the partition.
pub(super) const COLUMNS: &str = "
    required binary cell (STRING);
    required binary kind (STRING);
    required int64 seed (INTEGER(64,false));
    required binary machine (STRING);
    required binary workload (STRING);
    required binary config (STRING);
    required binary metric (STRING);
    required binary unit (STRING);
    required binary better (STRING);
    required int32 run (INTEGER(32,false));
    optional double at;
    required double value;
";

/// The names of [`COLUMNS`], in the same order.
pub(super) const NAMES: [&str; 12] = [
    "cell", "kind", "seed", "machine", "workload", "config", "metric", "unit", "better", "run",
    "at", "value",
];

/// The key of the format's version; so far there is one version.
pub(super) const VERSION_KEY: &str = "brickyard.cell";

/// The key of the host, as JSON. In a cell's file.
pub(super) const HOST_KEY: &str = "brickyard.host";

/// The key of the build of the program that ran the cell. In a cell's file.
pub(super) const PROGRAM_KEY: &str = "brickyard.program";

/// The key of both, in groups of cells. In the file of all rows; older files do not have it.
pub(super) const RAN_KEY: &str = "brickyard.ran";

/// The column before the others. In the file of all rows.
pub(super) const EXPERIMENT: &str = "experiment";

/// Returns the schema of a cell's file.
pub(super) fn of_cell() -> String {
    format!("message cell {{ {COLUMNS} }}")
}

/// Returns the schema of the file of all rows, which has the experiment as a column.
pub(super) fn of_rows() -> String {
    format!("message rows {{ required binary {EXPERIMENT} (STRING); {COLUMNS} }}")
}
