//! Tables for a terminal.

use tollgate_observe::escape::is_command;

/// Formats a table whose first row is the heading. Control characters are escaped.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Escapes characters that would control the terminal.
pub(crate) fn plain(text: &str) -> String {
    let shown =
        |c: char| if is_command(c) { c.escape_default().collect() } else { String::from(c) };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests;
