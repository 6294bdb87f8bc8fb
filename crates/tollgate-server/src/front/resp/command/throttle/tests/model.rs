//! redis-cell's arithmetic in fractions: a time is in nanoseconds times the count, so nothing is
//! rounded.

/// The state of one key.
#[derive(Default)]
pub(super) struct Model {
    /// The theoretical arrival time, and the count that scales it.
    tat: Option<(i128, i128)>,
}

impl Model {
    pub(super) fn ask(
        &mut self,
        now_us: u64,
        burst: i64,
        count: i64,
        period: i64,
        cost: i64,
    ) -> String {
        let [burst, count, period, cost] = [burst, count, period, cost].map(i128::from);
        let now = i128::from(now_us) * 1_000 * count;
        let increment = period * 1_000_000_000;
        let tolerance = increment * (burst + 1);
        let tat = match self.tat {
            None => now,
            Some((tat, of)) if of == count => tat,
            Some((tat, of)) => {
                assert_eq!(tat * count % of, 0, "the test keeps to numbers that divide");
                tat * count / of
            }
        };
        let new = tat.max(now) + increment * cost;
        let allowed = now >= new - tolerance;
        let ttl = match allowed {
            true => new - now,
            false => (tat - now).max(0),
        };
        if allowed {
            self.tat = Some((new, count));
        }
        let retry = match () {
            () if allowed || increment * cost > tolerance => -1,
            // Rounded up; redis-cell rounds to the millisecond and then down.
            () => {
                let second = 1_000_000_000 * count;
                ((new - tolerance - now + second - 1) / second).max(1)
            }
        };
        let remaining = ((tolerance - ttl) / increment).max(0);
        // Rounded to microseconds, the unit of a store.
        let ttl_us = (ttl + 1_000 * count - 1) / (1_000 * count);
        let reset = ttl_us / 1_000_000 + i128::from(ttl_us % 1_000_000 >= 1_000);
        let limited = u8::from(!allowed);
        format!("{limited} {} {remaining} {retry} {reset}", burst + 1)
    }
}

/// redis-cell's published arithmetic in whole nanoseconds, with all its truncations.
#[derive(Default)]
pub(super) struct Literal {
    tat_ns: Option<i64>,
}

impl Literal {
    pub(super) fn ask(
        &mut self,
        now_us: u64,
        burst: i64,
        count: i64,
        period: i64,
        cost: i64,
    ) -> String {
        let now = now_us.cast_signed() * 1_000;
        let interval = period * 1_000_000_000 / count;
        let tolerance = interval * (burst + 1);
        let tat = self.tat_ns.filter(|tat| *tat > now).unwrap_or(now);
        let new = tat + interval * cost;
        let limited = now < new - tolerance;
        let ttl = if limited { tat - now } else { new - now };
        let retry =
            if limited && interval * cost <= tolerance { new - tolerance - now } else { -1 };
        if !limited {
            self.tat_ns = Some(new);
        }
        let seconds = |ns: i64| ns / 1_000_000_000 + i64::from(ns / 1_000_000 % 1_000 > 0);
        let retry = if retry < 0 { -1 } else { seconds(retry) };
        let remaining = ((tolerance - ttl) / 1_000 / (interval / 1_000)).max(0);
        format!("{} {} {remaining} {retry} {}", u8::from(limited), burst + 1, seconds(ttl))
    }
}
