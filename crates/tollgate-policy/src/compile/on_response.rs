//! `on_response`.

use super::fields::map_items;
use crate::diagnostic::{Report, codes};
use crate::grammar::Problem;
use crate::limit::{OnResponse, Statuses};
use crate::raw::{self, Field, OneOrMany, Text};
use crate::suggest::quoted;

pub(super) fn on_response(field: &Field<raw::OnResponse>, report: &mut Report) -> OnResponse {
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
