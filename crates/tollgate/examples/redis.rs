//! Counts in Redis, shared by every process that runs this program.
//!
//! `cargo run --example redis --features redis -- redis://127.0.0.1:6379`

use std::time::Duration;
use tollgate::{Decision, Limiter, Quota};

/// Three tries an hour for each user, over all processes together.
pub(crate) async fn tries(
    url: &str,
    user: &str,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let logins = Limiter::builder(Quota::per_hour(3)).redis(url)?.name("logins").build()?;

    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(match logins.check_async(user).await {
            Ok(Decision::Admitted(permit)) => format!("welcome, {} tries left", permit.remaining),
            Ok(Decision::Refused(refusal)) => format!("refused, {} tries left", refusal.remaining),
            // Redis did not answer within 25 ms. Each program must decide what to do then.
            Err(error) => return Err(error.into()),
        });
    }
    Ok(answers)
}

/// A successful login resets the count, and an abuser is blocked, in every process.
pub(crate) async fn manage(url: &str, user: &str) -> Result<bool, Box<dyn std::error::Error>> {
    let logins = Limiter::builder(Quota::per_hour(3)).redis(url)?.name("logins").build()?;
    logins.reset_async(user).await?;
    Ok(logins.block_async(user, Duration::from_secs(60)).await?.blocked)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    for answer in tries(&url, "alice").await? {
        println!("{answer}");
    }
    println!("blocked: {}", manage(&url, "alice").await?);
    Ok(())
}
