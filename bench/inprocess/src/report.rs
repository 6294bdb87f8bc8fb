//! Prints medians, spreads, ratios and targets as Markdown.

use crate::rows::Row;
use contenders::Contender;

/// Prints a row's table.
pub(crate) fn print(
    row: &Row,
    threads: usize,
    contenders: &[Box<dyn Contender>],
    rounds: &[Vec<f64>],
) {
    let plural = if threads == 1 { "thread" } else { "threads" };
    println!("\n### {}, {threads} {plural}\n", row.title);
    println!("| | ns a decision | spread | M/s | of {} | target | |", row.base);
    println!("|---|---|---|---|---|---|---|");
    let place = |name| contenders.iter().position(|contender| contender.name() == name);
    for (contender, own) in contenders.iter().zip(rounds) {
        let ratio_to = |base| Some(ratio(own, &rounds[place(base)?]));
        let of_base = ratio_to(row.base).map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let target = row.targets.iter().find(|target| target.name == contender.name());
        let (target, met) = match target.and_then(|t| Some((t, ratio_to(t.base)?))) {
            None => (String::new(), String::new()),
            Some((target, reached)) => {
                let met = if reached <= target.ratio { "met" } else { "missed" };
                let text = format!("<= {} of {}", target.ratio, target.base);
                (text, format!("{met}: {reached:.2}"))
            }
        };
        let (low, high) = (quantile(own, 0.0), quantile(own, 1.0));
        let ns = quantile(own, 0.5);
        println!(
            "| {} | {ns:.1} | {low:.1}-{high:.1} | {:.2} | {of_base} | {target} | {met} |",
            contender.name(),
            1e3 / ns,
        );
    }
}

/// The median of the ratios within each round, which slow and fast minutes of the machine do not
/// affect.
fn ratio(own: &[f64], base: &[f64]) -> f64 {
    let ratios: Vec<f64> = own.iter().zip(base).map(|(own, base)| own / base).collect();
    quantile(&ratios, 0.5)
}

fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * at) as usize]
}
