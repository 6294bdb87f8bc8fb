//! Parameters of a limit: `algorithm`, `rate`, `time_zone`, `burst`, `queue`, `ttl`, `tiers`.

use crate::compile::fields::{duration_us, missing};
use crate::diagnostic::{Position, Report, codes, quoted};
use crate::grammar::{self, Problem};
use crate::raw::{Algorithm, At, Field, Limit, LimitTier, RateText};
use crate::time_zone::{self, time_zone};
use tollgate_core::algorithm::{
    CalendarWindow, Concurrency, FixedWindow, Gcra, LeakyBucket, SlidingLog, SlidingWindow,
    TokenBucket,
};
use tollgate_core::written_rate::WrittenRate;
use tollgate_core::{CalendarUnit, InvalidParams, LimitParams, Rate, Zone};

const TTL_US: u64 = 30_000_000;
const TTL_RANGE_US: (u64, u64) = (1_000, 366 * 86_400_000_000);

/// The parameters of a limit and of its tiers.
pub(super) struct ParamsByTier {
    pub(super) algorithm: Algorithm,
    pub(super) base: EffectiveParams,
    pub(super) tiers: Vec<(Box<str>, EffectiveParams)>,
}

/// One set of parameters; `None` is unlimited.
#[derive(Clone, Copy)]
pub(super) struct EffectiveParams {
    pub(super) params: Option<LimitParams>,
    pub(super) burst: Option<u64>,
    pub(super) queue: Option<u64>,
}

/// A rate whose shape fits its algorithm.
#[derive(Clone, Copy)]
enum ParsedRate {
    Unlimited,
    Slots(u64),
    Per(Rate),
    Calendar(CalendarWindow),
}

/// The settings that decide how a limit's rates are read.
#[derive(Clone, Copy)]
struct RateContext {
    algorithm: Algorithm,
    zone: Option<&'static Zone>,
}

pub(super) fn params_by_tier(limit: &At<Limit>, report: &mut Report) -> Option<ParamsByTier> {
    let algorithm = limit.algorithm();
    let context = RateContext { algorithm, zone: zone(limit, algorithm, report) };
    let ttl_us = ttl_us(limit, algorithm, report);
    capacity(algorithm, &limit.burst, &limit.queue, report);
    if limit.rate.is_none() {
        missing("rate", (limit.at, &limit.unreadable), report);
    }
    let rate = limit.rate.as_ref().and_then(|rate| parse_rate(rate, context, report));
    let burst = limit.burst.as_ref().map(|burst| burst.value);
    let queue = limit.queue.as_ref().map(|queue| queue.value);
    let input = ParamsInput { context, rate, burst, queue, ttl_us };
    let at = limit.burst.as_ref().map(|burst| burst.at);
    let base = input.build(at.or(limit.rate.as_ref().map(|rate| rate.at)), report);
    let tiers = tiers(limit, &input, report);
    Some(ParamsByTier { algorithm, base: base?, tiers })
}

/// The fields of a limit or a tier.
struct ParamsInput {
    context: RateContext,
    rate: Option<ParsedRate>,
    burst: Option<u64>,
    queue: Option<u64>,
    ttl_us: u64,
}

impl ParamsInput {
    fn build(&self, at: Option<Position>, report: &mut Report) -> Option<EffectiveParams> {
        let (burst, queue) = (self.burst, self.queue);
        let effective = |params| EffectiveParams { params, burst, queue };
        let rate = match self.rate? {
            ParsedRate::Unlimited => return Some(effective(None)),
            ParsedRate::Slots(slots) => {
                let params = Concurrency::try_new(slots, self.ttl_us).map(LimitParams::Concurrency);
                return Some(effective(self.accept(params, at, report)));
            }
            ParsedRate::Calendar(window) => {
                return Some(effective(Some(LimitParams::CalendarWindow(window))));
            }
            ParsedRate::Per(rate) => rate,
        };
        let params = match self.context.algorithm {
            Algorithm::SlidingWindow => Ok(LimitParams::SlidingWindow(SlidingWindow::new(rate))),
            Algorithm::FixedWindow => Ok(LimitParams::FixedWindow(FixedWindow::new(rate))),
            Algorithm::SlidingLog => Ok(LimitParams::SlidingLog(SlidingLog::new(rate))),
            Algorithm::TokenBucket => {
                TokenBucket::try_new(rate, burst).map(LimitParams::TokenBucket)
            }
            Algorithm::Gcra => Gcra::try_new(rate, burst).map(LimitParams::Gcra),
            Algorithm::LeakyBucket => {
                LeakyBucket::try_new(rate, burst, queue).map(LimitParams::LeakyBucket)
            }
            // For `concurrency`, `parse_rate` has already refused a rate with a period.
            Algorithm::Concurrency => return None,
        };
        Some(effective(Some(self.accept(params, at, report)?)))
    }

    /// Reports errors in the combination of rate and capacity, which `parse_rate` and `capacity`
    /// cannot see.
    fn accept(
        &self,
        params: Result<LimitParams, InvalidParams>,
        at: Option<Position>,
        report: &mut Report,
    ) -> Option<LimitParams> {
        if let Err(InvalidParams::HorizonTooFar) = params {
            let at = at.unwrap_or(Position::START);
            report.problem(at, invalid(InvalidParams::HorizonTooFar));
        }
        params.ok()
    }
}

fn tiers(
    limit: &At<Limit>,
    base: &ParamsInput,
    report: &mut Report,
) -> Vec<(Box<str>, EffectiveParams)> {
    let mut list = Vec::new();
    for (name, tier) in limit.tiers.iter().flat_map(|tiers| &tiers.0) {
        let empty = crate::compile::fields::not_empty(name);
        let Some(name) = report.accept(name.at, empty) else { continue };
        let mut input = ParamsInput { rate: base.rate, ..*base };
        let mut at = tier.at;
        match &tier.value {
            LimitTier::Rate(rate) => {
                let rate = At { value: rate.clone(), at: tier.at, name_at: tier.name_at };
                input.rate = parse_rate(&rate, base.context, report);
            }
            LimitTier::Form(form) => {
                capacity(base.context.algorithm, &form.burst, &form.queue, report);
                if let Some(rate) = &form.rate {
                    input.rate = parse_rate(rate, base.context, report);
                    at = rate.at;
                }
                if let Some(burst) = &form.burst {
                    input.burst = Some(burst.value);
                    at = burst.at;
                }
                input.queue = form.queue.as_ref().map(|queue| queue.value).or(input.queue);
            }
        }
        list.extend(input.build(Some(at), report).map(|effective| (name, effective)));
    }
    list
}

/// Parses a rate, and reports one whose shape or range does not fit the algorithm.
fn parse_rate(
    rate: &At<RateText>,
    context: RateContext,
    report: &mut Report,
) -> Option<ParsedRate> {
    let written = report.accept(rate.at, grammar::rate(rate))?;
    let shape = |message: String, help: String| Problem::new(codes::RATE_SHAPE, message, help);
    let concurrency = context.algorithm == Algorithm::Concurrency;
    let result = match written {
        WrittenRate::Unlimited => Ok(ParsedRate::Unlimited),
        WrittenRate::Slots(slots) if concurrency => {
            Concurrency::try_new(slots, TTL_US).map(|_| ParsedRate::Slots(slots)).map_err(invalid)
        }
        WrittenRate::Slots(slots) => Err(shape(
            format!("the rate {slots} has no period"),
            format!(
                "write how long, such as `{slots}/min`; only `concurrency` takes a bare number"
            ),
        )),
        WrittenRate::Per { count, .. } if concurrency => Err(shape(
            format!("`concurrency` counts slots, and {} has a period", quoted(rate)),
            format!("write `{count}`, or choose another algorithm"),
        )),
        WrittenRate::Per { count, period_us, unit } => match Rate::try_new(count, period_us) {
            Ok(per) => windows(per, unit, context)
                .map_err(|(what, help)| shape(format!("{} {what}", quoted(rate)), help.to_owned())),
            Err(error) => Err(invalid(error)),
        },
    };
    report.accept(rate.at, result)
}

/// Returns calendar windows if the limit has a time zone or counts by the month, else windows of
/// equal length.
fn windows(
    rate: Rate,
    unit: Option<CalendarUnit>,
    context: RateContext,
) -> Result<ParsedRate, (&'static str, &'static str)> {
    let is_fixed = context.algorithm == Algorithm::FixedWindow;
    let calendar = |unit, zone| ParsedRate::Calendar(CalendarWindow::new(rate.count(), unit, zone));
    match (unit, context.zone) {
        (Some(CalendarUnit::Month), _) if !is_fixed => Err((
            "is by the month, and months are for `fixed-window`",
            "write `algorithm: fixed-window`, or a number of days such as `30d`",
        )),
        (Some(unit), Some(zone)) => Ok(calendar(unit, zone)),
        (Some(CalendarUnit::Month), None) => Ok(calendar(CalendarUnit::Month, Zone::UTC)),
        (None, Some(_)) => Err((
            "is not by the day, the week or the month, as `time_zone` wants it",
            "write `N/day`, `N/week` or `N/month`, or remove `time_zone`",
        )),
        _ => Ok(ParsedRate::Per(rate)),
    }
}

/// Returns the zone of `time_zone`. Returns `None` if the field is absent or was reported.
fn zone(limit: &Limit, algorithm: Algorithm, report: &mut Report) -> Option<&'static Zone> {
    let name = limit.time_zone.as_ref()?;
    if algorithm != Algorithm::FixedWindow {
        let message = format!("`time_zone` does not belong to `{}`", algorithm.word());
        let help = "remove it, or choose `fixed-window`";
        report.error(codes::NOT_FOR_ALGORITHM, name.name_at, message, help);
        return None;
    }
    let zone = time_zone(name);
    if zone.is_none() {
        let message = format!("{} is not a time zone", quoted(name));
        let help = match time_zone::nearest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write a name such as `Europe/Berlin`, `America/New_York` or `UTC`".to_owned(),
        };
        report.error(codes::BAD_TIME_ZONE, name.at, message, &help);
    }
    zone
}

/// Checks that `burst` and `queue` fit the algorithm.
fn capacity(algorithm: Algorithm, burst: &Field<u64>, queue: &Field<u64>, report: &mut Report) {
    let name = algorithm.word();
    let bucket =
        matches!(algorithm, Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket);
    if let Some(burst) = burst {
        if !bucket {
            let message = format!("`burst` does not belong to `{name}`");
            let help = "remove it, or choose `token-bucket`, `gcra` or `leaky-bucket`";
            report.error(codes::NOT_FOR_ALGORITHM, burst.name_at, message, help);
        } else if burst.value == 0 {
            report.problem(burst.at, invalid(InvalidParams::ZeroBurst));
        }
    }
    if let Some(queue) = queue
        && algorithm != Algorithm::LeakyBucket
    {
        let message = format!("`queue` does not belong to `{name}`");
        let help = "remove it, or choose `leaky-bucket`";
        report.error(codes::NOT_FOR_ALGORITHM, queue.name_at, message, help);
    }
    for field in [burst, queue].into_iter().flatten() {
        if field.value > u64::from(u32::MAX) {
            report.problem(field.at, invalid(InvalidParams::CountTooLarge));
        }
    }
}

fn ttl_us(limit: &Limit, algorithm: Algorithm, report: &mut Report) -> u64 {
    if let Some(ttl) = &limit.ttl
        && algorithm != Algorithm::Concurrency
    {
        let message = format!("`ttl` does not belong to `{}`", algorithm.word());
        let help = "remove it, or choose `concurrency`";
        report.error(codes::NOT_FOR_ALGORITHM, ttl.name_at, message, help);
    }
    duration_us(&limit.ttl, TTL_US, TTL_RANGE_US, report)
}

/// Converts an error of `tollgate-core` into an error of the file.
pub(super) fn invalid(reason: InvalidParams) -> Problem {
    let (code, message, help) = match reason {
        InvalidParams::CountTooLarge => (
            codes::COUNT_TOO_LARGE,
            "the number is too large to be counted exactly",
            "write at most 4294967295, or `unlimited`",
        ),
        InvalidParams::PeriodOutOfRange => {
            (codes::PERIOD_OUT_OF_RANGE, "the period is out of range", "write 1ms to 366d")
        }
        InvalidParams::ZeroBurst => {
            (codes::ZERO_BURST, "the burst is 0", "write 1 or more; `rate: 0/s` refuses everything")
        }
        InvalidParams::HorizonTooFar => (
            codes::HORIZON_TOO_FAR,
            "the bucket takes more than 100 years to refill: (burst + queue) x period / N",
            "lower the burst or queue, or raise the rate",
        ),
        _ => (codes::OUT_OF_RANGE, "a number is out of range", "see docs/reference.md"),
    };
    Problem::new(code, message, help)
}
