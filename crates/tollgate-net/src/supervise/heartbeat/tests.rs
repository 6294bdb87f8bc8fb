use super::{Heartbeat, HeartbeatChange, MISSED_MAX};
use std::task::{Context, Waker};

#[test]
fn silence_is_a_loss_once_and_an_answer_ends_it() {
    let heartbeat = Heartbeat::default();
    let mut answer = Box::pin(heartbeat.answer());
    let mut answered = || {
        assert!(answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    };
    for _ in 0..5 {
        assert_eq!(heartbeat.ask(), None);
        answered();
    }
    assert_eq!(heartbeat.ask(), None);
    let silent: Vec<_> = (0..10).map(|_| heartbeat.ask()).collect();
    let lost_at = silent.iter().position(Option::is_some).unwrap();
    assert_eq!(lost_at + 1, MISSED_MAX as usize);
    assert_eq!(silent.into_iter().flatten().collect::<Vec<_>>(), [HeartbeatChange::Lost]);
    answered();
    assert_eq!(heartbeat.ask(), Some(HeartbeatChange::Recovered));
    assert_eq!(heartbeat.ask(), None, "one that is missed is not a loss");
    answered();
    assert_eq!(heartbeat.ask(), None);
}
