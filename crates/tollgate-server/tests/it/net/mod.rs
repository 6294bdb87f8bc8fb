//! Sockets: binding, room, silence and an orderly end.

mod bind;
mod drain;
mod room;
