//! Medians, spreads and ratios.

/// The figures of one contender, one per round.
pub(crate) type Rounds = Vec<f64>;

pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

pub(crate) fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(((sorted.len().max(1) - 1) as f64 * at).round() as usize)
        .copied()
        .unwrap_or(f64::NAN)
}

/// The cheapest tenth: near the value on an idle machine, because other processes only add
/// processor time. No target uses it, because it favours contenders with a wider spread.
pub(crate) fn quiet(values: &[f64]) -> f64 {
    quantile(values, 0.1)
}

/// The range from least to most.
pub(crate) fn spread(values: &[f64], digits: usize) -> String {
    let (least, most) = (quantile(values, 0.0), quantile(values, 1.0));
    format!("{least:.digits$}-{most:.digits$}")
}

/// The median of the ratios within each round, which slow and fast minutes of the machine do not
/// affect.
pub(crate) fn ratio(own: &[f64], base: &[f64]) -> f64 {
    let ratios: Vec<f64> = own.iter().zip(base).map(|(own, base)| own / base).collect();
    median(&ratios)
}

/// A target and whether it was met, as two cells.
pub(crate) fn verdict(reached: f64, target: f64, unit: &str) -> String {
    let met = if reached <= target { "met" } else { "missed" };
    format!("<= {target}{unit} | {met}")
}
