use super::{ReservedCharge, decode, encode};
use std::sync::Arc;
use tollgate_core::algorithm::{Concurrency, Gcra, LeakyBucket};
use tollgate_core::{LimitParams, Penalty, Rate, Receipt};
use tollgate_policy::limit::{Limit, Mode};

fn entries() -> Vec<ReservedCharge> {
    let rate = Rate::try_new(7, 60_000_000).unwrap();
    let mut shadow = Limit::new("a limit/with+names", &["user"], None);
    shadow.mode = Mode::Shadow;
    shadow.disclose = false;
    let mut strict = Limit::new("strict", &[], None);
    strict.penalty = Some(Penalty::try_new(3, 60_000_000, 2_000, 3_600_000_000).unwrap());
    let receipt = Receipt {
        cost: u64::MAX,
        at_us: 1 << 52,
        mark_us: (1 << 53) - 1,
        mark_fraction: u32::MAX,
        is_shared: true,
    };
    let entry = |limit, params, taken, receipt| ReservedCharge {
        limit: Arc::new(limit),
        params,
        units_per_cost: 5,
        charged: 7,
        taken,
        receipt,
    };
    vec![
        entry(shadow, LimitParams::Gcra(Gcra::try_new(rate, None).unwrap()), false, None),
        entry(
            strict,
            LimitParams::LeakyBucket(LeakyBucket::try_new(rate, Some(2), Some(3)).unwrap()),
            true,
            Some(receipt),
        ),
        entry(
            Limit::new("slots", &[], None),
            LimitParams::Concurrency(Concurrency::try_new(4, 30_000_000).unwrap()),
            true,
            None,
        ),
    ]
}

#[test]
fn what_is_written_is_read_again() {
    let entries = entries();
    assert_eq!(format!("{:?}", decode(&encode(&entries)).unwrap()), {
        // Keys stay in the store.
        let mut bare = entries.clone();
        for entry in &mut bare {
            Arc::make_mut(&mut entry.limit).key = Box::default();
        }
        format!("{bare:?}")
    });
    assert!(decode(&encode(&[])).unwrap().is_empty());
}

#[test]
fn what_was_cut_short_or_is_of_another_version_is_not_read() {
    let bytes = encode(&entries());
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_none(), "{end} of {} bytes", bytes.len());
    }
    let mut other = bytes.clone();
    other[0] = 2;
    assert!(decode(&other).is_none());
    assert!(decode(&[bytes, vec![0]].concat()).is_none());
}
