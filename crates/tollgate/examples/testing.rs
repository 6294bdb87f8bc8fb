//! A sign-up form that allows three tries in ten minutes, and its test, which does not wait for ten
//! minutes.
//!
//! `cargo run --example testing`

use std::sync::Arc;
use std::time::Duration;
use tollgate::{Limiter, ManualClock, Quota};

struct SignUp {
    tries: Limiter,
}

impl SignUp {
    /// The limiter is a parameter, so that a test can pass one with a manual clock.
    fn new(tries: Limiter) -> Self {
        Self { tries }
    }

    fn submit(&self, address: [u8; 4]) -> Result<(), String> {
        match self.tries.check(address) {
            tollgate::Decision::Admitted(_) => Ok(()),
            tollgate::Decision::Refused(refusal) => Err(refusal.to_string()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ten_minutes = Duration::from_secs(600);
    let quota = Quota::of(3).every(ten_minutes)?.with_burst(3)?;

    let clock = Arc::new(ManualClock::default());
    let form = SignUp::new(Limiter::builder(quota).clock(clock.clone()).build()?);
    let visitor = [192, 0, 2, 7];

    for _ in 0..3 {
        form.submit(visitor)?;
    }
    assert_eq!(form.submit(visitor), Err("0 of 3 left; retry after 200s".to_owned()));
    assert!(form.submit([192, 0, 2, 8]).is_ok(), "others are not concerned");

    clock.elapse(Duration::from_secs(200));
    assert!(form.submit(visitor).is_ok());
    println!("all as it should be");
    Ok(())
}
