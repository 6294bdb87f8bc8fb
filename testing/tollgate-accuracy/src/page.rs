//! Writes the table, and the page around it.

use crate::contestant::{Contestant, Limit};
use crate::tally::Tally;
use crate::traffic::{
    ATTACKERS_PER_MILLE, BURST_GAP_US, BURST_MAX, BURSTY_PER_MILLE, Traffic, WINDOWS,
};
use std::cmp::Ordering;
use std::fmt::Write;
use tollgate_picture::axis::{format_duration, format_grouped, format_offset};

/// The name of an algorithm, and its parameters.
pub(crate) fn title(contestant: &Contestant) -> String {
    match contestant.numbers.as_str() {
        "" => contestant.name.to_owned(),
        numbers => format!("{}, {numbers}", contestant.name),
    }
}

/// A share in per cent, with four decimals.
pub(crate) fn percent(part: u64, of: u64) -> String {
    let scaled = u128::from(part) * 1_000_000 / u128::from(of.max(1));
    match (scaled, part) {
        (_, 0) => "0".into(),
        (0, _) => "< 0.0001 %".into(),
        _ => format!("{}.{:04} %", scaled / 10_000, scaled % 10_000),
    }
}

/// How much more or less than `exact` was admitted.
fn against(admitted: u64, exact: u64) -> String {
    let share = percent(admitted.abs_diff(exact), exact);
    match admitted.cmp(&exact) {
        Ordering::Equal => share,
        Ordering::Greater => format!("+{share}"),
        Ordering::Less => format!("-{share}"),
    }
}

/// Writes one row for each algorithm.
pub(crate) fn table(contestants: &[Contestant], tallies: &[Tally], limit: Limit) -> String {
    let window = format_duration(limit.window_us);
    let mut out = format!(
        "| algorithm | wrongly admitted | wrongly refused | admitted in all, against the exact limiter | above the limit | most in any {window} | its bound | difference from the real rate |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for (contestant, tally) in contestants.iter().zip(tallies) {
        let difference = match contestant.estimates {
            true => {
                let tenths = u128::from(tally.difference) * 1_000 / u128::from(tally.real.max(1));
                format!("{}.{} %", tenths / 10, tenths % 10)
            }
            false => "n/a".into(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {difference} |",
            title(contestant),
            percent(tally.wrongly_admitted, tally.requests),
            percent(tally.wrongly_refused, tally.requests),
            against(tally.admitted, tally.exactly_admitted),
            percent(tally.above, tally.requests),
            tally.most,
            contestant.bound,
        );
    }
    let first = tallies.first().cloned().unwrap_or_default();
    let _ = write!(
        out,
        "\n{} requests of {} sources; limit {} in {window}.",
        format_grouped(first.requests),
        format_grouped(first.sources),
        limit.count
    );
    out
}

/// Writes `docs/accuracy.md`.
pub(crate) fn page(traffic: &Traffic, contestants: &[Contestant], tallies: &[Tally]) -> String {
    let Traffic { seed, sources, limit, .. } = *traffic;
    let window = format_duration(limit.window_us);
    format!(
        "\
# How far each algorithm is from an exact count

`100/min` can mean: no minute, wherever it starts, sees more than 100. Only `sliding-log` means exactly that. How wrong are the others, which keep less state?
Cloudflare [reports](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/) for its sliding window counter that 0.003 % of 400 million requests
from 270,000 sources were wrongly allowed or limited, and that its rate differed from the real one by 6 % on average. This page measures the same on traffic of that
size. Cloudflare's traffic is not public, so the shares are not comparable one to one.

{table}

* **Wrongly admitted** and **wrongly refused** are shares of all requests: the verdict is not that of an exact limiter, which remembers each of its own admissions for
  {window}. It shares no code with `sliding-log`. A source that is always above the limit makes these shares large: two limiters may each admit 100 of its requests in a
  minute, but not the same 100. So the next column has the totals.
* **Above the limit:** admitted although the window of {window} before it already held the limit, counted over the algorithm's own admissions. **Most in any {window}** is the
  largest such count; its bound is [proven](reference.md#what-is-exact).
* **Difference from the real rate:** at each request, what the algorithm takes for used (`limit` less `remaining`) against the exact count of its own admissions; the sum
  of differences over the sum of counts. A bucket with a burst of another size has no such estimate.
* A small burst refuses what comes together, and `leaky-bucket` refuses all but an even pace: that is what they are for. `gcra` with a burst and a rate that add up to
  the limit never exceeds a window.
* `concurrency` has no rate, and is left out.

![Admissions in the last minute, for a client that sends around the end of a window](pictures/accuracy.svg)

## Traffic

| parameter | value |
| --- | --- |
| seed | {seed} |
| sources | {sources} |
| time | {time} |
| requests per source | Zipf's law: rank r sends 1/r of what rank 1 sends |
| steady sources | {steady} %: independent requests, exponential gaps |
| bursty sources | {bursty} %: 10 to {BURST_MAX} requests, {gap} apart on average, then a pause that keeps their mean rate |
| attackers | {attackers} %: {count} requests in the last sixtieth of a window, {count} in the first of the next, then ten times the limit's pace until it ends; a window's pause |

## Repeat it

`cargo xtask accuracy` writes this page and its picture; the same seed gives the same page. `cargo xtask accuracy --log access.log --limit 100/min` prints the table for
the addresses of an [access log](lab.md#logs).
",
        table = table(contestants, tallies, limit),
        sources = format_grouped(sources),
        time = format_offset(WINDOWS * limit.window_us),
        steady = (1_000 - BURSTY_PER_MILLE - ATTACKERS_PER_MILLE) / 10,
        bursty = BURSTY_PER_MILLE / 10,
        attackers = ATTACKERS_PER_MILLE / 10,
        gap = format_duration(BURST_GAP_US),
        count = limit.count,
    )
}
