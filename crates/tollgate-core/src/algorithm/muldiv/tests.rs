use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Around powers of two, and of everyday periods.
fn edges() -> Vec<u64> {
    let around = |bits: u32| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1];
    let mut edges: Vec<u64> = (1..64).flat_map(around).collect();
    edges.extend([1_000, 60_000_000, 3_600_000_000, 31_622_400_000_000, u64::MAX - 1, u64::MAX]);
    edges
}

#[test]
fn a_divisor_divides_exactly_at_the_edges() {
    let edges = edges();
    for &by in &edges {
        for &n in edges.iter().chain([&0]) {
            assert_eq!(Divisor::new(by).div_rem(n), (n / by, n % by), "{n} / {by}");
        }
    }
}

proptest! {
    #[test]
    fn a_divisor_divides_exactly(n: u64, by in 1..u64::MAX, shift in 0..63_u32, by_shift in 0..63_u32) {
        let (n, by) = (n >> shift, (by >> by_shift).max(1));
        prop_assert_eq!(Divisor::new(by).div_rem(n), (n / by, n % by));
    }

    #[test]
    fn products_are_divided_exactly(a: u64, b: u64, m in 1..u64::MAX, shift in 0..40_u32) {
        let (a, b) = (a >> shift, b >> shift);
        let exact = (u128::from(a) * u128::from(b)).div_ceil(u128::from(m));
        let exact = u64::try_from(exact).unwrap_or(u64::MAX);
        prop_assert_eq!(mul_div_ceil(a, b, m), exact);
        prop_assert_eq!(Divisor::new(m).mul_div_ceil(a, b), exact);
    }
}
