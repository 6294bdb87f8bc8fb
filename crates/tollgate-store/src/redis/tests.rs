use super::*;

/// Each request that waits for Redis has this future in memory of its own.
#[tokio::test]
async fn a_waiting_decision_is_small() {
    let store = RedisStore::from_url("redis://127.0.0.1:1").unwrap();
    let (mut answers, rest) = (Answers::default(), UndecidedRequests::default());
    let finish = store.finish(0, StoreCall::Decide(&[]), rest, &mut answers);
    assert!(size_of_val(&finish) <= 3_072, "{} bytes", size_of_val(&finish));
}

#[test]
fn an_international_host_is_told_its_ascii_form() {
    let error = "redis://user:hunter2@bücher.example".parse::<Endpoint>().unwrap_err().to_string();
    assert!(error.contains("xn--") && !error.contains("hunter2"), "{error}");
    assert!("redis://xn--bcher-kva.example".parse::<Endpoint>().is_ok());
}

#[test]
fn memory_and_redis_remember_resets_for_equally_long() {
    let remembered_us = crate::memory::resets::REMEMBERED_US;
    assert!(script::STEP.contains(&format!("local RESET_US, RESET_SIGN = {remembered_us}, ")));
}
