//! A registry of values by [`ParamsId`]: read without a lock, never shrinks.

use crate::ParamsId;
use crate::sync::{Lock, lock};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::OnceLock;

const PAGE: usize = 64;

type Page<T> = [OnceLock<T>; PAGE];

/// Values by id. Decisions read it; a reload of the policy writes it.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    pages: Box<[OnceLock<Box<Page<T>>>]>,
    ids: Lock<HashMap<T, u16>>,
}

impl<T: Copy + Eq + Hash> Registry<T> {
    /// Creates a registry for `ids - 1` values; id zero stays unused.
    pub(crate) fn new(ids: usize) -> Self {
        let pages = (0..ids / PAGE).map(|_| OnceLock::new()).collect();
        Self { pages, ids: Lock::new(HashMap::new()) }
    }

    /// The id of a value; `None` when all ids are used.
    pub(crate) fn register(&self, value: &T) -> Option<ParamsId> {
        let mut ids = lock(&self.ids);
        if let Some(&id) = ids.get(value) {
            return Some(ParamsId(id));
        }
        let id = ids.len() + 1;
        let page = self.pages.get(id / PAGE)?;
        let page = page.get_or_init(|| Box::new([const { OnceLock::new() }; PAGE]));
        // `ids` has an entry for each cell that is set, so this cell is empty.
        let _ = page[id % PAGE].set(*value);
        ids.insert(*value, id as u16);
        Some(ParamsId(id as u16))
    }

    /// The value of an id; `None` for zero and for unassigned ids.
    #[inline]
    pub(crate) fn get(&self, id: ParamsId) -> Option<&T> {
        let id = usize::from(id.0);
        self.pages.get(id / PAGE)?.get()?[id % PAGE].get()
    }
}
