use super::*;

fn rows(rows: &[&[&str]]) -> String {
    let owned: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
    table(&owned)
}

#[test]
fn columns_line_up_by_characters() {
    let text = rows(&[&["LIMIT", "MODE"], &["übergröße", "off"], &["a", "enforce"]]);
    assert_eq!(text, "LIMIT      MODE\nübergröße  off\na          enforce\n");
}

#[test]
fn no_cell_steers_the_terminal() {
    let text = rows(&[&["A", "B"], &["\u{1b}[31mred\n", "x"]]);
    assert_eq!(text, "A                B\n\\u{1b}[31mred\\n  x\n");
    assert_eq!(plain("\u{9b}2J\u{202e}a\u{2066}ä"), "\\u{9b}2J\\u{202e}a\\u{2066}ä");
}
