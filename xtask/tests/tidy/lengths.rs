//! Lengths of files, functions and comment lines.

use crate::ratchet::{self, Finding};
use crate::tree::{self, File};

const FILE_MAX: usize = 600;
const FILE_P90_MAX: usize = 400;
const FILE_MEDIAN_MAX: usize = 150;
const FUNCTION_MAX: usize = 70;
const COMMENT_COLUMNS_MAX: usize = 100;

#[test]
fn files_are_short() {
    ratchet::assert_within("file-length", "no file is over 600 lines", &long_files(tree::files()));
}

#[test]
fn most_files_are_shorter_still() {
    let code = tree::files().iter().filter(|file| file.is_ours() && !file.is_test());
    tree::assert_none(&spread(code.map(|file| file.text.lines().count()).collect()));
}

#[test]
fn functions_fit_a_screen() {
    let found = tree::files().iter().filter(|file| file.is_ours()).flat_map(long_functions);
    let rule = "no function is over 70 lines";
    ratchet::assert_within("function-length", rule, &found.collect::<Vec<_>>());
}

#[test]
fn comments_fit_the_width_of_code() {
    let rule = "no line of comment is over 100 columns";
    ratchet::assert_within("comment-width", rule, &wide_comments(tree::files()));
}

fn long_files(files: &[File]) -> Vec<Finding> {
    let finding =
        |file: &File| Finding { subject: file.path.clone(), amount: file.text.lines().count() };
    let found = files.iter().filter(|file| file.is_ours()).map(finding);
    found.filter(|finding| finding.amount > FILE_MAX).collect()
}

fn spread(mut lengths: Vec<usize>) -> Vec<String> {
    lengths.sort_unstable();
    let at = |percent: usize| lengths[(lengths.len() - 1) * percent / 100];
    let mut complaints = Vec::new();
    if at(50) > FILE_MEDIAN_MAX {
        complaints.push(format!("the median file has {} lines, over {FILE_MEDIAN_MAX}", at(50)));
    }
    if at(90) > FILE_P90_MAX {
        complaints.push(format!("one file in ten has over {} lines", at(90)));
    }
    complaints
}

fn long_functions(file: &File) -> Vec<Finding> {
    let found = functions(&file.code).into_iter().filter(|(_, lines)| *lines > FUNCTION_MAX);
    found
        .map(|(name, amount)| Finding { subject: format!("{}::{name}", file.path), amount })
        .collect()
}

/// Files with comment lines wider than rustfmt allows for code, and their number.
fn wide_comments(files: &[File]) -> Vec<Finding> {
    let wide = |mark: &'static str| {
        move |line: &&str| {
            line.trim_start().starts_with(mark) && line.chars().count() > COMMENT_COLUMNS_MAX
        }
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_member()) {
        let mark = if file.path.ends_with(".lua") { "--" } else { "//" };
        let amount = file.text.lines().filter(wide(mark)).count();
        if amount > 0 && (file.is_rust() || mark == "--") {
            found.push(Finding { subject: file.path.clone(), amount });
        }
    }
    found
}

/// The name of each function with a body, and the number of lines from `fn` to the closing brace.
fn functions(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let of_name = |c: char| c.is_alphanumeric() || c == '_';
        if code[..at].chars().next_back().is_some_and(of_name) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|&c| of_name(c)).collect();
        if let Some(body) = body_end(&code[at..])
            && !name.is_empty()
        {
            found.push((name, code[at..at + body].matches('\n').count() + 1));
        }
    }
    found
}

/// The position of the brace that closes a function's body; `None` for a declaration, or for the
/// type `fn(...)`.
fn body_end(code: &str) -> Option<usize> {
    let (mut depth, mut nested) = (0_usize, 0_usize);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => nested += 1,
            ')' | ']' => nested = nested.checked_sub(1)?,
            ';' if depth == 0 && nested == 0 => return None,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && nested == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn a_long_file_is_found() {
    let file = |lines: usize| [File::new("crates/x/src/y.rs", &"//\n".repeat(lines))];
    assert_eq!(long_files(&file(FILE_MAX)), []);
    assert_eq!(long_files(&file(FILE_MAX + 1))[0].amount, FILE_MAX + 1);
}

#[test]
fn a_wide_comment_is_found() {
    let found = |path: &str, line: &str| wide_comments(&[File::new(path, line)]).len();
    let filled = "x".repeat(COMMENT_COLUMNS_MAX);
    assert_eq!(found("crates/x/src/y.rs", &format!("    /// {filled}")), 1);
    assert_eq!(found("crates/x/src/y.lua", &format!("-- {filled}")), 1);
    assert_eq!(found("crates/x/src/y.rs", &format!("// {}", &filled[3..])), 0);
    assert_eq!(found("crates/x/src/y.rs", &format!("let x = \"{filled}\";")), 0);
}

#[test]
fn long_files_on_the_whole_are_found() {
    assert!(spread(vec![10, 150, 400]).is_empty());
    assert!(spread(vec![10, 151, 151])[0].contains("median"));
    let tail = [vec![10; 80], vec![401; 20]].concat();
    assert!(spread(tail)[0].contains("in ten"));
}

#[test]
fn a_long_function_is_found() {
    let body = "    let _ = [0; 3]; // {\n".repeat(FUNCTION_MAX - 1);
    let short = File::new("a.rs", &format!("trait T {{ fn d(&self); }}\nfn f(\n) {{\n{body}}}"));
    let names = |file: &File| functions(&file.code);
    assert_eq!(names(&short), [("f".to_owned(), FUNCTION_MAX + 2)]);
    assert_eq!(long_functions(&short)[0].subject, "a.rs::f");
    let fine = File::new("a.rs", &format!("fn f() {{\n{}}}", "    x;\n".repeat(FUNCTION_MAX - 2)));
    assert_eq!(long_functions(&fine), []);
}
