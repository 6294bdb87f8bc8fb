use super::*;

const START_US: u64 = 1_700_000_000_000_000;

fn panel(name: &str) -> Panel {
    let description = "gcra, 10 per 1 s, burst 10, by user".into();
    Panel { name: name.into(), description, rate: Some((10, 1_000_000)) }
}

#[test]
fn each_series_is_counted_and_said() {
    let mut plot = Plot::new(vec![panel("one"), panel("two"), panel("idle")]);
    for n in 0..30 {
        let admitted = n < 10;
        plot.count(START_US + n * 100_000, admitted, [(0, admitted), (1, true)].into_iter());
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
    assert!(svg.contains("<title>1 s to 1.05 s: 1 requests, 0 admitted, 1 refused</title>"));
}

#[test]
fn names_cannot_break_the_picture() {
    let mut plot = Plot::new(vec![panel("<script>&\"\u{1}")]);
    plot.count(START_US, true, [(0, true)].into_iter());
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
            plot.count(START_US + time, false, std::iter::once((n as usize, false)));
        }
    }
    let svg = plot.svg("many");
    assert!(svg.contains("not drawn, since refused less: 68"));
    assert!(
        svg.contains(">limit-99<") && svg.contains(">limit-68<") && !svg.contains(">limit-67<")
    );
    assert!(svg.find(">limit-68<") < svg.find(">limit-99<"), "in file order");
}
