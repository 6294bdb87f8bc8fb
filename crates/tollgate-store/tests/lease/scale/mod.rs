//! A thousand nodes and a million keys: what leases cost the store there, and what they leave
//! unused. `cargo xtask simulate --scale` writes what `docs/scaling.md` shows; the tests look
//! whether it is still so.

mod cell;
mod draw;
mod key;
mod lifetimes;
mod strata;
mod table;

use cell::SECONDS;
use std::path::PathBuf;
use std::{env, fs};
use strata::Stratum;
use table::Table;

const END: &str = "<!-- end -->";

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn simulated(wanted: impl Fn(&Stratum) -> bool) -> Table {
    let strata: Vec<_> = strata::all(SECONDS).into_iter().filter(wanted).collect();
    let cells = table::cells().into_iter();
    let lines = cells.flat_map(|cell| strata.iter().map(move |one| (cell, *one, cell.run(one))));
    Table(lines.collect())
}

/// The page with `text` where its mark says so.
fn put(page: &str, mark: &str, text: &str) -> String {
    let begin = format!("<!-- cargo xtask simulate {mark} -->\n");
    let (before, rest) = page.split_once(&begin).expect("the page has a place for it");
    let (_, after) = rest.split_once(END).expect("the place has an end");
    format!("{before}{begin}{text}{END}{after}")
}

fn page(old: &str, table: &Table) -> String {
    let page = put(old, "--scale: all", &table.markdown());
    put(&page, "--scale: by rank", &table.by_rank())
}

#[test]
fn lifetimes_do_what_the_page_says() {
    let old = fs::read_to_string(docs("leases.md")).unwrap();
    let new = put(&old, "--picture: lifetimes", &lifetimes::markdown());
    if env::var_os("TOLLGATE_WRITE").is_some() {
        fs::write(docs("leases.md"), new).unwrap();
        return;
    }
    assert!(old == new, "make the table of docs/leases.md again: cargo xtask simulate --picture");
}

/// Three strata, of keys that a node sees often, now and then, and hardly ever.
#[test]
fn the_page_has_what_the_protocol_does() {
    let (csv, svg) = (docs("pictures/scaling.csv"), docs("pictures/scaling.svg"));
    let old = fs::read_to_string(docs("scaling.md")).unwrap();
    if env::var_os("TOLLGATE_WRITE").is_some() {
        let table = simulated(|_| true);
        fs::write(csv, table.csv()).unwrap();
        fs::write(svg, draw::svg(&table)).unwrap();
        fs::write(docs("scaling.md"), page(&old, &table)).unwrap();
        return;
    }
    let known = Table::read(&fs::read_to_string(csv).unwrap());
    let checked = |one: &Stratum| [400, 2_500, 100_000].contains(&one.first);
    for line in simulated(checked).0 {
        assert!(known.0.contains(&line), "`cargo xtask simulate --scale` has another {line:?}");
    }
    assert!(page(&old, &known) == old, "docs/scaling.md has another table than scaling.csv");
    let drawn = fs::read_to_string(svg).unwrap();
    assert!(drawn == draw::svg(&known), "scaling.svg is not drawn from scaling.csv");
}
