//! Sockets: binding, connection limits, timeouts and drains.

mod bind;
mod drain;
mod room;
