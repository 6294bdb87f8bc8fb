//! `penalty` and `on_response`.

use crate::compile::fields::{duration_us, map_items};
use crate::diagnostic::{Report, codes, quoted};
use crate::grammar;
use crate::grammar::Problem;
use crate::limit::{OnResponse, Statuses};
use crate::raw::{self, Field, OneOrMany, Text};
use tollgate_core::{MAX_US, Penalty};

const MINUTE_US: u64 = 60_000_000;
const HOUR_US: u64 = 3_600_000_000;

/// Compiles `penalty`. Defaults: three refusals, a block of one minute, doubled each time, up to
/// one hour or to `block` if that is longer.
pub(crate) fn penalty(field: &Field<raw::Penalty>, report: &mut Report) -> Option<Penalty> {
    let field = field.as_ref()?;
    let after = field.after.as_ref().map_or(3, |after| after.value);
    let any = (0, MAX_US);
    let block_us = duration_us(&field.block, MINUTE_US, any, report);
    let max_us = duration_us(&field.max, HOUR_US.max(block_us), any, report);
    let factor_milli = match &field.factor {
        Some(factor) => report.accept(factor.at, grammar::factor_milli(factor)).unwrap_or(2_000),
        None => 2_000,
    };
    let mut wrong = |at, message: String, help: &str| {
        report.error(codes::BAD_PENALTY, at, message, help);
    };
    let at = |own: Option<crate::diagnostic::Position>| own.unwrap_or(field.at);
    let after_at = at(field.after.as_ref().map(|after| after.at));
    let after = match u32::try_from(after) {
        Ok(0) => {
            wrong(after_at, "`after` is 0".into(), "write 1 to block at the first refusal");
            1
        }
        Ok(after) => after,
        Err(_) => {
            wrong(after_at, "`after` is too large".into(), "write at most 4294967295");
            1
        }
    };
    if block_us == 0 {
        let at = at(field.block.as_ref().map(|block| block.at));
        wrong(at, "`block` is 0".into(), "write how long the first block is, such as `1m`");
    }
    let factor_at = at(field.factor.as_ref().map(|factor| factor.at));
    if factor_milli < 1_000 {
        wrong(factor_at, "`factor` is below 1".into(), "write 1 or more: blocks do not shrink");
    } else if factor_milli > Penalty::FACTOR_MILLI_MAX {
        let help = "write at most 1000; `max` is reached at once all the same";
        wrong(factor_at, "`factor` is too large".into(), help);
    }
    if max_us < block_us {
        let at = at(field.max.as_ref().map(|max| max.at));
        let (max, block) = (grammar::format_us(max_us), grammar::format_us(block_us));
        let message = format!("`max` ({max}) is shorter than `block` ({block})");
        wrong(at, message, "`max` is the longest block: raise it, or shorten `block`");
    }
    Penalty::try_new(after, block_us, factor_milli, max_us).ok()
}

pub(crate) fn on_response(field: &Field<raw::OnResponse>, report: &mut Report) -> OnResponse {
    let Some(field) = field else { return OnResponse::default() };
    let refund = statuses(&field.refund, report);
    let penalty = statuses(&field.penalty, report);
    if let Some(written) = &field.penalty
        && refund.iter().any(|one| penalty.iter().any(|other| one.overlaps(*other)))
    {
        let message = "a status is under `refund` and under `penalty`";
        let help = "keep it in one of the two: a request either counts or does not";
        report.error(codes::BAD_STATUS, written.at, message, help);
    }
    OnResponse { refund: refund.into(), penalty: penalty.into() }
}

fn statuses(field: &Field<OneOrMany<Text>>, report: &mut Report) -> Vec<Statuses> {
    let Some(field) = field else { return Vec::new() };
    map_items(&field.0, report, |text: &Text| {
        Statuses::parse(text).ok_or_else(|| {
            let message = format!("{} is not a status", quoted(text));
            Problem::new(
                codes::BAD_STATUS,
                message,
                "write one such as 401, or a class such as 4xx",
            )
        })
    })
}
