//! The lines of `docs/pictures/scaling.csv`, and what they come to.

use super::cell::{Cell, SECONDS, Sums};
use super::strata::{self, Stratum};
use std::fmt::Write;
use tollgate_picture::axis::format_grouped;

pub(super) const LIFETIMES_MS: [u64; 6] = [100, 250, 500, 1_000, 2_000, 5_000];
/// To how many nodes the requests for one key come.
pub(super) const SPREADS: [u64; 3] = [1_000, 100, 10];
/// Groups of ranks, along the strata.
const RANKS: [(u64, u64); 5] =
    [(1, 99), (100, 999), (1_000, 9_999), (10_000, 99_999), (100_000, 1_000_000)];
/// Calls a second that a primary of a cluster can take: 17.09 us each with one decision
/// (docs/benchmarks.md), with three tenths of its core left over.
const SHARD_PER_SECOND: u64 = 41_000;
const HEADER: &str =
    "algorithm,nodes,lifetime_ms,first,requests,ideal,admitted,direct,calls,opening";

/// What was simulated.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<(Cell, Stratum, Sums)>);

/// A cell, for all keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    /// A second.
    pub(super) requests: u64,
    pub(super) direct: u64,
    pub(super) calls: u64,
    /// In the first tenth of a second of a window, for a whole one.
    pub(super) opening: u64,
    /// Parts in a million of what would be admitted without leases.
    pub(super) under_ppm: u64,
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = vec![Cell { algorithm: "fixed-window", nodes: SPREADS[0], lifetime_ms: 0 }];
    let leased =
        |algorithm, nodes| LIFETIMES_MS.map(|lifetime_ms| Cell { algorithm, nodes, lifetime_ms });
    cells.extend(SPREADS.into_iter().flat_map(|nodes| leased("fixed-window", nodes)));
    cells.extend(leased("gcra", SPREADS[0]));
    // A longer lifetime than a fortieth of the window is not leased.
    let sliding = leased("sliding-window", SPREADS[0]);
    cells.extend(sliding.into_iter().filter(|cell| cell.lifetime_ms * 40 <= SECONDS * 1_000));
    cells
}

impl Table {
    pub(super) fn csv(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (cell, stratum, sums) in &self.0 {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{}",
                cell.algorithm,
                cell.nodes,
                cell.lifetime_ms,
                stratum.first,
                sums.requests,
                sums.ideal,
                sums.admitted,
                sums.direct,
                sums.calls,
                sums.opening
            );
        }
        text
    }

    pub(super) fn read(text: &str) -> Self {
        let (cells, strata) = (cells(), strata::all(SECONDS));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(HEADER));
        let lines = lines.map(|line| {
            let (algorithm, params) = line.split_once(',').unwrap();
            let params: Vec<u64> = params.split(',').map(|n| n.parse().unwrap()).collect();
            let [nodes, lifetime_ms, first, requests, ideal, admitted, direct, calls, opening] =
                params[..].try_into().unwrap();
            let of_cell = |cell: &&Cell| {
                (cell.algorithm, cell.nodes, cell.lifetime_ms) == (algorithm, nodes, lifetime_ms)
            };
            let cell = *cells.iter().find(of_cell).unwrap();
            let stratum = *strata.iter().find(|one| one.first == first).unwrap();
            (cell, stratum, Sums { requests, ideal, admitted, direct, calls, opening })
        });
        Self(lines.collect())
    }

    /// What is known of a cell, for all the keys that its strata stand for.
    pub(super) fn total(&self, cell: Cell) -> Total {
        let of_cell = self.0.iter().filter(|line| line.0 == cell);
        let sum = |of: fn(&Sums) -> u64| {
            let each = of_cell.clone().map(|(_, stratum, sums)| {
                u128::from(of(sums)) * u128::from(stratum.keys()) * 1_000
                    / u128::from(stratum.copies)
            });
            (each.sum::<u128>() / 1_000) as u64
        };
        let (ideal, admitted) = (sum(|one| one.ideal), sum(|one| one.admitted));
        let under = ideal.saturating_sub(admitted);
        Total {
            requests: sum(|one| one.requests) / SECONDS,
            direct: sum(|one| one.direct) / SECONDS,
            calls: sum(|one| one.calls) / SECONDS,
            opening: sum(|one| one.opening) * 10,
            under_ppm: (u128::from(under) * 1_000_000 / u128::from(ideal.max(1))) as u64,
        }
    }

    /// Calls for a hundred requests, by how popular keys are.
    pub(super) fn by_rank(&self) -> String {
        let mut text = String::from(
            "| keys, by rank | of all requests | nothing leased | 1,000 nodes a key | 100 | 10 |\n| --- | --- | --- | --- | --- | --- |\n",
        );
        for (first, last) in RANKS {
            let ranks = Self(
                self.0
                    .iter()
                    .filter(|line| (first..=last).contains(&line.1.first))
                    .copied()
                    .collect(),
            );
            let cell = |nodes, lifetime_ms| Cell { algorithm: "fixed-window", nodes, lifetime_ms };
            let exact = ranks.total(cell(SPREADS[0], 0));
            let whole = self.total(cell(SPREADS[0], 0)).requests;
            let each = |cell| {
                let total = ranks.total(cell);
                percent(total.calls * 1_000_000 / total.requests.max(1), 1)
            };
            let _ = write!(text, "| {} to {} ", format_grouped(first), format_grouped(last));
            let _ = write!(text, "| {} ", percent(exact.requests * 1_000_000 / whole.max(1), 1));
            let _ = write!(text, "| {} ", each(cell(SPREADS[0], 0)));
            for nodes in SPREADS {
                let _ = write!(text, "| {} ", each(cell(nodes, 500)));
            }
            text.push_str("|\n");
        }
        text
    }

    /// The table of the page.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::from(
            "| limit | nodes a key | lifetime | calls a second | of requests | waited | opening of a window | under-admission | shards |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for cell in cells() {
            let total = self.total(cell);
            let lifetime = match cell.lifetime_ms {
                0 => "exact".to_owned(),
                ms => tollgate_picture::axis::format_duration(ms * 1_000),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {lifetime} | {} | {} | {} | {} | {} | {} |",
                cell.algorithm,
                format_grouped(cell.nodes),
                format_grouped(rounded(total.calls)),
                percent(total.calls * 1_000_000 / total.requests.max(1), 1),
                percent(total.direct * 1_000_000 / total.requests.max(1), 1),
                format_grouped(rounded(total.opening)),
                percent(total.under_ppm, 3),
                shards(cell, &total),
            );
        }
        text
    }
}

/// How many primaries that takes: what keys cost is shared by all of them, and every node looks at
/// each.
pub(super) fn shards(cell: Cell, total: &Total) -> u64 {
    let looks = match cell.lifetime_ms {
        0 => 0,
        _ => SPREADS[0] * 4_000_000 / cell.grace_us(),
    };
    total.calls.div_ceil(SHARD_PER_SECOND - looks)
}

/// Three digits are enough.
fn rounded(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (number + unit / 2) / unit * unit
}

/// Parts in a million, with so many digits.
pub(super) fn percent(ppm: u64, digits: u32) -> String {
    let scale = 10_u64.pow(4 - digits);
    let units = (ppm + scale / 2) / scale;
    let one = 10_u64.pow(digits);
    format!("{}.{:0width$} %", units / one, units % one, width = digits as usize)
}
