use super::StoreObserver;
use tollgate::StoreError;
use tollgate::store::redis::Observer;
use tollgate_store::StoreErrorKind;

#[test]
fn why_a_server_is_left_alone_is_known_for_as_long_as_it_is() {
    let notices = StoreObserver::default();
    let error = |kind| StoreError::new(kind, "");
    notices.attempt_failed("s", &error(StoreErrorKind::Timeout));
    assert_eq!(notices.last_failure(), None, "one attempt is not an outage");
    notices.breaker_opened("s", &error(StoreErrorKind::Timeout));
    assert_eq!(notices.last_failure(), Some(StoreErrorKind::Timeout));
    notices.attempt_failed("s", &error(StoreErrorKind::Rejected));
    assert_eq!(notices.last_failure(), Some(StoreErrorKind::Rejected));
    notices.breaker_closed("s");
    assert_eq!(notices.last_failure(), None);
    let counted = |kind| notices.probe_failures().iter().find(|one| one.0 == kind).map(|one| one.1);
    assert_eq!(counted(StoreErrorKind::Timeout), Some(1));
    assert_eq!(counted(StoreErrorKind::Rejected), Some(1));
    assert_eq!(counted(StoreErrorKind::Busy), Some(0));
}
