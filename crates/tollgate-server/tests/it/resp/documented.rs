//! The conversations in the documentation, as they stand there.

use super::Served;

/// Runs every block of `resp` in a page: `> command` and its answer in one line. `<words>` in angle brackets stand for any word; what `<id>` was
/// the commands after it know.
fn run(page: &str, served: &Served) -> usize {
    let mut lines = 0;
    for block in page.split("```resp\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let mut client = served.client();
        let mut id = String::new();
        let mut answer = String::new();
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("> ") {
                answer = client.line(&command.replace("<id>", &id));
                lines += 1;
                continue;
            }
            let expected: Vec<&str> = line.split(' ').collect();
            let actual: Vec<&str> = answer.split(' ').collect();
            assert_eq!(expected.len(), actual.len(), "{line} is {answer}");
            for (expected, actual) in expected.into_iter().zip(actual) {
                match expected {
                    same if same == actual => {}
                    "<id>" => id = actual.into(),
                    any if any.starts_with('<') => {
                        assert!(actual.parse::<u64>().is_ok(), "{answer}")
                    }
                    _ => panic!("{line} is {answer}"),
                }
            }
        }
    }
    lines
}

/// The file that the page begins with.
fn file(page: &str) -> String {
    let yaml = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    yaml.lines().filter(|line| !line.starts_with("listen:")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_about_redis_cell_holds() {
    let page = include_str!("../../../../../docs/redis-cell.md");
    let served = Served::new(&file(page));
    assert!(run(page, &served) >= 15);
}
