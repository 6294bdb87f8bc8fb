//! The twelve properties, numbered as in the design. The tenth, threads, is tested with the stores.
//! The core only has to be pure: deciding and charging depend on nothing but their arguments. The
//! eleventh, the Lua mirror, is tested with a real Redis.

mod p01_bound;
mod p02_retry;
mod p03_reading;
mod p04_remaining;
mod p05_time_alone;
mod p06_forgetting;
mod p07_splitting;
mod p08_clock_back;
mod p09_together;
mod p10_pure;
mod p12_extremes;
