//! An API handler: two quotas per user, an estimate for the expensive part, and a response that
//! says when to retry.
//!
//! `cargo run --example handler`

use tollgate::{Decision, Limiter, Quota};

struct Api {
    requests: Limiter,
    tokens: Limiter,
}

/// A status, the value of `Retry-After` if there is one, and a body.
type Response = (u16, Option<u64>, String);

impl Api {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let requests =
            Limiter::builder(Quota::per_second(5)).and(Quota::per_hour(1_000)).build()?;
        Ok(Self { requests, tokens: Limiter::new(Quota::per_minute(2_000)) })
    }

    fn complete(&self, user: &str, prompt: &str) -> Response {
        let request = match self.requests.reserve(user, 1) {
            Decision::Admitted(request) => request,
            Decision::Refused(refusal) => return too_many(&refusal),
        };
        // The length of the response is not known yet.
        let estimate = 4 * prompt.len() as u64 + 500;
        let reservation = match self.tokens.reserve(user, estimate) {
            Decision::Admitted(reservation) => reservation,
            Decision::Refused(refusal) => {
                request.cancel(); // it was not served, so it does not count
                return too_many(&refusal);
            }
        };
        let (answer, used) = model(prompt);
        let left = reservation.settle(used).remaining;
        (200, None, format!("{answer} ({left} tokens left)"))
    }
}

fn too_many(refusal: &tollgate::Refusal) -> Response {
    // Rounded up: a client that returns earlier is refused again.
    let seconds = refusal.retry_after().map(|wait| wait.as_micros().div_ceil(1_000_000) as u64);
    (429, seconds, refusal.to_string())
}

fn model(prompt: &str) -> (String, u64) {
    (prompt.to_uppercase(), 300)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let api = Api::new()?;
    for _ in 0..7 {
        println!("{:?}", api.complete("alice", "why is the sky blue?"));
    }
    Ok(())
}
