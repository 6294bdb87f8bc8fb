//! The holders of a leased key, for operators.

use super::Leases;
use crate::redis::RedisStore;
use crate::redis::batch::rows::{bytes, invalid_reply};
use crate::redis::cluster::slot_of;
use crate::redis::key::grant_book_key;
use crate::{Charge, HolderReport, LedgerReport, StoreError};
use redis::Value;

/// The length of the process id in a holder's name. The rest is the number.
const PROCESS: usize = 16;

impl RedisStore {
    pub(crate) async fn read_ledger(
        &self,
        charge: &Charge<'_>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        let name = self.namer.state_key(charge.limit, charge.key, charge.params);
        let mut command = redis::cmd("HGETALL");
        command.arg(grant_book_key(&name));
        let value = self.with_deadline(self.servers.command(slot_of(&name), &command)).await?;
        let fields = fields(value).ok_or_else(invalid_reply)?;
        if fields.is_empty() {
            return Ok(None);
        }
        report(&fields, &self.leases).ok_or_else(invalid_reply).map(Some)
    }
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn fields(value: Value) -> Option<Fields> {
    let both = |(name, value)| Some((bytes(name)??, bytes(value)??));
    match value {
        Value::Map(pairs) => pairs.into_iter().map(both).collect(),
        Value::Array(flat) => {
            let pairs = flat.as_chunks::<2>().0.iter().cloned();
            pairs.map(|[name, value]| both((name, value))).collect()
        }
        Value::Nil => Some(Vec::new()),
        _ => None,
    }
}

fn report(fields: &Fields, leases: &Leases) -> Option<LedgerReport> {
    let mut report = LedgerReport::default();
    for (name, value) in fields {
        match &name[..] {
            b"m" => {
                let [seen_us, ledger, grace_until_us, _] = numbers(value)?;
                (report.ledger, report.seen_us) = (ledger, seen_us);
                report.grace_us = grace_until_us.saturating_sub(seen_us);
            }
            b"s" => {}
            name => {
                let (process, number) = name.split_at_checked(PROCESS)?;
                let [granted, returned, _, last_seen_us] = numbers(value)?;
                report.holders.push(HolderReport {
                    process: process.iter().map(|byte| format!("{byte:02x}")).collect(),
                    number: number.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
                    granted,
                    returned,
                    last_seen_us,
                    is_this_process: leases.table.is_process(process),
                });
            }
        }
    }
    report.holders.sort_by(|a, b| (&a.process, a.number).cmp(&(&b.process, b.number)));
    Some(report)
}

fn numbers(value: &[u8]) -> Option<[u64; 4]> {
    let mut all = str::from_utf8(value).ok()?.split(':').map(|digits| digits.parse().ok());
    let mut next = || all.next()?;
    Some([next()?, next()?, next()?, next()?])
}
