use super::{Health, show_deaths};

#[test]
fn a_task_that_died_keeps_traffic_away_for_one_look() {
    let (health, mut before) = (Health::default(), 0);
    health.set_serving(true);
    let ready = [0, 1, 1, 3, 3].map(|died| {
        show_deaths(&health, died, &mut before);
        health.is_ready()
    });
    assert_eq!(ready, [true, false, true, false, true]);
}
