//! A pool of workers that share one upstream's quota, each waiting for its turn.
//!
//! `cargo run --example workers`

use std::time::Duration;
use tollgate::{Decision, Limiter, Quota};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The upstream allows 20 requests a second, and no bursts.
    let upstream =
        Limiter::builder(Quota::per_second(20).with_burst(1)?).max_waiters(100).build()?;

    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let upstream = upstream.clone();
            tokio::spawn(async move {
                for job in 0..5 {
                    match upstream.wait("api.example.com", Duration::from_secs(2)).await {
                        Ok(Decision::Admitted(_)) => println!("worker {worker} does job {job}"),
                        Ok(Decision::Refused(refusal)) => println!("worker {worker}: {refusal}"),
                        Err(error) => eprintln!("worker {worker}: {error}"),
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await?;
    }
    Ok(())
}
