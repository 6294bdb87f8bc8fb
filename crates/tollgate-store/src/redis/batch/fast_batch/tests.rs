use super::*;
use crate::ChargeMode;
use crate::redis::batch::{DecideRequest, NamedCharge};
use tollgate_core::algorithm::{FixedWindow, SlidingWindow, TokenBucket};
use tollgate_core::{LimitParams, Rate};

fn rate() -> Rate {
    Rate::try_new(6, 60_000_000).unwrap()
}

fn charge(name: &str, params: LimitParams, mode: ChargeMode) -> NamedCharge {
    NamedCharge { name: name.into(), params, cost: 1, mode, penalty: None }
}

fn batch(charges: impl IntoIterator<Item = NamedCharge>) -> Batch {
    let mut batch = Batch::default();
    let charges = charges.into_iter().collect();
    batch.push(DecideRequest { intent: Intent::Take, charges, fence: None });
    batch
}

#[test]
fn charges_share_the_numbers_of_their_kind() {
    let slides = LimitParams::SlidingWindow(SlidingWindow::new(rate()));
    let fixed = LimitParams::FixedWindow(FixedWindow::new(rate()));
    let charges = [
        charge("a", slides, ChargeMode::Enforce),
        charge("b", fixed, ChargeMode::Shadow),
        charge("c", slides, ChargeMode::Enforce),
    ];
    let fast = FastBatch::of(&batch(charges)).unwrap();
    assert!(fast.kinds.has_windows() && !fast.kinds.are_enforced());
    let [kinds, modes, program] = fast.into_arguments();
    assert_eq!((kinds.len(), modes), (112, vec![1, 0]));
    assert_eq!(program, [1, 3, 0, 1, 0, 1, 0, 2, 0, 2, 0, 3, 0, 1]);
}

#[test]
fn other_charges_need_the_general_script() {
    let bucket = LimitParams::TokenBucket(TokenBucket::try_new(rate(), None).unwrap());
    assert_eq!(FastBatch::of(&batch([charge("a", bucket, ChargeMode::Enforce)])), None);
    let fixed = LimitParams::FixedWindow(FixedWindow::new(rate()));
    let debt = ChargeMode::Owe { units: 1, enforced: true };
    assert_eq!(FastBatch::of(&batch([charge("a", fixed, debt)])), None);
    let free = NamedCharge { cost: 0, ..charge("a", fixed, ChargeMode::Enforce) };
    assert_eq!(FastBatch::of(&batch([free])), None, "it fits even in debt");
}
