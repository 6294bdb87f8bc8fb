//! `consistency`.

use super::params::{EffectiveParams, ParamsByTier};
use crate::compile::fields::{duration_us, number};
use crate::compile::settings::store::{DEADLINE_US, PROBE_US};
use crate::diagnostic::{Report, codes};
use crate::grammar::format_us;
use crate::limit::Consistency;
use crate::raw::{self, Algorithm, ConsistencyWord, Field};
use crate::settings::{Settings, Store};
use tollgate_core::LimitParams;

const LIFETIME_US: u64 = 500_000;
const MIN_LIMIT: u64 = 100;
const QUIET_US: u64 = 1_500_000;
const RANGE_US: (u64, u64) = (1_000, 3_600_000_000);

pub(super) fn consistency(
    field: &Field<raw::Consistency>,
    params: Option<&ParamsByTier>,
    settings: &Settings,
    report: &mut Report,
) -> Consistency {
    let Some(field) = field else { return Consistency::Exact };
    let (leased, at) = match &field.value {
        raw::Consistency::Word(ConsistencyWord::Exact) => return Consistency::Exact,
        raw::Consistency::Word(ConsistencyWord::Leased) => (None, field.at),
        raw::Consistency::Form(form) => match &form.leased {
            Some(leased) => (Some(leased), leased.at),
            // `{leased: }` without a value means the same as `leased`.
            None => (None, field.at),
        },
    };
    let figures = leased.map(|leased| leased.value.clone()).unwrap_or_default();
    let lifetime_us = duration_us(&figures.lifetime, LIFETIME_US, RANGE_US, report);
    let min_limit = number(&figures.min_limit, MIN_LIMIT, (0, u32::MAX.into()), report);
    let quiet_us = duration_us(&figures.quiet, QUIET_US, RANGE_US, report);
    if let Some(why) = params.and_then(unavailable) {
        let message = format!("a limit {why} cannot be leased");
        let help = "write `consistency: exact`, or choose another algorithm or period";
        report.error(codes::LEASED_UNAVAILABLE, field.at, message, help);
    }
    let (probe_us, deadline_us) = match &settings.store {
        Store::Redis(redis) => (micros(redis.breaker_probe), micros(redis.deadline)),
        Store::Memory { .. } => (PROBE_US, DEADLINE_US),
    };
    let least_us = lifetime_us + (probe_us * 3).div_ceil(2) + deadline_us;
    if quiet_us < least_us {
        let at = figures.quiet.as_ref().map_or(at, |quiet| quiet.at);
        let message = format!(
            "`quiet` is {}, shorter than lifetime {} + 1.5 x probe {} + deadline {}",
            format_us(quiet_us),
            format_us(lifetime_us),
            format_us(probe_us),
            format_us(deadline_us)
        );
        let help = format!("write `quiet: {}` or more", format_us(least_us));
        report.error(codes::QUIET_TOO_SHORT, at, message, help);
    }
    Consistency::Leased { lifetime_us, min_limit, quiet_us }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 4)
}

/// Returns the reason why a limit with these parameters cannot be leased, if there is one.
fn unavailable(params: &ParamsByTier) -> Option<&'static str> {
    let effective =
        || std::iter::once(&params.base).chain(params.tiers.iter().map(|(_, effective)| effective));
    let any = |test: fn(&EffectiveParams) -> bool| effective().any(test);
    match params.algorithm {
        _ if any(|e| matches!(e.params, Some(LimitParams::CalendarWindow(_)))) => {
            Some("with windows of the calendar")
        }
        Algorithm::SlidingLog => Some("with the algorithm `sliding-log`"),
        Algorithm::Concurrency => Some("with the algorithm `concurrency`"),
        Algorithm::LeakyBucket if any(|e| e.queue.unwrap_or(0) > 0) => Some("with a `queue`"),
        Algorithm::LeakyBucket if any(|e| e.burst.unwrap_or(1) <= 1) => {
            Some("with the algorithm `leaky-bucket` and burst 1")
        }
        _ => None,
    }
}
