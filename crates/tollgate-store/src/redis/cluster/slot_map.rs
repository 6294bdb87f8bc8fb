//! The slot map: the server of each slot.

use crate::redis::client::endpoint::ServerAddress;
use crate::redis::client::server::Server;
use redis::Value;
use std::sync::Arc;

/// The slot map: the server of each slot.
#[derive(Clone, Debug)]
pub(crate) struct SlotMap {
    /// For each slot, the index of its server, or `u16::MAX`.
    slots: Vec<u16>,
    pub(crate) servers: Vec<Arc<Server>>,
    /// Slots that answered `ASK` since this map was read.
    migrating: Vec<u16>,
    /// Whether single slots moved since this map was read: others may have moved too.
    pub(crate) is_partial: bool,
}

impl Default for SlotMap {
    fn default() -> Self {
        Self {
            slots: vec![u16::MAX; SLOTS],
            servers: Vec::new(),
            migrating: Vec::new(),
            is_partial: false,
        }
    }
}

/// A run of slots, and the server that has them.
pub(crate) type SlotRange = (std::ops::RangeInclusive<u16>, ServerAddress);

impl SlotMap {
    pub(crate) fn server(&self, slot: u16) -> Option<&Arc<Server>> {
        self.servers.get(self.server_index(slot)?)
    }

    pub(crate) fn server_index(&self, slot: u16) -> Option<usize> {
        let index = usize::from(*self.slots.get(usize::from(slot))?);
        (index < self.servers.len()).then_some(index)
    }

    pub(crate) fn is_migrating(&self, slot: u16) -> bool {
        self.migrating.contains(&slot)
    }

    pub(crate) fn set_migrating(&mut self, slot: u16) {
        self.migrating.push(slot);
    }

    /// The servers that have slots.
    pub(crate) fn primaries(&self) -> Vec<Arc<Server>> {
        let mut has = vec![false; self.servers.len()];
        for index in &self.slots {
            if let Some(has) = has.get_mut(usize::from(*index)) {
                *has = true;
            }
        }
        self.servers
            .iter()
            .zip(has)
            .filter(|(_, has)| *has)
            .map(|(server, _)| server.clone())
            .collect()
    }

    pub(crate) fn server_at(&self, address: &ServerAddress) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.is_at(address))
    }

    /// Gives `slots` to `server`.
    pub(crate) fn assign(&mut self, slots: std::ops::RangeInclusive<u16>, server: &Arc<Server>) {
        let known = self.servers.iter().position(|one| Arc::ptr_eq(one, server));
        let index = known.unwrap_or_else(|| {
            self.servers.push(Arc::clone(server));
            self.servers.len() - 1
        });
        for slot in slots {
            if let Some(entry) = self.slots.get_mut(usize::from(slot)) {
                *entry = index as u16;
            }
        }
    }

    /// Whether every slot has the same server in `other`.
    pub(crate) fn serves_same(&self, other: &Self) -> bool {
        let same = |slot: u16| match (self.server(slot), other.server(slot)) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        (0..SLOTS as u16).all(same)
    }
}

/// Parses the reply to `CLUSTER SLOTS`. A row without a host means the server at `asked`.
pub(crate) fn ranges(value: &Value, asked: &ServerAddress) -> Option<Vec<SlotRange>> {
    let Value::Array(rows) = value else { return None };
    let rows: Option<Vec<_>> = rows.iter().map(|row| range(row, asked)).collect();
    rows.filter(|rows| !rows.is_empty())
}

fn range(row: &Value, asked: &ServerAddress) -> Option<SlotRange> {
    let Value::Array(parts) = row else { return None };
    let [Value::Int(start), Value::Int(end), Value::Array(primary), ..] = parts.as_slice() else {
        return None;
    };
    let (Some(host), Some(Value::Int(port))) = (primary.first(), primary.get(1)) else {
        return None;
    };
    let host = match host {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok()?,
        _ => "",
    };
    let address = resolve(host, u16::try_from(*port).ok()?, asked);
    Some((u16::try_from(*start).ok()?..=u16::try_from(*end).ok()?, address))
}

/// The address in a reply from the server at `asked`.
pub(crate) fn resolve(host: &str, port: u16, asked: &ServerAddress) -> ServerAddress {
    match (host, asked) {
        ("" | "?", ServerAddress::Tcp(own, _)) => ServerAddress::Tcp(own.clone(), port),
        _ => ServerAddress::Tcp(host.into(), port),
    }
}

/// The number of slots.
pub(crate) const SLOTS: usize = 16_384;

/// The slot of `key`: by the text in its first pair of braces, if not empty.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let braced = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let tag = &key[open + 1..];
        let end = tag.iter().position(|byte| *byte == b'}')?;
        (end > 0).then(|| &tag[..end])
    });
    crc16(braced.unwrap_or(key)) % SLOTS as u16
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

/// Groups the indexes of items by slot, ordered by the first use of each slot.
pub(crate) fn group_by_slot(slots: impl Iterator<Item = u16>) -> Vec<(u16, Vec<usize>)> {
    let mut groups: Vec<(u16, Vec<usize>)> = Vec::new();
    for (index, slot) in slots.enumerate() {
        match groups.iter_mut().find(|group| group.0 == slot) {
            Some(group) => group.1.push(index),
            None => groups.push((slot, vec![index])),
        }
    }
    groups
}

#[cfg(test)]
mod tests;
