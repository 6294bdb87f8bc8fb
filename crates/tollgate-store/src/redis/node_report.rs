//! Reports that the nodes of a store publish for each other. Each expires after its lifetime.

use super::RedisStore;
use super::batch::ScriptTables;
use super::batch::rows::invalid_reply;
use super::cluster::slot_of;
use super::script::Script;
use crate::StoreError;
use redis::Value;
use std::sync::LazyLock;
use std::time::Duration;

static NODE_REPORT: LazyLock<Script> =
    LazyLock::new(|| Script::of(include_str!("node_report.lua")));

/// A node's published report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// The name of the node.
    pub node: String,
    /// The report's bytes.
    pub report: Vec<u8>,
}

impl RedisStore {
    /// Replaces the report of a node. `node` must not contain a line feed.
    ///
    /// # Errors
    ///
    /// If the server did not answer in time.
    pub async fn publish_report(
        &self,
        topic: &str,
        node: &str,
        report: &[u8],
        lifetime: Duration,
    ) -> Result<(), StoreError> {
        let (list, mut tables) = (self.namer.table_key(topic), ScriptTables::default());
        let slot = slot_of(&list);
        tables.key_index_of(list);
        tables.key_index_of(self.namer.report_key(topic, node));
        let mut program = format!("{} {node}\n", lifetime.as_millis()).into_bytes();
        program.extend_from_slice(report);
        let call = self.servers.call(slot, &NODE_REPORT, &tables, program, None);
        self.with_deadline(call).await.map(drop)
    }

    /// The reports of all nodes, at most 256.
    ///
    /// # Errors
    ///
    /// If the server did not answer in time.
    pub async fn reports(&self, topic: &str) -> Result<Vec<NodeReport>, StoreError> {
        let list = self.namer.table_key(topic);
        let slot = slot_of(&list);
        let mut command = redis::cmd("GET");
        command.arg(&list);
        let nodes = match self.with_deadline(self.servers.command(slot, &command)).await? {
            Value::Nil => return Ok(Vec::new()),
            Value::BulkString(lines) => String::from_utf8_lossy(&lines).into_owned(),
            _ => return Err(invalid_reply()),
        };
        let nodes: Vec<&str> =
            nodes.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        let mut command = redis::cmd("MGET");
        command
            .arg(nodes.iter().map(|node| self.namer.report_key(topic, node)).collect::<Vec<_>>());
        let reports = match self.with_deadline(self.servers.command(slot, &command)).await? {
            Value::Array(reports) => reports,
            _ => return Err(invalid_reply()),
        };
        let report = |(node, report): (&str, Value)| match report {
            Value::BulkString(report) => Some(NodeReport { node: node.to_owned(), report }),
            _ => None,
        };
        Ok(nodes.into_iter().zip(reports).filter_map(report).collect())
    }
}
