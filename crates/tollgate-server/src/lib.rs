//! Tollgate's front ends: each turns its wire into facts and a verdict into its wire, and nothing else.

pub mod audit;
pub mod front;
pub mod metrics;
