//! Classes of requests: the class of a request, and the limits of the fleet's shedder.

use super::selection::{SelectedEntry, Selection};
use super::{Compiler, InvalidPolicy, Policy};
use crate::facts::{AttributeId, Facts, KeyValue};
use crate::limit::{Limit, Mode, Selector};
use crate::matcher::Matcher;
use crate::shed::ShedPolicy;
use std::hash::{BuildHasher, Hash, Hasher};

/// The compiled classes.
#[derive(Debug)]
pub(super) struct ClassTable {
    classes: Box<[CompiledClass]>,
    default_class: usize,
    fair_by: Box<[AttributeId]>,
    lower_by: Option<AttributeId>,
    /// The limits of the fleet that are not off, each with the index of its first class.
    fleet: Box<[(usize, usize)]>,
    is_on: bool,
}

#[derive(Debug)]
struct CompiledClass {
    name: Box<str>,
    /// `None` for a default class that only takes requests that no class matches.
    matcher: Option<Matcher>,
}

impl Policy {
    /// The class of a request, by index: 0 is the most important. `None` if no shedder is on.
    ///
    /// The attribute of `lower_by` names a class. It may only lower the class of the request,
    /// unless a [trusted proxy](Facts::set_peer_trusted) sent the request.
    #[inline]
    pub fn class(&self, facts: &Facts<'_>) -> Option<usize> {
        let table = self.classes.as_ref().filter(|table| table.is_on)?;
        Some(table.class(facts))
    }

    /// The names of the classes, the most important first; empty without shedders.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &str> {
        let classes = self.classes.as_ref().map_or(&[][..], |table| &table.classes);
        classes.iter().map(|class| &*class.name)
    }

    /// Whether the class of a request may depend on its sender: see [`Facts::set_peer_trusted`].
    pub fn has_lower_by(&self) -> bool {
        self.classes.as_ref().is_some_and(|table| table.lower_by.is_some())
    }

    /// Adds the limits of the fleet's shedder for a request of this class to the selection. Each
    /// costs one slot.
    #[inline]
    pub fn select_fleet(&self, class: usize, selection: &mut Selection) {
        if let Some(table) = self.classes.as_ref().filter(|table| !table.fleet.is_empty()) {
            self.select_slots(table, class, selection);
        }
    }

    /// Whether the fleet's shedder is on, so that [`select_fleet`](Self::select_fleet) selects.
    #[inline]
    pub fn has_fleet(&self) -> bool {
        self.classes.as_ref().is_some_and(|table| !table.fleet.is_empty())
    }

    #[inline(never)]
    fn select_slots(&self, table: &ClassTable, class: usize, selection: &mut Selection) {
        for (_, limit) in table.fleet.iter().filter(|(first, _)| *first <= class) {
            let Some(params) = self.compiled_limits[*limit].base else { continue };
            let end = selection.keys.len();
            selection.entries.push(SelectedEntry {
                limit: *limit,
                params,
                tier: None,
                cost: 1,
                key: end..end,
                key_index: 0,
                missing: false,
                unverified: false,
            });
        }
    }

    /// Whether the policy has `fair_by`, which distinguishes the clients of one class.
    #[inline]
    pub fn has_fair_by(&self) -> bool {
        self.classes.as_ref().is_some_and(|table| !table.fair_by.is_empty())
    }

    /// A hash of the values of `fair_by`, which identifies a client within its class; 0 if the
    /// request has none of them.
    pub fn client_hash(&self, facts: &Facts<'_>, key: &impl BuildHasher) -> u64 {
        let fair_by = self.classes.as_ref().map_or(&[][..], |table| &table.fair_by);
        if fair_by.iter().all(|attribute| facts.key_value(*attribute).is_none()) {
            return 0;
        }
        let mut hasher = key.build_hasher();
        for attribute in fair_by {
            match facts.key_value(*attribute) {
                Some(KeyValue::Text(text)) => text.hash(&mut hasher),
                Some(KeyValue::Address(address)) => address.hash(&mut hasher),
                None => hasher.write_u8(0xfe),
            }
        }
        hasher.finish().max(1)
    }
}

impl ClassTable {
    #[inline]
    fn class(&self, facts: &Facts<'_>) -> usize {
        let class = self.class_of_reading(facts);
        match self.lower_by.is_some() || facts.is_uncommon() {
            true => self.lowered(class, facts),
            false => class,
        }
    }

    /// Lowers the class of a request by its other readings and by the class that it names.
    #[inline(never)]
    fn lowered(&self, mut class: usize, facts: &Facts<'_>) -> usize {
        if facts.has_other_readings() {
            // The least important reading counts, so that no spelling of a path raises the class.
            let others = facts.other_readings().map(|other| self.class_of_reading(&other));
            class = others.fold(class, usize::max);
        }
        match self.named(facts) {
            Some(named) if facts.is_peer_trusted() => named,
            Some(named) => named.max(class),
            None => class,
        }
    }

    #[inline]
    fn class_of_reading(&self, facts: &Facts<'_>) -> usize {
        let matches = |class: &CompiledClass| {
            class.matcher.as_ref().is_some_and(|it| it.matches(facts, false))
        };
        self.classes.iter().position(matches).unwrap_or(self.default_class)
    }

    /// The class that the attribute of `lower_by` names.
    fn named(&self, facts: &Facts<'_>) -> Option<usize> {
        let KeyValue::Text(name) = facts.key_value(self.lower_by?)? else { return None };
        self.classes.iter().position(|class| *class.name == *name)
    }
}

impl Compiler {
    /// Compiles the classes. Their attributes are identifying: if a request had two values, a
    /// client could choose the more important class.
    pub(super) fn classes(
        &mut self,
        shed: &ShedPolicy,
        limits: &[&Limit],
    ) -> Result<ClassTable, InvalidPolicy> {
        let mut classes = Vec::with_capacity(shed.classes.len());
        for class in &shed.classes {
            let matcher = match &class.match_spec {
                Some(spec) => Some(self.identifying_matcher(&class.name, spec)?),
                None => None,
            };
            classes.push(CompiledClass { name: class.name.clone(), matcher });
        }
        let is_on = |limit: &Limit| limit.selector.is_shed() && limit.mode != Mode::Off;
        let fleet = limits.iter().enumerate().filter_map(|(index, limit)| match limit.selector {
            Selector::Class(first) if is_on(limit) => Some((first, index)),
            _ => None,
        });
        Ok(ClassTable {
            classes: classes.into(),
            default_class: shed.default_class,
            fair_by: self.key(&shed.fair_by)?,
            lower_by: shed.lower_by.as_deref().map(|name| self.attribute(name)).transpose()?,
            fleet: fleet.collect(),
            is_on: limits.iter().any(|limit| is_on(limit)),
        })
    }
}
