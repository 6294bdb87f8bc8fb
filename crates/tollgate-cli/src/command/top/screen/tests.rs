use super::super::figures::{Figures, Rates};
use super::{Measure, Pressed, Screen, SortBy, View, Window};
use serde_json::{Value, json};

fn view() -> View {
    View {
        by: Measure::Refused,
        window: Window::Minute,
        is_fleet: false,
        sort: SortBy::Refused,
        filter: String::new(),
        is_typing: false,
    }
}

fn figures(second: u32, factor: u64) -> Figures {
    let limit = |name: &str, admitted: u64, refused: u64| json!({"name": name, "mode": "enforce", "admitted": admitted * factor, "refused": refused * factor});
    Figures::new(json!({
        "time": format!("2026-11-16T12:00:{second:02}.000000Z"), "ready": true,
        "problems": {"store": "timeout\u{1b}[31m"},
        "store": {"kind": "redis", "breaker_open": true, "errors": {"timeout": 3}},
        "leases": {"held": 77},
        "limits": [limit("alpha", 5, 1), limit("beta", 9, 0), limit(&"long".repeat(30), 1, 7)],
    }))
}

fn top() -> Value {
    json!({"limits": [{"name": "alpha", "keys": [
        {"key": {"user": "evil\u{1b}[2J"}, "units": 12, "limit": 5, "remaining": 0},
        {"key": {"user": "42"}, "units": 3, "limit": 5, "remaining": 4}]}]})
}

fn lines(view: &View, width: usize, height: usize) -> Vec<String> {
    let (before, now) = (figures(1, 1), figures(2, 2));
    let rates = Rates::between(&before, &now);
    let (figures, rates, top) = (&now, &rates, &top());
    Screen { authority: "127.0.0.1:8090", view, figures, rates, top }.lines(width, height)
}

#[test]
fn a_screen_fits_any_terminal_and_holds_no_escapes() {
    for (width, height) in [(80, 24), (40, 10), (200, 60), (20, 5), (1, 1)] {
        let lines = lines(&view(), width, height);
        assert_eq!(lines.len(), height, "{width}x{height}");
        for line in &lines {
            assert!(line.chars().count() <= width, "{line:?}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn eighty_columns_show_all_there_is_to_see() {
    let screen = lines(&view(), 80, 24).join("\n");
    for text in [
        "tollgate 127.0.0.1:8090  ready  12:00:02 UTC  store redis, BREAKER OPEN, 3 error",
        "admitted 15.0/s  refused 8.00/s",
        "! store: timeout\\u{1b}[31m",
        "alpha",
        "TOP KEYS BY UNITS REFUSED, LAST MINUTE",
        "        12  5 of 5",
        "user=evil\\u{1b}[2J",
        "q quit",
    ] {
        assert!(screen.contains(text), "{text:?} is not in\n{screen}");
    }
}

#[test]
fn key_presses_sort_filter_and_quit() {
    let mut view = view();
    let first = |view: &View| lines(view, 80, 24)[5].split_whitespace().next().unwrap().to_owned();
    assert!(first(&view).starts_with("long"));
    assert_eq!(view.press(Some('a')), Pressed::Nothing);
    assert_eq!(first(&view), "beta");
    view.press(Some('n'));
    assert_eq!(first(&view), "alpha");
    for key in "/bet".chars() {
        view.press(Some(key));
    }
    assert_eq!(view.press(Some('q')), Pressed::Nothing);
    view.press(Some('\u{7f}'));
    assert_eq!((&*view.filter, first(&view).as_str()), ("bet", "beta"));
    view.press(Some('\r'));
    view.press(Some('\u{1b}'));
    assert_eq!((view.is_typing, &*view.filter), (false, ""));
    assert_eq!(view.press(Some('k')), Pressed::OtherKeys);
    assert_eq!(view.by, Measure::Admitted);
    assert_eq!(view.press(Some('w')), Pressed::OtherKeys);
    assert_eq!(view.press(Some('\u{3}')), Pressed::Quit);
    assert_eq!(view.press(Some('q')), Pressed::Quit);
    assert_eq!(view.press(None), Pressed::Quit);
}
