//! The arithmetic that all mirrors use, against 128-bit integers.

use crate::plan::MAX_US;
use crate::server::Server;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tollgate_core::lua;

const DRIVER: &str = "
local rows = {}
for i = 1, #ARGV, 3 do
  local quotient, rest = muldiv(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
  rows[#rows + 1] = digits(quotient) .. ' ' .. digits(rest)
end
return rows";

/// Numbers around each power of two at which the method changes or a product exceeds 2^53.
fn edges() -> Vec<u64> {
    let around = |bits: u32| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1];
    let mut edges: Vec<u64> =
        [7, 8, 26, 27, 32, 44, 45, 46, 52].into_iter().flat_map(around).collect();
    edges.extend([0, 1, 2, 3, 1_000, 4_294_967_295, 31_622_400_000_000, MAX_US - 1, MAX_US]);
    edges
}

#[test]
fn is_exact_on_edges_and_at_random() {
    let edges = edges();
    let mut triples = Vec::new();
    for &a in &edges {
        for &b in &edges {
            triples.extend(edges.iter().filter(|m| **m > 0).map(|m| [a, b, *m]));
        }
    }
    let number =
        || (0..=53_u32, any::<u64>()).prop_map(|(bits, raw)| (raw & ((1 << bits) - 1)).min(MAX_US));
    let triple = (number(), number(), number()).prop_map(|(a, b, m)| [a, b, m.max(1)]);
    let mut runner = TestRunner::default();
    triples.extend((0..20_000).map(|_| triple.new_tree(&mut runner).unwrap().current()));
    let arguments: Vec<String> = triples.iter().flatten().map(u64::to_string).collect();
    let rows = Server::start().eval(&lua::compose([lua::MULDIV, DRIVER]), "none", &arguments);
    assert_eq!(rows.len(), triples.len());
    for ([a, b, m], row) in triples.into_iter().zip(rows) {
        let (product, m) = (u128::from(a) * u128::from(b), u128::from(m));
        let expected = format!("{} {}", (product / m).min(MAX_US.into()), product % m);
        assert_eq!(row, expected, "{a} * {b} / {m}");
    }
}
