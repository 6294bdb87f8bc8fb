use super::*;
use crate::redis::Observer;
use std::sync::Mutex;

#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn breaker_opened(&self, server: &str, error: &StoreError) {
        self.0.lock().unwrap().push(format!("{server} opened: {}", error.kind.label()));
    }

    fn breaker_closed(&self, server: &str) {
        self.0.lock().unwrap().push(format!("{server} closed"));
    }
}

#[test]
fn so_many_failures_in_a_row_open_it_and_only_a_probe_closes_it() {
    let notes = Arc::new(Notes::default());
    let options = RedisOptions {
        breaker_errors: 3,
        observer: Some(Arc::clone(&notes) as Arc<dyn Observer>),
        ..RedisOptions::default()
    };
    let breaker = Breaker::new("a:1", &Arc::new(options));
    let error = StoreError::new(StoreErrorKind::Timeout, "marker");
    assert!(!breaker.fail(&error) && !breaker.fail(&error));
    breaker.succeed();
    assert!(!breaker.fail(&error) && !breaker.fail(&error), "the row was broken");
    assert!(breaker.check().is_ok());
    assert!(breaker.fail(&error));
    assert!(!breaker.fail(&error), "it opens once");
    let busy = breaker.check().unwrap_err();
    assert_eq!(busy.kind, StoreErrorKind::BreakerOpen);
    assert!(busy.to_string().contains("marker"), "{busy}");
    breaker.succeed();
    assert!(breaker.is_open(), "a late answer heals nothing");
    breaker.close();
    breaker.close();
    assert!(breaker.check().is_ok());
    assert_eq!(*notes.0.lock().unwrap(), ["a:1 opened: timeout", "a:1 closed"]);
}

#[test]
fn one_bad_key_is_one_piece_of_news() {
    let refusals = RefusalTracker::default();
    assert!(!refusals.record_answer("a"), "nothing was refused");
    assert!(refusals.record_refusal("a"));
    for _ in 0..10 {
        assert!((1..ANSWERED_LEAST).all(|_| !refusals.record_answer("a")));
        assert!(!refusals.record_refusal("a"), "it is known");
    }
    assert!((1..ANSWERED_LEAST).all(|_| !refusals.record_answer("a")));
    assert!(refusals.record_answer("a"), "it is over");
    assert!(!refusals.record_answer("a"), "which is said once");
    assert!(refusals.record_refusal("a"), "and may begin again");
}

#[test]
fn answers_of_another_sort_end_nothing() {
    let refusals = RefusalTracker::default();
    assert!(refusals.record_refusal("a"));
    assert!(!refusals.record_refusal("b"), "one of them is told");
    assert!((0..10 * ANSWERED_LEAST).all(|_| !refusals.record_answer("b")));
    assert!((1..ANSWERED_LEAST).all(|_| !refusals.record_answer("a")));
    assert!(refusals.record_answer("a"));
}
