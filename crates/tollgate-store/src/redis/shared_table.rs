//! A small table that all nodes of a store share: the latest value of each name.
//!
//! A node keeps every value that it has seen, so a store that lost the table gets it back from any
//! node. Each value has a version, which the store counts up, so two tables merge to the same
//! result in any order. The script and [`SharedTable::merge`] have the same rule.

use super::RedisStore;
use super::batch::ScriptTables;
use super::batch::rows::invalid_reply;
use super::cluster::slot_of;
use super::script::Script;
use crate::{StoreError, StoreErrorKind};
use ahash::RandomState;
use redis::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

static SHARED_TABLE: LazyLock<Script> =
    LazyLock::new(|| Script::of(include_str!("shared_table/table.lua")));

/// A table that all nodes of a store share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedTable(BTreeMap<Box<str>, SharedValue>);

/// The latest value of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedValue {
    /// The version; greater versions are later.
    pub version: Box<str>,
    /// Whether the name was cleared. The entry stays, or a node could bring back an earlier value.
    pub is_cleared: bool,
    /// The value, without control characters.
    pub value: Box<str>,
}

/// A change of one name. A name or value with a control character changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct SharedChange<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether the change clears the name.
    pub is_cleared: bool,
    /// The value; for a cleared name, the data to keep with it.
    pub value: &'a str,
}

/// Length of a version: a counter of 16 digits, and 20 random digits that distinguish equal
/// counters.
const VERSION_DIGITS: usize = 36;

impl SharedTable {
    /// The names and their values, including cleared ones.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SharedValue)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&SharedValue> {
        self.0.get(name)
    }

    /// Merges a value, if it is later than the table's.
    pub fn merge(&mut self, name: &str, value: &SharedValue) {
        if self.is_before(name, value) {
            self.0.insert(name.into(), value.clone());
        }
    }

    /// Whether the table has an earlier value for the name, or none.
    pub fn is_before(&self, name: &str, value: &SharedValue) -> bool {
        self.0.get(name).is_none_or(|known| known.version < value.version)
    }

    /// Whether `other` has a later value for any name.
    pub fn is_behind(&self, other: &Self) -> bool {
        other.iter().any(|(name, value)| self.is_before(name, value))
    }

    /// Drops cleared names that the store has dropped to make room.
    pub fn forget_cleared(&mut self, stored: &Self) {
        self.0.retain(|name, value| !value.is_cleared || stored.get(name).is_some());
    }

    /// Parses a table. Invalid lines are skipped.
    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(4, '\t');
            let mut field = || fields.next();
            let (Some(version), Some(state), Some(name), Some(value)) =
                (field(), field(), field(), field())
            else {
                continue;
            };
            let is_version = version.len() == VERSION_DIGITS
                && version.bytes().all(|byte| byte.is_ascii_digit());
            if is_version && matches!(state, "+" | "-") && !name.is_empty() {
                let (version, value) = (version.into(), value.into());
                table.merge(name, &SharedValue { version, is_cleared: state == "-", value });
            }
        }
        table
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for (name, SharedValue { version, is_cleared, value }) in self.iter() {
            let state = if *is_cleared { '-' } else { '+' };
            let _ = writeln!(text, "{version}\t{state}\t{name}\t{value}");
        }
        text
    }
}

impl RedisStore {
    /// Reads the table with this name.
    ///
    /// # Errors
    ///
    /// If the server did not answer in time.
    pub async fn shared_table(&self, table: &str) -> Result<SharedTable, StoreError> {
        let key = self.namer.table_key(table);
        let mut command = redis::cmd("GET");
        command.arg(&key);
        let reply = self.with_deadline(self.servers.command(slot_of(&key), &command)).await?;
        read(reply).map(Option::unwrap_or_default)
    }

    /// Adds later values of `known` to the stored table, applies the change, and returns the table.
    ///
    /// # Errors
    ///
    /// If the server did not answer in time, in which case the change may have been made; or if the
    /// table is full.
    pub async fn write_shared_table(
        &self,
        table: &str,
        known: &SharedTable,
        change: Option<SharedChange<'_>>,
    ) -> Result<SharedTable, StoreError> {
        let key = self.namer.table_key(table);
        let (slot, mut tables) = (slot_of(&key), ScriptTables::default());
        tables.key_index_of(key);
        let mut program = match change {
            Some(SharedChange { name, is_cleared, value }) => {
                let (nonce, state) =
                    (RandomState::new().hash_one(0), if is_cleared { '-' } else { '+' });
                format!("{nonce:020}\t{state}\t{name}\t{value}\n")
            }
            None => "\n".to_owned(),
        };
        program.push_str(&known.to_text());
        let call = self.servers.call(slot, &SHARED_TABLE, &tables, program.into_bytes(), None);
        let reply = self.with_deadline(call).await?;
        read(reply)?.ok_or_else(|| {
            StoreError::new(StoreErrorKind::Rejected, "the table is full; clear names first")
        })
    }
}

fn read(reply: Value) -> Result<Option<SharedTable>, StoreError> {
    match reply {
        Value::Nil => Ok(None),
        Value::BulkString(text) => Ok(Some(SharedTable::parse(&String::from_utf8_lossy(&text)))),
        _ => Err(invalid_reply()),
    }
}

#[cfg(test)]
mod tests;
