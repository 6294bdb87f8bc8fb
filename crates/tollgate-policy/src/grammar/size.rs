//! Sizes in bytes.

use super::{Problem, split_digits};
use crate::diagnostic::codes;
use crate::suggest::quoted;

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// `64MiB`, `1GB`, `4096`.
pub(crate) fn size(text: &str) -> Result<u64, Problem> {
    let bad =
        |help: &str| Problem::new(codes::BAD_SIZE, format!("{} is not a size", quoted(text)), help);
    let (count, unit) = split_digits(text);
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let near = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        return Err(match near {
            Some((name, _)) => bad(&format!("write `{name}` for the unit")),
            None => bad("the units are B, KB, MB, GB, TB and KiB, MiB, GiB, TiB"),
        });
    };
    if count.is_empty() {
        return Err(bad("write a whole number and a unit, such as `64MiB`"));
    }
    count.parse::<u64>().ok().and_then(|count| count.checked_mul(*factor)).ok_or_else(|| {
        let message = format!("{} is too large", quoted(text));
        Problem::new(codes::OUT_OF_RANGE, message, "sizes end at 16 EiB")
    })
}
