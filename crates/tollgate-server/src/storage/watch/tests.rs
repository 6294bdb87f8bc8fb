use super::{Health, show_deaths, show_parts};

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

#[test]
fn a_part_that_is_left_alone_is_named_and_keeps_no_traffic_away() {
    let health = Health::default();
    health.set_serving(true);
    let named = [true, false].map(|is_open| {
        show_parts(&health, is_open);
        (health.is_ready(), health.detail().len())
    });
    assert_eq!(named, [(true, 1), (true, 0)]);
}
