//! `--plot`: both policies over time, and the requests that they decide differently.

use crate::command::lab::Loaded;
use crate::command::lab::plot::{Buckets, KeyRates, Legend, Panel, Picture};
use tollgate::engine::Verdict;

/// The series of the picture: the decisions of A, those of B, all changes, then the changes of each
/// limit.
const CHANGES: usize = 2;
const LIMITS: usize = 3;

/// Counts of the decisions of two policies over time.
pub(super) struct ChangePlot {
    /// The limits of both policies.
    limits: Vec<String>,
    buckets: Buckets,
}

impl ChangePlot {
    pub(super) fn new(policies: [&Loaded; 2]) -> Self {
        let mut limits: Vec<String> = Vec::new();
        for limit in policies.iter().flat_map(|loaded| loaded.rules.policy().limits()) {
            if !limits.iter().any(|known| **known == *limit.name) {
                limits.push(limit.name.to_string());
            }
        }
        let buckets = Buckets::new(LIMITS + limits.len());
        Self { limits, buckets }
    }

    /// Counts a request; `None` stands for a policy that answers it with 400. A change counts for
    /// the limits that refuse: those of B if B refuses, else those of A.
    pub(super) fn count(&mut self, time_us: u64, verdicts: [Option<&Verdict<'_>>; 2]) {
        if verdicts.iter().all(Option::is_none) {
            return;
        }
        let counts = self.buckets.at(time_us);
        let [before, after] = verdicts.map(|verdict| verdict.is_some_and(|it| it.allowed));
        counts[0].count(before);
        counts[1].count(after);
        if before == after {
            return;
        }
        counts[CHANGES].count(after);
        let refusing = if after { verdicts[0] } else { verdicts[1] };
        let rows = refusing.into_iter().flat_map(|verdict| &verdict.rows);
        for row in rows.filter(|row| row.refuses()) {
            let place = self.limits.iter().position(|known| **known == *row.limit.name);
            if let Some(place) = place {
                counts[LIMITS + place].count(after);
            }
        }
    }

    /// Draws the picture. `names` are those of the policies.
    pub(super) fn svg(&self, title: &str, names: &[String; 2]) -> String {
        let shown = self.buckets.for_show();
        let (drawn, left_out) = shown.busiest(LIMITS..LIMITS + self.limits.len());
        let about = format!("A is {}, B is {}", names[0], names[1]);
        let mut picture = Picture::new(title, &about, &shown, LIMITS + drawn.len());
        let words = ["newly admitted by B", "newly refused by B"];
        let panel = |name: &str, about: &str| Panel::new(name.to_owned(), about.to_owned());
        let none = KeyRates::default();
        for (side, name) in ["A", "B"].into_iter().enumerate() {
            picture.panel(&panel(name, &names[side]), shown.series(side), &none);
        }
        let changes =
            Panel { words, ..panel("changes", "requests that A and B decide differently") };
        picture.panel(&changes, shown.series(CHANGES), &none);
        for series in drawn {
            let panel =
                Panel { words, ..panel(&self.limits[series - LIMITS], "changes because of it") };
            picture.panel(&panel, shown.series(series), &none);
        }
        let labels = ["admitted, or newly admitted", "refused, or newly refused"];
        picture.finish(&Legend { labels, apart: 2_200 }, left_out)
    }
}
