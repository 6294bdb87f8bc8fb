//! The descriptor tree of one domain, and the lookup of a descriptor in it.

use crate::matcher::glob::Glob;
use crate::policy::push_value;
use rustc_hash::FxHashMap;

/// The descriptors below one descriptor, or at the top level.
#[derive(Clone, Debug, Default)]
pub(super) struct DescriptorLevel {
    keys: FxHashMap<Box<str>, DescriptorsByValue>,
}

/// The descriptors of one level that share a key.
#[derive(Clone, Debug, Default)]
struct DescriptorsByValue {
    exact: FxHashMap<Box<str>, Descriptor>,
    /// Descriptors with a pattern, in file order.
    wild: Vec<(Glob, Descriptor)>,
    any: Option<Box<Descriptor>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) rule: Option<usize>,
    pub(super) below: DescriptorLevel,
    /// `share_threshold`: the text that replaces the value in the counter key.
    pub(super) shared: Option<Box<str>>,
}

/// How a descriptor matches the values of its key.
pub(super) enum ValuePattern {
    Exact(Box<str>),
    Wild(Glob),
    Any,
}

impl DescriptorLevel {
    pub(super) fn insert(&mut self, key: &str, place: ValuePattern, descriptor: Descriptor) {
        let values = self.keys.entry(key.into()).or_default();
        match place {
            ValuePattern::Exact(value) => {
                values.exact.insert(value, descriptor);
            }
            ValuePattern::Wild(glob) => values.wild.push((glob, descriptor)),
            ValuePattern::Any => values.any = Some(Box::new(descriptor)),
        }
    }

    /// Finds the descriptor for an entry: an exact value first, then patterns in file order, then a
    /// descriptor without a value.
    fn next(&self, (key, value): (&str, &str)) -> Option<&Descriptor> {
        let values = self.keys.get(key)?;
        let wild = || values.wild.iter().find(|(glob, _)| glob.matches(value));
        let given = values.exact.get(value).or_else(|| Some(&wild()?.1));
        given.or(values.any.as_deref())
    }

    pub(super) fn find(&self, entries: &[(&str, &str)], key: &mut Vec<u8>) -> Option<usize> {
        let mut level = self;
        let mut last = None;
        for entry in entries {
            let descriptor = level.next(*entry)?;
            (level, last) = (&descriptor.below, Some(descriptor));
        }
        let rule = last?.rule?;
        key.clear();
        // The values are written last entry first: the last entry most often identifies a client,
        // and the start of a key spreads keys over a cluster.
        self.push_key(entries, key);
        Some(rule)
    }

    /// Appends the values, last entry first. The recursion is as deep as the tree.
    fn push_key(&self, entries: &[(&str, &str)], key: &mut Vec<u8>) {
        let Some((entry, rest)) = entries.split_first() else { return };
        let Some(descriptor) = self.next(*entry) else { return };
        descriptor.below.push_key(rest, key);
        let value = descriptor.shared.as_deref().unwrap_or(entry.1);
        push_value(key, value.as_bytes());
    }
}
