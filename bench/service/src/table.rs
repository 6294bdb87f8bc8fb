//! Medians, spreads and ratios.

/// Figures of one contender, one from each round.
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

/// The cheapest tenth: near what it is when nobody else uses the machine, since others only ever add to processor time. No target is judged by it, as it flatters
/// whoever has the wider spread.
pub(crate) fn quiet(values: &[f64]) -> f64 {
    quantile(values, 0.1)
}

/// From the least to the most.
pub(crate) fn spread(values: &[f64], digits: usize) -> String {
    let (least, most) = (quantile(values, 0.0), quantile(values, 1.0));
    format!("{least:.digits$}-{most:.digits$}")
}

/// The median of the ratios within a round, which the machine's slow and fast minutes do not touch.
pub(crate) fn ratio(own: &[f64], base: &[f64]) -> f64 {
    let ratios: Vec<f64> = own.iter().zip(base).map(|(own, base)| own / base).collect();
    median(&ratios)
}

/// A target and whether it was reached, as two cells.
pub(crate) fn verdict(reached: f64, target: f64, unit: &str) -> String {
    let met = if reached <= target { "met" } else { "missed" };
    format!("<= {target}{unit} | {met}")
}
