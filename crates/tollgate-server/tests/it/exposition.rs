//! A strict parser of both text formats for metrics: every scraper can read what it accepts.

use std::collections::{BTreeMap, HashSet};

/// A family: its type and its samples.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) samples: Vec<Sample>,
}

/// A sample: its full name, labels in order, and value.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// All families of a page.
#[derive(Debug, Default)]
pub(crate) struct Page(pub(crate) BTreeMap<String, Family>);

impl Page {
    /// Reads the Prometheus format, 0.0.4: counters carry `_total` in the family's name, and there
    /// is no end mark.
    pub(crate) fn prometheus(text: &str) -> Result<Self, String> {
        read(text, "")
    }

    /// Reads OpenMetrics: counters carry `_total` only in the sample's name, and the page ends in
    /// `# EOF`.
    pub(crate) fn open_metrics(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix("# EOF\n").ok_or("no end mark")?;
        read(body, "_total")
    }

    /// The value of the one sample with this name and these labels, whatever their order.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let same = |sample: &&Sample| {
            sample.name == name
                && sample.labels.len() == labels.len()
                && labels.iter().all(|(key, value)| {
                    sample.labels.iter().any(|label| (&*label.0, &*label.1) == (*key, *value))
                })
        };
        self.0.values().flat_map(|family| &family.samples).find(same).map(|sample| sample.value)
    }
}

fn read(text: &str, counter_suffix: &str) -> Result<Page, String> {
    if !text.ends_with('\n') {
        return Err("the last line does not end".into());
    }
    let mut page = Page::default();
    let mut current = String::new();
    let mut seen = HashSet::new();
    for line in text.lines() {
        let fail = |what: &str| format!("{what}: {line}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(|| fail("no help"))?;
            if page.0.contains_key(name) {
                return Err(fail("a family twice"));
            }
            current = name.to_owned();
            let family = Family { help: help.to_owned(), ..Family::default() };
            page.0.insert(current.clone(), family);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(|| fail("no type"))?;
            let family = page.0.get_mut(name).filter(|_| name == current);
            let family = family.ok_or_else(|| fail("a type without a help before it"))?;
            if !matches!(kind, "counter" | "gauge" | "histogram") || !family.kind.is_empty() {
                return Err(fail("type"));
            }
            family.kind = kind.to_owned();
        } else if line.starts_with('#') || line.is_empty() {
            return Err(fail("neither help nor type nor sample"));
        } else {
            let sample = sample(line).map_err(|why| fail(&why))?;
            let family = page.0.get_mut(&current).ok_or_else(|| fail("no family"))?;
            let belongs = match &*family.kind {
                "counter" => sample.name == format!("{current}{counter_suffix}"),
                "gauge" => sample.name == current,
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .any(|suffix| sample.name == format!("{current}{suffix}")),
                _ => false,
            };
            if !belongs {
                return Err(fail("not of the family above it"));
            }
            if !seen.insert(format!("{}{:?}", sample.name, sample.labels)) {
                return Err(fail("a sample twice"));
            }
            family.samples.push(sample);
        }
    }
    for (name, family) in &page.0 {
        if family.kind.is_empty() || family.help.is_empty() {
            return Err(format!("{name} lacks its type or its help"));
        }
        if family.kind == "histogram" {
            histogram(name, family)?;
        }
    }
    Ok(page)
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    identifier(name)?;
    let mut labels: Vec<(String, String)> = Vec::new();
    if let Some(mut inner) = rest.strip_prefix('{') {
        loop {
            let (key, after) = inner.split_once("=\"").ok_or("a label without a value")?;
            identifier(key)?;
            let (value, after) = quoted(after)?;
            if labels.iter().any(|(other, _)| other == key) {
                return Err("a label twice".into());
            }
            labels.push((key.to_owned(), value));
            match after.split_at_checked(1) {
                Some((",", after)) => inner = after,
                Some(("}", after)) => {
                    rest = after;
                    break;
                }
                _ => return Err("labels do not end".into()),
            }
        }
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    let value = value.parse().map_err(|_| "not a number")?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

fn identifier(name: &str) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && name.chars().all(legal) { Ok(()) } else { Err(format!("bad name {name:?}")) }
}

/// A label's value up to its closing quote, and the text after it.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some(c @ ('\\' | '"')) => value.push(c),
                Some('n') => value.push('\n'),
                _ => return Err("an unknown escape".into()),
            },
            c => value.push(c),
        }
    }
    Err("a value without an end".into())
}

/// Checks a histogram: bounds rise to `+Inf`, counts never fall, and the last equals the count.
fn histogram(name: &str, family: &Family) -> Result<(), String> {
    let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let label = |sample: &Sample, key: &str| {
        sample.labels.iter().find(|label| label.0 == key).map(|label| label.1.clone())
    };
    let others = |sample: &Sample| {
        let others: Vec<_> = sample.labels.iter().filter(|label| label.0 != "le").collect();
        format!("{others:?}")
    };
    for sample in family.samples.iter().filter(|sample| sample.name.ends_with("_bucket")) {
        let bound = label(sample, "le").ok_or("a bucket without `le`")?;
        let bound = bound.replace("+Inf", "inf").parse().map_err(|_| "`le` is no number")?;
        series.entry(others(sample)).or_default().push((bound, sample.value));
    }
    for (labels, buckets) in &series {
        let rises = buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        let count = family
            .samples
            .iter()
            .find(|sample| sample.name.ends_with("_count") && others(sample) == *labels);
        let count = count.ok_or_else(|| format!("{name}{labels}: no count"))?.value;
        if !rises || buckets.last() != Some(&(f64::INFINITY, count)) {
            return Err(format!("{name}{labels}: {buckets:?} of {count}"));
        }
    }
    Ok(())
}

#[test]
fn it_refuses_what_a_scraper_would() {
    let head = "# HELP a_total Help.\n# TYPE a_total counter\n";
    let ok = |rest: &str| Page::prometheus(&format!("{head}{rest}")).is_ok();
    assert!(ok("a_total{b=\"c\"} 1\na_total{b=\"d\"} 1.5\n"));
    for bad in [
        "a_total 1",
        "a 1\n",
        "b_total 1\n",
        "a_total{} 1\n",
        "a_total{b=\"c} 1\n",
        "a_total{b=\"\\q\"} 1\n",
        "a_total{b=\"c\",b=\"c\"} 1\n",
        "a_total{b=\"c\"} 1\na_total{b=\"c\"} 1\n",
        "a_total one\n",
        "a_total 1\n# EOF\n",
        "\n",
    ] {
        assert!(!ok(bad), "{bad:?}");
    }
    assert!(Page::prometheus("a_total 1\n").is_err(), "no family");
    assert!(Page::prometheus("# TYPE a counter\na 1\n").is_err(), "no help");
    assert!(Page::open_metrics(&format!("{head}a_total 1\n# EOF\n")).is_err(), "the older name");
    let buckets = |text: &str| {
        let head = "# HELP h Help.\n# TYPE h histogram\nh_sum 1\nh_count 2\n";
        Page::prometheus(&format!("{head}{text}"))
    };
    assert!(buckets("h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n").is_ok());
    assert!(buckets("h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\n").is_err(), "falls");
    assert!(buckets("h_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 2\n").is_err(), "no end");
    assert!(buckets("h_bucket{le=\"+Inf\"} 3\n").is_err(), "another count");
}
