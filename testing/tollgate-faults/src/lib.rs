//! Fault injection: servers, a proxy, nodes under open-loop load, and an oracle at the client.
//!
//! Nothing of Tollgate is linked here: nodes are processes of the program under test. Tests of
//! every crate share the servers. `cargo xtask faults` runs the whole table ([`scenario::ROWS`]) at
//! full length; the tests of `tollgate-cli` run a short form.

pub mod clock;
pub mod cluster;
pub mod http;
pub mod load;
pub mod measurements;
pub mod node;
pub mod oracle;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod report;
pub mod scenario;
pub mod sentinel;
pub mod temp_dir;
pub mod trial;
