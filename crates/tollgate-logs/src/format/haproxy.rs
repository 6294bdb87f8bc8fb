//! HAProxy: `option httplog`, with or without a syslog header.

use super::{Format, FormatError, FormatSpec, LineKind, ReadOptions};
use crate::context::Context;
use crate::entry::{BadLine, Entry, Meaning};
use crate::time::TimeForm;

pub(super) const SPEC: FormatSpec = FormatSpec { name: "haproxy", build };

/// A reader in which captured headers are columns: `request.1`, `request.2`, `response.1`.
struct HaProxy {
    context: Context,
    captures: Vec<(bool, usize, usize)>,
}

fn build(options: &ReadOptions) -> Result<Box<dyn Format>, FormatError> {
    let capture = |(place, column): (usize, &str)| {
        let (side, number) = column.split_once('.')?;
        let is_response = match side {
            "request" => false,
            "response" => true,
            _ => return None,
        };
        Some((is_response, number.parse::<usize>().ok()?.checked_sub(1)?, place))
    };
    let captures = options.mapped().filter_map(capture).collect();
    Ok(Box::new(HaProxy { context: Context::new(options.zone.clone()), captures }))
}

impl Format for HaProxy {
    /// Reads `10.0.1.2:33317 [06/Feb/2009:12:14:14.655] in pool/srv1 10/0/30/69/109 200 2750 - -
    /// ---- 1/1/1/1/0 0/0 {example.com} {} "GET / HTTP/1.1"`.
    fn read<'l>(&mut self, line: &'l str, entry: &mut Entry<'l>) -> Result<LineKind, BadLine> {
        let bad = || BadLine("the line is not an HTTP log line of HAProxy".into());
        let at = line.find(" [").ok_or_else(bad)?;
        let (head, rest) = (&line[..at], &line[at + 2..]);
        // IPv6 addresses have no brackets, so the last colon separates the port.
        let client = head.rsplit(' ').next().and_then(|client| client.rsplit_once(':'));
        let (client, _port) = client.ok_or_else(bad)?;
        let (stamp, rest) = rest.split_once("] ").ok_or_else(bad)?;
        let mut words = rest.splitn(11, ' ');
        let mut next = || words.next().ok_or_else(bad);
        let (_frontend, _backend, timers, status, bytes) =
            (next()?, next()?, next()?, next()?, next()?);
        let (_cookies, _state, _connections, _queues) =
            ((next()?, next()?), next()?, next()?, next()?);
        let rest = next()?;
        let total = timers.rsplit('/').next().unwrap_or_default().trim_start_matches('+');
        if timers.split('/').count() != 5 {
            return Err(bad());
        }
        let context = &mut self.context;
        entry.take(Meaning::Address, client.into(), context)?;
        entry.take(Meaning::Time(TimeForm::Clf), stamp.into(), context)?;
        entry.take(Meaning::Status, if status == "-1" { "-" } else { status }.into(), context)?;
        entry.take(Meaning::Bytes, bytes.trim_start_matches('+').into(), context)?;
        entry.take(Meaning::Duration(1_000_000), total.into(), context)?;
        let quote = rest.find('"').ok_or_else(bad)?;
        let request = rest[quote + 1..].trim_end().trim_end_matches('"');
        entry.take(Meaning::RequestLine, request.into(), context)?;
        for (is_response, number, place) in &self.captures {
            let groups = rest[..quote].split('{').skip(1);
            let mut groups = groups.map(|group| group.split('}').next().unwrap_or_default());
            let group = if *is_response { groups.nth(1) } else { groups.next() };
            if let Some(value) = group.and_then(|group| group.split('|').nth(*number)) {
                entry.take(Meaning::Attribute(*place), value.into(), context)?;
            }
        }
        entry.finish()?;
        Ok(if entry.is_http() { LineKind::Request } else { LineKind::NotHttp })
    }
}
