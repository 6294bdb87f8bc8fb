use super::*;

fn rate_of(limit: &str) -> String {
    let file = format!("limits: [{{name: a, {limit}}}]");
    let compiled = tollgate_policy::compile(file.as_bytes()).unwrap();
    NumbersView::new(compiled.limits[0].0.params.as_ref()).rate
}

#[test]
fn rates_read_as_the_file_spells_them() {
    for (limit, shown) in [
        ("rate: 100/min", "100/min"),
        ("rate: 5/10s", "5/10s"),
        ("rate: 7/day", "7/d"),
        ("rate: 7/2weeks", "7/2w"),
        ("rate: 90/90s", "90/90s"),
        ("rate: 3/1500ms", "3/1500ms"),
        ("rate: 20/s, burst: 50, algorithm: token-bucket", "20/s"),
        ("rate: 20/s, burst: 50, algorithm: gcra", "20/s"),
        ("rate: 20/s, queue: 5, algorithm: leaky-bucket", "20/s"),
        ("rate: 20, algorithm: concurrency", "20"),
        ("rate: 0/s", "0/s"),
        ("rate: unlimited", "unlimited"),
    ] {
        assert_eq!(rate_of(limit), shown, "{limit}");
    }
}
