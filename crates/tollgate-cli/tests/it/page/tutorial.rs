//! docs/tutorial.md: each block in turn, in one folder.

use super::{Page, Reader};
use crate::serve::process::Folder;

#[test]
fn ten_minutes() {
    let text = include_str!("../../../../../docs/tutorial.md");
    // The port that replaces 8090, for `tollgate admin`.
    let first = "\n```console\n$ export TOLLGATE_ADMIN_URL=http://127.0.0.1:8090\n```\n";
    let page = Page::new(&format!("{first}{text}"), &["3000", "8080", "8090"]);
    let folder = Folder::new("tutorial");
    let mut reader = Reader::new(&folder);
    for (language, block) in page.all() {
        match language {
            "python" => std::fs::write(folder.0.join("app.py"), block).unwrap(),
            "yaml" => reader.save(block),
            "console" => reader.follow(block),
            other => panic!("a block in {other}"),
        }
    }
}
