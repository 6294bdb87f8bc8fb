use super::*;

#[test]
fn every_part_stands_once_and_before_what_needs_it() {
    let script =
        compose(MIRRORS.iter().flat_map(|mirror| mirror.1.iter().copied()).chain([PENALTY]));
    for part in [MULDIV, WINDOW, BUCKET, LEDGER, PENALTY] {
        assert_eq!(script.matches(part).count(), 1);
    }
    assert!(script.starts_with(MULDIV));
    for (name, parts) in MIRRORS {
        let table = std::format!("local {} = {{", name.replace('-', "_"));
        assert!(parts.last().unwrap().contains(&table), "{name} has a table of its own name");
        let at = |part: &str| script.find(part).unwrap();
        assert!(parts.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{name} follows its parts");
    }
}

#[test]
fn an_unknown_algorithm_has_no_mirror() {
    assert_eq!(parts("gcra").map(<[_]>::len), Some(3));
    assert_eq!(parts("no-such"), None);
}

#[test]
fn the_ledger_s_epoch_is_the_one_its_mirror_uses() {
    assert!(LEDGER.contains(&std::format!("LEDGER_EPOCH_US = {LEDGER_EPOCH_US}\n")));
}
