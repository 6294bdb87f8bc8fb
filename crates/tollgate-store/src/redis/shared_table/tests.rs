use super::{SharedTable, SharedValue, VERSION_DIGITS};
use proptest::prelude::*;

fn table() -> impl Strategy<Value = SharedTable> {
    let value = (0_u32..6, any::<bool>()).prop_map(|(version, is_cleared)| SharedValue {
        version: format!("{version:0VERSION_DIGITS$}").into(),
        is_cleared,
        // A version is assigned once, so equal versions have equal values.
        value: format!("{{\"v\":{version}}}").into(),
    });
    let entries = prop::collection::btree_map("[a-c*/]{1,2}", value, 0..6);
    entries.prop_map(|entries| {
        let mut table = SharedTable::default();
        for (name, mut value) in entries {
            value.is_cleared = value.version.ends_with(['1', '3']);
            table.merge(&name, &value);
        }
        table
    })
}

fn merged(tables: &[&SharedTable]) -> SharedTable {
    let mut all = SharedTable::default();
    for table in tables {
        table.iter().for_each(|(name, value)| all.merge(name, value));
    }
    all
}

proptest! {
    #[test]
    fn tables_merge_to_the_same_one_in_any_order(a in table(), b in table(), c in table()) {
        let all = merged(&[&a, &b, &c]);
        prop_assert_eq!(&all, &merged(&[&c, &b, &a]));
        prop_assert_eq!(&all, &merged(&[&merged(&[&a, &b]), &merged(&[&b, &c]), &all]));
        prop_assert!(!all.is_behind(&a) && !all.is_behind(&b) && !all.is_behind(&c));
        prop_assert_eq!(a.is_behind(&all), a != all);
    }

    #[test]
    fn a_table_is_read_as_it_was_written(a in table()) {
        prop_assert_eq!(SharedTable::parse(&a.to_text()), a);
    }

    #[test]
    fn nothing_in_a_table_breaks_it(text in "[0-9\t\n+a-]{0,60}") {
        let table = SharedTable::parse(&text);
        prop_assert_eq!(SharedTable::parse(&table.to_text()), table);
    }
}
