//! Who holds what of a key, for an operator.

use super::super::RedisStore;
use super::super::cluster::slot_of;
use super::super::key::book;
use super::super::replay::senseless;
use super::super::reply::bytes;
use super::Leases;
use crate::{Charge, Holding, LedgerReport, StoreError};
use redis::Value;

/// Bytes of a holder's name that are its process; the rest is the number of the holding.
const PROCESS: usize = 16;

impl RedisStore {
    pub(in crate::redis) async fn read_ledger(
        &self,
        charge: &Charge<'_>,
    ) -> Result<Option<LedgerReport>, StoreError> {
        let name = self.namer.name(charge.limit, charge.key, charge.numbers);
        let mut command = redis::cmd("HGETALL");
        command.arg(book(&name));
        let value = self.in_time(self.servers.command(slot_of(&name), &command)).await?;
        let fields = fields(value).ok_or_else(senseless)?;
        if fields.is_empty() {
            return Ok(None);
        }
        report(&fields, &self.leases).ok_or_else(senseless).map(Some)
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
                let [seen_us, ledger, quiet_until_us, _] = numbers(value)?;
                (report.ledger, report.seen_us) = (ledger, seen_us);
                report.quiet_us = quiet_until_us.saturating_sub(seen_us);
            }
            b"s" => {}
            name => {
                let (process, number) = name.split_at_checked(PROCESS)?;
                let [granted, returned, _, heard_us] = numbers(value)?;
                report.holdings.push(Holding {
                    process: process.iter().map(|byte| format!("{byte:02x}")).collect(),
                    number: number.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
                    granted,
                    returned,
                    heard_us,
                    own: leases.is_process(process),
                });
            }
        }
    }
    report.holdings.sort_by(|a, b| (&a.process, a.number).cmp(&(&b.process, b.number)));
    Some(report)
}

fn numbers(value: &[u8]) -> Option<[u64; 4]> {
    let mut all = str::from_utf8(value).ok()?.split(':').map(|digits| digits.parse().ok());
    let mut next = || all.next()?;
    Some([next()?, next()?, next()?, next()?])
}
