use super::*;

const START_US: u64 = 1_700_000_000_000_000;

fn panel(name: &str) -> Panel {
    let description = "gcra, 10 per 1 s, burst 10, by user".into();
    Panel::new(name.into(), description)
}

fn answer(limit: usize, admitted: bool, key: u64) -> LimitAnswer {
    LimitAnswer { limit, admitted, key, rate: Some((10, 1_000_000)) }
}

#[test]
fn each_series_is_counted_and_said() {
    let mut plot = Plot::new(vec![panel("one"), panel("two"), panel("idle")]);
    for n in 0..30 {
        let admitted = n < 10;
        plot.count(
            START_US + n * 100_000,
            admitted,
            [answer(0, admitted, 1), answer(1, true, 1)].into_iter(),
        );
    }
    let svg = plot.svg("title");
    let summaries: Vec<&str> = svg
        .split('>')
        .filter_map(|part| part.strip_suffix("</text").filter(|text| text.contains(" admitted, ")))
        .collect();
    assert_eq!(
        summaries,
        [
            "30 requests: 10 admitted, 20 refused",
            "30 requests: 10 admitted, 20 refused",
            "30 requests: 30 admitted, 0 refused",
        ]
    );
    assert!(svg.contains("limits without requests: 1") && !svg.contains(">idle<"));
    assert!(svg.contains("requests per 50 ms, from 2023-11-14 22:13:20 UTC"));
    assert!(svg.contains("<title>1 s to 1.05 s: 1 request, 0 admitted, 1 refused</title>"));
}

#[test]
fn names_cannot_break_the_picture() {
    let mut plot = Plot::new(vec![panel("<script>&\"\u{1}")]);
    plot.count(START_US, true, [answer(0, true, 1)].into_iter());
    let svg = plot.svg("<b> & co");
    assert!(
        svg.contains("&lt;script&gt;&amp;&quot;\u{fffd}") && svg.contains("&lt;b&gt; &amp; co")
    );
    assert!(!svg.contains("<script>") && !svg.contains('\u{1}'));
}

#[test]
fn an_empty_run_still_makes_a_picture() {
    let svg = Plot::new(vec![panel("one")]).svg("nothing");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("0 requests: 0 admitted, 0 refused"));
}

#[test]
fn of_many_limits_the_most_refusing_are_drawn() {
    let names: Vec<String> = (0..100).map(|n| format!("limit-{n}")).collect();
    let mut plot = Plot::new(names.iter().map(|name| panel(name)).collect());
    for n in 0..100 {
        for time in 0..=n {
            plot.count(START_US + time, false, std::iter::once(answer(n as usize, false, 1)));
        }
    }
    let svg = plot.svg("many");
    assert!(svg.contains("not drawn, since refused less: 68"));
    assert!(
        svg.contains(">limit-99<") && svg.contains(">limit-68<") && !svg.contains(">limit-67<")
    );
    assert!(svg.find(">limit-68<") < svg.find(">limit-99<"), "in file order");
}

/// The height of the dashed line of the only limit above the axis, in tenths of a pixel.
fn dashed(svg: &str) -> u64 {
    let tenths = |text: &str| {
        let (whole, tenth) = text.split_once('.').unwrap_or((text, "0"));
        10 * whole.parse::<u64>().unwrap() + tenth.get(..1).unwrap().parse::<u64>().unwrap()
    };
    let number = |of: &str, name: &str| {
        let rest = of.split(&format!(" {name}=\"")).nth(1).unwrap();
        tenths(rest.split('"').next().unwrap())
    };
    let bar = svg.split("<rect").filter(|rect| rect.starts_with(" class=\"h\"")).last().unwrap();
    let line = svg.split("class=\"l\" d=\"M").nth(1).unwrap();
    let y = line.split(['L', '"']).next().unwrap().split(' ').nth(1).unwrap();
    number(bar, "y") + number(bar, "height") - tenths(y)
}

/// With ten keys instead of one, the line is ten times as high, since the bars count all keys.
#[test]
fn the_line_is_the_rate_of_all_keys_as_the_bars_are_of_all_keys() {
    let draw = |keys: u64| {
        let mut plot = Plot::new(vec![panel("one")]);
        for n in 0..1_000 {
            plot.count(START_US + n * 10_000, true, std::iter::once(answer(0, true, n % keys)));
        }
        plot.svg("keys")
    };
    let (one, ten) = (draw(1), draw(10));
    assert!(one.contains(">the limit&#39;s rate<") || one.contains(">the limit's rate<"), "{one}");
    assert!(ten.contains("rate, for all its keys together") && ten.contains(": 10 keys"), "{ten}");
    let (low, high) = (dashed(&one), dashed(&ten));
    assert!(low > 0 && high.abs_diff(10 * low) <= 10, "{low} {high}");
}

#[test]
fn tiers_add_up() {
    let mut rates = key_rates::KeyRates::default();
    rates.note(1, (10, 1_000_000));
    rates.note(2, (10, 1_000_000));
    rates.note(3, (300, 60_000_000));
    assert_eq!((rates.keys(), rates.total(2_000_000, 1)), (3, Some(50)));
    rates.note(3, (600, 60_000_000));
    assert_eq!(rates.total(2_000_000, 1), Some(60), "the key has another tier now");
    assert_eq!(key_rates::KeyRates::default().total(1, 1), None);
}

/// A rate of ten a second is drawn beside bars of six a second, but not beside bars of four.
#[test]
fn the_scale_reaches_a_rate_that_is_little_higher_than_the_bars() {
    let draw = |per_second: u64| {
        let mut plot = Plot::new(vec![panel("one")]);
        for n in 0..100 * per_second {
            let time_us = START_US + n * 1_000_000 / per_second;
            plot.count(time_us, true, std::iter::once(answer(0, true, 1)));
        }
        plot.svg("scale")
    };
    let (near, far) = (draw(6), draw(4));
    assert!(near.contains("class=\"l\"") && !near.contains("above the scale"), "{near}");
    assert!(
        !far.contains("class=\"l\"") && far.contains("rate above the scale: 10 per 1 s"),
        "{far}"
    );
}
