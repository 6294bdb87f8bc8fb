//! Envoy's rate limit service under h2load: ten connections with ten streams each, all for one
//! user.

use crate::Effort;
use crate::closed::{Turn, print};
use crate::contender::{
    FLOOR_GRPC, FLOOR_GRPC_FIELDS, LIMITADOR_GRPC, OURS_GRPC, OURS_GRPC_3, Programs,
    THROTTLECRAB_GRPC,
};
use crate::http2::{h2load, is_there};
use crate::turns::{Runner, interleave, start};
use std::error::Error;

const TARGET: f64 = 1.2;

/// Prints the table of gRPC.
pub(crate) fn report(programs: &Programs, effort: Effort) -> Result<(), Box<dyn Error>> {
    if !is_there("grpc") {
        return Ok(());
    }
    let names =
        [OURS_GRPC, OURS_GRPC_3, FLOOR_GRPC, FLOOR_GRPC_FIELDS, LIMITADOR_GRPC, THROTTLECRAB_GRPC];
    let runners = start(programs, &names, |contender| contender);
    let turn = |runner: &Runner| turn(runner, effort.requests);
    interleave(&runners, 1, turn)?;
    let figures = interleave(&runners, effort.rounds, turn)?;
    let title = "gRPC, 10 connections with 10 streams each";
    print(title, &runners, &figures, Some((OURS_GRPC, FLOOR_GRPC, TARGET)));
    Ok(())
}

fn turn(runner: &Runner, requests: usize) -> Result<Turn, Box<dyn Error>> {
    let fields = ["content-type: application/grpc", "te: trailers"];
    h2load(runner, requests, &runner.contender.wants.message(), &fields)
}
