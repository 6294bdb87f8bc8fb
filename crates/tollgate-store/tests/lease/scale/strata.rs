//! A million keys by how often they are asked for: the key of rank k one k-th as often as the
//! first.

/// Keys.
pub(super) const KEYS: u64 = 1_000_000;
/// Requests a second, for all of them.
pub(super) const PER_SECOND: u64 = 10_000_000;
/// The first rank of every stratum: the most popular keys by themselves, then five for each power
/// of ten.
#[rustfmt::skip]
const FIRST: &[u64] = &[
    1, 2, 3, 4, 5, 6, 8,
    10, 16, 25, 40, 63, 100, 160, 250, 400, 630, 1_000, 1_600, 2_500, 4_000, 6_300,
    10_000, 16_000, 25_000, 40_000, 63_000, 100_000, 160_000, 250_000, 400_000, 630_000,
];
/// Requests that are simulated for a stratum at least, as far as that takes no more keys than
/// `COPIES_MOST`.
const REQUESTS_LEAST: u64 = 4_000;
const COPIES_MOST: u64 = 400;

/// Ranks that are alike enough for a few keys with their mean rate to stand for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stratum {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Requests for each of them in a thousand seconds.
    pub(super) per_1000_s: u64,
    /// How many keys are simulated.
    pub(super) copies: u64,
}

impl Stratum {
    pub(super) fn keys(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// All of them, for runs of which so many seconds count.
pub(super) fn all(seconds: u64) -> Vec<Stratum> {
    let weight = |first: u64, last: u64| {
        (first..=last).map(|rank| u128::from((1 << 50) / rank)).sum::<u128>()
    };
    let whole = weight(1, KEYS);
    let ends = FIRST[1..].iter().map(|first| first - 1).chain([KEYS]);
    let strata = FIRST.iter().zip(ends).map(|(&first, last)| {
        let keys = last - first + 1;
        let rate = weight(first, last) * u128::from(PER_SECOND * 1_000) / whole / u128::from(keys);
        let per_1000_s = rate as u64;
        let each = (per_1000_s * seconds / 1_000).max(1);
        let copies = REQUESTS_LEAST.div_ceil(each).clamp(1, COPIES_MOST).min(keys);
        Stratum { first, last, per_1000_s, copies }
    });
    strata.collect()
}

#[test]
fn strata_have_all_keys_and_all_requests() {
    let strata = all(10);
    assert_eq!(strata.iter().map(Stratum::keys).sum::<u64>(), KEYS);
    assert!(strata.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
    let rate: u64 = strata.iter().map(|one| one.per_1000_s * one.keys()).sum();
    let whole = PER_SECOND * 1_000;
    assert!((whole - whole / 1_000..=whole).contains(&rate), "{rate}");
}
