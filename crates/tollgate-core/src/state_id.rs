//! The state id: a number that stays the same as long as counts are to be kept.

use alloc::boxed::Box;

/// The id of a limit's state: a hash of its name, key attributes, algorithm and period. The count
/// N, burst, queue, tier, mode and cost are not part of it, so changing them keeps the counts. A
/// limit without a period (`concurrency`) has period 0.
///
/// The hash is FNV-1a with 64 bits over the parts, each preceded by its length as eight
/// little-endian bytes. Clients cannot choose any part, so it needs no key. Redis keys contain it,
/// so it must never change.
pub fn state_id(name: &str, key: &[Box<str>], algorithm: &str, period_us: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut part = |bytes: &[u8]| {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    part(name.as_bytes());
    part(&(key.len() as u64).to_le_bytes());
    for attribute in key {
        part(attribute.as_bytes());
    }
    part(algorithm.as_bytes());
    part(&period_us.to_le_bytes());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts_and_parts_do_not_run_together() {
        let keys: [&[Box<str>]; 4] =
            [&[], &["a".into()], &["a".into(), "b".into()], &["ab".into()]];
        let mut seen = alloc::collections::BTreeSet::new();
        for name in ["n", "na"] {
            for key in keys {
                for algorithm in ["gcra", "fixed-window"] {
                    for period_us in [0, 1, 60_000_000] {
                        assert!(seen.insert(state_id(name, key, algorithm, period_us)));
                    }
                }
            }
        }
    }

    #[test]
    fn it_never_changes() {
        // Another program computed this value. If it changes, counts in Redis are lost.
        let key = ["user".into()];
        assert_eq!(
            state_id("per-user", &key, "sliding-window", 60_000_000),
            567_905_589_575_046_902
        );
    }
}
