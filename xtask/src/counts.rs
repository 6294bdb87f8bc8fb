//! Counts of passed, failed and skipped tests, parsed from the output of test runners.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    pub(crate) const ONE_FAILED: Self = Self { passed: 0, failed: 1, skipped: 0 };
    pub(crate) const ONE_SKIPPED: Self = Self { passed: 0, failed: 0, skipped: 1 };

    /// Parses the last line of nextest: `Summary [   0.123s] 12 tests run: 11 passed (1 slow), 1
    /// timed out, 3 skipped`.
    pub(crate) fn of_nextest(line: &str) -> Option<Self> {
        let line = line.trim_start();
        if !line.starts_with("Summary [") {
            return None;
        }
        let (_, outcomes) = line.split_once("run:")?;
        Some(Self::sum(without_parentheses(outcomes).split(',')))
    }

    /// Parses the last line of libtest: `test result: ok. 3 passed; 0 failed; 1 ignored; 0
    /// measured; 0 filtered out; ...`.
    pub(crate) fn of_libtest(line: &str) -> Option<Self> {
        let (_, outcomes) = line.strip_prefix("test result: ")?.split_once(". ")?;
        Some(Self::sum(outcomes.split(';').take(3)))
    }

    /// The sum over all lines with counts; `None` if no line has any.
    pub(crate) fn total(lines: &[String], parse: fn(&str) -> Option<Self>) -> Option<Self> {
        lines.iter().filter_map(|line| parse(line)).reduce(|mut sum, counts| {
            sum += counts;
            sum
        })
    }

    /// Counts every outcome that is neither a pass nor a skip as a failure, so that unknown
    /// outcomes are not lost.
    fn sum<'a>(outcomes: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            let Some((number, what)) = outcome.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what.trim() {
                "passed" => counts.passed += number,
                "skipped" | "ignored" => counts.skipped += number,
                _ => counts.failed += number,
            }
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Option<Counts> {
        Some(Counts { passed, failed, skipped })
    }

    #[test]
    fn nextest_summaries() {
        let cases = [
            ("     Summary [   0.004s] 2 tests run: 2 passed, 0 skipped", counts(2, 0, 0)),
            ("     Summary [   0.004s] 1 test run: 0 passed, 1 failed, 4 skipped", counts(0, 1, 4)),
            (
                "Summary [ 1.0s] 9 tests run: 5 passed (1 slow, 1 flaky), 2 failed, 1 timed out, 1 exec failed, 3 skipped",
                counts(5, 4, 3),
            ),
            ("        PASS [   0.004s] xtask counts::tests::Summary", None),
            ("test result: ok. 1 passed; 0 failed", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Counts::of_nextest(line), expected, "{line}");
        }
    }

    #[test]
    fn libtest_summaries() {
        let cases = [
            (
                "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s",
                counts(3, 0, 1),
            ),
            (
                "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
                counts(1, 2, 0),
            ),
            ("test result_is_printed ... ok", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Counts::of_libtest(line), expected, "{line}");
        }
    }

    #[test]
    fn totals_add_up_and_are_absent_when_nothing_was_counted() {
        let line = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured".to_string();
        assert_eq!(Counts::total(&[line.clone(), line], Counts::of_libtest), counts(6, 0, 2));
        assert_eq!(Counts::total(&["running 0 tests".into()], Counts::of_libtest), None);
    }

    #[test]
    fn the_last_line_is_plain() {
        let all = Counts { passed: 12, failed: 0, skipped: 3 };
        assert_eq!(all.to_string(), "12 passed, 0 failed, 3 skipped");
    }
}
